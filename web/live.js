// SPDX-License-Identifier: Apache-2.0
// The state of the server, fetched once a second while the page is visible, and the rates of the last
// minutes, derived from the counters of two responses.

import { Refusal, get } from "./api.js";

const PERIOD_MS = 1000;
const POINTS = 900; // a quarter of an hour
const LIMIT_MS = 15000; // for a response

/* status: "connecting", "live", "lost" (no response, tries again), "token" (the server asks for a token),
 * "denied" (the role of the token is too low). `since`: when the status began, in ms. */
export const live = { status: "connecting", since: Date.now(), error: "", info: null, receivedAt: 0,
  attempts: 0, restarts: 0, total: emptySeries(), tables: new Map() };

const listeners = new Set();
let before = null;
let wake = () => {};
let runs = false;

/* `listener` is called after each change of `live`. */
export function onChange(listener) {
  listeners.add(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

function emptySeries() {
  return { t: [], inserts: [], samples: [], updates: [], evictions: [], inBytes: [], outBytes: [],
    insertWaits: [], sampleWaits: [], size: [], cursor: [] };
}

function setStatus(status, error) {
  if (live.status !== status) live.since = Date.now();
  live.status = status;
  live.error = error;
}

/* Seconds since the last response. */
export function age() {
  return live.receivedAt ? (Date.now() - live.receivedAt) / 1000 : Infinity;
}

function push(series, values) {
  for (const key of Object.keys(series)) {
    series[key].push(values[key] === undefined ? null : values[key]);
    if (series[key].length > POINTS) series[key].shift();
  }
}

function tableRates(now, old, dt) {
  const per = (a, b) => Math.max(0, (a - b) / dt);
  return {
    inserts: per(now.inserts, old.inserts),
    samples: per(now.samples, old.samples),
    updates: per(now.updates, old.updates),
    evictions: per(now.evictions, old.evictions),
    inBytes: per(now.network.inserted_bytes, old.network.inserted_bytes),
    outBytes: per(now.network.sampled_bytes, old.network.sampled_bytes),
    // The number of calls that waited, on average over the interval.
    insertWaits: per(now.waiting.inserts.total_seconds, old.waiting.inserts.total_seconds),
    sampleWaits: per(now.waiting.samples.total_seconds, old.waiting.samples.total_seconds),
    size: now.size,
    cursor: now.limiter.cursor,
  };
}

/* Adds a response to the history. The clock of the rates is the server's. */
export function take(info, at) {
  const dt = before ? info.server.uptime_seconds - before.server.uptime_seconds : 0;
  if (before && dt < 0) { // another server process: its counters begin anew
    live.total = emptySeries();
    live.tables.clear();
    live.restarts++;
    before = null;
  }
  if (before && dt > 0) {
    const old = new Map(before.tables.map((table) => [table.name, table]));
    const total = { t: at / 1000, inserts: 0, samples: 0, updates: 0, evictions: 0, inBytes: 0,
      outBytes: 0, insertWaits: 0, sampleWaits: 0, size: 0, cursor: null };
    const seen = new Set();
    for (const table of info.tables) {
      const last = old.get(table.name);
      if (!last) continue;
      const values = tableRates(table, last, dt);
      seen.add(table.name);
      if (!live.tables.has(table.name)) live.tables.set(table.name, emptySeries());
      push(live.tables.get(table.name), { t: at / 1000, ...values });
      for (const key of Object.keys(values)) if (total[key] !== null) total[key] += values[key];
    }
    for (const known of live.tables.keys()) if (!seen.has(known)) live.tables.delete(known);
    push(live.total, total);
  }
  if (!before || dt > 0) before = info;
  live.info = info;
  live.receivedAt = at;
}

function sleep(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => { clearTimeout(timer); resolve(); };
  });
}

async function poll() {
  const known = live.info && live.info.page;
  // A server that knows `after` responds when the next page is made.
  const info = await get(known !== undefined && known !== null && live.status === "live"
    ? `v1/info?after=${known}` : "v1/info", LIMIT_MS);
  take(info, Date.now());
  live.attempts = 0;
  setStatus("live", "");
}

function fail(error) {
  const status = error instanceof Refusal ? error.status : 0;
  live.attempts++;
  if (status === 401) setStatus("token", error.message);
  else if (status === 403) setStatus("denied", error.message);
  else setStatus("lost", error.message);
}

/* How long to wait before the next attempt: 1, 2, 4 and then 5 s, so that a server that is back is
 * found soon. A refused token is not sent again by itself. */
export function backoff(attempts) {
  return Math.min(5000, PERIOD_MS * 2 ** Math.max(0, attempts - 1));
}

async function loop() {
  for (;;) {
    if (document.hidden) { // nobody looks: ask nothing
      before = null;
      await sleep(3600e3);
      continue;
    }
    const start = performance.now();
    try {
      await poll();
      changed();
      await sleep(Math.max(0, PERIOD_MS - (performance.now() - start)));
    } catch (error) {
      if (!(error instanceof Refusal)) console.error(error);
      fail(error);
      changed();
      await sleep(live.status === "token" || live.status === "denied" ? 3600e3 : backoff(live.attempts));
    }
  }
}

/* Asks the server at once: after a change, and with a new token. */
export function askNow() {
  wake();
}

export function start() {
  if (runs) return;
  runs = true;
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
  window.addEventListener("online", () => wake());
  setInterval(() => { if (live.status !== "live") changed(); }, 1000); // "since 12 s"
  loop();
}
