// SPDX-License-Identifier: Apache-2.0
// The views of training runs: a list, and the curves of one run or of all seeds of a group, its actors
// and an episode.

import { path, save } from "./api.js";
import { limiterPicture, lines } from "./charts.js";
import { h } from "./dom.js";
import { episodePanel, stopPlayer } from "./episode.js";
import { Fetched } from "./fetched.js";
import { elapsed, name, rate, short, whole } from "./format.js";
import { grid } from "./grid.js";
import { live } from "./live.js";
import { isLimited, recent } from "./why.js";

const MOST_SEEDS = 32, MOST_POINTS = 5000, SELDOM_MS = 60000;

/* "dqn-cartpole-seed3", "dqn/3" and "dqn_s3" belong to the groups "dqn-cartpole" and "dqn". */
export function groupOf(run) {
  // Without a regular expression: one with several repetitions takes cubic time for hostile names.
  const back = (at, set) => {
    while (at > 0 && set.includes(run[at - 1])) at--;
    return at;
  };
  const digits = back(run.length, "0123456789"), gap = back(digits, "-_=. ");
  const word = run.slice(0, gap).match(/seed$|s$/i)?.[0].length ?? 0;
  const end = back(gap - word, "-_/. ");
  if (digits === run.length) return run;
  if (end > 0 && (end < gap - word || word === 4)) return run.slice(0, end);
  const plain = back(gap, "-_/. ");
  return plain > 0 && plain < digits && run[plain] !== "=" ? run.slice(0, plain) : run;
}

function ago(time) {
  return typeof time === "number" ? `${elapsed(Math.max(0, Date.now() / 1000 - time))} ago` : "–";
}

export function runsView(_, redraw) {
  const list = new Fetched("v1/runs", 2000, redraw);

  function draw() {
    const runs = list.data ? list.data.runs || [] : null;
    const groups = new Map();
    for (const run of runs || []) {
      const group = groupOf(run.name);
      groups.set(group, [...(groups.get(group) || []), run]);
    }
    const newest = (of) => Math.max(...of.map((r) => r.last_seen || 0));
    const rows = [...groups].sort((a, b) => newest(b[1]) - newest(a[1]));
    return [h("h1", { key: "title" }, "Runs"),
      list.error && h("p", { class: "wrong", key: "error" }, `The list of runs is not there: ${name(list.error.message, 300)}`),
      runs && grid("Programs that report scalars", [
        { title: "Run", wrap: true, cell: ([group, of]) => h("a", { href: "#/runs/" + encodeURIComponent(of.length > 1 ? group : of[0].name) }, name(of.length > 1 ? group : of[0].name)) },
        { title: "Seeds", n: true, cell: ([, of]) => whole(of.length) },
        { title: "Points", n: true, cell: ([, of]) => whole(of.reduce((a, r) => a + (r.points || 0), 0)) },
        { title: "Last seen", n: true, cell: ([, of]) => ago(newest(of)) },
        { title: "Started", n: true, cell: ([, of]) => ago(Math.min(...of.map((r) => r.started))) },
        { title: "Scalars", wrap: true, cell: ([, of]) => name([...new Set(of.flatMap((r) => r.scalars || []))].join(", "), 200) },
      ], rows, "No program has reported to this server. reprise train --report ADDRESS does; other programs call reprise.log_scalars(address, run, step, {name: value}) or send POST v1/runs/NAME.")];
  }
  return { title: "Runs", draw, stop: () => list.stop() };
}

/* Adds the points of a response to those that are known. If the run began anew, its numbers did, too:
 * then all points are asked for again. Names of series may be those of properties, such as "constructor". */
export function join(now, known) {
  if (known && (known.started !== now.started || now.next < known.next))
    return { ...now, series: Object.create(null), next: 0, last_seen: null };
  const series = known ? known.series : Object.create(null);
  for (const [key, points] of Object.entries(now.series || {})) {
    const s = series[key] || (series[key] = { step: [], time: [], value: [] });
    for (const part of ["step", "time", "value"]) s[part].push(...(points[part] || []));
    if (s.step.length > MOST_POINTS) // as the server does: every second point, and the newest
      for (const part of ["step", "time", "value"]) s[part] = s[part].filter((_, i, all) => i % 2 === 0 || i === all.length - 1);
  }
  return { ...now, series, actors: now.actors || (known && known.actors) || [], episode: now.episode || (known && known.episode) };
}

/* Several series with axes of their own on one axis: {x, values: [[...], ...]}. */
export function aligned(all, axis) {
  const xs = [...new Set(all.flatMap((s) => s[axis]))].sort((a, b) => a - b);
  const index = new Map(xs.map((x, i) => [x, i]));
  const values = all.map((s) => {
    const row = new Array(xs.length).fill(null);
    s[axis].forEach((x, i) => { row[index.get(x)] = s.value[i]; });
    return row;
  });
  return { x: xs, values };
}

/* The values of a series at every x between its first and its last point: a line between points. */
function interpolated(x, row) {
  const out = new Array(row.length).fill(null);
  let last = -1;
  row.forEach((value, i) => {
    if (value === null) return;
    out[i] = value;
    for (let k = last + 1; last >= 0 && k < i; k++)
      out[k] = row[last] + (value - row[last]) * (x[k] - x[last]) / (x[i] - x[last]);
    last = i;
  });
  return out;
}

/* The mean of several series at each x that lies within more than half of them. Their points need not be
 * at the same x. */
export function mean(x, values) {
  const rows = values.map((row) => interpolated(x, row));
  return x.map((_, i) => {
    const known = rows.map((row) => row[i]).filter((v) => v !== null);
    return 2 * known.length > rows.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  });
}

