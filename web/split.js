// SPDX-License-Identifier: Apache-2.0
// The threads of a run that picks their numbers itself: what it has now, what it had before, and why it changed.

import { grid } from "./grid.js";
import { elapsed, rate, whole } from "./format.js";

const MOST_ROWS = 6;

/* The value of a series at a time: that of its latest point until then. */
function at(points, time) {
  let low = 0, high = points ? points.time.length : 0;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points.time[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? points.value[low - 1] : null;
}

/* The splits of a run, the latest first: {since, until, actors, learners}. None if it does not pick them. */
export function splits(series) {
  const found = [], { learners, actors } = series;
  if (!learners || !series.predicted_steps_per_second) return found;
  learners.time.forEach((time, i) => {
    const now = { since: time, until: time, learners: learners.value[i], actors: at(actors, time) }, last = found[found.length - 1];
    if (last && last.learners === now.learners && last.actors === now.actors) last.until = time;
    else found.push(now);
  });
  return found.reverse();
}

const percent = (x) => (typeof x === "number" ? `${Math.round(100 * x)} %` : "–");

/* The table of the first of the seeds that picks its threads. */
export function splitTable(seeds) {
  for (const [, { series }] of seeds) {
    const found = splits(series);
    if (found.length === 0) continue;
    const last = (key) => (row) => at(series[key], row.until);
    return grid("Threads", [
      { title: "Since", cell: (row) => `${elapsed(Math.max(0, Date.now() / 1000 - row.since))} ago` },
      { title: "Actors", n: true, cell: (row) => whole(row.actors) }, { title: "Learners", n: true, cell: (row) => whole(row.learners) },
      { title: "Steps/s", n: true, cell: (row) => rate(last("steps_per_second")(row)) }, { title: "Predicted", n: true, cell: (row) => rate(last("predicted_steps_per_second")(row)) },
      { title: "Updates/s", n: true, cell: (row) => rate(last("updates_per_second")(row)) },
      { title: "Actors wait", n: true, cell: (row) => percent(last("actors_wait")(row)) }, { title: "Learners wait", n: true, cell: (row) => percent(last("learner_waits")(row)) },
    ], found.slice(0, MOST_ROWS), "", "The run picks these numbers. The first row is now; the others are as they were before the next move.");
  }
  return null;
}
