// SPDX-License-Identifier: Apache-2.0
// Questions before a change, and the form for a token. The dialogs are of the browser (<dialog>), which
// keeps the focus inside and closes them with Escape.

import { post } from "./api.js";
import { h, render } from "./dom.js";
import { name } from "./format.js";
import { askNow } from "./live.js";

/* Asks before a change. question: {title, text, button, danger, address, confirm, fields, body}. `confirm`
 * is the name that the server compares; fields are inputs [{name, label, value, type, hint}]; body(values)
 * makes the body of the request. With `type` the user has to type the name. */
export function ask(question) {
  const dialog = document.createElement("dialog");
  let said = "", wrong = "", busy = false, typed = "";
  const values = Object.fromEntries((question.fields || []).map((f) => [f.name, f.value]));
  const close = () => dialog.close();
  const isReady = () => !busy && !said && (!question.type || typed === question.confirm);

  async function send(event) {
    event.preventDefault();
    if (!isReady()) return;
    busy = true;
    wrong = "";
    draw();
    try {
      said = await post(question.address, question.header || encodeURIComponent(question.confirm), question.body ? question.body(values) : {});
      askNow();
    } catch (error) {
      wrong = error.message;
      if (error.status === 401 || error.status === 403) wrong += " (a token with the role admin is needed)";
    }
    busy = false;
    draw();
    if (said) dialog.querySelector("button").focus();
  }

  function draw() {
    render(dialog, h("form", { method: "dialog", onsubmit: send },
      h("h2", { id: "dialog-title" }, question.title),
      h("p", {}, question.text),
      !said && (question.fields || []).map((f) => h("label", { key: f.name, class: f.type === "checkbox" ? "inline" : "" },
        f.type === "checkbox"
          ? [h("input", { type: "checkbox", checked: values[f.name], onchange: (e) => { values[f.name] = e.target.checked; } }), f.label]
          : [f.label, h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value: values[f.name], placeholder: f.hint || "",
            oninput: (e) => { values[f.name] = e.target.value; } })])),
      question.type && !said && h("label", {}, `Type ${name(question.confirm, 60)} to go on`,
        h("input", { type: "text", autocomplete: "off", spellcheck: "false", value: typed, oninput: (e) => { typed = e.target.value; draw(); } })),
      wrong && h("p", { class: "wrong", role: "alert" }, name(wrong, 600)),
      said && h("p", { class: "done", role: "status" }, name(said, 600)),
      h("div", { class: "actions" },
        said ? h("button", { type: "button", key: "close", onclick: close }, "Close")
          : [h("button", { type: "button", key: "cancel", onclick: close }, "Cancel"),
            h("button", { type: "submit", key: "go", class: question.danger ? "danger" : "main", disabled: !isReady() }, busy ? "Working" : question.button)])));
  }

  dialog.setAttribute("aria-labelledby", "dialog-title");
  draw();
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/* The form that asks for a token. `done(token)` is called with the text. */
export function tokenForm(reason, done) {
  return h("section", { class: "panel token-form", key: "token" },
    h("h1", {}, "This server asks for a token"),
    reason && h("p", {}, name(reason, 300)),
    h("form", { method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      const text = event.target.querySelector("input").value.trim();
      if (text) done(text);
    } },
      h("p", {}, h("label", {}, "Token ", h("input", { type: "password", id: "token-input", autocomplete: "off", spellcheck: "false" })), " ",
      h("button", { type: "submit", class: "main" }, "Use this token"))),
    h("p", { class: "empty" }, "A token with the role read shows everything; changes need the role admin. The token is kept until this tab is closed, and is sent to this server only."));
}
