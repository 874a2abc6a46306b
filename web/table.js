// SPDX-License-Identifier: Apache-2.0
// The view of one table: rates, limiter, histograms, waiting calls, items, options and actions.

import { path } from "./api.js";
import { bar, histogram, limiterPicture, lines } from "./charts.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { Fetched } from "./fetched.js";
import { bytes, elapsed, name, percent, rate, seconds, shape, short, whole } from "./format.js";
import { grid } from "./grid.js";
import { live } from "./live.js";
import { fact, ratioText, stateOf } from "./overview.js";
import { held, recent, titleOf } from "./why.js";

// The path that the server itself gives: a name may have bytes that are no characters.
function pathOf(table) {
  return table.path ? table.path.slice(1) : path("v1", "tables", table.name);
}

function selectorText(selector) {
  return selector.kind + (selector.exponent !== undefined ? ` (exponent ${short(selector.exponent)})` : "");
}

function pauseQuestion(table, verb) {
  const resumes = verb === "resume";
  return { title: `${resumes ? "Resume" : "Pause"} the table “${name(table.name, 60)}”?`,
    text: resumes ? "Calls that wait go on." : "Calls of the paused side wait until the table is resumed or their deadline passes. No data is lost.",
    button: `${resumes ? "Resume" : "Pause"} ${name(table.name, 30)}`, address: pathOf(table) + "/" + verb, confirm: table.name, header: pathOf(table).slice("v1/tables/".length),
    fields: [{ name: "inserts", label: "Inserts", type: "checkbox", value: true }, { name: "samples", label: "Samples", type: "checkbox", value: true }],
    body: (v) => ({ inserts: v.inserts, samples: v.samples }) };
}

function resetQuestion(table) {
  return { title: `Remove all items of “${name(table.name, 60)}”?`, danger: true, type: true,
    text: `${whole(table.size)} items are removed and the counters of the rate limiter begin anew. This cannot be undone.`,
    button: `Reset ${name(table.name, 30)}`, address: pathOf(table) + "/reset", confirm: table.name, header: pathOf(table).slice("v1/tables/".length) };
}

function alterQuestion(table) {
  const l = table.limiter;
  const fields = [["max_size", "Most items", table.max_size], ["max_bytes", "Most bytes (0: no limit)", table.max_bytes],
    ["max_times_sampled", "Most times an item is sampled (0: no limit)", table.max_times_sampled],
    ["min_size", "Items before the first sample", l.min_size], ["samples_per_insert", "Samples per insert", l.samples_per_insert],
    ["min_diff", "Cursor at which samples wait", l.min_diff], ["max_diff", "Cursor at which inserts wait", l.max_diff]];
  const before = Object.fromEntries(fields.map(([key, , value]) => [key, value === null ? "" : String(value)]));
  return { title: `Change the options of “${name(table.name, 60)}”`, text: "Fields that stay as they are are not sent. The items stay.",
    button: `Change ${name(table.name, 30)}`, address: pathOf(table) + "/alter", confirm: table.name, header: pathOf(table).slice("v1/tables/".length),
    fields: fields.map(([key, label]) => ({ name: key, label, value: before[key], hint: before[key] === "" ? "no bound" : "" })),
    body: (v) => Object.fromEntries(Object.keys(before).filter((key) => v[key].trim() !== before[key])
      .map((key) => [key, v[key].trim() === "" ? null : Number(v[key])])) };
}

function actions(table) {
  const open = (question) => () => ask(question(table));
  const paused = table.inserts_paused || table.samples_paused;
  return h("div", { class: "actions" },
    h("button", { type: "button", id: "pause", onclick: open((t) => pauseQuestion(t, "pause")) }, "Pause"),
    h("button", { type: "button", id: "resume", disabled: !paused, onclick: open((t) => pauseQuestion(t, "resume")) }, "Resume"),
    h("button", { type: "button", id: "alter", onclick: open(alterQuestion) }, "Change options"),
    h("button", { type: "button", id: "reset", class: "danger", onclick: open(resetQuestion) }, "Reset"));
}

