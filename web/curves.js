// SPDX-License-Identifier: Apache-2.0
// The curves of a run, or of all seeds of a group. Anybody with the role write chooses how many there are and
// where their points are, so the work is bounded: seeds share a grid of few steps, a curve is made again only
// when its points have changed and somebody sees it, and a task makes curves for a few milliseconds at most.

import { lines } from "./charts.js";
import { colour, h } from "./dom.js";
import { count, name } from "./format.js";

const MOST_STEPS = 200, MOST_CURVES = 128, TASK_MS = 20, SEEN_MS = 1000, UNSEEN_MS = 10000;

/* How much was done since the page was loaded: curves that were made, and points that were read for them. */
export const work = { curves: 0, points: 0 };

function ascends(xs) {
  for (let i = 1; i < xs.length; i++) if (!(xs[i - 1] < xs[i])) return false;
  return true;
}

function union(all, axis) {
  return [...new Set(all.flatMap((s) => s[axis]))].sort((a, b) => a - b);
}

function onSteps(all, axis, x) {
  const index = new Map(x.map((step, i) => [step, i]));
  const values = all.map((s) => {
    const row = new Array(x.length).fill(null);
    s[axis].forEach((step, i) => { row[index.get(step)] = s.value[i]; });
    return row;
  });
  return { x, values };
}

// The means of the points in cells of equal width.
function inCells(all, axis) {
  let low = Infinity, high = -Infinity;
  for (const s of all) {
    for (const x of s[axis]) {
      if (x < low) low = x;
      if (x > high) high = x;
    }
  }
  if (!(low < high)) return onSteps(all, axis, [low]);
  // Steps near 1e17 are 16 apart: no cell is so narrow that two have the same step.
  const finest = 4 * Number.EPSILON * Math.max(Math.abs(low), Math.abs(high));
  const cells = Math.max(2, Math.min(MOST_STEPS, Math.floor((high - low) / finest)));
  const width = high / (cells - 1) - low / (cells - 1);
  const values = all.map((s) => {
    const row = new Array(cells).fill(null), points = new Array(cells).fill(0);
    for (let i = 0; i < s[axis].length; i++) {
      const at = Math.min(cells - 1, Math.round((s[axis][i] - low) / width)), value = s.value[i];
      if (value === null) continue;
      const n = ++points[at];
      row[at] = n === 1 ? value : row[at] + (value / n - row[at] / n); // no sum that could overflow
    }
    return row;
  });
  return { x: Array.from({ length: cells }, (_, i) => low * (1 - i / (cells - 1)) + high * (i / (cells - 1))), values };
}

/* Several series with axes of their own on one axis: {x, values: [[...], ...]}. x has all steps of the series, if
 * these are at most MOST_STEPS or there is one series only. Otherwise it has MOST_STEPS steps at equal distances,
 * and a value is the mean of the points nearest to its step. */
export function aligned(all, axis) {
  work.points += all.reduce((sum, s) => sum + s[axis].length, 0);
  if (all.length === 1 && ascends(all[0][axis])) return { x: all[0][axis].slice(), values: [all[0].value.slice()] };
  if (all.length === 1) return onSteps(all, axis, union(all, axis));
  if (all.every((s) => s[axis].length <= MOST_STEPS)) {
    const x = union(all, axis);
    if (x.length <= MOST_STEPS) return onSteps(all, axis, x);
  }
  return inCells(all, axis);
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
    const middle = known.reduce((a, b) => a + b, 0) / known.length;
    return 2 * known.length > rows.length && Number.isFinite(middle) ? middle : null;
  });
}

// Returns first, then the learner, then the rest by name.
function rank(key) {
  if (/eval.*return|return.*eval/i.test(key)) return 0;
  if (/return|reward|rew_mean/i.test(key)) return 1;
  if (/loss|td|^q|grad/i.test(key)) return 2;
  return 3;
}

function chart(key, having, axis) {
  const { x, values } = aligned(having.map(([, series]) => series), axis);
  const many = having.length > 1, middle = many ? mean(x, values) : null;
  const series = having.map(([run], i) => ({ name: many ? name(run, 30) : key, values: values[i], alpha: many ? 0.55 : 1, width: many ? 1 : 1.5, colour: many ? "--line3" : "--line1" }));
  if (many && middle.some((v) => v !== null)) series.push({ name: "mean of all", values: middle, colour: "--line1", width: 2 });
  return { x, series, legend: many ? [series.length - 1] : undefined };
}

export class Curves {
  constructor(redraw) {
    this.redraw = redraw;
    this.made = new Map(); // by the name of the series: {node, of, axis, ink, at}
    this.seen = new Set(); // names of the series whose curves are on the screen
    this.ranks = new Map();
  }

  order(seeds) {
    const keys = new Set(seeds.flatMap(([, data]) => Object.keys(data.series)));
    for (const known of [this.ranks, this.made]) for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    for (const key of keys) if (!this.ranks.has(key)) this.ranks.set(key, rank(key));
    return [...keys].sort((a, b) => this.ranks.get(a) - this.ranks.get(b) || (a < b ? -1 : 1));
  }

  make(key, having, axis, ink) {
    const shown = having.length === 0 ? { x: [], series: [] } : chart(key, having, axis);
    const node = lines({ key, title: name(key, 60), isTime: axis === "time", height: 170, spanGaps: true, note: having.length > 1 ? `${having.length} seeds` : "",
      onSight: (isSeen) => {
        if (isSeen) this.seen.add(key);
        else this.seen.delete(key);
        if (isSeen) this.redraw();
      }, ...shown });
    if (having.length > 0) work.curves++;
    return { node, axis, ink, at: performance.now(), of: having.map(([, series]) => [series, series.revision]) };
  }

  isDue(key, having, axis, ink) {
    const made = this.made.get(key);
    if (!made || made.of.length === 0) return true;
    const isSeen = this.seen.has(key);
    if (isSeen && (made.axis !== axis || made.ink !== ink)) return true;
    if (performance.now() - made.at < (isSeen ? SEEN_MS : UNSEEN_MS)) return false; // the state of the server is drawn each second
    return made.axis !== axis || made.ink !== ink || made.of.length !== having.length ||
      having.some(([, series], i) => series !== made.of[i][0] || series.revision !== made.of[i][1]);
  }

  /* The section with the curves of seeds [[run, data], ...]. Calls redraw() if there was no time for all. */
  draw(seeds, axis) {
    const keys = this.order(seeds), ink = colour("--ink"), start = performance.now();
    const shown = keys.slice(0, MOST_CURVES).map((key) => [key, seeds.filter(([, data]) => data.series[key]).map(([run, data]) => [run, data.series[key]])]);
    const due = shown.filter(([key, having]) => this.isDue(key, having, axis, ink));
    due.sort(([a], [b]) => this.seen.has(b) - this.seen.has(a));
    for (const [key, having] of due) {
      const isLate = performance.now() - start > TASK_MS;
      if (!isLate) this.made.set(key, this.make(key, having, axis, ink));
      else if (!this.made.has(key)) this.made.set(key, this.make(key, [], axis, ink)); // its place, without lines
      if (isLate) this.redraw();
    }
    return [h("section", { class: "charts", key: "curves", "aria-label": "Curves" }, shown.map(([key]) => this.made.get(key).node)),
      keys.length > MOST_CURVES && h("p", { class: "more", key: "more-curves" }, `and ${count(keys.length - MOST_CURVES, "more series", "more series")}; the exports have all.`)];
  }
}
