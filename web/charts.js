// SPDX-License-Identifier: Apache-2.0
// Plots: lines over time or steps (uPlot), histograms and the picture of a rate limiter. Each has a
// text for screen readers. Legends are ours: names of series come from peers.

import { colour, h } from "./dom.js";
import { bytes, name, short } from "./format.js";
import { cursorShare, isLimited, LONG_S } from "./why.js";

const LINES = ["--line1", "--line2", "--line3", "--line4", "--line5", "--line6"];

const MOST_LEGEND = 16, TASK_MS = 20;
const BINARY = Array.from({ length: 50 }, (_, i) => 2 ** i); // steps of an axis of bytes

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400];

/* How many plots were drawn since the page was loaded. */
export const work = { plots: 0 };

export function lineColour(i) {
  return LINES[i % LINES.length];
}

function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 13;
}

function heightOf(chart) {
  return Math.round((chart.height || 150) * rem() / 13);
}

function axis(format, size) {
  return { stroke: colour("--muted"), font: `${Math.round(0.85 * rem())}px system-ui, sans-serif`, size: Math.round(size * rem() / 13), gap: 4,
    grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false },
    values: format ? (_, ticks) => ticks.map((x) => (x === null ? "" : format(x))) : undefined };
}

function options(element, chart, onCursor) {
  const inks = new Map(); // many series have few colours, and the browser computes each anew
  const ink = (wanted) => inks.get(wanted) || inks.set(wanted, colour(wanted)).get(wanted);
  const scales = { x: { time: chart.isTime, range: (_, low, high) => (chart.isLive ? liveRange(low, high) : xRange(low, high)) }, y: { range: (_, low, high) => yRange(chart, low, high) } };
  return {
    width: Math.max(120, element.clientWidth), height: heightOf(chart), legend: { show: false },
    cursor: { y: false, points: { size: 5 }, drag: { x: true, y: false },
      sync: chart.sync ? { key: chart.sync } : undefined },
    padding: [8, 20, 0, 0], scales,
    axes: [{ ...axis(chart.isTime ? null : short, 24), space: 64, incrs: chart.isTime ? SECONDS : undefined,
      values: chart.isTime ? (_, ticks) => ticks.map(timeTick(ticks)) : (_, ticks) => ticks.map(short) },
    { ...axis(chart.format || short, 58), incrs: chart.format === bytes ? BINARY : undefined }],
    series: [{}, ...chart.series.map((s, i) => ({ stroke: ink(s.colour || lineColour(i)),
      width: s.width || 1.5, alpha: s.alpha || 1, points: { show: chart.dots ? true : undefined, size: 4 },
      spanGaps: Boolean(chart.spanGaps), dash: s.dash }))],
    hooks: { setCursor: [(u) => onCursor(u.cursor.idx)] },
  };
}

// The last minute at least, so that the first seconds of a page are not stretched over all of it.
function liveRange(low, high) {
  const end = Number.isFinite(high) ? high : Date.now() / 1000;
  return [Math.min(Number.isFinite(low) ? low : end, end - 60), end];
}

// Ticks must differ: steps near 1e17 that are 32 apart have none between them.
function xRange(low, high) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [low, high];
  const least = Math.max(1e-9 * Math.max(Math.abs(low), Math.abs(high)), low === high ? 1 : 0);
  return high - low < least ? [low - least, high + least] : [low, high];
}

function timeTick(ticks) {
  const coarse = ticks.length > 1 && ticks[1] - ticks[0] >= 60;
  return (s) => {
    const t = new Date(s * 1000), two = (x) => String(x).padStart(2, "0");
    return `${two(t.getHours())}:${two(t.getMinutes())}${coarse ? "" : ":" + two(t.getSeconds())}`;
  };
}

function yRange(chart, low, high) {
  if (low === null || !Number.isFinite(low)) return [0, 1];
  if (chart.fromZero) low = Math.min(0, low);
  // A constant, up to the rounding of a mean.
  if (high - low <= 1e-9 * Math.abs(high)) high = low + (Math.abs(low) || 1);
  const room = (high - low) * 0.08;
  return [chart.fromZero && low === 0 ? 0 : low - room, high + room];
}

/* Lines. chart: {title, x, series: [{name, values, colour}], isTime, fromZero, format, height, sync,
 * legend: numbers of the series that it names, note, onSight(isSeen): the plot came to the screen or left it}. The
 * legend shows the values under the cursor, else the last ones. */