function facts(table) {
  const now = recent(live.tables.get(table.name), 3), [measured, asked] = ratioText(table);
  return h("dl", { class: "facts wide" },
    fact("Size", whole(table.size), `of ${whole(table.max_size)}`), fact("Bytes", bytes(table.bytes), table.max_bytes > 0 ? `of ${bytes(table.max_bytes)}` : ""),
    fact("Inserts/s", rate(now.inserts)), fact("Samples/s", rate(now.samples)), fact("Updates/s", rate(now.updates)),
    fact("Samples per insert", measured, asked), fact("Inserts", whole(table.inserts)), fact("Samples", whole(table.samples)),
    fact("Updates", whole(table.updates)), fact("Deletes", whole(table.deletes)), fact("Evictions", whole(table.evictions)),
    fact("Sampled at least once", percent(table.unique_samples, table.inserts)), fact("Episodes", whole(table.episodes)),
    fact("Highest priority", short(table.max_priority)),
    fact("Insert: median, 99 %", `${seconds(table.network.insert.p50_seconds)}, ${seconds(table.network.insert.p99_seconds)}`),
    fact("Sample: median, 99 %", `${seconds(table.network.sample.p50_seconds)}, ${seconds(table.network.sample.p99_seconds)}`));
}

function waitingCalls(table) {
  return grid("Waiting calls", [
    { title: "Call", cell: (c) => c.kind },
    { title: "Waits for", n: true, cell: (c) => elapsed(c.waiting_seconds) },
    { title: "Done", n: true, cell: (c) => `${whole(c.done)} of ${whole(c.wanted)}` },
    { title: "Deadline in", n: true, cell: (c) => (c.deadline_seconds === null ? "none" : seconds(c.deadline_seconds)) },
    { title: "Client", cell: (c) => (c.client ? name(c.client, 60) : "–") },
    { title: "Reason", wrap: true, cell: (c) => name(c.why, 600) },
  ], table.waiting.calls, "No call waits.");
}

function recentItems(table, detail) {
  if (!detail.data) return null;
  return grid("Newest items", [
    { title: "Key", cell: (i) => h("a", { class: "mono", href: `#/table/${encodeURIComponent(table.name)}/item/${encodeURIComponent(i.key)}` }, String(i.key)) },
    { title: "Priority", n: true, cell: (i) => short(i.priority) }, { title: "Probability", n: true, cell: (i) => short(i.probability) },
    { title: "Sampled", n: true, cell: (i) => whole(i.times_sampled) }, { title: "Age", n: true, cell: (i) => seconds(i.age_s) },
    { title: "Steps", n: true, cell: (i) => whole(i.length) },
  ], detail.data.recent || [], "The table has no items.");
}

function histograms(detail) {
  const all = detail.data && detail.data.histograms;
  if (!all) return null;
  const one = (key, title, format) => all[key] && histogram({ title, format, bounds: all[key].bounds, counts: all[key].counts });
  const of = detail.data.sampled_items;
  return h("section", { key: "histograms", "aria-labelledby": "histograms-title" },
    h("div", { class: "section-head" }, h("h2", { id: "histograms-title" }, "Items ", h("span", { class: "number" }, of !== undefined ? `a random sample of ${whole(of)}` : ""))),
    h("div", { class: "charts small" }, one("priorities", "Priorities"), one("probabilities", "Probabilities of a sample"), one("ages_s", "Ages", seconds),
      one("times_sampled", "Times sampled")));
}

function signature(table) {
  const s = table.signature;
  return grid("Signature", [
    { title: "Column", wrap: true, cell: (c) => (c.name === null ? "–" : name(c.name)) },
    { title: "Type", cell: (c) => h("span", { class: "mono" }, c.dtype) },
    { title: "Shape", cell: (c) => h("span", { class: "mono" }, shape(c.shape)) },
  ], s ? s.columns : [], "The table accepts items of any columns.");
}

