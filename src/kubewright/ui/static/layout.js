// The graph of objects as pure functions: which nodes and edges there are, and where they are drawn.
//
// Owner references make objects a forest. Many siblings of one kind are drawn as one group with the counts of their
// states, and the children of a group are groups, too: 10,000 objects become a few dozen nodes. The selected object and
// its owners are always separate nodes.

import { STATES } from "./dom.js";
import { kindKey } from "./objects.js";

/** With at most this many objects, each root is a separate node. */
const SMALL = 80;
const ROOTS_IN_LARGE = 6;
const SIBLINGS = 6;
/** Maximum number of members of an opened group that become nodes; those with the worst states come first. */
const OPENED = 12;
/** References of groups up to this size are drawn; those of larger groups would hide the rest. */
const REFERRING = 30;

export const NODE = { width: 184, height: 42, across: 30, between: 8, indent: 22, block: 22 };
/** Minimum scale at which the text of nodes is readable: a larger drawing is scrolled, not shrunk. */
export const SMALLEST = 0.8;

const severity = new Map(STATES.map((state, place) => [state, place]));

/** Return the nodes and edges for these objects; their owners are included as context if they do not match the filter. */
export function buildGraph(index, objects, { opened = new Set(), selected = null, all = false } = {}) {
  // If all objects are shown, no owners have to be added, and the index need not be copied.
  const matching = all ? null : new Set(objects.map((object) => object.uid));
  const context = new Map();
  const isShown = (uid) => all || matching.has(uid) || context.has(uid);
  if (!all) {
    for (const object of objects) {
      // The owners of an owner that is already included have been included, too.
      for (let owner = index.parent(object); owner && !isShown(owner.uid); owner = index.parent(owner)) context.set(owner.uid, owner);
    }
  }
  const shown = context.size ? [...objects, ...context.values()] : objects;
  const chosen = selected ? index.get(selected) : undefined;
  const pinned = new Set(chosen ? [chosen, ...index.ancestors(chosen)].map((each) => each.uid) : []);
  const children = new Map();
  const roots = [];
  for (const object of shown) {
    const parent = index.parent(object);
    if (!parent || !isShown(parent.uid)) roots.push(object);
    else if (children.has(parent.uid)) children.get(parent.uid).push(object);
    else children.set(parent.uid, [object]);
  }
  const graph = { nodes: new Map(), roots: [], references: [] };
  const nodeOf = new Map();

  function addNode(node, parent) {
    node.children = [];
    graph.nodes.set(node.id, node);
    if (parent) parent.children.push(node);
    else graph.roots.push(node);
    return node;
  }

  function addObject(object, parent) {
    const node = addNode({ id: object.uid, type: "object", object, context: context.has(object.uid) }, parent);
    nodeOf.set(object.uid, node.id);
    addAll(children.get(object.uid) ?? [], node);
  }

  function addGroup(members, parent, id, isOpened) {
    const states = {};
    for (const { state } of members) states[state] = (states[state] ?? 0) + 1;
    const node = addNode({ id, type: "group", kind: members[0].kind, members, states, opened: isOpened }, parent);
    for (const { uid } of members) nodeOf.set(uid, id);
    addAll(members.flatMap((member) => children.get(member.uid) ?? []), node);
  }

  function addAll(siblings, parent) {
    const kinds = new Map();
    for (const object of siblings) {
      const key = kindKey(object);
      if (!kinds.has(key)) kinds.set(key, []);
      kinds.get(key).push(object);
    }
    const limit = parent ? SIBLINGS : shown.length <= SMALL ? Infinity : ROOTS_IN_LARGE;
    for (const [key, members] of kinds) {
      const id = `${parent?.id ?? ""}>${key}`;
      if (members.length <= limit && parent?.type !== "group") {
        for (const object of members) addObject(object, parent);
        continue;
      }
      const isOpened = opened.has(id);
      const worst = isOpened ? new Set(worstFirst(members).slice(0, OPENED)) : new Set();
      const own = members.filter((object) => worst.has(object) || pinned.has(object.uid));
      const rest = members.filter((object) => !worst.has(object) && !pinned.has(object.uid));
      for (const object of worstFirst(own)) addObject(object, parent);
      if (rest.length) addGroup(rest, parent, id, isOpened);
    }
  }

  addAll(roots, null);
  // Objects whose owner references form a cycle must still be shown: one of them becomes a root.
  while (nodeOf.size < shown.length) {
    const lost = shown.find((object) => !nodeOf.has(object.uid));
    const siblings = children.get(index.parent(lost).uid);
    siblings.splice(siblings.indexOf(lost), 1);
    addAll([lost], null);
  }
  addReferences(graph, index, nodeOf);
  attachReferenced(graph);
  return graph;
}

const worstFirst = (objects) => [...objects].sort((a, b) => (severity.get(a.state) ?? 0) - (severity.get(b.state) ?? 0));

