// SPDX-License-Identifier: Apache-2.0
// Requests to the server. The token is kept in the session of this tab, and is sent in the header
// "Authorization" only: it never becomes part of an address.

const KEY = "reprise.token";

/* The server refused, or did not respond: `status` of HTTP, 0 without a response. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function session() {
  try {
    return window.sessionStorage;
  } catch {
    return null; // the browser forbids storage
  }
}

let held = session()?.getItem(KEY) || "";

export function hasToken() {
  return held !== "";
}

/* Keeps a token until the tab is closed; "" forgets it. */
export function setToken(text) {
  held = text;
  try {
    if (text) session()?.setItem(KEY, text);
    else session()?.removeItem(KEY);
  } catch { /* it is kept in memory */ }
}

/* "v1/tables/NAME", with each part escaped: dots too, since "x.csv" is another page than the run "x%2Ecsv".
 * Relative, so that a proxy may put the page below a path. */
export function path(...parts) {
  return parts.map((part) => encodeURIComponent(part).replaceAll(".", "%2E")).join("/");
}

async function request(address, options, limit, kind = "text") {
  // Browsers resolve "." and "..", escaped or not, before they send a path.
  if (!new URL(address, document.baseURI).pathname.endsWith("/" + address.split("?")[0]))
    throw new Refusal(0, "a browser cannot ask for a name that consists of dots");
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), limit);
  const headers = { ...options.headers };
  if (held) headers.authorization = "Bearer " + held;
  let response, text;
  try {
    response = await fetch(address, { ...options, headers, signal: control.signal, cache: "no-store",
      credentials: "omit", redirect: "error" });
    text = response.ok ? await response[kind]() : await response.text();
  } catch {
    throw new Refusal(0, control.signal.aborted ? `the server did not respond within ${limit / 1000} s`
      : "the server cannot be reached");
  } finally {
    clearTimeout(timer);
  }
  if (!response.ok) throw new Refusal(response.status, errorText(text) || `HTTP status ${response.status}`);
  return text;
}

// An error is a sentence, or {"error": "sentence"}.
function errorText(text) {
  try {
    const said = JSON.parse(text).error;
    if (typeof said === "string") return said;
  } catch { /* plain text */ }
  return text.trim().slice(0, 1000);
}

/* The JSON of a page. Throws a Refusal. */
export async function get(address, limit = 15000) {
  const text = await request(address, { method: "GET" }, limit);
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(0, "the server responded with something that is not JSON");
  }
}

/* A change. `confirm` is the name of what changes, with escapes; a form of another site cannot send the header. */
export async function post(address, confirm, body) {
  const text = await request(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-reprise-confirm": confirm },
    body: JSON.stringify(body || {}),
  }, 60000);
  try {
    return JSON.parse(text).done || "Done.";
  } catch {
    return "Done.";
  }
}

/* Saves a page as a file. A plain link could not send the token. */
export async function save(address, file) {
  const data = await request(address, { method: "GET" }, 60000, "blob");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
