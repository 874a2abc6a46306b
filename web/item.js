// SPDX-License-Identifier: Apache-2.0
// The view of one item: each column as text, and as a plot or as pictures where its shape allows it.

import { path } from "./api.js";
import { lines } from "./charts.js";
import { h } from "./dom.js";
import { Fetched } from "./fetched.js";
import { bytes, name, seconds, shape, short, whole } from "./format.js";
import { fact } from "./overview.js";

const MOST_FRAMES = 64, MOST_VALUES = 512, MOST_LINES = 16, LEAST_SIDE = 4;

function fromBase64(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, part = bits & 1023;
  if (exponent === 0) return sign * part * 2 ** -24;
  if (exponent === 31) return part ? NaN : sign * Infinity;
  return sign * (1 + part / 1024) * 2 ** (exponent - 15);
}

const word = new DataView(new ArrayBuffer(4));
function brain(bits) {
  word.setUint32(0, bits << 16 >>> 0);
  return word.getFloat32(0);
}

// By dtype: bytes of an element, and how to read one.
const readers = {
  half: [2, (v, i) => half(v.getUint16(i, true))], bfloat16: [2, (v, i) => brain(v.getUint16(i, true))],
  float: [4, (v, i) => v.getFloat32(i, true)], double: [8, (v, i) => v.getFloat64(i, true)],
  int8: [1, (v, i) => v.getInt8(i)], int16: [2, (v, i) => v.getInt16(i, true)], int32: [4, (v, i) => v.getInt32(i, true)],
  int64: [8, (v, i) => Number(v.getBigInt64(i, true))], uint8: [1, (v, i) => v.getUint8(i)], uint16: [2, (v, i) => v.getUint16(i, true)],
  uint32: [4, (v, i) => v.getUint32(i, true)], uint64: [8, (v, i) => Number(v.getBigUint64(i, true))], bool: [1, (v, i) => v.getUint8(i)],
};

/* The numbers of a column, at most `most`; null if the dtype has none. */
export function numbers(dtype, data, most = Infinity) {
  const reader = readers[dtype];
  if (!reader) return null;
  const [size, read] = reader, view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const out = new Array(Math.min(most, Math.floor(data.length / size)));
  for (let i = 0; i < out.length; i++) out[i] = read(view, i * size);
  return out;
}

/* How uint8 bytes of a shape are pictures: {frames, height, width, channels, first} or null. The first
 * dimension counts steps. Channels are last (1, 3 or 4) or, as in PyTorch, first. */
export function pictures(dtype, dims) {
  if (dtype !== "uint8" || !Array.isArray(dims)) return null;
  const [steps, ...rest] = dims, isChannels = (c) => c === 1 || c === 3 || c === 4;
  const isSide = (x) => x >= LEAST_SIDE && x <= 4096;
  if (rest.length === 2 && isSide(rest[0]) && isSide(rest[1])) return { frames: steps, height: rest[0], width: rest[1], channels: 1, first: false };
  if (rest.length !== 3) return null;
  if (isSide(rest[0]) && isSide(rest[1]) && isChannels(rest[2])) return { frames: steps, height: rest[0], width: rest[1], channels: rest[2], first: false };
  if (isSide(rest[1]) && isSide(rest[2]) && isChannels(rest[0])) return { frames: steps, height: rest[1], width: rest[2], channels: rest[0], first: true };
  return null;
}

// Four channels are four grey frames one after the other, as in stacked observations; three are colours.
function planes(p) {
  return p.channels === 3 ? 1 : p.channels;
}

function paint(canvas, data, p, frame, plane) {
  const size = p.width * p.height, start = frame * size * p.channels;
  canvas.width = p.width;
  canvas.height = p.height;
  const context = canvas.getContext("2d"), image = context.createImageData(p.width, p.height);
  for (let i = 0; i < size; i++)
    for (let c = 0; c < 3; c++) {
      const channel = p.channels === 3 ? c : plane;
      image.data[4 * i + c] = data[start + (p.first ? channel * size + i : i * p.channels + channel)];
    }
  for (let i = 0; i < size; i++) image.data[4 * i + 3] = 255;
  context.putImageData(image, 0, 0);
}

function strip(title, data, p) {
  const whole_ = Math.min(p.frames, Math.floor(data.length / (p.width * p.height * p.channels)), MOST_FRAMES);
  const frames = [];
  for (let f = 0; f < whole_; f++)
    for (let c = 0; c < planes(p); c++) frames.push([f, c]);
  if (frames.length === 0) return null;
  return h("div", { class: "frames", tabindex: "0", role: "group", "aria-label": `Frames of ${name(title, 60)}` }, frames.map(([f, c]) =>
    h("div", { class: "frame", key: `${f}.${c}` },
      h("canvas", { role: "img", "aria-label": `Step ${f}${planes(p) > 1 ? `, channel ${c}` : ""}`, hook: { create: (canvas) => paint(canvas, data, p, f, c), update() {} } }),
      h("span", {}, planes(p) > 1 ? `${f} · ${c}` : `${f}`))));
}

