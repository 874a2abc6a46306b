// SPDX-License-Identifier: Apache-2.0
// The view of storage: memory, checkpoints, journal, disk and the tier on disk.

import { bar } from "./charts.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { bytes, name, percent, seconds, whole } from "./format.js";
import { live } from "./live.js";
import { fact } from "./overview.js";

const modes = {
  checkpoint: "Changes since the last checkpoint are lost if the process ends.",
  interval: "No change is lost if the process is killed; the last ones are, if the power fails.",
  sync: "A change is acknowledged when it is on stable storage.",
};

function panel(title, ...content) {
  return h("section", { class: "panel", key: title, "aria-label": title }, h("h2", {}, title), content);
}

function memory(info) {
  const s = info.store;
  return panel("Memory", s.max_bytes > 0 && bar(s.bytes, s.max_bytes, `${percent(s.bytes, s.max_bytes)} of the budget`, true),
    h("dl", { class: "facts wide" }, fact("Bytes of all tables", bytes(s.bytes), s.max_bytes > 0 ? `of ${bytes(s.max_bytes)}` : "no budget"),
      fact("Lost in gaps", bytes(s.lost_bytes)), fact("When it is full", { evict: "items are evicted", block: "inserts wait", reject: "inserts are refused" }[s.policy] || s.policy),
      fact("Queued for clients", bytes(info.server.queued_bytes)), fact("Held by samples", bytes(info.server.pinned_bytes))));
}

function progress(p) {
  if (!p) return null;
  const text = `${name(p.what, 80)}: ${bytes(p.done_bytes)} of ${bytes(p.total_bytes)}, ${p.left_seconds === null ? "" : seconds(p.left_seconds) + " left"}`;
  return [h("p", {}, text), bar(p.done_bytes, p.total_bytes, text)];
}

function checkpoints(d) {
  const last = d.last_checkpoint;
  const question = { title: "Write a checkpoint now?", text: "The server writes all tables to its data directory. Clients are held only for the short pause that the page shows.",
    button: "Write a checkpoint", address: "v1/checkpoint", confirm: "checkpoint" };
  return panel("Checkpoints", h("dl", { class: "facts wide" },
    fact("Last", last ? `number ${whole(last.number)}` : "none"),
    last && fact("Age", last.age_seconds === null ? "from before the start" : seconds(last.age_seconds)),
    last && last.age_seconds !== null && [fact("Size", bytes(last.bytes)), fact("Took", seconds(last.seconds)), fact("Clients paused for", seconds(last.pause_seconds))],
    fact("Written since the start", whole(d.checkpoints)), fact("Failed", whole(d.failed_checkpoints))),
  progress(d.progress),
  h("div", { class: "actions" }, h("button", { type: "button", id: "checkpoint", onclick: () => ask(question) }, "Checkpoint now")));
}

function journal(d) {
  const lag = d.lsn - d.safe_lsn;
  return panel("Journal", d.mode === "checkpoint" ? h("p", { class: "empty" }, "There is no journal in this mode.") : [
    bar(d.backlog_bytes, d.max_backlog_bytes, `Backlog: ${percent(d.backlog_bytes, d.max_backlog_bytes)}`, true),
    h("dl", { class: "facts wide" }, fact("Changes not yet safe", whole(lag)), fact("Backlog", bytes(d.backlog_bytes), `of ${bytes(d.max_backlog_bytes)}`),
      fact("Changes logged", whole(d.lsn)), fact("Segments at the last checkpoint", whole(d.segments)))]);
}

function disk(d) {
  return panel("Disk", d.disk_bytes > 0 && bar(d.live_bytes, d.disk_bytes, `${percent(d.live_bytes, d.disk_bytes)} of the files is in use`),
    h("dl", { class: "facts wide" }, fact("Segments at the last checkpoint", bytes(d.disk_bytes)), fact("Of them in use", bytes(d.live_bytes)),
      typeof d.disk_free_bytes === "number" && fact("Free on the disk", bytes(d.disk_free_bytes)),
      fact("Items loaded at the start", whole(d.recovered_items)), fact("Changes redone at the start", whole(d.recovered_records)),
      d.torn_bytes > 0 && fact("Cut off at the start", bytes(d.torn_bytes))));
}

function tier(d) {
  const total = (d.load_hits || 0) + d.loads;
  if (total === 0 && d.resident_bytes === 0 && d.spilled_bytes === 0)
    return panel("Chunks in memory and on disk", h("p", { class: "empty" }, "All chunks are in memory: max_memory is not set."));
  return panel("Chunks in memory and on disk", h("dl", { class: "facts wide" }, fact("In memory", bytes(d.resident_bytes)), fact("On disk only", bytes(d.spilled_bytes)),
    d.load_hits !== undefined && fact("Found in the read cache", percent(d.load_hits, total)), fact("Loaded from disk", whole(d.loads), bytes(d.load_bytes))));
}

export function storageView() {
  function draw() {
    const info = live.info, d = info && info.durable;
    if (!info) return [];
    return [h("h1", { key: "title" }, "Storage"),
      d && d.degraded && h("section", { class: "verdict bad", key: "trouble" }, h("h2", {}, "Storage is degraded"), h("p", {}, name(d.trouble || "", 600))),
      !d && h("section", { class: "verdict note", key: "none" }, h("h2", {}, "All data is in memory only"), h("p", {}, "It is lost when the server ends. Start it with --data DIR to keep it.")),
      d && h("p", { key: "mode" }, `Durability “${name(d.mode, 20)}”: ${modes[d.mode] || ""}`),
      h("div", { class: "columns", key: "panels" }, memory(info), d && [checkpoints(d), journal(d), disk(d), tier(d)])];
  }
  return { title: "Storage", draw, stop() {} };
}
