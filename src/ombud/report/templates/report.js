(function () {
  "use strict";
  var content = JSON.parse(document.getElementById("specs").textContent);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var views = [];

  function draw() {
    views.splice(0).forEach(function (view) { view.finalize(); });
    document.querySelectorAll(".live").forEach(function (place) {
      var spec = content.figures[place.dataset.figure];
      if (!spec) { return; }
      var figure = place.closest("figure");
      place.hidden = false;
      place.replaceChildren();
      var narrow = place.clientWidth < 520;
      var config = Object.assign({}, dark.matches ? content.dark : content.light);
      if (narrow) {
        config.axisY = { labelLimit: 110 };
      }
      var fitted = JSON.parse(JSON.stringify(spec), function (key, value) {
        return narrow && key === "columns" ? 1 : value;
      });
      fitted.width = "container";
      window.vegaEmbed(place, fitted, {
        mode: "vega-lite",
        ast: true,
        actions: false,
        renderer: "svg",
        config: config,
        tooltip: { theme: dark.matches ? "dark" : "light" }
      }).then(function (drawn) {
        views.push(drawn);
        figure.classList.add("drawn");
      }).catch(function (error) {
        place.hidden = true;
        figure.classList.remove("drawn");
        console.error("figure " + place.dataset.figure + ": " + error);
      });
    });
  }

  // The reader may have unfolded some tables; paper shows all of them, then the screen as before.
  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (one) { one.open = true; });
  });
  window.addEventListener("afterprint", function () {
    folded.splice(0).forEach(function (one) { one.open = false; });
  });

  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var holder = target && target.closest("details");
    if (holder) { holder.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", unfold);

  dark.addEventListener("change", draw);
  draw();
  unfold();
})();
