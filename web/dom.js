// SPDX-License-Identifier: Apache-2.0
// Builds the page. A view returns a tree of plain objects; render() changes the elements that
// differ, so that the focus, a selection and the position of a scroll bar stay where they are.
// Text reaches the document as text nodes only: no name and no datum is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const svgTags = new Set(["svg", "rect", "line", "path", "circle", "polyline", "g", "text", "title"]);

/* A node: h("p", {class: "note"}, "text", h("b", {}, "more")). Keys beginning with "on" are listeners.
 * `key` tells nodes of a list apart. `hook` has functions create(element), update(element, now) and
 * destroy(element) for what is not a tree of nodes, such as a canvas. null and false are left out. */
export function h(tag, attributes, ...children) {
  return { tag, attributes: attributes || {}, children: children.flat(Infinity).filter(isShown) };
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

// Links lead to views of this page and to files of this server, never to a scheme such as
// "javascript:".
function isOwnLink(href) {
  return href.startsWith("#") || href.startsWith("v1/");
}

function setAttribute(element, name, value) {
  if (name === "key" || name === "hook") return;
  if (name.startsWith("on")) {
    element[name] = value || null;
  } else if (name === "value" || name === "checked" || name === "disabled") {
    if (name === "value" && value === undefined) element.removeAttribute("value");
    else if (element[name] !== value) element[name] = value === undefined ? false : value;
  } else if (value === undefined || value === null || value === false) {
    element.removeAttribute(name);
  } else if (name === "href" && !isOwnLink(value)) {
    throw new Error("a link of the page leads elsewhere");
  } else if (name === "width%") {
    element.style.width = value + "%"; // the policy of the page forbids the attribute "style"
  } else if (name === "left%") {
    element.style.left = value + "%";
  } else {
    const text = value === true ? "" : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

function create(node) {
  if (typeof node !== "object") return document.createTextNode(String(node));
  const element = svgTags.has(node.tag) ? document.createElementNS(SVG, node.tag)
    : document.createElement(node.tag);
  for (const [name, value] of Object.entries(node.attributes)) setAttribute(element, name, value);
  if (node.attributes.hook) node.attributes.hook.create(element);
  else children(element, [], node.children);
  element.rpNode = node;
  return element;
}

function remove(element) {
  for (const below of element.querySelectorAll ? element.querySelectorAll("*") : [])
    release(below);
  release(element);
  element.remove();
}

function release(element) {
  const hook = element.rpNode && element.rpNode.attributes.hook;
  if (hook && hook.destroy) hook.destroy(element);
}

function isSame(before, now) {
  if (typeof before !== "object" || typeof now !== "object") return typeof before === typeof now;
  return before.tag === now.tag && before.attributes.key === now.attributes.key &&
    Boolean(before.attributes.hook) === Boolean(now.attributes.hook);
}

function update(element, before, now) {
  if (before === now && typeof now === "object") return; // a view may keep nodes that did not change
  if (typeof now !== "object") {
    if (element.nodeValue !== String(now)) element.nodeValue = String(now);
    return;
  }
  for (const name of Object.keys(before.attributes))
    if (!(name in now.attributes)) setAttribute(element, name, undefined);
  for (const [name, value] of Object.entries(now.attributes)) setAttribute(element, name, value);
  if (now.attributes.hook) {
    if (now.attributes.hook.update) now.attributes.hook.update(element, now);
  } else {
    children(element, before.children, now.children);
  }
  element.rpNode = now;
}

function children(parent, before, now) {
  const old = Array.from(parent.childNodes).slice(0, before.length);
  const byKey = new Map();
  before.forEach((node, i) => {
    if (typeof node === "object" && node.attributes.key !== undefined)
      byKey.set(node.attributes.key, i);
  });
  const used = new Set();
  const place = now.map((node, i) => {
    const key = typeof node === "object" ? node.attributes.key : undefined;
    let from = key !== undefined ? byKey.get(key) : i;
    if (from !== undefined && (from >= before.length || used.has(from) ||
        !isSame(before[from], node))) from = undefined;
    if (from !== undefined) used.add(from);
    return from;
  });
  old.forEach((element, i) => { if (!used.has(i)) remove(element); });
  let at = parent.firstChild;
  now.forEach((node, i) => {
    let element;
    if (place[i] === undefined) {
      element = create(node);
    } else {
      element = old[place[i]];
      update(element, before[place[i]], node);
    }
    if (element === at) at = at.nextSibling;
    else parent.insertBefore(element, at);
  });
}

/* Makes the nodes the content of `parent`. */
export function render(parent, ...nodes) {
  const now = nodes.flat(Infinity).filter(isShown);
  if (!parent.rpShown) parent.replaceChildren();
  children(parent, parent.rpShown || [], now);
  parent.rpShown = now;
}

const probe = document.createElement("span");
probe.hidden = true;

/* The value of a colour of app.css, such as "--accent", for a canvas. */
export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