export function lines(chart) {
  const last = (values) => {
    for (let i = values.length - 1; i >= 0; i--) if (values[i] !== null) return values[i];
    return null;
  };
  const format = chart.format || short;
  const shown = chart.legend || chart.series.map((_, i) => i).slice(0, MOST_LEGEND);
  const said = shown.map((i) => `${name(chart.series[i].name, 40)} ${format(last(chart.series[i].values))}`).join(", ");
  return h("figure", { class: "chart", key: chart.key },
    h("figcaption", {}, h("span", { class: "chart-title" }, chart.title),
      h("span", { class: "legend" }, chart.note, shown.map((i) =>
        h("span", { class: "legend-entry", key: i },
          h("i", { class: "swatch", "data-line": chart.series[i].colour || lineColour(i) }),
          h("span", { class: "legend-name" }, name(chart.series[i].name, 40)), " ",
          h("b", { "data-series": i }, format(last(chart.series[i].values))))))),
    h("div", { class: "plot", role: "img", "aria-label": `${chart.title}: ${said}`, hook: plotHook(chart) }));
}

// Draws the plots that are on the screen or near it, as many in a task as there is time for.
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.rpSeen = isIntersecting;
    target.rpChart.onSight?.(isIntersecting);
    if (isIntersecting) drawSoon(target);
  }
}, { rootMargin: "300px" });
const due = new Set();

function drawSoon(element) {
  due.add(element);
  if (due.size === 1) setTimeout(drawDue, 0);
}

function drawDue() {
  const start = performance.now();
  for (const element of due) {
    if (performance.now() - start > TASK_MS) break;
    due.delete(element);
    draw(element, element.rpChart);
  }
  if (due.size > 0) setTimeout(drawDue, 0);
}

function plotHook(chart) {
  return {
    create(element) {
      element.style.minHeight = heightOf(chart) + "px";
      element.rpResize = new ResizeObserver(() => {
        if (element.rpPlot && element.clientWidth > 0)
          element.rpPlot.setSize({ width: element.clientWidth, height: heightOf(chart) });
      });
      element.rpResize.observe(element);
      element.rpChart = chart;
      sight.observe(element);
    },
    update(element) {
      element.rpChart = chart;
      if (element.rpSeen) drawSoon(element);
    },
    destroy(element) {
      element.rpResize.disconnect();
      sight.unobserve(element);
      element.rpSeen = false;
      element.rpChart.onSight?.(false);
      if (element.rpPlot) element.rpPlot.destroy();
      element.rpPlot = null;
    },
  };
}

let loading = null;

// uPlot is half of the page, and is loaded when the first text is on the screen.
function loadPlots() {
  loading = loading || new Promise((done) => {
    const style = document.createElement("link"), script = document.createElement("script");
    style.rel = "stylesheet";
    style.href = "uplot.css";
    script.src = "uplot.js";
    script.onload = done;
    script.onerror = () => { loading = null; script.remove(); }; // the next drawing tries again
    document.head.append(style, script);
  });
  return loading;
}

function draw(element, chart) {
  if (!element.isConnected || !element.rpSeen || chart.series.length === 0) return;
  if (!window.uPlot) {
    loadPlots().then(() => drawSoon(element));
    return;
  }
  work.plots++;
  const data = [chart.x, ...chart.series.map((s) => s.values)];
  const look = JSON.stringify([chart.series.map((s) => [s.name, s.colour, s.alpha]), chart.isTime, colour("--ink")]);
  if (element.rpPlot && element.rpLook === look) {
    element.rpPlot.setData(data);
    return;
  }
  if (element.rpPlot) element.rpPlot.destroy();
  element.rpLook = look;
  element.rpPlot = new window.uPlot(options(element, chart, (i) => showValues(element, i)), data, element);
}

// The values under the cursor, in the legend. They are written directly, since the cursor moves often.
function showValues(element, i) {
  const chart = element.rpChart, figure = element.closest("figure");
  if (!figure || i === null || i === undefined) return;
  for (const cell of figure.querySelectorAll("b[data-series]")) {
    const value = chart.series[Number(cell.dataset.series)]?.values[i];
    if (cell.firstChild) cell.firstChild.nodeValue = (chart.format || short)(value);
  }
}

