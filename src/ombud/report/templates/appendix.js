(function () {
  "use strict";
  var tables = Object.assign(Object.create(null), JSON.parse(document.getElementById("tables").textContent));
  var PAGE = 100;
  var collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function make(tag, text, attributes) {
    var node = document.createElement(tag);
    if (text) { node.textContent = text; }
    Object.keys(attributes || {}).forEach(function (name) { node.setAttribute(name, attributes[name]); });
    return node;
  }
  function length(table) {
    var first = table.columns[0];
    return (first.text ? first.text.at : first.value).length;
  }
  function textAt(column, row) {
    if (column.text) { return column.text.of[column.text.at[row]]; }
    var value = column.value[row];
    return value === null ? "\u2013" : String(value).replace("-", "\u2212");
  }
  function rawAt(column, row) {
    if (!column.text) { return column.value[row] === null ? "" : String(column.value[row]); }
    return column.text.of[column.text.at[row]];
  }

  function build(holder) {
    var table = tables[holder.dataset.table];
    if (!table || holder.dataset.built) { return; }
    holder.dataset.built = "yes";
    var total = length(table);
    var state = { sort: -1, down: false, shown: PAGE, text: "", chosen: Object.create(null) };
    var title = holder.querySelector("summary").textContent;
    var controls = make("div", "", { "class": "controls" });
    var label = make("label", "Find ");
    var find = make("input", "", { type: "search", autocomplete: "off" });
    label.appendChild(find);
    controls.appendChild(label);
    table.columns.forEach(function (column, index) {
      if (!column.choose || column.text.of.length < 2) { return; }
      var choice = make("label", column.title + " ");
      var select = make("select");
      select.appendChild(make("option", "all", { value: "" }));
      column.text.of.map(function (text, at) { return { text: text, at: at }; })
        .sort(function (a, b) { return collator.compare(a.text, b.text); })
        .forEach(function (one) { select.appendChild(make("option", one.text || "(none)", { value: String(one.at) })); });
      select.addEventListener("change", function () {
        if (select.value === "") { delete state.chosen[index]; } else { state.chosen[index] = Number(select.value); }
        state.shown = PAGE;
        draw();
      });
      choice.appendChild(select);
      controls.appendChild(choice);
    });
    var save = make("button", "Save these rows as CSV", { type: "button" });
    controls.appendChild(save);
    var count = make("p", "", { "class": "count", "aria-live": "polite" });
    var scroll = make("div", "", { "class": "scroll", tabindex: "0", role: "region", "aria-label": title });
    var grid = make("table");
    grid.appendChild(make("caption", table.caption));
    var head = grid.createTHead().insertRow();
    var buttons = table.columns.map(function (column, index) {
      var cell = make("th", "", { scope: "col" });
      if (column.right) { cell.className = "r"; }
      var button = make("button", column.title || "Name", { type: "button", title: "Sort by this column" });
      button.addEventListener("click", function () {
        state.down = state.sort === index ? !state.down : Boolean(column.value);
        state.sort = index;
        draw();
      });
      cell.appendChild(button);
      head.appendChild(cell);
      return cell;
    });
    var body = make("tbody");
    grid.appendChild(body);
    scroll.appendChild(grid);
    var further = make("button", "", { type: "button", "class": "further" });
    further.addEventListener("click", function () { state.shown += 10 * PAGE; draw(); });
    [controls, count, scroll, further].forEach(function (node) { holder.appendChild(node); });
    if (table.notes.length) {
      var notes = make("ul", "", { "class": "notes" });
      table.notes.forEach(function (note) { notes.appendChild(make("li", note)); });
      holder.appendChild(notes);
    }
    var rows = [];

    function matches(row) {
      for (var index in state.chosen) {
        if (table.columns[index].text.at[row] !== state.chosen[index]) { return false; }
      }
      return !state.text || table.columns.some(function (column) {
        return textAt(column, row).toLowerCase().indexOf(state.text) >= 0;
      });
    }
    function compare(column) {
      var sign = state.down ? -1 : 1;
      if (column.value) {
        return function (a, b) {
          var x = column.value[a], y = column.value[b];
          if (x === null || y === null) { return (x === null) - (y === null) || a - b; }
          return sign * (x - y) || a - b;
        };
      }
      var ranks = column.text.of.map(function (text, at) { return at; })
        .sort(function (a, b) { return collator.compare(column.text.of[a], column.text.of[b]); });
      var rank = [];
      ranks.forEach(function (at, place) { rank[at] = place; });
      return function (a, b) { return sign * (rank[column.text.at[a]] - rank[column.text.at[b]]) || a - b; };
    }
    function draw() {
      rows = [];
      for (var row = 0; row < total; row += 1) { if (matches(row)) { rows.push(row); } }
      if (state.sort >= 0) { rows.sort(compare(table.columns[state.sort])); }
      buttons.forEach(function (cell, index) {
        if (index === state.sort) { cell.setAttribute("aria-sort", state.down ? "descending" : "ascending"); }
        else { cell.removeAttribute("aria-sort"); }
      });
      var part = document.createDocumentFragment();
      rows.slice(0, state.shown).forEach(function (row) {
        var line = make("tr");
        table.columns.forEach(function (column, index) {
          var text = textAt(column, row);
          var cell = make(index === 0 ? "th" : "td", text);
          if (text.length > 40) { cell.title = text; }
          if (index === 0) { cell.setAttribute("scope", "row"); }
          var tone = column.tone ? column.tone.of[column.tone.at[row]] : "";
          cell.className = (column.right ? "r " : "") + tone;
          line.appendChild(cell);
        });
        part.appendChild(line);
      });
      body.replaceChildren(part);
      var shown = Math.min(state.shown, rows.length);
      count.textContent = rows.length === total
        ? shown.toLocaleString("en") + " of " + total.toLocaleString("en") + " rows are shown."
        : shown.toLocaleString("en") + " of the " + rows.length.toLocaleString("en") + " rows chosen (of " + total.toLocaleString("en") + ") are shown.";
      further.hidden = shown >= rows.length;
      further.textContent = "Show " + Math.min(10 * PAGE, rows.length - shown).toLocaleString("en") + " more rows";
    }
    // A cell that a spreadsheet would take for a formula is kept from being one.
    function field(text) {
      if (/^[=+\-@\t\r]/.test(text) && isNaN(Number(text))) { text = "'" + text; }
      return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    }
    save.addEventListener("click", function () {
      var lines = [table.columns.map(function (column) { return field(column.title); }).join(",")];
      rows.forEach(function (row) {
        lines.push(table.columns.map(function (column) { return field(rawAt(column, row)); }).join(","));
      });
      var link = make("a", "", { download: holder.dataset.table + ".csv" });
      link.href = URL.createObjectURL(new Blob(["\ufeff" + lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
      document.body.appendChild(link);
      link.click();
      link.remove();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
    });
    var waiting = 0;
    find.addEventListener("input", function () {
      clearTimeout(waiting);
      waiting = setTimeout(function () {
        state.text = find.value.trim().toLowerCase();
        state.shown = PAGE;
        draw();
      }, 150);
    });
    draw();
  }

  var holders = Array.from(document.querySelectorAll("details.held"));
  holders.forEach(function (holder) {
    holder.addEventListener("toggle", function () { if (holder.open) { build(holder); } });
    if (holder.open) { build(holder); }
  });
  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.matches("details.held")) { target.open = true; build(target); target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", unfold);
  unfold();
})();
