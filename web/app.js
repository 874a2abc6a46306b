// SPDX-License-Identifier: Apache-2.0
// The page: chooses the view of the address, redraws it when the state changes, says whether it is live.

import { hasToken, setToken } from "./api.js";
import { tokenForm } from "./dialogs.js";
import { h, render } from "./dom.js";
import { clock, elapsed, name } from "./format.js";
import { age, askNow, backoff, live, onChange, start } from "./live.js";
import { overview } from "./overview.js";
import { verdict } from "./why.js";

const overviewView = (_, redraw) => ({ title: "Overview", draw: () => overview(redraw), stop() {} });
// The address of a view, the function that makes it, and its tab. Views other than the first are loaded
// when they are opened.
const routes = [
  [/^$/, () => overviewView, "#/"],
  [/^table\/([^/]+)$/, () => import("./table.js").then((m) => m.tableView), "#/"],
  [/^table\/([^/]+)\/item\/([^/]+)$/, () => import("./item.js").then((m) => m.itemView), "#/"],
  [/^storage$/, () => import("./storage.js").then((m) => m.storageView), "#/storage"],
  [/^clients$/, () => import("./clients.js").then((m) => m.clientsView), "#/clients"],
  [/^runs$/, () => import("./runs.js").then((m) => m.runsView), "#/runs"],
  [/^runs\/([^/]+)$/, () => import("./runs.js").then((m) => m.runView), "#/runs"],
];
const element = (id) => document.getElementById(id);
let view = notFound(), scheduled = false, said = "", opened = 0;

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function notFound() {
  return { title: "Not found", stop() {},
    draw: () => h("section", { class: "panel" }, h("h1", {}, "There is no such view"), h("p", {}, h("a", { href: "#/" }, "To the overview"))) };
}

function unreachable(again) {
  return { title: "Not loaded", stop() {}, standsAlone: true,
    draw: () => h("section", { class: "panel" }, h("h1", {}, "This view could not be loaded"), h("p", {}, "The server did not send it. ", h("button", { type: "button", onclick: again }, "Try again"))) };
}

async function route(moved) {
  const place = location.hash.replace(/^#\/?/, ""), number = ++opened;
  if (location.hash === "#view") return; // the link that skips the header
  const [pattern, load, tab] = routes.find(([p]) => p.test(place)) || [/^/, () => notFound, ""];
  let make;
  try {
    make = await load();
  } catch {
    make = () => unreachable(() => route(moved));
  }
  if (number !== opened) return; // another view was opened meanwhile
  view.stop();
  view = make(place.match(pattern).slice(1).map(decode), redraw);
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.title} – reprise`;
  redraw();
  if (moved) {
    element("view").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

/* Draws soon; many calls make one drawing. */
function redraw() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(draw, 0);
}

function statusText() {
  if (live.status === "live") return "Live";
  if (live.status === "connecting") return "Connecting";
  if (live.status === "token") return "Token needed";
  if (live.status === "denied") return "Not allowed";
  return `Not live since ${clock(live.receivedAt || live.since)}`;
}

function alarm() {
  if (live.status !== "lost") return null;
  const since = live.receivedAt ? `Not live since ${clock(live.receivedAt)}, for ${elapsed(age())}` : `The server has not responded since ${clock(live.since)}`;
  return h("div", { class: "alarm" }, `${since}: ${name(live.error, 300)}. The page tries again every ${elapsed(backoff(live.attempts) / 1000)}.`);
}

// Screen readers hear changes of the state, not every number.
function announce() {
  let text = live.status === "live" && live.info ? verdict(live.info, live.total, live.tables).title : statusText();
  if (live.status === "lost") text += ". The numbers are old.";
  if (text !== said) render(element("announce"), text);
  said = text;
}

function useToken(text) {
  setToken(text);
  live.status = "connecting";
  askNow();
  redraw();
}

function draw() {
  scheduled = false;
  const asks = live.status === "token", denied = live.status === "denied";
  element("status").className = "status " + live.status;
  render(element("status"), statusText());
  render(element("alarm"), alarm());
  announce();
  const main = element("view");
  main.classList.toggle("stale", live.status === "lost" && live.info !== null);
  element("token").hidden = !(hasToken() || (live.info && !live.info.server.open));
  render(element("token"), hasToken() ? "Forget the token" : "Token");
  if (asks || denied) {
    render(main, tokenForm(hasToken() ? `The token was refused: ${live.error}` : "", useToken));
    return;
  }
  const nodes = view.draw();
  render(main, live.info || view.standsAlone ? nodes : h("p", { class: "empty", key: "wait" }, live.status === "lost" ? "There is nothing to show yet." : "Loading the state of the server."));
  const s = live.info && live.info.server;
  render(element("foot"), s && `reprise ${name(s.version, 20)} at ${location.host}; up ${elapsed(s.uptime_seconds)}`);
}

const themes = ["system", "light", "dark"];
const stored = () => {
  try {
    return localStorage.getItem("reprise.theme");
  } catch {
    return null;
  }
};
let theme = themes.includes(stored()) ? stored() : "system";

function applyTheme() {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  render(element("theme"), `Theme: ${theme}`);
  redraw();
}

element("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try {
    localStorage.setItem("reprise.theme", theme);
  } catch { /* it lasts as long as the page */ }
  applyTheme();
});
element("token").addEventListener("click", () => {
  setToken("");
  live.status = "token";
  live.error = "";
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("hashchange", () => route(true));
onChange(redraw);
applyTheme();
// Begins behind the first paint of the frame around the views; a hidden page is never painted.
if (document.hidden) begin();
else requestAnimationFrame(() => setTimeout(begin, 0));

function begin() {
  route(false);
  start();
}