/* A histogram: {title, bounds, counts, format}. bounds has one more element than counts. */
export function histogram({ title, bounds, counts, format, note }) {
  const most = Math.max(1, ...counts), all = counts.reduce((a, b) => a + b, 0);
  const show = format || short;
  if (all === 0 || bounds.length < 2)
    return h("figure", { class: "chart", key: title }, h("figcaption", {}, h("span", { class: "chart-title" }, title)),
      h("p", { class: "empty" }, note || "No items."));
  const peak = counts.indexOf(most);
  const said = `${title}: from ${show(bounds[0])} to ${show(bounds[bounds.length - 1])}; most, ${most} of ${all}, between ${show(bounds[peak])} and ${show(bounds[peak + 1])}`;
  const width = 100 / counts.length;
  return h("figure", { class: "chart", key: title },
    h("figcaption", {}, h("span", { class: "chart-title" }, title),
      h("span", { class: "legend" }, `median ${show(median(bounds, counts, all))}`)),
    h("svg", { class: "histogram", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": said },
      counts.map((n, i) => h("rect", { key: i, class: "bar", x: (i * width + width * 0.06).toFixed(3), width: (width * 0.88).toFixed(3),
        y: (40 - 39 * n / most).toFixed(3), height: (39 * n / most).toFixed(3) },
      h("title", {}, `${show(bounds[i])} to ${show(bounds[i + 1])}: ${n}`)))),
    h("div", { class: "histogram-axis", "aria-hidden": "true" }, h("span", {}, show(bounds[0])),
      h("span", {}, show(bounds[Math.floor(bounds.length / 2)])), h("span", {}, show(bounds[bounds.length - 1]))));
}

function median(bounds, counts, all) {
  let sum = 0;
  for (let i = 0; i < counts.length; i++) {
    if (sum + counts[i] >= all / 2)
      return bounds[i] + (bounds[i + 1] - bounds[i]) * (counts[i] ? (all / 2 - sum) / counts[i] : 0);
    sum += counts[i];
  }
  return bounds[bounds.length - 1];
}

/* The rate limiter: the cursor between min_diff, where samples wait, and max_diff, where inserts wait. */
export function limiterPicture(table) {
  const limiter = table.limiter, share = cursorShare(limiter);
  const inserts = table.waiting.inserts.now, samples = table.waiting.samples.now;
  const bound = (x) => (x === null || x === undefined ? "none" : short(x));
  const mark = (side) => (table.waiting[side].now === 0 ? "" : table.waiting[side].longest_seconds >= LONG_S ? " held" : " paced");
  if (table.size < limiter.min_size && table.samples === 0) {
    const part = 100 * table.size / limiter.min_size;
    const text = `${short(table.size)} of ${short(limiter.min_size)} items before the first sample`;
    if (table.size === 0 && samples === 0)
      return h("div", { class: "limiter" }, h("div", { class: "track none" }),
        h("div", { class: "limiter-ends" }, h("span", {}, `empty: the first sample needs ${short(limiter.min_size)} ${limiter.min_size === 1 ? "item" : "items"}`)));
    return h("div", { class: "limiter" },
      h("div", { class: "track filling", role: "img", "aria-label": `Filling: ${text}` }, h("span", { class: "fill", "width%": part.toFixed(1) })),
      h("div", { class: "limiter-ends" }, h("span", { class: mark("samples") }, samples > 0 ? `${samples} ${samples === 1 ? "sample waits" : "samples wait"}` : "filling"), h("span", {}, text)));
  }
  if (!isLimited(limiter))
    return h("div", { class: "limiter" }, h("div", { class: "track none" }),
      h("div", { class: "limiter-ends" }, h("span", {}, "no ratio of samples and inserts is asked for")));
  const at = share === null ? 50 : 100 * share;
  const said = `Rate limiter: cursor ${short(limiter.cursor)}; samples wait below ${bound(limiter.min_diff)}, inserts wait above ${bound(limiter.max_diff)}; ${samples} samples and ${inserts} inserts wait`;
  return h("div", { class: "limiter" },
    h("div", { class: "limiter-ends" }, h("span", {}, `inserts × ${short(limiter.samples_per_insert)} − samples`), h("span", { class: "mid" }, short(limiter.cursor))),
    h("div", { class: "track", role: "img", "aria-label": said },
      h("span", { class: "end left" + mark("samples") }), h("span", { class: "end right" + mark("inserts") }),
      share !== null && h("span", { class: "cursor", "left%": at.toFixed(1) })),
    h("div", { class: "limiter-ends" },
      h("span", { class: mark("samples") }, samples > 0 ? `min ${bound(limiter.min_diff)}: ${samples} ${samples === 1 ? "sample waits" : "samples wait"}` : `min ${bound(limiter.min_diff)}`),
      h("span", { class: mark("inserts") }, inserts > 0 ? `max ${bound(limiter.max_diff)}: ${inserts} ${inserts === 1 ? "insert waits" : "inserts wait"}` : `max ${bound(limiter.max_diff)}`)));
}

/* A bar that shows a part of a whole; `warns`: near the end it is a problem. */
export function bar(part, all, label, warns = false) {
  const share = all > 0 ? Math.min(100, 100 * part / all) : 0;
  return h("div", { class: "track bar-track", role: "img", "aria-label": label },
    h("span", { class: "fill" + (warns && share > 90 ? " full" : ""), "width%": share.toFixed(1) }));
}