function addReferences(graph, index, nodeOf) {
  const seen = new Set();
  for (const node of graph.nodes.values()) {
    const referring = node.type === "object" ? [node.object] : node.members.length <= REFERRING ? node.members : [];
    for (const object of referring) {
      for (const reference of object.references ?? []) {
        const target = index.named(reference);
        const to = target && nodeOf.get(target.uid);
        const key = `${node.id}\n${to}`;
        if (!to || to === node.id || seen.has(key)) continue;
        seen.add(key);
        graph.references.push({ from: node.id, to, path: reference.path });
      }
    }
  }
  // A Deployment, its ReplicaSet and its Pods refer to the same ConfigMap: draw one line, from the first of them.
  const above = new Map();
  for (const node of graph.nodes.values()) for (const child of node.children) above.set(child.id, node.id);
  graph.references = graph.references.filter(({ from, to }) => {
    for (let id = above.get(from); id; id = above.get(id)) if (seen.has(`${id}\n${to}`)) return false;
    return true;
  });
}

// An object without owner and children to which only one tree refers is drawn in that tree, beside the referring node.
function attachReferenced(graph) {
  const rootOf = new Map();
  const mark = (node, root) => {
    rootOf.set(node.id, root);
    for (const child of node.children) mark(child, root);
  };
  for (const root of graph.roots) mark(root, root.id);
  const referrers = new Map();
  for (const reference of graph.references) {
    if (!referrers.has(reference.to)) referrers.set(reference.to, []);
    referrers.get(reference.to).push(reference.from);
  }
  graph.roots = graph.roots.filter((root) => {
    const from = referrers.get(root.id) ?? [];
    const trees = new Set(from.map((id) => rootOf.get(id)));
    if (root.children.length || trees.size !== 1 || trees.has(root.id)) return true;
    const [tree] = trees;
    // Not into a tree that is itself moved: two objects that refer to each other would both disappear.
    if (referrers.has(tree) && !graph.nodes.get(tree).children.length) return true;
    root.attached = true;
    graph.nodes.get(from[0]).children.push(root);
    return false;
  });
}

/**
 * Set x and y of each node for a view of the given width, and return the size of the drawing. Trees grow to the right;
 * where they would be too wide, children are listed below their owner, indented.
 */
export function layOut(graph, viewWidth = 1200) {
  const available = viewWidth / SMALLEST;
  const trees = graph.roots.filter((root) => root.children.length);
  const singles = graph.roots.filter((root) => !root.children.length);
  const depth = Math.max(0, ...trees.map(depthOf));
  const indented = depth * (NODE.width + NODE.across) - NODE.across > available;
  const blocks = trees.map((root) => {
    const nodes = indented ? placeIndented(root) : placeAcross(root);
    const width = Math.max(...nodes.map((node) => node.x)) + NODE.width;
    return { nodes, width, height: Math.max(...nodes.map((node) => node.y)) + NODE.height };
  });
  for (const root of singles) {
    Object.assign(root, { x: 0, y: 0 });
    blocks.push({ nodes: [root], width: NODE.width, height: NODE.height, single: true });
  }
  return { ...packColumns(blocks, available), indented };
}

const depthOf = (node) => 1 + Math.max(0, ...node.children.map(depthOf));
const spaceBelow = (block) => (block.single ? NODE.between : NODE.block);

// Fill columns from top to bottom, in the lowest height whose columns are not wider than the view.
function packColumns(blocks, available) {
  const tallest = Math.max(0, ...blocks.map((block) => block.height));
  const total = blocks.reduce((sum, block) => sum + block.height + spaceBelow(block), 0);
  let height = tallest;
  let packed = fill(blocks, height);
  while (packed.width > available && height < total) {
    height = Math.min(total, height * 1.1 + NODE.height);
    packed = fill(blocks, height);
  }
  for (const [block, x, y] of packed.places) {
    for (const node of block.nodes) {
      node.x += x;
      node.y += y;
    }
  }
  return { width: packed.width, height: packed.height };
}

function fill(blocks, height) {
  const places = [];
  let [x, y, columnWidth, bottom] = [0, 0, 0, 0];
  let last;
  for (const block of blocks) {
    // Roots without children get separate columns, so that trees stay aligned.
    if (y > 0 && (y + block.height > height || (block.single && !last.single))) {
      x += columnWidth + NODE.across;
      y = columnWidth = 0;
    }
    places.push([block, x, y]);
    columnWidth = Math.max(columnWidth, block.width);
    bottom = Math.max(bottom, y + block.height);
    y += block.height + spaceBelow(block);
    last = block;
  }
  return { places, width: x + columnWidth, height: bottom };
}

// Center a node vertically beside its children.
function placeAcross(root) {
  const placed = [];
  const step = NODE.height + NODE.between;
  let next = 0;
  const place = (node, depth) => {
    placed.push(node);
    node.x = depth * (NODE.width + NODE.across);
    if (!node.children.length) {
      node.y = next;
      next += step;
      return;
    }
    for (const child of node.children) place(child, depth + 1);
    node.y = (node.children[0].y + node.children.at(-1).y) / 2;
  };
  place(root, 0);
  return placed;
}

function placeIndented(root) {
  const placed = [];
  const place = (node, depth) => {
    Object.assign(node, { x: depth * NODE.indent, y: placed.length * (NODE.height + NODE.between) });
    placed.push(node);
    for (const child of node.children) place(child, depth + 1);
  };
  place(root, 0);
  return placed;
}
