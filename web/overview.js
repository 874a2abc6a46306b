// SPDX-License-Identifier: Apache-2.0
// The first view: what moves and why, the server in numbers, its rates, and a card for each table.

import { bar, limiterPicture, lines } from "./charts.js";
import { h } from "./dom.js";
import { bytes, count, elapsed, name, percent, rate, seconds, short, whole } from "./format.js";
import { live } from "./live.js";
import { isLimited, LONG_S, recent, titleOf, verdict } from "./why.js";

const MOST_CARDS = 60;
let filter = "";

export function tableLink(table, more = {}) {
  return h("a", { href: "#/table/" + encodeURIComponent(table), ...more }, name(table));
}

function entry(what) {
  return h("li", { key: what.table + "\n" + what.side + (what.isRollouts ? " of rollouts" : ""), class: what.held ? "held" : "" },
    h("div", { class: "held-title" }, what.isRollouts ? titleOf(what)
      : h("a", { href: "#/table/" + encodeURIComponent(what.table) }, titleOf(what))),
    what.hint && h("div", { class: "hint" }, what.hint),
    what.words && h("div", { class: "words" }, what.words),
    what.paused && h("div", { class: "words" }, "An administrator has paused this side. Resume it on the page of the table, or with reprise tables resume."),
    what.reasons.map((why, i) => h("div", { key: i, class: "reason" }, name(why, 600))),
    what.clients && h("div", { class: "who" }, `Waiting client${what.clients.includes(",") ? "s" : ""}: ${name(what.clients, 300)}`));
}

export function verdictPanel(info) {
  const found = verdict(info, live.total, live.tables);
  const shown = found.stuck.slice(0, 8);
  return h("section", { class: "verdict " + found.level, "aria-labelledby": "verdict-title", key: "verdict" },
    h("h1", { id: "verdict-title" }, found.title), found.text && h("p", {}, name(found.text, 600)),
    shown.length > 0 && h("ul", {}, shown.map(entry)),
    found.stuck.length > shown.length && h("p", {}, `and ${found.stuck.length - shown.length} more.`));
}

function tile(title, value, more, extra) {
  return h("div", { class: "tile", key: title }, h("div", { class: "tile-title" }, title),
    h("div", { class: "tile-value" }, value), h("div", { class: "tile-more" }, more), extra);
}

function tiles(info) {
  const now = recent(live.total, 3), s = info.server, store = info.store;
  const budget = store.max_bytes > 0 ? `${percent(store.bytes, store.max_bytes)} of ${bytes(store.max_bytes)}` : "no budget is set";
  return h("section", { class: "tiles", "aria-label": "The server in numbers", key: "tiles" },
    tile("Health", h("span", { class: "health " + s.health }, s.health), `up ${elapsed(s.uptime_seconds)}`),
    tile("Memory", bytes(store.bytes), budget, store.max_bytes > 0 && bar(store.bytes, store.max_bytes, `Memory: ${budget}`, true)),
    tile("Connections", whole(s.connections), count(s.streams, "open stream")),
    tile("Inserts/s", rate(now.inserts), `${bytes(now.inBytes)}/s`),
    tile("Samples/s", rate(now.samples), `${bytes(now.outBytes)}/s`),
    tile("Updates/s", rate(now.updates), "of priorities"));
}

function charts() {
  const t = live.total;
  return h("section", { class: "charts", "aria-label": "Rates of the last minutes", key: "charts" },
    lines({ key: "items", title: "Items a second", x: t.t, isTime: true, isLive: true, fromZero: true, format: rate, sync: "rates",
      series: [{ name: "inserts", values: t.inserts }, { name: "samples", values: t.samples }, { name: "updates", values: t.updates }] }),
    lines({ key: "bytes", title: "Bytes a second", x: t.t, isTime: true, isLive: true, fromZero: true, format: bytes, sync: "rates",
      series: [{ name: "inserted", values: t.inBytes }, { name: "sampled", values: t.outBytes }] }));
}