function plot(values, dims) {
  const steps = dims[0], width = dims.slice(1).reduce((a, b) => a * b, 1);
  const known = Math.floor(values.length / width);
  if (known < 2 || width > MOST_LINES) {
    if (steps === 1 && width > 2 && width <= 4096) // one vector: over its index
      return lines({ key: "plot", title: "Values", x: values.slice(0, width).map((_, i) => i), height: 120, series: [{ name: "value", values: values.slice(0, width).map(finite) }] });
    return null;
  }
  const x = Array.from({ length: known }, (_, i) => i);
  return lines({ key: "plot", title: "Values over the steps", x, height: 130, dots: known < 3,
    series: Array.from({ length: width }, (_, k) => ({ name: width === 1 ? "value" : `[${k}]`, values: x.map((i) => finite(values[i * width + k])) })) });
}

function finite(x) {
  return Number.isFinite(x) ? x : null;
}

/* Values as rows of text, a step in each row, in columns. */
export function textOf(values, dims, dtype) {
  const width = Math.max(1, dims.slice(1).reduce((a, b) => a * b, 1));
  const cells = values.slice(0, MOST_VALUES).map((x) => number(x, dtype)), rows = [];
  const wide = cells.length > width ? Math.min(24, Math.max(...cells.map((c) => c.length))) : 0;
  for (let i = 0; i < cells.length; i += width)
    rows.push(cells.slice(i, i + Math.min(width, 64)).map((c) => c.padStart(wide)).join("  ") + (width > 64 ? "  …" : ""));
  if (cells.length < values.length) rows.push("…");
  return rows.join("\n");
}

function number(x, dtype) {
  if (dtype === "bool") return x ? "true" : "false";
  return dtype.includes("int") ? String(x) : String(Number(x.toPrecision(6)));
}

/* The shape with the steps first. A column that was inserted without them has one row. */
export function steppedShape(column) {
  const dims = column.shape || [], rows = parseInt(column.slices, 10);
  return Number.isNaN(rows) || (rows > 1 && dims[0] === rows) || (rows === 1 && dims[0] === 1) ? dims : [rows, ...dims];
}

function columnPanel(column, i) {
  const data = fromBase64(column.data || ""), dims = steppedShape(column), title = column.name === null ? `Column ${i}` : column.name;
  const values = numbers(column.dtype, data, MOST_VALUES + 4096), p = pictures(column.dtype, dims);
  const text = column.strings ? column.strings.map((x) => name(x, 200)).join("\n") : values && values.length > 0 ? textOf(values, dims, column.dtype) : "";
  return h("section", { class: "panel", key: i, "aria-label": `Column ${name(title, 60)}` },
    h("div", { class: "section-head" }, h("h2", {}, name(title)), h("span", { class: "mono number" }, `${column.dtype} ${shape(column.shape)}`)),
    h("p", { class: "empty" }, name(column.slices, 200)),
    p && strip(title, data, p),
    !p && values && plot(values, dims),
    !p && text && h("pre", { class: "values mono", tabindex: "0", "aria-label": `Values of ${name(title, 60)}`, role: "group" }, text),
    column.truncated && h("p", { class: "empty" }, column.strings ? "Not all texts of this column are shown." : `Only the first ${bytes(data.length)} of this column are shown.`));
}

export function itemView([tableName, key], redraw) {
  const page = new Fetched(path("v1", "tables", tableName, "items", key), 0, redraw);

  function draw() {
    const item = page.data;
    return [
      h("div", { class: "crumbs", key: "head" }, h("div", {}, h("a", { href: "#/" }, "Tables"), " / ", h("a", { href: "#/table/" + encodeURIComponent(tableName) }, name(tableName, 60)),
        h("h1", {}, "Item ", h("span", { class: "mono" }, name(key, 40))))),
      page.error && !item && h("p", { class: "wrong", key: "error" }, page.error.status === 404 ? "The table has no such item any more: it was evicted, deleted or sampled for the last time." : name(page.error.message, 400)),
      !page.error && !item && h("p", { class: "empty", key: "wait" }, "Loading the item."),
      item && h("section", { class: "panel", key: "facts", "aria-label": "The item in numbers" }, h("dl", { class: "facts wide" },
        fact("Priority", short(item.priority)), fact("Times sampled", whole(item.times_sampled)), fact("Age", seconds(item.age_s)),
        fact("Bytes", bytes(item.bytes)), fact("Columns", whole(item.column_count)))),
      item && item.column_count > item.columns.length && h("p", { class: "empty", key: "cut" }, `The first ${item.columns.length} columns are shown.`),
      item && h("div", { class: "columns", key: "columns" }, item.columns.map(columnPanel)),
    ];
  }
  return { title: `Item ${name(key, 40)}`, draw, stop: () => page.stop() };
}
