// SPDX-License-Identifier: Apache-2.0
// The views of training runs: a list, and the curves of one run or of all seeds of a group, its actors
// and an episode.

import { path, save } from "./api.js";
import { limiterPicture } from "./charts.js";
import { Curves } from "./curves.js";
import { h } from "./dom.js";
import { episodePanel, stopPlayer } from "./episode.js";
import { Fetched } from "./fetched.js";
import { elapsed, name, rate, short, whole } from "./format.js";
import { grid } from "./grid.js";
import { live } from "./live.js";
import { splitTable } from "./split.js";
import { isLimited, recent } from "./why.js";

const MOST_SEEDS = 32, MOST_POINTS = 5000, MOST_ACTORS = 64, MOST_LOADING = 2, SELDOM_MS = 60000;

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
    const s = series[key] || (series[key] = { step: [], time: [], value: [], revision: 0 });
    s.revision++;
    for (const part of ["step", "time", "value"]) s[part].push(...(points[part] || []));
    if (s.step.length > MOST_POINTS) // as the server does: every second point, and the newest
      for (const part of ["step", "time", "value"]) s[part] = s[part].filter((_, i, all) => i % 2 === 0 || i === all.length - 1);
  }
  return { ...now, series, actors: now.actors || (known && known.actors) || [], episode: now.episode || (known && known.episode) };
}

/* Of the actors of all seeds those that reported last, in the order of the seeds: {rows: [{run, actor}], more}. */
export function latestActors(seeds) {
  const all = seeds.flatMap(([run, data]) => (data.actors || []).map((actor) => ({ run, actor })));
  if (all.length <= MOST_ACTORS) return { rows: all, more: 0 };
  const last = new Set([...all].sort((a, b) => (b.actor.last_seen || 0) - (a.actor.last_seen || 0)).slice(0, MOST_ACTORS));
  return { rows: all.filter((row) => last.has(row)), more: all.length - MOST_ACTORS };
}

/* A function of the seeds that returns the table of their actors. It chooses the actors again when the data of a
 * seed have changed, and makes the table again at most once a second. */
export function actorsTable() {
  let of = [], found = null, second = 0, node = null;
  return (seeds) => {
    const now = Math.floor(Date.now() / 1000);
    if (of.length !== seeds.length || seeds.some(([, data], i) => data !== of[i])) {
      of = seeds.map(([, data]) => data);
      found = latestActors(seeds);
      second = 0;
    }
    if (second === now || seeds.length === 0) return node;
    second = now;
    node = found.rows.length === 0 ? null : grid("Actors", [
      seeds.length > 1 && { title: "Run", cell: (row) => name(row.run, 40) }, { title: "Actor", cell: (row) => name(row.actor.name, 60) },
      { title: "Epsilon", n: true, cell: (row) => short(row.actor.epsilon) }, { title: "Return", n: true, cell: (row) => short(row.actor.return) },
      { title: "Version", n: true, cell: (row) => whole(row.actor.version) }, { title: "Version lag", n: true, cell: (row) => whole(row.actor.version_lag) },
      { title: "Last seen", n: true, cell: (row) => ago(row.actor.last_seen) },
    ].filter(Boolean), found.rows, "", found.more > 0 && `and ${whole(found.more)} more; these ${MOST_ACTORS} reported last.`);
    return node;
  };
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
  const runs = new Map(), player = { at: 0, timer: null }, curves = new Curves(redraw), actors = actorsTable();
  let axis = "step", failure = "", isStopped = false;
  const wantedSeeds = (data) => (data.runs || []).filter((r) => r.name === wanted || groupOf(r.name) === wanted).slice(0, MOST_SEEDS);
  const list = new Fetched("v1/runs", 1500, redraw, (data) => {
    for (const seed of wantedSeeds(data)) { // the points are asked for when the list says that there are new ones
      const page = runs.get(seed.name);
      if (page && page.data && page.data.last_seen !== seed.last_seen) page.now();
    }
    load(data);
    return data;
  });

  // All points of a seed are read at once: few seeds at a time, so that the page can do other things between them.
  function load(data) {
    let loading = [...runs.values()].filter((page) => !page.data && !page.error).length;
    for (const { name: run } of wantedSeeds(data)) {
      if (runs.has(run) || isStopped || loading++ >= MOST_LOADING) continue;
      runs.set(run, new Fetched((known) => path("v1", "runs", run) + (known ? `?after=${known.next}` : ""), SELDOM_MS, redraw, (now, known) => {
        if (!known) setTimeout(() => load(list.data), 0);
        return join(now, known);
      }));
    }
  }

  function exports(run) {
    const file = (end, text) => h("button", { type: "button", onclick: () => save(path("v1", "runs", run) + end, run.replace(/[^\w.-]+/g, "_") + end).catch((error) => {
      failure = error.message;
      redraw();
    }) }, text);
    return h("span", { class: "segments", key: run }, name(run, 40), file(".csv", "CSV"), file(".tfevents", "TensorBoard"));
  }

  function draw() {
    const seeds = [...runs].filter(([, page]) => page.data).map(([run, page]) => [run, page.data]);
    const episode = seeds.map(([, data]) => data.episode).find(Boolean);
    const choose = (to, text) => h("button", { type: "button", "aria-pressed": String(axis === to), onclick: () => { axis = to; redraw(); } }, text);
    return [
      h("div", { class: "crumbs", key: "head" }, h("div", {}, h("a", { href: "#/runs" }, "Runs"), h("h1", {}, name(wanted))),
        h("div", { class: "segments", role: "group", "aria-label": "Axis of the curves" }, choose("step", "Steps"), choose("time", "Wall clock"))),
      list.data && runs.size === 0 && h("p", { class: "empty", key: "none" }, "The server has no such run."),
      (list.error || [...runs.values()].find((p) => p.error)) && h("p", { class: "wrong", key: "error" }, name((list.error || [...runs.values()].find((p) => p.error).error).message, 300)),
      curves.draw(seeds, axis),
      h("div", { class: "columns", key: "columns" }, episodePanel(episode, redraw, player), h("div", { class: "stack", key: "stack" }, splitTable(seeds), limiters(), actors(seeds))),
      seeds.length > 0 && h("section", { class: "panel", key: "export" }, h("h2", {}, "Export"), failure && h("p", { class: "wrong" }, name(failure, 300)), h("div", { class: "segments" }, seeds.map(([run]) => exports(run)))),
    ];
  }

  return { title: name(wanted, 60), draw, stop() { isStopped = true; list.stop(); stopPlayer(player); for (const page of runs.values()) page.stop(); } };
}
