// SPDX-License-Identifier: Apache-2.0
// The view of clients: the connections of the server.

import { h } from "./dom.js";
import { Fetched } from "./fetched.js";
import { bytes, count, elapsed, name, whole } from "./format.js";
import { grid } from "./grid.js";
import { live } from "./live.js";

export function clientsView(_, redraw) {
  const page = new Fetched("v1/clients", 2000, redraw);

  function draw() {
    const s = live.info && live.info.server;
    const list = page.data && page.data.clients;
    return [h("h1", { key: "title" }, "Clients"),
      s && h("p", { key: "sum" }, `${count(s.connections, "connection")} of clients with ${count(s.streams, "open stream")}, and ${whole(s.connections_page)} of pages. The server listens on ${s.addresses.map((a) => name(a, 80)).join(", ")}${s.tls ? " with TLS" : " without TLS"}${s.open ? "; it asks for no credentials" : ""}.`),
      page.error && h("p", { key: "error", class: "wrong" }, `The list of connections is not there: ${name(page.error.message, 300)}`),
      list && grid("Connections", [
        { title: "Address", cell: (c) => h("span", { class: "mono" }, name(c.address, 80)) },
        { title: "Role", cell: (c) => name(c.role, 20) }, { title: "Protocol", cell: (c) => name(c.protocol, 30) },
        { title: "Connected for", n: true, cell: (c) => elapsed(c.since_s) }, { title: "Calls", n: true, cell: (c) => whole(c.calls) },
        { title: "Received", n: true, cell: (c) => bytes(c.bytes_in) }, { title: "Sent", n: true, cell: (c) => bytes(c.bytes_out) },
        { title: "Waits for", wrap: true, cell: (c) => (c.waits_for ? name(c.waits_for, 300) : "–") },
      ], list, "No client is connected."),
      list && page.data.connections > list.length && h("p", { key: "more", class: "empty" }, `${whole(page.data.connections - list.length)} more connections are not shown.`)];
  }
  return { title: "Clients", draw, stop: () => page.stop() };
}
