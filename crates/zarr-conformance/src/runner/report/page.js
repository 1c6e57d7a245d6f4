"use strict";

// The report is the JSON report of the run; its fields are described with the program.
const report = JSON.parse(document.getElementById("results").textContent);
const STEP = 200;
const WORDS = { pass: "passed", fail: "FAILED", unsupported: "unsupported", skipped: "skipped" };
const at = (id) => document.getElementById(id);

/// An element with attributes, and text or elements inside. Text is never taken for markup.
function make(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...inside);
  return element;
}

// All cases in one list; a subject that was skipped counts as a case.
const cases = [];
for (const subject of report.subjects) {
  const group = subject.name.split("/")[0];
  if (subject.skipped !== undefined) {
    cases.push({ subject, group, id: "all cases", law: "", outcome: "skipped", message: subject.skipped, seconds: 0, place: subject.place });
  }
  for (const one of subject.cases) {
    cases.push({ ...one, subject, group, place: one.place ?? subject.place, message: one.message ?? "" });
  }
}
for (const one of cases) {
  one.says = report.laws[one.law] ?? "";
  one.words = [one.subject.name, one.id, one.says, one.message].join("\n").toLowerCase();
}
cases.sort((a, b) => (b.outcome === "fail") - (a.outcome === "fail"));

const count = (list, outcome) => list.filter((one) => one.outcome === outcome).length;
const groups = Map.groupBy ? Map.groupBy(cases, (one) => one.group) : cases.reduce((map, one) => map.set(one.group, [...(map.get(one.group) ?? []), one]), new Map());

// What is shown.
const wanted = { text: "", outcome: "", group: "", place: null, room: STEP };

function fits(one) {
  const { text, outcome, group, place } = wanted;
  return (!outcome || one.outcome === outcome)
    && (!group || one.group === group)
    && (!place || (one.place && Object.entries(place).every(([key, value]) => one.place[key] === value)))
    && text.split(/\s+/).every((word) => one.words.includes(word));
}

