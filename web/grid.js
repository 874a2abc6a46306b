// SPDX-License-Identifier: Apache-2.0

import { h } from "./dom.js";

/* A table of HTML: columns [{title, n, cell(row)}]. `empty` is shown without rows, `note` below them. */
export function grid(caption, columns, rows, empty, note) {
  return h("div", { class: "panel", key: caption },
    rows.length === 0 ? [h("h2", {}, caption), h("p", { class: "empty" }, empty)]
      : h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, h("table", {}, h("caption", {}, caption),
        h("thead", {}, h("tr", {}, columns.map((c) => h("th", { key: c.title, scope: "col", class: c.n ? "n" : "" }, c.title)))),
        h("tbody", {}, rows.map((row, i) => h("tr", { key: i }, columns.map((c) =>
          h("td", { key: c.title, class: (c.n ? "n" : "") + (c.wrap ? " wrap" : "") }, c.cell(row)))))))),
    rows.length > 0 && note && h("p", { class: "more" }, note));
}