/* "paused", "closed", "inserts wait": the state of a table in a word or two, or "" if all is well. */
export function stateOf(table) {
  if (table.closed) return "closed";
  if (table.inserts_paused && table.samples_paused) return "paused";
  if (table.inserts_paused) return "inserts paused";
  if (table.samples_paused) return "samples paused";
  const waits = (side) => table.waiting[side].now > 0 && table.waiting[side].longest_seconds >= LONG_S;
  if (waits("inserts") && waits("samples")) return "both sides wait";
  if (waits("inserts")) return "inserts wait";
  if (waits("samples")) return "samples wait";
  return "";
}

export function fact(title, value, more, kind = "") {
  return h("div", { class: "fact " + kind, key: title }, h("dt", {}, title), h("dd", {}, value, more && h("span", { class: "more" }, more)));
}

/* Samples per insert: as measured since the table was created, and as asked for. */
export function ratioText(table) {
  const measured = table.inserts > 0 ? short(table.samples / table.inserts) : "–";
  return [measured, isLimited(table.limiter) ? `of ${short(table.limiter.samples_per_insert)} asked` : ""];
}

function card(table) {
  const now = recent(live.tables.get(table.name), 3), state = stateOf(table);
  const [measured, asked] = ratioText(table);
  return h("article", { class: "card", key: table.name },
    h("header", {}, h("h3", {}, tableLink(table.name)), state && h("span", { class: "chip on" }, state)),
    h("div", { class: "size" }, h("b", {}, whole(table.size)), ` of ${whole(table.max_size)} items`,
      h("span", { class: "more" }, bytes(table.bytes))),
    bar(table.size, table.max_size, `${whole(table.size)} of ${whole(table.max_size)} items`),
    limiterPicture(table),
    h("dl", { class: "facts" },
      fact("Inserts/s", rate(now.inserts)), fact("Samples/s", rate(now.samples)),
      fact("Inserts", short(table.inserts)), fact("Samples", short(table.samples)),
      fact("Updates", short(table.updates)), fact("Evictions", short(table.evictions)),
      fact("Samples per insert", measured, asked, "full"),
      fact("Sampled at least once", table.inserts > 0 ? percent(table.unique_samples, table.inserts) : "–", "", "full"),
      fact("Median age of items", table.median_age_seconds === null ? "–" : seconds(table.median_age_seconds), "", "full")));
}

// Tables in trouble first, then in the order of the server.
function sorted(info) {
  const trouble = (t) => (stateOf(t) ? 0 : 1);
  return info.tables.map((t, i) => [t, i]).sort((a, b) => trouble(a[0]) - trouble(b[0]) || a[1] - b[1]).map(([t]) => t);
}

export function overview(redraw) {
  const info = live.info;
  if (!info) return [];
  const many = info.tables.length > 12;
  const matching = sorted(info).filter((t) => t.name.toLowerCase().includes(filter.toLowerCase()));
  const shown = matching.slice(0, MOST_CARDS);
  const hidden = matching.length - shown.length + info.tables_left_out;
  return [
    verdictPanel(info), tiles(info), charts(),
    h("section", { key: "tables", "aria-labelledby": "tables-title" },
      h("div", { class: "section-head" }, h("h2", { id: "tables-title" }, "Tables ", h("span", { class: "number" }, whole(info.store.tables))),
        many && h("input", { type: "search", "aria-label": "Filter the tables by name", placeholder: "Filter by name", value: filter,
          oninput: (event) => { filter = event.target.value; redraw(); } })),
      h("div", { class: "cards" }, shown.map(card)),
      shown.length === 0 && h("p", { class: "empty" }, info.tables.length === 0 ? "The server has no tables." : "No table has this name."),
      hidden > 0 && h("p", { class: "empty" }, `${whole(hidden)} more tables are not shown.`)),
  ];
}
