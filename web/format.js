// SPDX-License-Identifier: Apache-2.0
// Numbers, times and names as text.

const NONE = "–";
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
// Characters that show nothing, or change the direction of the text around them.
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function isNumber(x) {
  return typeof x === "number" && Number.isFinite(x);
}

/* 1234567 as "1,234,567". */
export function whole(x) {
  return isNumber(x) ? grouped.format(x) : NONE;
}

/* A number with three digits or more, short: 0.01234, 12.3, 45.6k, 7.89M. */
export function short(x) {
  if (!isNumber(x)) return NONE;
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.001 || size >= 1e15) return x.toExponential(2);
  if (size < 1) return String(Number(x.toPrecision(3)));
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= unit) return scaled(x, letter === "k" ? 1e3 : unit) + letter;
  return size < 100 && !Number.isInteger(x) ? String(Number(x.toPrecision(3))) : grouped.format(x);
}

function scaled(x, unit) {
  const y = x / unit;
  return y.toFixed(Math.abs(y) < 10 ? 2 : Math.abs(y) < 100 ? 1 : 0);
}

/* A rate a second. Fixed places, so that a column of them does not jump. */
export function rate(x) {
  if (!isNumber(x)) return NONE;
  if (x === 0) return "0";
  return x < 10 ? x.toFixed(1) : short(x);
}

export function bytes(x) {
  if (!isNumber(x)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (Math.abs(x) >= 1024 && i < units.length - 1) { x /= 1024; i++; }
  return (i === 0 ? grouped.format(x) : x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0)) + " " + units[i];
}

/* A duration: 850 ms, 4.2 s, 3 min 20 s, 5 h 12 min, 2 d 3 h. */
export function seconds(s) {
  if (!isNumber(s)) return NONE;
  if (s < 0) s = 0;
  if (s === 0) return "0 s";
  if (s < 0.001) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  if (s < 10) return s.toFixed(1) + " s";
  s = Math.round(s);
  if (s < 60) return s + " s";
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/* The same for a duration that is counted on a screen: whole seconds. */
export function elapsed(s) {
  return seconds(isNumber(s) && s >= 1 ? Math.floor(s) : s);
}

export function clock(ms) {
  const t = new Date(ms);
  return [t.getHours(), t.getMinutes(), t.getSeconds()].map((x) => String(x).padStart(2, "0")).join(":");
}

export function percent(part, all) {
  return isNumber(part) && isNumber(all) && all > 0 ? (100 * part / all).toFixed(part < all / 10 ? 1 : 0) + " %" : NONE;
}

/* "1 insert", "2 inserts". */
export function count(n, one, many) {
  return `${whole(n)} ${n === 1 ? one : many || one + "s"}`;
}

/* A name as it may be shown: unseen characters spelt out, at most `most` characters. */
export function name(text, most = 120) {
  if (typeof text !== "string") return NONE;
  let cut = text;
  if (cut.length > most) {
    cut = cut.slice(0, most);
    if (/[\ud800-\udbff]$/.test(cut)) cut = cut.slice(0, -1);
  }
  const spelt = cut.replace(unseen, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  return cut.length < text.length ? `${spelt}… (${whole(text.length)} characters)` : spelt || "(no name)";
}

/* "float32 [84, 84]"; null is a shape or dimension without a restriction. */
export function shape(dims) {
  return Array.isArray(dims) ? `[${dims.map((d) => (d === null ? "?" : d)).join(", ")}]` : "any shape";
}
