// SPDX-License-Identifier: Apache-2.0
// Says in words what moves, what does not, and why. Pure functions of a page of /v1/info and the rates.

import { count, elapsed, name, rate, whole } from "./format.js";

/* A call that has waited longer than this is held, not just paced. */
export const LONG_S = 5;

function mean(values, last) {
  const recent = values.slice(-last).filter((x) => x !== null);
  return recent.length ? recent.reduce((a, b) => a + b, 0) / recent.length : null;
}

/* Means of the last seconds: {inserts, samples, updates, inBytes, outBytes, ...}, null before the second
 * response. */
export function recent(series, last = 5) {
  const found = {};
  for (const key of ["inserts", "samples", "updates", "evictions", "inBytes", "outBytes", "insertWaits",
    "sampleWaits"]) found[key] = series ? mean(series[key], last) : null;
  return found;
}

/* For how many seconds a rate has been 0, as far as this page has seen; null: it is not 0 now. */
export function idleFor(series, key) {
  if (!series || series.t.length === 0) return null;
  let i = series.t.length - 1;
  if (series[key][i] !== 0) return null;
  while (i > 0 && series[key][i - 1] === 0) i--;
  return series.t[series.t.length - 1] - series.t[i] + 1;
}

function isUnbounded(bound) {
  return bound === null || bound === undefined;
}

/* Where the cursor of the limiter is: at most 1, at least 0; null without two bounds. */
export function cursorShare(limiter) {
  if (isUnbounded(limiter.min_diff) || isUnbounded(limiter.max_diff)) return null;
  const span = limiter.max_diff - limiter.min_diff;
  return span > 0 ? Math.min(1, Math.max(0, (limiter.cursor - limiter.min_diff) / span)) : 0.5;
}

export function isLimited(limiter) {
  return !isUnbounded(limiter.min_diff) || !isUnbounded(limiter.max_diff);
}

function clientsOf(calls) {
  const known = [...new Set(calls.map((c) => c.client).filter(Boolean))];
  if (known.length === 0) return "";
  return known.length <= 3 ? known.join(", ") : `${known.slice(0, 3).join(", ")} and ${known.length - 3} more`;
}

// The reason in plain words, if the rate limiter holds the calls.
function inWords(table, side) {
  const l = table.limiter;
  if (side === "samples" && table.size < l.min_size)
    return `The table is filling: it has ${whole(table.size)} of the ${whole(l.min_size)} items that it needs before the first sample.`;
  if (side === "inserts" && cursorShare(l) !== null && l.cursor + l.samples_per_insert > l.max_diff)
    return table.max_times_sampled === 1 && table.size >= table.max_size ? "The queue is full. Inserts go on when a client samples." : "Inserts are ahead of samples by as much as the rate limiter allows. They go on when a client samples.";
  if (side === "samples" && cursorShare(l) !== null && l.cursor - 1 < l.min_diff)
    return table.max_times_sampled === 1 && table.size === 0 ? "The queue is empty. Samples go on when a client inserts." : "Samples are ahead of inserts by as much as the rate limiter allows. They go on when a client inserts.";
  return "";
}

// What the other side does, which is the usual reason why a side waits.
function otherSide(table, side, series) {
  const other = side === "inserts" ? "samples" : "inserts";
  const idle = idleFor(series, other);
  if (table.waiting[other].now > 0 || idle === null || table.inserts_paused || table.samples_paused) return "";
  const verb = side === "inserts" ? "sampled from" : "inserted into";
  const who = side === "inserts" ? "Is the learner running?" : "Are the actors running?";
  const when = table[other] > 0 ? `No client has ${verb} this table in the last ${elapsed(idle)}` : `No client has ${verb} this table yet`;
  return `${when}, and no ${other.slice(0, -1)} is waiting. ${who}`;
}

