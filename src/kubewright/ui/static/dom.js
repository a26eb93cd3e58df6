// Create and update elements, and render once per animation frame. Text is always set with textContent, so nothing from
// a cluster is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Return a new HTML element; attributes that start with "on" are event listeners, `text` is the text content. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return a new SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Set the text of a node if it differs: setting the same text would cause a layout. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Set or remove an attribute, if it differs. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

/**
 * Replace the children, but keep each element that is equal to the old one, so that a pressed button, a text selection and
 * the focus survive updates. An element with a listener needs a data-key that identifies what the listener acts on,
 * because a kept element keeps its old listener.
 */
export function replaceChildren(parent, ...children) {
  const next = children.flat().filter(Boolean);
  const old = [...parent.childNodes];
  next.forEach((node, place) => {
    const there = old[place];
    if (!there) parent.append(node);
    else if (there.isEqualNode(node)) return;
    else if (there.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) there.data = node.data;
    else if (there.nodeName === node.nodeName && there.cloneNode(false).isEqualNode(node.cloneNode(false))) {
      replaceChildren(there, ...node.childNodes);
    } else there.replaceWith(node);
  });
  for (const extra of old.slice(next.length)) extra.remove();
}

/** Return a function that schedules a render for the next animation frame; several calls lead to one render. */
export function frameScheduler(render) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      render();
    });
  };
}

// Each state has its own shape, so that its colour is not the only mark.
const SHAPES = {
  ready: ["M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13z", "M5 8.2l2.2 2.2L11.2 6"],
  progressing: ["M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13z", "M8 4.2v4l2.8 1.8"],
  failed: ["M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z", "M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4"],
  waiting: ["M8 1.6L15 14.2H1z", "M8 6.2v3.6M8 12v.2"],
  unknown: ["M8 1.2L14.8 8L8 14.8L1.2 8z", "M8 8v.2"],
  deleting: ["M2 2h12v12H2z", "M5 8h6"],
  paused: ["M2 2h12v12H2z", "M6.2 5.2v5.6M9.8 5.2v5.6"],
};

/** The states of objects, worst first. */
export const STATES = ["failed", "waiting", "progressing", "deleting", "paused", "unknown", "ready"];

/** Return the icon of a state as SVG content for a 16 by 16 box. */
export function stateShape(state) {
  const [outline, mark] = SHAPES[state] ?? SHAPES.unknown;
  return [svg("path", { class: "outline", d: outline }), svg("path", { class: "mark", d: mark })];
}

/** Return the icon of a state; its name is for screen readers too. */
export function stateIcon(state) {
  const known = state in SHAPES ? state : "unknown";
  return svg("svg", { class: `state state-${known}`, viewBox: "0 0 16 16", role: "img", "aria-label": known }, stateShape(known));
}
