(function () {
  "use strict";
  var content = JSON.parse(document.getElementById("specs").textContent);
  // A figure is looked up by name, and every plain object "has" a constructor.
  var figures = Object.assign(Object.create(null), content.figures);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var views = [];

  function draw() {
    views.splice(0).forEach(function (view) { view.finalize(); });
    document.querySelectorAll(".live").forEach(function (place) {
      var spec = figures[place.dataset.figure];
      if (!spec) { return; }
      var figure = place.closest("figure");
      place.hidden = false;
      place.replaceChildren();
      var narrow = place.clientWidth < 520;
      var config = Object.assign({}, dark.matches ? content.dark : content.light);
      if (narrow) {
        config.axisY = { ...config.axisY, labelLimit: 140 };
        config.axisX = { titleLimit: place.clientWidth - 130 };
      }
      var fitted = JSON.parse(JSON.stringify(spec), function (key, value) {
        return narrow && key === "columns" ? 1 : value;
      });
      if (!fitted.hconcat && !fitted.vconcat) { fitted.width = "container"; }
      var choice = figure.querySelector(".choice");
      choice.replaceChildren();
      window.vegaEmbed(place, fitted, {
        mode: "vega-lite",
        ast: true,
        actions: false,
        renderer: "svg",
        config: config,
        bind: choice,
        tooltip: { theme: dark.matches ? "dark" : "light" }
      }).then(function (drawn) {
        views.push(drawn);
        figure.classList.add("drawn");
        // The picture is described by the words of its static form; its parts are not read out.
        place.setAttribute("role", "img");
        place.setAttribute("aria-label", figure.querySelector("img").alt);
        place.querySelectorAll("svg").forEach(function (svg) { svg.setAttribute("aria-hidden", "true"); });
      }).catch(function (error) {
        place.hidden = true;
        figure.classList.remove("drawn");
        console.error("figure " + place.dataset.figure + ": " + error);
      });
    });
  }

  // Wide tables tell that they go on.
  function edges() {
    document.querySelectorAll(".scroll").forEach(function (place) {
      var hint = place.nextElementSibling;
      var room = place.scrollWidth - place.clientWidth - place.scrollLeft;
      if (hint && hint.classList.contains("goes-on")) { hint.hidden = room < 8; }
    });
  }
  document.querySelectorAll(".scroll").forEach(function (place) {
    place.addEventListener("scroll", edges, { passive: true });
  });
  window.addEventListener("resize", edges);
  edges();

  dark.addEventListener("change", draw);
  draw();
})();