function bytes(hex) {
  const lines = [];
  for (let from = 0; from < hex.length; from += 32) {
    const pairs = hex.slice(from, from + 32).match(/../g);
    const text = pairs.map((pair) => parseInt(pair, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : ".")).join("");
    lines.push(`${(from / 2).toString(16).padStart(4, "0")}  ${pairs.join(" ").padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}

function detail(one) {
  const list = make("dl", { class: "detail" });
  const add = (title, ...content) => list.append(make("dt", {}, title), make("dd", {}, ...content));
  if (one.says) add("Law", one.says);
  if (one.message) add("Found", make("pre", {}, one.message));
  if (one.replay) {
    const copy = make("button", { type: "button", onclick: () => navigator.clipboard?.writeText(one.replay) }, "Copy");
    add("Replay", make("pre", { class: "box" }, one.replay), copy);
  }
  if (one.input) {
    const shown = one.input.hex.length / 2;
    const rest = shown < one.input.bytes ? `, the first ${shown} of them` : "";
    add("Input", `${one.input.bytes} bytes in `, make("code", {}, one.input.file), rest, make("pre", { class: "box" }, bytes(one.input.hex)));
    if (one.input.replay) add("The input alone", make("pre", { class: "box" }, one.input.replay));
  }
  add("Subject", make("code", {}, one.subject.name), one.subject.about ? `, ${one.subject.about}` : "");
  if (one.place) add("Place", `${one.place.implementation}, ${one.place.codec}, ${one.place.data_type}`);
  return list;
}

function row(one) {
  const time = one.seconds >= 0.1 ? `${one.seconds.toFixed(1)} s` : "";
  const element = make("details", { "data-outcome": one.outcome },
    make("summary", {},
      make("span", { class: `badge ${one.outcome}` }, WORDS[one.outcome]),
      make("span", { class: "mono" }, one.id),
      make("span", { class: "mono quiet", title: one.subject.name }, one.subject.name),
      make("span", { class: "quiet" }, time)));
  element.addEventListener("toggle", () => element.childElementCount === 1 && element.append(detail(one)));
  return element;
}

function show() {
  const found = cases.filter(fits);
  at("list").replaceChildren(...found.slice(0, wanted.room).map(row));
  const left = found.length - wanted.room;
  at("more").hidden = left <= 0;
  at("more").textContent = `Show ${Math.min(left, STEP)} more of ${left}`;
  at("count").textContent = found.length === cases.length ? `${cases.length} cases` : `${found.length} of ${cases.length} cases`;
  const place = at("place");
  place.hidden = !wanted.place;
  if (wanted.place) {
    place.replaceChildren("Only ", make("b", {}, Object.values(wanted.place).join(", ")), " ",
      make("button", { type: "button", onclick: () => want({ place: null }) }, "All places"));
  }
  at("text").value === wanted.text || (at("text").value = wanted.text);
  at("outcome").value = wanted.outcome;
  at("group").value = wanted.group;
}

function want(change, jump = false) {
  Object.assign(wanted, { room: STEP }, change);
  show();
  if (jump) at("cases").scrollIntoView();
}

function summary() {
  const { summary: sums, machine } = report;
  const failed = sums.failed > 0;
  at("verdict").textContent = failed ? "FAILED" : "passed";
  at("verdict").classList.add(failed ? "fail" : "pass");
  document.title = `zarr-conformance: ${failed ? `${sums.failed} failed` : "passed"}`;
  const day = new Date(report.started * 1000).toISOString().slice(0, 16).replace("T", " ");
  const about = `${day} UTC, ${report.seconds.toFixed(0)} s on ${machine.cpus} processors, ${machine.os} ${machine.arch}; CUDA: ${machine.cuda}; `
    + `version ${report.version}, seed ${report.seed}`;
  at("about").textContent = about;
  at("about").title = about;
  const tile = (number, name, kind, outcome) =>
    make("button", { type: "button", class: `tile ${number ? kind : "plain"}`, onclick: () => want({ ...NOTHING, outcome }, true) }, make("b", {}, String(number)), name);
  at("tiles").append(
    tile(report.subjects.length, "subjects", "plain", ""),
    tile(sums.passed + sums.failed + sums.unsupported, "cases", "plain", ""),
    tile(sums.passed, "passed", "pass", "pass"),
    tile(sums.failed, "failed", "fail", "fail"),
    tile(sums.unsupported, "unsupported", "unsupported", "unsupported"),
    tile(sums.subjects_skipped, "subjects skipped", "skipped", "skipped"));
  const head = ["Subjects", "Number", "Passed", "Failed", "Unsupported", "Skipped", "Seconds"];
  const lines = [...groups].map(([group, list]) => {
    const subjects = report.subjects.filter((subject) => subject.name.split("/")[0] === group);
    const seconds = subjects.reduce((sum, subject) => sum + subject.seconds, 0).toFixed(1);
    const numbers = ["pass", "fail", "unsupported", "skipped"].map((outcome) => {
      const number = count(list, outcome);
      return make("td", {}, make("span", { class: number ? `cell ${outcome}` : "quiet" }, String(number)));
    });
    return make("tr", {}, make("th", { scope: "row" }, group), make("td", {}, String(subjects.length)), ...numbers, make("td", {}, seconds));
  });
  at("groups").append(make("thead", {}, make("tr", {}, ...head.map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, ...lines));
  const reasons = new Map();
  for (const { name, skipped } of report.subjects) {
    if (skipped !== undefined) reasons.set(skipped, [...(reasons.get(skipped) ?? []), name]);
  }
  at("skipped").append(...[...reasons].map(([reason, names]) =>
    make("li", {}, `Skipped ${names[0]}${names.length > 1 ? ` and ${names.length - 1} more` : ""}: ${reason}`)));
}

/// A cell: what several cases come to. `unit` counts what passes.
function cell(list, place, unit) {
  const failed = count(list, "fail");
  const kind = failed ? "fail" : count(list, "pass") ? "pass" : list.length ? "unsupported" : "untested";
  if (kind === "untested") return make("td", { class: "untested" }, "\u00b7");
  const good = new Set(list.filter((one) => one.outcome === "pass").map(unit)).size;
  const text = { fail: `FAIL ${failed}`, pass: unit(list[0]) ? `ok ${good}` : "ok", unsupported: "\u2013" }[kind];
  const title = `${Object.values(place).join(", ")}: ${count(list, "pass")} passed, ${failed} failed, ${count(list, "unsupported") + count(list, "skipped")} unsupported`;
  return make("td", {}, make("button", { type: "button", class: `cell ${kind}`, title, onclick: () => want({ ...NOTHING, place }, true) }, text));
}

function matrix() {
  const placed = cases.filter((one) => one.place);
  const names = (key, list) => [...new Set(list.map((one) => one.place[key]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const one = at("implementation").value;
  const here = one ? placed.filter(({ place }) => place.implementation === one) : placed;
  const across = one ? "data_type" : "implementation";
  const columns = names(across, here);
  const byCell = new Map();
  for (const entry of here) {
    const key = `${entry.place.codec}\n${entry.place[across]}`;
    byCell.set(key, [...(byCell.get(key) ?? []), entry]);
  }
  const unit = one ? () => "" : (entry) => entry.place.data_type;
  const rows = names("codec", here).map((codec) => make("tr", {}, make("th", { scope: "row", class: "mono", title: codec }, codec),
    ...columns.map((column) => {
      const place = one ? { implementation: one, codec, data_type: column } : { implementation: column, codec };
      return cell(byCell.get(`${codec}\n${column}`) ?? [], place, unit);
    })));
  const titles = [one ? "codec \\ data type" : "codec \\ implementation", ...columns];
  at("places").classList.toggle("wide", Boolean(one));
  at("places").replaceChildren(make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, ...rows));
  at("matrix").hidden = placed.length === 0;
}

const NOTHING = { text: "", outcome: "", group: "", place: null };

function fill(select, all, options) {
  select.append(make("option", { value: "" }, all), ...options.map(([value, text]) => make("option", { value }, text)));
}

summary();
fill(at("implementation"), "all implementations; a cell counts data types", [...new Set(cases.flatMap((one) => one.place?.implementation ?? []))].sort()
  .map((name) => [name, `${name}, by data type`]));
fill(at("outcome"), "all", Object.entries(WORDS).map(([outcome, word]) => [outcome, `${word} (${count(cases, outcome)})`]));
fill(at("group"), "all", [...groups.keys()].map((group) => [group, group]));
at("implementation").addEventListener("change", matrix);
at("text").addEventListener("input", (event) => want({ text: event.target.value.toLowerCase() }));
at("outcome").addEventListener("change", (event) => want({ outcome: event.target.value }));
at("group").addEventListener("change", (event) => want({ group: event.target.value }));
at("clear").addEventListener("click", () => want(NOTHING));
at("more").addEventListener("click", () => { wanted.room += STEP; show(); });
matrix();
want(report.summary.failed ? { outcome: "fail" } : {});