function optionsOf(table) {
  const bound = (x) => (x === null ? "none" : short(x));
  return h("div", { class: "panel", key: "options" }, h("h2", {}, "Options"), h("dl", { class: "facts wide" },
    fact("Sampler", selectorText(table.sampler)), fact("Remover", selectorText(table.remover)),
    fact("Most items", whole(table.max_size)), fact("Most bytes", table.max_bytes > 0 ? bytes(table.max_bytes) : "no limit"),
    fact("Most times sampled", table.max_times_sampled > 0 ? whole(table.max_times_sampled) : "no limit"),
    fact("Soft limit", table.soft_limit ? "yes" : "no"), fact("Items before the first sample", whole(table.limiter.min_size)),
    fact("Samples per insert", short(table.limiter.samples_per_insert)),
    fact("Samples wait under", bound(table.limiter.min_diff)), fact("Inserts wait over", bound(table.limiter.max_diff))));
}

export function tableView([tableName], redraw) {
  const find = () => live.info && live.info.tables.find((t) => t.name === tableName);
  const detail = new Fetched(() => pathOf(find() || { name: tableName }), 2000, redraw);

  function draw() {
    const shown = find();
    const table = shown || (detail.data && detail.data.limiter ? detail.data : null);
    if (!live.info) return [];
    if (!table)
      return h("section", { class: "panel" }, h("h1", {}, `There is no table “${name(tableName, 60)}”`), h("p", {}, h("a", { href: "#/" }, "Back to the overview")));
    // The page of the table describes more of the waiting calls than /v1/info does.
    const calls = detail.data && detail.data.waiting && table.waiting.calls.length > 0 && detail.data.waiting.calls.length > table.waiting.calls.length
      ? { ...table, waiting: { ...table.waiting, calls: detail.data.waiting.calls } } : table;
    const series = live.tables.get(tableName), state = stateOf(table);
    const why = held({ tables: [calls] }, live.tables).filter((x) => x.held || x.paused);
    return [
      h("div", { class: "crumbs", key: "head" }, h("div", {}, h("a", { href: "#/" }, "Tables"),
        h("h1", {}, name(tableName), " ", state && h("span", { class: "chip on" }, state))), actions(table)),
      why.length > 0 && h("section", { class: "verdict note", key: "why", "aria-label": "Why calls wait" }, h("ul", {}, why.map((x) => h("li", { key: x.side },
        h("b", {}, titleOf(x)), x.hint && h("div", { class: "hint" }, x.hint), x.words && h("div", {}, x.words), x.reasons.map((r, i) => h("div", { key: i, class: "reason" }, name(r, 600))))))),
      h("section", { class: "panel", key: "facts", "aria-label": "The table in numbers" }, bar(table.size, table.max_size, `${whole(table.size)} of ${whole(table.max_size)} items`), limiterPicture(table), facts(table)),
      series && h("section", { class: "charts", key: "charts", "aria-label": "Rates" },
        lines({ key: "rates", title: "Items a second", x: series.t, isTime: true, isLive: true, fromZero: true, format: rate, sync: "table",
          series: [{ name: "inserts", values: series.inserts }, { name: "samples", values: series.samples }, { name: "updates", values: series.updates }] }),
        lines({ key: "waits", title: "Calls that wait, on average", x: series.t, isTime: true, isLive: true, fromZero: true, format: short, sync: "table",
          series: [{ name: "inserts", values: series.insertWaits }, { name: "samples", values: series.sampleWaits }] })),
      waitingCalls(calls), histograms(detail),
      h("div", { class: "columns", key: "columns" }, recentItems(table, detail), h("div", { class: "stack", key: "stack" }, signature(table), optionsOf(table))),
      detail.error && h("p", { class: "empty", key: "error" }, `The items of this table are not shown: ${name(detail.error.message, 300)}`),
    ];
  }

  return { title: name(tableName, 60), draw, stop: () => detail.stop() };
}
