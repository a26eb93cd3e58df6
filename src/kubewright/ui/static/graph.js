// The graph as SVG: nodes with their state, owners as lines, references as dashed lines; drag and zoom.

import { STATES, setAttribute, setText, stateShape, svg } from "./dom.js";
import { count, fit } from "./format.js";
import { NODE, SMALLEST, buildGraph, layOut } from "./layout.js";

const MARGIN = 20;
/** Height of the controls below the drawing. */
const CONTROLS = 44;
/** Pixels of the drawing that always stay in view. */
const KEPT = 60;
/** With more objects than this, the structure is rebuilt at most twice a second. */
const LARGE = 2000;
const LARGE_INTERVAL = 500;

export class GraphView {
  #nodes = new Map();
  #edges = new Map();
  #seen = {};
  #opened = new Set();
  #graph = { nodes: new Map(), roots: [], references: [] };
  #size = { width: 0, height: 0 };
  // Position and scale of the drawing: fitted to the view, showing the selected node, until the user moves it.
  #view = { x: 0, y: 0, scale: 1, moved: false };
  #builtAt = 0;
  #later = 0;
  #focused = null;

  constructor(root, { select, changed }) {
    this.select = select;
    this.changed = changed;
    this.svg = root.querySelector("#graph-drawing");
    this.note = root.querySelector("#graph-note");
    this.scene = svg("g");
    this.lines = svg("g", { class: "edges", "aria-hidden": "true" });
    this.boxes = svg("g");
    this.scene.append(this.lines, this.boxes);
    this.svg.append(this.scene);
    root.querySelector("#zoom-in").addEventListener("click", () => this.#zoom(1.25));
    root.querySelector("#zoom-out").addEventListener("click", () => this.#zoom(0.8));
    root.querySelector("#zoom-fit").addEventListener("click", () => this.fit());
    this.#pointer();
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => {
      this.#seen = {};
      this.changed();
    }).observe(this.svg);
  }

  /** Put the focus on the current node. */
  focus() {
    (this.#nodes.get(this.#focused) ?? this.#nodes.values().next().value)?.element.focus();
  }

  fit() {
    this.#view.moved = false;
    this.#place();
  }

  render(index, objects, selected) {
    const width = this.svg.clientWidth;
    if (!width) return;
    const same =
      this.#seen.index === index && this.#seen.version === index.version && this.#seen.objects === objects &&
      this.#seen.selected === selected;
    if (same) return;
    const urgent = this.#seen.selected !== selected || this.#seen.index !== index || !this.#builtAt;
    const wait = objects.length > LARGE && !urgent ? this.#builtAt + LARGE_INTERVAL - performance.now() : 0;
    if (wait > 0) {
      if (!this.#later) this.#later = setTimeout(() => { this.#later = 0; this.changed(); }, wait);
      return;
    }
    const reselected = this.#seen.selected !== selected;
    this.#seen = { index, version: index.version, objects, selected };
    this.#builtAt = performance.now();
    this.#graph = buildGraph(index, objects, { opened: this.#opened, selected, all: objects === index.sorted });
    this.#size = layOut(this.#graph, width - 2 * MARGIN);
    this.#draw(selected);
    this.#place(reselected ? selected : null);
  }

  #draw(selected) {
    const near = neighbours(this.#graph, selected);
    const shown = new Set();
    for (const node of this.#graph.nodes.values()) {
      shown.add(node.id);
      let drawn = this.#nodes.get(node.id);
      if (!drawn || drawn.type !== node.type) {
        drawn?.element.remove();
        drawn = this.#create(node);
        this.#nodes.set(node.id, drawn);
        this.boxes.append(drawn.element);
      }
      drawn.node = node;
      setAttribute(drawn.element, "transform", `translate(${node.x} ${node.y})`);
      if (node.type === "object") drawObject(drawn, node, selected);
      else drawGroup(drawn, node);
    }
    for (const [id, drawn] of this.#nodes) {
      if (shown.has(id)) continue;
      drawn.element.remove();
      this.#nodes.delete(id);
    }
    this.#drawEdges(near, selected);
    if (!this.#nodes.has(this.#focused)) this.#rove(this.#graph.roots[0]?.id ?? null);
    const { objects, index } = this.#seen;
    const grouped = [...this.#graph.nodes.values()].some((node) => node.type === "group");
    const all = index.size - (objects.some((object) => object.system) ? 0 : index.systemCount);
    const numbers = objects.length === all ? count(all) : `${count(objects.length)} of ${count(all)}`;
    setText(this.note, `${numbers} objects${grouped ? ", grouped by owner and kind" : ""}`);
  }

  #drawEdges(near, selected) {
    const shown = new Set();
    const draw = (key, from, to, kind) => {
      shown.add(key);
      let line = this.#edges.get(key);
      if (!line) {
        line = svg("path");
        this.#edges.set(key, line);
        this.lines.append(line);
      }
      const strong = selected && near.has(from.id) && near.has(to.id);
      setAttribute(line, "class", `edge ${kind}${strong ? " strong" : ""}`);
      setAttribute(line, "d", this.#size.indented && from.children.includes(to) ? elbow(from, to) : curve(from, to));
    };
    const descend = (node) => {
      for (const child of node.children) {
        if (!child.attached) draw(`${node.id}>${child.id}`, node, child, "owner");
        descend(child);
      }
    };
    this.#graph.roots.forEach(descend);
    for (const { from, to } of this.#graph.references) {
      const target = this.#graph.nodes.get(to);
      // References between trees are drawn for the selected object only: all of them would hide the owner lines.
      if (target.attached || from === selected || to === selected) {
        draw(`${from}~${to}`, this.#graph.nodes.get(from), target, "reference");
      }
    }
    for (const [key, line] of this.#edges) {
      if (shown.has(key)) continue;
      line.remove();
      this.#edges.delete(key);
    }
  }

  #create(node) {
    const element = svg("g", { class: `node ${node.type}`, role: "button", tabindex: "-1" });
    const drawn = { element, type: node.type, title: svg("title") };
    const box = svg("rect", { class: "box", width: NODE.width, height: NODE.height, rx: 7 });
    const name = (drawn.name = svg("text", { class: "name", x: 34, y: 17 }));
    const detail = (drawn.detail = svg("text", { class: "detail", x: 34, y: 32 }));
    element.append(drawn.title);
    if (node.type === "group") element.append(svg("rect", { class: "box behind", x: 4, y: 4, width: NODE.width, height: NODE.height, rx: 7 }));
    element.append(box);
    if (node.type === "object") {
      drawn.icon = svg("g", { transform: "translate(11 13)" });
      element.append(drawn.icon, name, detail);
    } else {
      setAttribute(name, "x", 12);
      drawn.bar = svg("g", { transform: "translate(12 28)" });
      drawn.sign = svg("text", { class: "sign", x: NODE.width - 14, y: 19, "text-anchor": "middle" });
      element.append(name, drawn.bar, drawn.sign);
    }
    const choose = () => (node.type === "object" ? this.select(drawn.node.object.uid) : this.#toggle(drawn.node.id));
    element.addEventListener("click", () => {
      if (!this.dragged) choose();
    });
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    element.addEventListener("focus", () => this.#rove(drawn.node.id));
    return drawn;
  }

  #toggle(id) {
    if (!this.#opened.delete(id)) this.#opened.add(id);
    this.#seen.selected = undefined;
    this.changed();
  }

  // One node is a tab stop; arrow keys go to the nearest node in their direction.
  #rove(id) {
    this.#nodes.get(this.#focused)?.element.setAttribute("tabindex", "-1");
    this.#focused = id;
    this.#nodes.get(id)?.element.setAttribute("tabindex", "0");
  }

  #key(event) {
    const directions = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const from = this.#graph.nodes.get(this.#focused);
    if (event.key === "+" || event.key === "=") this.#zoom(1.25);
    else if (event.key === "-") this.#zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key in directions && from) {
      const [dx, dy] = directions[event.key];
      let best = null;
      let least = Infinity;
      for (const node of this.#graph.nodes.values()) {
        const ahead = (node.x - from.x) * dx + (node.y - from.y) * dy;
        const aside = Math.abs((node.x - from.x) * dy) + Math.abs((node.y - from.y) * dx);
        const distance = ahead + aside * 3;
        if (ahead > 1 && distance < least) [best, least] = [node, distance];
      }
      if (best) {
        this.#nodes.get(best.id).element.focus({ preventScroll: true });
        this.#view.moved = true;
        this.#place(best.id);
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #place(wanted = null) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!width) return;
    const view = this.#view;
    if (!view.moved) {
      const wide = Math.max(SMALLEST, Math.min(1, (width - 2 * MARGIN) / Math.max(1, this.#size.width)));
      const high = (height - MARGIN - CONTROLS) / Math.max(1, this.#size.height);
      // A drawing that does not fit in height anyway is fitted to the width only.
      view.scale = high < SMALLEST ? wide : Math.min(wide, high);
      view.x = Math.max(MARGIN, (width - this.#size.width * view.scale) / 2);
      view.y = Math.max(MARGIN, (height - CONTROLS + MARGIN - this.#size.height * view.scale) / 2);
    }
    const node = this.#graph.nodes.get(wanted ?? (view.moved ? null : this.#seen.selected));
    if (node) {
      // If the node is not in view, move it so that its children are visible, too.
      const left = view.x + node.x * view.scale;
      const top = view.y + node.y * view.scale;
      view.x += Math.min(0, width - MARGIN - left - NODE.width * view.scale) || Math.max(0, MARGIN - left);
      if (top < 0 || top + NODE.height * view.scale > height - CONTROLS) view.y += height / 4 - top;
    }
    // A part of the drawing always stays in view.
    view.x = Math.min(width - KEPT, Math.max(KEPT - this.#size.width * view.scale, view.x));
    view.y = Math.min(height - KEPT, Math.max(KEPT - this.#size.height * view.scale, view.y));
    setAttribute(this.scene, "transform", `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)}) scale(${view.scale.toFixed(3)})`);
  }

  #zoom(factor, cx = this.svg.clientWidth / 2, cy = this.svg.clientHeight / 2) {
    const view = this.#view;
    const scale = Math.min(2.5, Math.max(0.2, view.scale * factor));
    const ratio = scale / view.scale;
    Object.assign(view, { x: cx - (cx - view.x) * ratio, y: cy - (cy - view.y) * ratio, scale, moved: true });
    this.#place();
  }

  #pointer() {
    let start = null;
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.svg.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        this.#zoom(Math.exp(-event.deltaY / 200), event.clientX - box.left, event.clientY - box.top);
        return;
      }
      Object.assign(this.#view, { x: this.#view.x - event.deltaX, y: this.#view.y - event.deltaY, moved: true });
      this.#place();
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      start = { x: event.clientX - this.#view.x, y: event.clientY - this.#view.y, cx: event.clientX, cy: event.clientY };
      this.dragged = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!start || !event.buttons) return;
      if (Math.hypot(event.clientX - start.cx, event.clientY - start.cy) < 5 && !this.dragged) return;
      this.dragged = true;
      Object.assign(this.#view, { x: event.clientX - start.x, y: event.clientY - start.y, moved: true });
      this.#place();
    });
    this.svg.addEventListener("pointerup", () => {
      start = null;
      // The click event that follows a drag is dispatched before the next frame.
      requestAnimationFrame(() => { this.dragged = false; });
    });
  }
}

let measured = null;

/** Return the fonts of a node's text, for measuring. */
function fonts() {
  const family = (measured ??= getComputedStyle(document.body).fontFamily);
  return { name: `600 12px ${family}`, detail: `11px ${family}` };
}

function drawObject(drawn, { object, context }, selected) {
  const classes = ["node", "object", `state-${object.state}`];
  if (context) classes.push("context");
  if (object.uid === selected) classes.push("selected");
  setAttribute(drawn.element, "class", classes.join(" "));
  setAttribute(drawn.element, "aria-pressed", String(object.uid === selected));
  setText(drawn.name, fit(object.name, NODE.width - 42, fonts().name));
  setText(drawn.detail, fit(object.stateText ? `${object.kind} · ${object.stateText}` : object.kind, NODE.width - 42, fonts().detail, true));
  const full = `${object.kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name}: ${object.state}${object.stateText ? `, ${object.stateText}` : ""}`;
  setText(drawn.title, full);
  setAttribute(drawn.element, "aria-label", full);
  if (drawn.state !== object.state) {
    drawn.state = object.state;
    drawn.icon.replaceChildren(svg("g", { class: `state state-${object.state}` }, stateShape(object.state)));
  }
}

function drawGroup(drawn, node) {
  const total = node.members.length;
  const name = node.opened ? `${count(total)} more` : `${node.kind} × ${count(total)}`;
  setText(drawn.name, fit(name, NODE.width - 40, fonts().name));
  setText(drawn.sign, node.opened ? "−" : "+");
  setAttribute(drawn.element, "aria-expanded", String(Boolean(node.opened)));
  const parts = STATES.filter((state) => node.states[state]);
  const label = `${name}: ${parts.map((state) => `${count(node.states[state])} ${state}`).join(", ")}`;
  setText(drawn.title, label);
  setAttribute(drawn.element, "aria-label", label);
  const signature = parts.map((state) => `${state}${node.states[state]}`).join();
  if (drawn.signature === signature) return;
  drawn.signature = signature;
  // A bar with the counts of states; each state gets a visible part, even with few members.
  const width = NODE.width - 24;
  const least = 4;
  const free = width - least * parts.length;
  let x = 0;
  drawn.bar.replaceChildren(...parts.map((state) => {
    const part = least + (free * node.states[state]) / total;
    const rect = svg("rect", { class: `part state-${state}`, x: x.toFixed(1), y: 0, width: Math.max(1, part - 1).toFixed(1), height: 6, rx: 2 });
    x += part;
    return rect;
  }));
}

function elbow(from, to) {
  const x = from.x + NODE.indent / 2;
  const y = to.y + NODE.height / 2;
  return `M${x} ${from.y + NODE.height}V${y - 6}Q${x} ${y} ${x + 6} ${y}H${to.x}`;
}

function curve(from, to) {
  const x1 = from.x + NODE.width;
  const y1 = from.y + NODE.height / 2;
  const y2 = to.y + NODE.height / 2;
  if (to.x > x1) {
    const middle = (x1 + to.x) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${to.x} ${y2}`;
  }
  // To the left or in the same column: around the right side.
  const x2 = to.x + NODE.width;
  const out = Math.max(x1, x2) + 36;
  return `M${x1} ${y1}C${out} ${y1} ${out} ${y2} ${x2} ${y2}`;
}

function neighbours(graph, selected) {
  const near = new Set(selected ? [selected] : []);
  const descend = (node, path) => {
    if (node.id === selected) path.forEach((each) => near.add(each));
    if (node.id === selected) node.children.forEach((child) => near.add(child.id));
    node.children.forEach((child) => descend(child, [...path, node.id]));
  };
  graph.roots.forEach((root) => descend(root, []));
  for (const { from, to } of graph.references) {
    if (from === selected) near.add(to);
    if (to === selected) near.add(from);
  }
  return near;
}
