"use strict";
// Everything that comes from the server is put on the page as text; pictures alone are markup, and are read as SVG.

const WAIT = 350; // milliseconds after the last letter
const byId = (id) => document.getElementById(id);
const page = String(Math.random()).slice(2);
let offered = [], latest = 0, isAsking = false, isWaiting = false, timer = 0, failing = null;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// --- what is chosen ---

const chosen = () => offered.find((table) => table.name === byId("table").value);

function fill(select, options, value) {
  select.replaceChildren(...options.map(([name, label]) => { const one = element("option", label); one.value = name; return one; }));
  if (value !== undefined) select.value = value;
}

function showTable(withExample) {
  const table = chosen();
  fill(byId("order"), table.names.map((name) => [name, name]), table.order_by || table.names[0]);
  byId("columns").replaceChildren(...table.names.map((name, at) => {
    const item = element("li"), button = element("button");
    button.type = "button";
    button.append(element("code", name), element("span", " " + table.types[at]));
    button.addEventListener("click", () => insert(name));
    item.append(button);
    return item;
  }));
  const rest = byId("left-out");
  rest.hidden = !table.left_out;
  rest.textContent = `The first ${table.count.toLocaleString("en")} rows are looked at; ${table.left_out.toLocaleString("en")} more are left out.`;
  byId("events-count").textContent = `${table.count.toLocaleString("en")} events; the first ${table.first.rows.length} of them`;
  showRows(byId("first"), table.first);
  if (withExample) showExample();
}

function showExample() {
  const example = chosen().examples[byId("language").value];
  if (example !== undefined) { byId("query").value = example; mark(null); }
  byId("order-label").hidden = byId("language").value !== "sase";
}

function insert(text) {
  const query = byId("query");
  query.setRangeText(text, query.selectionStart, query.selectionEnd, "end");
  query.focus();
  edited();
}

// --- the query, and where it is wrong ---

function mark(error) {
  const query = byId("query"), under = byId("under"), text = query.value;
  failing = error && error.start !== undefined ? error : null;
  query.setAttribute("aria-invalid", String(Boolean(error)));
  if (!failing) { under.replaceChildren(text + "\n"); return; }
  const wrong = element("mark", text.slice(failing.start, failing.end) || " ");
  under.replaceChildren(text.slice(0, failing.start), wrong, text.slice(failing.end) + "\n");
  under.scrollTop = query.scrollTop;
}

function showError(error) {
  byId("error").hidden = !error;
  mark(error);
  if (!error) return;
  byId("message").textContent = error.where ? `${error.where}: ${error.message}` : error.message;
  byId("hint").textContent = error.hint || "";
  byId("excerpt").hidden = !error.excerpt;
  byId("excerpt").textContent = error.excerpt || "";
  byId("goto").hidden = error.start === undefined;
}

function goTo() {
  if (!failing) return;
  const query = byId("query");
  query.focus();
  query.setSelectionRange(failing.start, failing.end);
}

function edited() {
  mark(null);
  clearTimeout(timer);
  timer = setTimeout(ask, WAIT);
}

// --- asking: one question at a time, and of the others the newest ---

async function ask() {
  clearTimeout(timer);
  if (isAsking) { isWaiting = true; return; }
  const number = ++latest;
  const question = { page, number, table: byId("table").value, language: byId("language").value, query: byId("query").value,
    order_by: byId("order").value, at: byId("at").value };
  if (!question.query.trim()) { byId("status").textContent = "Write a query."; return; }
  isAsking = true;
  byId("answers").classList.add("old");
  byId("status").textContent = "…";
  try {
    const response = await fetch("ask", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    const answer = await response.json();
    if (!response.ok) showError({ message: answer.refused || "the question was refused" });
    else if (question.query === byId("query").value && !answer.superseded) show(answer);
  } catch (error) {
    byId("status").textContent = "The playground does not answer. Is kleene play still running?";
  } finally {
    isAsking = false;
    if (isWaiting) { isWaiting = false; ask(); }
  }
}

// --- the answer ---

function show(answer) {
  const notes = answer.notes || [];
  byId("notes").hidden = !notes.length;
  byId("notes").replaceChildren(...notes.map((note) => element("li", note)));
  showError(answer.error);
  if (answer.error) { byId("status").textContent = "The answer shown is that of the query before."; return; }
  byId("answers").classList.remove("old");
  const { count, total, rows } = answer.matches;
  const shown = rows.length < total ? `; the first ${rows.length} of ${total.toLocaleString("en")} rows` : "";
  const said = `${count.toLocaleString("en")} ${count === 1 ? "match" : "matches"}`;
  byId("count").textContent = said + shown;
  byId("status").textContent = said;
  showRows(byId("rows"), answer.matches);
  showPicture(byId("timeline"), answer.timeline);
  showPicture(byId("states"), answer.automaton);
  showText(byId("plan-text"), answer.plan);
  showText(byId("why-text"), answer.why);
}

function showRows(table, { columns, rows, numeric }) {
  if (!rows.length) { table.replaceChildren(); return; }
  const head = element("tr");
  head.append(...columns.map((name, at) => { const one = element("th", name, numeric[at] ? "number" : ""); one.scope = "col"; return one; }));
  const body = element("tbody");
  body.append(...rows.map((row) => { const one = element("tr"); one.append(...row.map((cell, at) => element("td", cell, numeric[at] ? "number" : ""))); return one; }));
  const top = element("thead");
  top.append(head);
  table.replaceChildren(top, body);
}

function showText(target, part) {
  target.textContent = part.error ? `${part.error.message}\n${part.error.hint}` : part.text;
}

function showPicture(figure, part) {
  if (part.error) { figure.replaceChildren(element("p", `${part.error.message} ${part.error.hint}`)); return; }
  const drawn = new DOMParser().parseFromString(part.svg, "image/svg+xml").documentElement;
  if (drawn.nodeName !== "svg") { figure.replaceChildren(element("p", "The picture cannot be read.")); return; }
  figure.replaceChildren(document.importNode(drawn, true), ...(part.note ? [element("figcaption", part.note)] : []));
}

// --- tabs ---

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const one of tabs) {
    const isChosen = one === tab;
    one.setAttribute("aria-selected", String(isChosen));
    one.tabIndex = isChosen ? 0 : -1;
    byId(one.getAttribute("aria-controls")).hidden = !isChosen;
  }
}

for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const target = event.key === "Home" ? tabs[0] : event.key === "End" ? tabs.at(-1)
      : step && tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    if (!target) return;
    event.preventDefault();
    choose(target);
    target.focus();
  });
}

// --- the beginning ---

byId("query").addEventListener("input", edited);
byId("query").addEventListener("scroll", () => { byId("under").scrollTop = byId("query").scrollTop; });
byId("at").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, WAIT); });
byId("run").addEventListener("click", ask);
byId("goto").addEventListener("click", goTo);
byId("table").addEventListener("change", () => { showTable(true); ask(); });
byId("language").addEventListener("change", () => { showExample(); ask(); });
byId("order").addEventListener("change", ask);
document.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });

fetch("tables").then((response) => response.json()).then((contents) => {
  offered = contents.tables;
  fill(byId("table"), offered.map((table) => [table.name, table.label]));
  fill(byId("language"), Object.entries(contents.languages), contents.start ? contents.start.language : undefined);
  showTable(true);
  if (contents.start) { byId("query").value = contents.start.query; mark(null); }
  byId("order-label").hidden = byId("language").value !== "sase";
  ask();
});
