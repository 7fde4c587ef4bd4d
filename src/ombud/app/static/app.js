"use strict";
// Every form works without this file. It adds keys, sends a click without reloading the page, and
// sends it again when the connection or the server was away: the same click twice counts once.
(function () {
  var busy = false;
  var waiting = null; // a click that was not confirmed yet
  var ticked = null; // the form of a tick that was made while another click was on its way
  var activeFor = 0, since = document.visibilityState === "visible" ? Date.now() : 0;

  function element(id) { return document.getElementById(id); }
  function pauseClock() { if (since) { activeFor += Date.now() - since; since = 0; } }
  function startClock() { if (!since) { since = Date.now(); } }
  function resetClock() { activeFor = 0; since = document.visibilityState === "visible" ? Date.now() : 0; }
  function seconds() { return ((activeFor + (since ? Date.now() - since : 0)) / 1000).toFixed(2); }

  function keysAreOn() {
    try { return localStorage.getItem("ombud-keys") !== "off"; } catch (error) { return true; }
  }

  function showProblem(text) {
    var box = element("offline");
    if (!box) { return; }
    box.textContent = text;
    box.hidden = !text;
  }

  // Ticks stay open while a tick is stored; an answer replaces the task, so nothing can be ticked then.
  function lock(on, quiet) {
    busy = on;
    var task = element("task");
    if (!task) { return; }
    task.setAttribute("aria-busy", on ? "true" : "false");
    task.querySelectorAll(quiet ? "button" : "button, [data-save]").forEach(function (one) { one.disabled = on; });
  }

  function place(html, keepFocus) {
    var old = element("task");
    var before = old.dataset.assignment;
    var parsed = new DOMParser().parseFromString(html, "text/html").getElementById("task");
    if (!parsed) { location.reload(); return; }
    if (parsed.dataset.version !== old.dataset.version) { location.reload(); return; }
    old.replaceWith(document.adoptNode(parsed));
    if (element("task").dataset.assignment !== before) { resetClock(); window.scrollTo(0, 0); }
    var target = element("task").querySelector("[data-focus]");
    if (target && !keepFocus) { target.focus({ preventScroll: true }); }
  }

  function send(body, tries, quiet) {
    waiting = body;
    lock(true, quiet);
    fetch("/rate", {
      method: "POST",
      body: body,
      headers: { "X-Fragment": "1", "Content-Type": "application/x-www-form-urlencoded" },
      credentials: "same-origin",
      redirect: "error"
    }).then(function (reply) {
      return reply.text().then(function (text) {
        if (reply.status === 200 || reply.status === 409) {
          waiting = null;
          showProblem("");
          lock(false);
          if (quiet && reply.status === 200) {
            var form = ticked;
            ticked = null;
            if (form) { saveDetails(form); } else { element("said").textContent = "Stored."; }
            return;
          }
          ticked = null;
          place(text, false);
          tellOthers();
        } else if (reply.status === 507 || reply.status >= 500) {
          again(body, tries, text, quiet);
        } else {
          waiting = null;
          ticked = null;
          lock(false);
          showProblem(text + " Nothing was stored.");
        }
      });
    }).catch(function () {
      again(body, tries, "The server cannot be reached.", quiet);
    });
  }

  function again(body, tries, reason, quiet) {
    var pause = Math.min(15, Math.pow(2, tries));
    showProblem(reason + " Your last click is not stored yet. Trying again in " + pause + " s; do not close this page.");
    setTimeout(function () { send(body, tries + 1, quiet); }, pause * 1000);
  }

  function bodyOf(form, button) {
    var active = form.querySelector("[name=active]");
    if (active) { active.value = seconds(); }
    var data = new URLSearchParams(new FormData(form));
    if (button && button.name) { data.set(button.name, button.value); }
    return data.toString();
  }

  function saveDetails(form) {
    element("said").textContent = "";
    send(bodyOf(form, { name: "do", value: "details" }), 0, true);
  }

  document.addEventListener("submit", function (event) {
    var form = event.target;
    if (!form.hasAttribute("data-live")) { return; }
    event.preventDefault();
    if (!busy) { send(bodyOf(form, event.submitter), 0, false); }
  });

  document.addEventListener("change", function (event) {
    var input = event.target;
    if (input.id === "keys-on") {
      try { localStorage.setItem("ombud-keys", input.checked ? "on" : "off"); } catch (error) { /* stays for this page */ }
      return;
    }
    if (input.hasAttribute && input.hasAttribute("data-save")) {
      if (busy) { ticked = input.form; } else { saveDetails(input.form); }
    }
  });

  document.addEventListener("click", function (event) {
    var button = event.target.closest ? event.target.closest("[data-copy]") : null;
    if (!button) { return; }
    var field = button.parentNode.querySelector("input");
    field.select();
    if (navigator.clipboard) { navigator.clipboard.writeText(field.value); }
    button.textContent = "Copied";
  });

  document.addEventListener("keydown", function (event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat || busy) { return; }
    var at = event.target;
    var typing = at.closest && at.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (typing || !keysAreOn()) { return; }
    var key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "Enter" && at.closest && at.closest("a, button, summary")) { return; }
    if (key === "g" && element("guide")) { event.preventDefault(); element("guide").focus(); return; }
    if (key === "t" && element("text-title")) { event.preventDefault(); element("text-title").focus(); return; }
    var button = Array.prototype.find.call(document.querySelectorAll("[data-key]"), function (one) { return one.dataset.key === key; });
    if (button) { event.preventDefault(); button.click(); }
  });

  // Another tab may have answered: what is shown here is then fetched anew.
  var others = "BroadcastChannel" in window ? new BroadcastChannel("ombud") : null;
  function tellOthers() { if (others) { others.postMessage("changed"); } }
  function look() {
    if (busy || waiting || !element("task")) { return; }
    fetch("/rate", { headers: { "X-Fragment": "1" }, credentials: "same-origin" }).then(function (reply) {
      if (!reply.ok) { return; }
      return reply.text().then(function (text) { if (!busy && !waiting) { place(text, true); } });
    }).catch(function () { /* shown when something is sent */ });
  }
  if (others) { others.onmessage = look; }
  document.addEventListener("visibilitychange", function () {
    if (document.visibilityState === "visible") { startClock(); } else { pauseClock(); }
  });
  window.addEventListener("beforeunload", function (event) {
    if (waiting) { event.preventDefault(); }
  });

  var box = element("keys-on");
  if (box) { box.checked = keysAreOn(); }
})();
