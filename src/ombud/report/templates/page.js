"use strict";
// Sorting, filtering, CSV and the table of all numbers. The page reads well without it.
const make = (tag, props = {}, ...inside) => { const e = Object.assign(document.createElement(tag), props); e.append(...inside); return e; };
const save = (name, rows) => {
  const plain = t => t.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]/g, "");
  const cell = t => /^([\t\n]|\s*'*[=@|%+\-\uff1d\uff20\uff0b\uff0d])/.test(t) && isNaN(t) ? "'" + t : t;
  const text = rows.map(r => r.map(t => '"' + cell(plain(String(t))).replaceAll('"', '""') + '"').join(",")).join("\n");
  make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name + ".csv" }).click();
};
for (const table of document.querySelectorAll("table[data-name]")) {
  const body = table.tBodies[0], heads = [...[...table.tHead.rows].at(-1).cells];
  heads.forEach((head, i) => { const title = head.querySelector("span"), button = make("button", { type: "button" }, title.textContent); title.className = "printed"; title.before(button); button.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending";
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => { const t = (row.cells[i].querySelector("b") || row.cells[i]).textContent, x = parseFloat(t.replace(/[+,\s]/g, "").replace("\u2212", "-")); return isNaN(x) ? t : x; };
    const sign = up ? 1 : -1;
    const rows = [...body.rows].sort((a, b) => { const x = value(a), y = value(b); return sign * (typeof x === typeof y ? (x > y) - (x < y) : typeof x === "string" ? -1 : 1); });
    rows.forEach(r => body.append(r)); table.classList.add("all");
  }); });
  const tools = make("div", { className: "tools" });
  const extra = body.querySelectorAll(".more").length;
  if (extra) { const b = make("button", { type: "button", textContent: `Show ${extra} more row${extra > 1 ? "s" : ""}` }); b.onclick = () => { table.classList.add("all"); b.remove(); }; tools.append(b); }
  if (body.rows.length > 8) {
    const box = make("input", { type: "search", placeholder: "Filter rows", ariaLabel: "Filter rows" });
    box.oninput = () => { table.classList.add("all"); for (const r of body.rows) r.hidden = !r.textContent.toLowerCase().includes(box.value.toLowerCase()); };
    tools.append(box);
    if (body.querySelector(".increase,.decrease")) {
      const only = make("input", { type: "checkbox" });
      only.onchange = () => { table.classList.add("all"); for (const r of body.rows) r.hidden = only.checked && !r.querySelector(".increase,.decrease"); };
      tools.append(make("label", {}, only, " significant only"));
    }
  }
  const csv = make("button", { type: "button", textContent: "Download CSV" });
  csv.onclick = () => save(table.dataset.name, [...table.rows].filter(r => r.className !== "blocks").map(r => [...r.cells].map(c => (r.parentNode === table.tHead && c.dataset.c || (c.querySelector("button") || c).innerText).replace(/\n/g, " "))));
  tools.append(csv); table.closest("figure").append(tools);
}
const data = JSON.parse(document.getElementById("page-data").textContent), place = document.getElementById("all-numbers");
if (place && data.columns) {
  const columns = data.columns, most = 50, chosen = {};
  for (const c of columns) if (typeof c.of === "string") c.of = c.of.split(" ");
  for (const c of columns) c.at ??= c.runs ? c.runs.flatMap((v, i) => i % 2 ? [] : Array(c.runs[i + 1]).fill(v)) : c.of.map((_, i) => i);
  const n = columns[0].at.length;
  const text = (c, i) => c.of[c.at[i]];
  const tools = make("div", { className: "tools" }), body = make("tbody"), note = make("span");
  const rows = () => [...Array(n).keys()].filter(i => Object.entries(chosen).every(([k, v]) => !v || text(columns[k], i) === v));
  const draw = () => {
    const found = rows(); body.replaceChildren();
    for (const i of found.slice(0, most)) body.append(make("tr", {}, ...columns.map(c => make("td", { className: c.numeric ? "num" : "", textContent: text(c, i) }))));
    note.textContent = `${Math.min(most, found.length)} of ${found.length.toLocaleString("en")} rows`;
  };
  columns.forEach((c, k) => {
    if (c.numeric || c.of.length < 2 || c.of.length > 400 || c.title === "Key") return;
    const pick = make("select", { ariaLabel: c.title }, make("option", { value: "", textContent: `${c.title}: all` }), ...c.of.filter(Boolean).map(t => make("option", { value: t, textContent: t })));
    pick.onchange = () => { chosen[k] = pick.value; draw(); }; tools.append(pick);
  });
  const csv = make("button", { type: "button", textContent: "Download CSV" });
  csv.onclick = () => save("all-numbers", [columns.map(c => c.title), ...rows().map(i => columns.map(c => text(c, i)))]);
  tools.append(csv, note);
  const head = make("thead", {}, make("tr", {}, ...columns.map(c => make("th", { scope: "col", className: c.numeric ? "num" : "", textContent: c.title }))));
  place.replaceChildren(tools, make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: data.caption }, make("table", {}, head, body)));
  draw();
}
const links = [...document.querySelectorAll("nav a")], seen = new IntersectionObserver(es => { for (const e of es) if (e.isIntersecting) links.forEach(a => a.classList.toggle("on", a.hash === "#" + e.target.id)); }, { rootMargin: "0px 0px -75% 0px" });
document.querySelectorAll("main section").forEach(s => seen.observe(s));