function sideOf(table, side, series) {
  const waits = table.waiting[side];
  const one = side === "inserts" ? "insert" : "sample";
  const calls = table.waiting.calls.filter((c) => c.kind === one);
  const paused = side === "inserts" ? table.inserts_paused : table.samples_paused;
  const now = recent(series);
  const moves = now[side] > 0;
  if (waits.now === 0 && !paused) return null;
  const held = waits.now > 0 && (waits.longest_seconds >= LONG_S || !moves && !table.isRollouts);
  const reasons = [...new Set(calls.map((c) => (c.why || "").replace(/^(at most )?\d+ others? waits? ahead; /, "")).filter(Boolean))].slice(0, 3);
  return {
    table: table.name, isRollouts: table.isRollouts, side, paused, waiting: waits.now, seconds: waits.longest_seconds, held, moves, reasons,
    clients: clientsOf(calls), words: paused || table.isRollouts ? "" : inWords(table, side), hint: paused || table.isRollouts ? "" : otherSide(table, side, series),
  };
}

/* The sides that wait or are paused, those that have waited longest first. */
export function held(info, tables) {
  const found = [];
  for (const table of [...info.tables, ...(info.rollouts || []).map((r) => ({ ...r, isRollouts: true }))])
    for (const side of ["inserts", "samples"]) {
      const what = sideOf(table, side, table.isRollouts ? null : tables.get(table.name));
      if (what) found.push(what);
    }
  return found.sort((a, b) => Number(b.held) - Number(a.held) || b.seconds - a.seconds);
}

/* The title of one entry of held(). */
export function titleOf(what) {
  const [one, many] = what.isRollouts
    ? what.side === "inserts" ? ["call for room in", "calls for room in"] : ["draw from", "draws from"]
    : what.side === "inserts" ? ["insert into", "inserts into"] : ["sample from", "samples from"];
  const verb = what.waiting === 1 ? "waits" : "wait";
  const paused = what.paused ? `${what.side === "inserts" ? "Inserts into" : "Samples from"} “${name(what.table, 60)}” are paused` : "";
  if (what.waiting === 0) return `${paused}.`;
  const waits = `${count(what.waiting, one, many)} “${name(what.table, 60)}” ${verb}`;
  const since = what.waiting === 1 ? `for ${elapsed(what.seconds)}` : `the first for ${elapsed(what.seconds)}`;
  return `${paused ? paused + "; " : ""}${waits}, ${since}.`;
}

/* The verdict on the whole server: {level, title, lines}. Levels: "good", "note", "bad". */
export function verdict(info, total, tables) {
  const found = held(info, tables);
  const stuck = found.filter((x) => x.held || x.paused);
  const paced = found.filter((x) => !x.held && !x.paused);
  const now = recent(total);
  const known = now.inserts !== null;
  const moves = known && now.inserts + now.samples + now.updates > 0;
  const speed = known ? `${rate(now.inserts)} inserts, ${rate(now.samples)} samples and ${rate(now.updates)} updates a second` : "";
  if (info.server.health !== "serving")
    return { level: info.server.health === "degraded" ? "note" : "bad", stuck, paced,
      title: `The server is ${info.server.health}.`, text: info.server.why || "" };
  if (stuck.length > 0) {
    const sides = new Set(stuck.filter((x) => !x.isRollouts).map((x) => x.table));
    return { level: moves || sides.size === 0 ? "note" : "bad", stuck, paced,
      title: sides.size === 0 ? "Calls wait for rollouts." : moves ? `${count(sides.size, "table")} of ${whole(info.tables.length)} ${sides.size === 1 ? "is" : "are"} held.`
        : !stuck.some((x) => x.waiting > 0) ? "Nothing moves: tables are paused." : known ? "Nothing moves: calls wait." : "Calls wait.",
      text: moves ? `Elsewhere: ${speed}.` : "" };
  }
  if (!known) return { level: "good", stuck, paced, title: "No call is held.", text: "The rates follow with the next response." };
  if (moves)
    return { level: "good", stuck, paced, title: "Everything moves.",
      text: `${speed}. ${paced.length > 0 ? "The rate limiter paces some calls; none has waited for long." : "No call waits."}` };
  if (paced.length > 0)
    return { level: "good", stuck, paced, title: "Calls wait for rollouts.", text: "None has waited for long." };
  const connections = info.server.connections;
  return { level: "note", stuck, paced, title: "Nothing moves: no client calls the server.",
    text: connections > 0
      ? `${count(connections, "connection is", "connections are")} open, with ${count(info.server.streams, "stream")}, and no call waits: the clients are busy elsewhere, or stopped.`
      : "No client is connected. Start an actor, or see whether it uses this address." };
}