// Returns first, then the learner, then the rest by name.
function rank(key) {
  if (/eval.*return|return.*eval/i.test(key)) return 0;
  if (/return|reward|rew_mean/i.test(key)) return 1;
  if (/loss|td|^q|grad/i.test(key)) return 2;
  return 3;
}

function curve(key, seeds, axis) {
  const having = seeds.filter(([, data]) => data.series[key]);
  const { x, values } = aligned(having.map(([, data]) => data.series[key]), axis);
  const many = having.length > 1, middle = many ? mean(x, values) : null;
  const series = having.map(([run], i) => ({ name: many ? name(run, 30) : key, values: values[i], alpha: many ? 0.55 : 1, width: many ? 1 : 1.5, colour: many ? "--line3" : "--line1" }));
  if (many && middle.some((v) => v !== null)) series.push({ name: "mean of all", values: middle, colour: "--line1", width: 2 });
  return lines({ key, title: name(key, 60), x, isTime: axis === "time", height: 170, spanGaps: true, series,
    legend: many ? [series.length - 1] : undefined, note: many ? `${having.length} seeds` : "" });
}

function actorsTable(seeds) {
  const rows = seeds.flatMap(([run, data]) => (data.actors || []).map((a) => ({ run, ...a })));
  if (rows.length === 0) return null;
  return grid("Actors", [
    seeds.length > 1 && { title: "Run", cell: (a) => name(a.run, 40) }, { title: "Actor", cell: (a) => name(a.name, 60) },
    { title: "Epsilon", n: true, cell: (a) => short(a.epsilon) }, { title: "Return", n: true, cell: (a) => short(a.return) },
    { title: "Version", n: true, cell: (a) => whole(a.version) }, { title: "Version lag", n: true, cell: (a) => whole(a.version_lag) },
    { title: "Last seen", n: true, cell: (a) => ago(a.last_seen) },
  ].filter(Boolean), rows, "");
}

// Actors and learner against the bands of the rate limiters: who waits for whom.
function limiters() {
  const tables = live.info ? live.info.tables.filter((t) => isLimited(t.limiter)).slice(0, 4) : [];
  if (tables.length === 0) return null;
  return h("section", { class: "panel", key: "limiters", "aria-label": "Rate limiters" }, h("h2", {}, "Rate limiters"), tables.map((t) => {
    const now = recent(live.tables.get(t.name), 3);
    return h("div", { key: t.name }, h("div", { class: "size" }, h("a", { href: "#/table/" + encodeURIComponent(t.name) }, name(t.name, 40)),
      h("span", { class: "more" }, `${rate(now.inserts)} inserts/s, ${rate(now.samples)} samples/s, ${rate(now.updates)} updates/s`)), limiterPicture(t));
  }));
}

export function runView([wanted], redraw) {
  const runs = new Map(), player = { at: 0, timer: null };
  let axis = "step", failure = "";
  const list = new Fetched("v1/runs", 1500, redraw, (data) => {
    const seeds = (data.runs || []).filter((r) => r.name === wanted || groupOf(r.name) === wanted).slice(0, MOST_SEEDS);
    for (const seed of seeds) {
      const page = runs.get(seed.name);
      if (!page) // the points are asked for when the list says that there are new ones
        runs.set(seed.name, new Fetched((known) => path("v1", "runs", seed.name) + (known ? `?after=${known.next}` : ""), SELDOM_MS, redraw, join));
      else if (page.data && page.data.last_seen !== seed.last_seen) page.now();
    }
    return data;
  });

  function exports(run) {
    const file = (end, text) => h("button", { type: "button", onclick: () => save(path("v1", "runs", run) + end, run.replace(/[^\w.-]+/g, "_") + end).catch((error) => {
      failure = error.message;
      redraw();
    }) }, text);
    return h("span", { class: "segments", key: run }, name(run, 40), file(".csv", "CSV"), file(".tfevents", "TensorBoard"));
  }

  function draw() {
    const seeds = [...runs].filter(([, page]) => page.data).map(([run, page]) => [run, page.data]);
    const keys = [...new Set(seeds.flatMap(([, data]) => Object.keys(data.series)))].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const episode = seeds.map(([, data]) => data.episode).find(Boolean);
    const choose = (to, text) => h("button", { type: "button", "aria-pressed": String(axis === to), onclick: () => { axis = to; redraw(); } }, text);
    return [
      h("div", { class: "crumbs", key: "head" }, h("div", {}, h("a", { href: "#/runs" }, "Runs"), h("h1", {}, name(wanted))),
        h("div", { class: "segments", role: "group", "aria-label": "Axis of the curves" }, choose("step", "Steps"), choose("time", "Wall clock"))),
      list.data && runs.size === 0 && h("p", { class: "empty", key: "none" }, "The server has no such run."),
      (list.error || [...runs.values()].find((p) => p.error)) && h("p", { class: "wrong", key: "error" }, name((list.error || [...runs.values()].find((p) => p.error).error).message, 300)),
      h("section", { class: "charts", key: "curves", "aria-label": "Curves" }, keys.map((key) => curve(key, seeds, axis))),
      h("div", { class: "columns", key: "columns" }, episodePanel(episode, redraw, player), h("div", { class: "stack", key: "stack" }, limiters(), actorsTable(seeds))),
      seeds.length > 0 && h("section", { class: "panel", key: "export" }, h("h2", {}, "Export"), failure && h("p", { class: "wrong" }, name(failure, 300)), h("div", { class: "segments" }, seeds.map(([run]) => exports(run)))),
    ];
  }

  return { title: name(wanted, 60), draw, stop() { list.stop(); stopPlayer(player); for (const page of runs.values()) page.stop(); } };
}
