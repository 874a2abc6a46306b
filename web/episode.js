// SPDX-License-Identifier: Apache-2.0
// Draws an episode from the states of its environment: the five small tasks of our own environments.

import { colour, h } from "./dom.js";

const WIDTH = 600, HEIGHT = 360, FRAME_MS = 40;

function stroke(c, points, width, ink) {
  c.strokeStyle = ink;
  c.lineWidth = width;
  c.lineCap = "round";
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.stroke();
}

function disc(c, x, y, r, ink) {
  c.fillStyle = ink;
  c.beginPath();
  c.arc(x, y, r, 0, 2 * Math.PI);
  c.fill();
}

function cartpole(c, [x, , theta], inks) {
  const scale = WIDTH / 6, floor = HEIGHT * 0.78, at = WIDTH / 2 + x * scale;
  stroke(c, [[WIDTH / 2 - 2.4 * scale, floor + 15], [WIDTH / 2 + 2.4 * scale, floor + 15]], 2, inks.edge);
  c.fillStyle = inks.muted;
  c.fillRect(at - 32, floor - 15, 64, 26);
  stroke(c, [[at, floor - 15], [at + Math.sin(theta) * 190, floor - 15 - Math.cos(theta) * 190]], 9, inks.accent);
}

function mountainCar(c, [position], inks) {
  const height = (x) => Math.sin(3 * x) * 0.45 + 0.55;
  const px = (x) => (x + 1.2) / 1.8 * WIDTH, py = (x) => HEIGHT - 30 - height(x) * 230;
  stroke(c, Array.from({ length: 101 }, (_, i) => -1.2 + 1.8 * i / 100).map((x) => [px(x), py(x)]), 2, inks.muted);
  stroke(c, [[px(0.5), py(0.5)], [px(0.5), py(0.5) - 50], [px(0.5) + 24, py(0.5) - 40], [px(0.5), py(0.5) - 30]], 2, inks.note);
  disc(c, px(position), py(position) - 12, 12, inks.accent);
}

// Angles, or their cosines and sines, as the observation has them.
function angles(state, pairs) {
  if (state.length < 3 * pairs) return state.slice(0, pairs);
  return Array.from({ length: pairs }, (_, i) => Math.atan2(state[2 * i + 1], state[2 * i]));
}

function acrobot(c, state, inks) {
  const [a, b] = angles(state, 2), x = WIDTH / 2, y = HEIGHT * 0.45, arm = 80;
  const elbow = [x + arm * Math.sin(a), y + arm * Math.cos(a)];
  const hand = [elbow[0] + arm * Math.sin(a + b), elbow[1] + arm * Math.cos(a + b)];
  stroke(c, [[x - 200, y - arm], [x + 200, y - arm]], 1, inks.note);
  stroke(c, [[x, y], elbow], 9, inks.muted);
  stroke(c, [elbow, hand], 9, inks.accent);
  disc(c, x, y, 6, inks.ink);
  disc(c, ...elbow, 6, inks.ink);
}

function pendulum(c, state, inks) {
  const [theta] = state.length >= 3 ? angles(state, 1) : state, x = WIDTH / 2, y = HEIGHT / 2;
  stroke(c, [[x, y], [x - Math.sin(theta) * 140, y - Math.cos(theta) * 140]], 14, inks.accent);
  disc(c, x, y, 7, inks.ink);
}

// The numbers of a state are anybody's: a board has at most MOST_CELLS rows and columns.
const MOST_CELLS = 100;
const cell = (x) => Math.min(Math.max(Math.floor(x), 0), MOST_CELLS - 1) || 0;

function catchGame(c, state, inks, all) {
  let rows = 10, columns = 5, cells = [];
  if (state.length === 3) {
    rows = Math.max(rows, ...all.map((s) => cell(s[0]) + 1));
    columns = Math.max(columns, ...all.map((s) => Math.max(cell(s[1]), cell(s[2])) + 1));
    cells = [[cell(state[0]), cell(state[1]), inks.note], [rows - 1, cell(state[2]), inks.accent]];
  } else {
    columns = state.length === 50 ? 5 : Math.max(1, Math.round(Math.sqrt(state.length / 2)));
    rows = Math.floor(state.length / columns);
    state.forEach((v, i) => { if (v) cells.push([Math.floor(i / columns), i % columns, Math.floor(i / columns) === rows - 1 ? inks.accent : inks.note]); });
  }
  const size = Math.min((HEIGHT - 20) / rows, (WIDTH - 20) / columns), left = (WIDTH - size * columns) / 2;
  c.strokeStyle = inks.edge;
  c.lineWidth = 1;
  for (let r = 0; r < rows; r++) for (let k = 0; k < columns; k++) c.strokeRect(left + k * size, 10 + r * size, size, size);
  for (const [r, k, ink] of cells) {
    c.fillStyle = ink;
    c.fillRect(left + k * size + 2, 10 + r * size + 2, size - 4, size - 4);
  }
}

const drawings = { cartpole, mountaincar: mountainCar, mountaincarcontinuous: mountainCar, acrobot, pendulum, catch: catchGame };

function drawingOf(env) {
  const task = String(env).toLowerCase().replace(/[-_ ]|v\d+$|\/.*$/g, "");
  return Object.hasOwn(drawings, task) ? drawings[task] : null; // not "constructor"
}

function isState(state) {
  return Array.isArray(state) && state.every((x) => typeof x === "number");
}

/* The panel of an episode {env, states}. It plays on demand: a page that moves by itself disturbs. */
export function episodePanel(episode, redraw, player) {
  const drawing = episode && drawingOf(episode.env);
  const states = episode && Array.isArray(episode.states) ? episode.states.filter(isState) : [];
  if (!drawing || states.length === 0) return null;
  const at = Math.min(player.at, states.length - 1);

  function paint(canvas) {
    const c = canvas.getContext("2d");
    const inks = Object.fromEntries(["accent", "muted", "note", "edge", "ink"].map((x) => [x, colour("--" + x)]));
    canvas.width = WIDTH * 2;
    canvas.height = HEIGHT * 2;
    c.setTransform(2, 0, 0, 2, 0, 0);
    drawing(c, states[at], inks, states);
  }

  function play() {
    if (player.timer) {
      stopPlayer(player);
    } else {
      if (player.at >= states.length - 1) player.at = 0;
      player.timer = setInterval(() => {
        player.at++;
        if (player.at >= states.length - 1) stopPlayer(player);
        redraw();
      }, FRAME_MS);
    }
    redraw();
  }

  return h("section", { class: "panel episode", key: "episode", "aria-label": "Last episode" },
    h("div", { class: "section-head" }, h("h2", {}, "Last episode ", h("span", { class: "number" }, `${String(episode.env).slice(0, 40)}, ${states.length} steps`))),
    h("canvas", { role: "img", "aria-label": `Step ${at} of an episode of ${String(episode.env).slice(0, 40)}: ${states[at].slice(0, 6).map((x) => x.toFixed(3)).join(", ")}`,
      hook: { create: paint, update: paint } }),
    h("div", { class: "player" }, h("button", { type: "button", onclick: play }, player.timer ? "Stop" : "Play"),
      h("input", { type: "range", "aria-label": "Step of the episode", min: "0", max: String(states.length - 1), value: String(at),
        oninput: (e) => { player.at = Number(e.target.value); redraw(); } }), h("span", {}, `${at} / ${states.length - 1}`)));
}

export function stopPlayer(player) {
  clearInterval(player.timer);
  player.timer = null;
}
