// The page: the selection, the views, and one render of all views per animation frame.

import { Actions } from "./actions.js";
import { el, frameScheduler, setAttribute, setText, stateIcon } from "./dom.js";
import { Feed } from "./feed.js";
import { FilterView, NO_FILTER, filterObjects, filterReconciles, isActive } from "./filter.js";
import { clock } from "./format.js";
import { GraphView } from "./graph.js";
import { listen, showHelp } from "./keyboard.js";
import { ObjectPanel } from "./objectpanel.js";
import { OperatorsView } from "./operators.js";
import { ReconcilePanel } from "./reconcilepanel.js";
import { Store } from "./store.js";
import { Theme } from "./theme.js";
import { TimeTravel } from "./timetravel.js";
import { TimeBar, TimelineView, reconcileKey } from "./timeline.js";
import { VirtualList } from "./virtuallist.js";

const $ = (id) => document.getElementById(id);
const schedule = frameScheduler(render);

export const store = new Store();
export const travel = new TimeTravel(store, schedule);
const feed = new Feed(store, schedule);
const dialog = $("dialog");
const actions = new Actions({ dialog, notices: $("notices"), store, travel });
const theme = new Theme($("theme"));

let filter = NO_FILTER;
/** {uid} or {operator, id}. */
let selection = null;
// Filtered lists, as long as nothing has changed them.
const filtered = { objects: [], reconciles: [] };

const filterView = new FilterView($("objects"), (change) => setFilter({ ...filter, ...change }));
const graphView = new GraphView($("graph"), { select: openObject, changed: schedule });
const timelineView = new TimelineView($("timeline"), { open: (each) => openReconcile(each.operator, each.id) });
const timeBar = new TimeBar($("timebar"), travel);
const operatorsView = new OperatorsView($("operators"), { openNamed });
const objectPanel = new ObjectPanel({ open: openObject, openReconcile, actions, changed: schedule, travel });
const reconcilePanel = new ReconcilePanel({ openNamed, changed: schedule, travel });
const objectList = new VirtualList($("object-list"), {
  label: "Objects",
  key: (object) => object.uid,
  create: createObjectRow,
  draw: drawObjectRow,
  open: (object) => openObject(object.uid),
  rowHeight: () => 44,
});

function setFilter(changed) {
  filter = Object.freeze(changed);
  schedule();
}

function choose(chosen) {
  selection = chosen;
  const panel = $("panel");
  panel.hidden = !chosen;
  if (chosen) showView("panel");
  else if (document.body.dataset.view === "panel") showView("graph");
  schedule();
}

function openObject(uid) {
  choose({ uid });
}

function openReconcile(operator, id) {
  choose({ operator, id });
}

/** Open the object with this kind, namespace and name, for reconciles and retries, which have no uid. */
function openNamed(named) {
  const object = travel.index.get(named.uid) ?? travel.index.named(named);
  if (object) openObject(object.uid);
  else if (named.uid) openObject(named.uid);
  else actions.notify(`${named.kind} ${named.name} does not exist at this moment.`);
}

// Narrow windows show one part at a time; closing the panel returns to the part that it was opened from.
function showView(name) {
  document.body.dataset.view = name;
  for (const button of $("views").children) setAttribute(button, "aria-pressed", String(button.dataset.view === name));
  schedule();
}

function toggleWide() {
  document.body.classList.toggle("wide");
  $("widen").setAttribute("aria-pressed", String(document.body.classList.contains("wide")));
}

function render() {
  const { index, reconciles, now } = travel;
  refilter(index, reconciles);
  drawTop();
  filterView.render(filter, index);
  operatorsView.render(store.operators, store.now(), travel.live);
  // The object of the selected reconcile is marked.
  const marked = selection?.uid ?? store.log.get(selection?.operator, selection?.id)?.uid ?? null;
  objectList.update(filtered.objects, marked);
  drawEmpty(index);
  graphView.render(index, filtered.objects, marked);
  timelineView.render(filtered.reconciles, now, selection?.id ? reconcileKey(selection) : null);
  timeBar.render();
  drawPanel();
}

function refilter(index, reconciles) {
  const { log } = store;
  const sameObjects = filtered.index === index && filtered.version === index.version && filtered.filter === filter;
  if (!sameObjects) filtered.objects = filterObjects(index, filter);
  const sameReconciles = filtered.log === log && filtered.logVersion === log.version && filtered.at === travel.at && filtered.filter === filter;
  // Reconciles are filtered by the state of their object.
  if (!sameReconciles || (filter.state && !sameObjects)) filtered.reconciles = filterReconciles(reconciles, filter, index);
  Object.assign(filtered, { index, version: index.version, filter, log, logVersion: log.version, at: travel.at });
}

function drawTop() {
  const { hello, connection } = store;
  const record = hello?.live === false;
  const word = connection === "refused" ? "link expired" : connection !== "open" ? (hello ? "reconnecting" : "connecting")
    : !travel.live ? "in the past" : record ? "record" : "live";
  setText($("connection-text"), word);
  setAttribute($("connection"), "data-state", word.replaceAll(" ", "-"));
  setText($("source"), hello?.source?.text ?? "");
  document.title = hello?.title ? `${hello.title} · kubewright` : "kubewright";
  $("read-only").hidden = !hello || hello.writable;
  $("apply").hidden = !hello?.writable;
  $("apply").disabled = !travel.live || !actions.writable;
  document.body.classList.toggle("past", !travel.live);
  const banner = $("banner");
  const lost = connection === "lost" && hello ? `The connection was lost at ${clock(store.lostAt)}. The page shows its last state and is updated when it is connected again.` : "";
  const refused = connection === "refused" ? "This link is no longer valid, because the command was restarted. Open the link that it printed." : "";
  setText(banner, refused || lost);
  banner.hidden = !banner.textContent;
  const problems = $("problems");
  problems.hidden = !store.problems.length;
  if (problems.drawn !== store.problems) {
    problems.drawn = store.problems;
    // A single problem is shown in the line itself, without a list to open.
    const single = store.problems.length === 1;
    problems.classList.toggle("single", single);
    setText($("problems-title"), single ? `1 problem: ${store.problems[0]}` : `${store.problems.length} problems`);
    $("problems-list").replaceChildren(...(single ? [] : store.problems).map((problem) => el("li", { text: problem })));
  }
}

function drawEmpty(index) {
  setAttribute($("main"), "aria-busy", String(!store.loaded || travel.loading));
  const nothing = filtered.objects.length === 0;
  $("empty").hidden = !nothing;
  if (!nothing) return;
  const matching = store.loaded && index.size > index.systemCount && isActive(filter);
  setText($("empty-title"), travel.error ? "The state at this time is not available" : !store.loaded ? "Loading…" : matching ? "No object matches the filter" : "No objects yet");
  setText($("empty-text"), travel.error ? travel.error : !store.loaded ? "Waiting for the first objects." : matching ? "" : "Objects appear here as soon as the operator or the cluster has some.");
  $("clear-filter").hidden = !matching;
  $("apply-sample").hidden = matching || !store.loaded || !travel.live || !store.hello?.writable;
}

function drawPanel() {
  if (!selection) return;
  const shown = selection.uid ? objectPanel : reconcilePanel;
  if (!$("panel-body").contains(shown.element)) $("panel-body").replaceChildren(shown.element);
  if (selection.uid) objectPanel.render(selection.uid);
  else reconcilePanel.render(selection.operator, selection.id);
}

function createObjectRow() {
  const row = el("div", { class: "row object" });
  row.parts = { icon: el("span", { class: "icon-box" }), name: el("span", { class: "name" }), kind: el("span", { class: "kind" }), state: el("span", { class: "state-text" }) };
  row.append(row.parts.icon, row.parts.name, row.parts.kind, row.parts.state);
  return row;
}

function drawObjectRow(row, object) {
  if (row.drawn === object) return;
  if (row.state !== object.state) row.parts.icon.replaceChildren(stateIcon(object.state));
  row.state = object.state;
  row.drawn = object;
  setText(row.parts.name, object.name);
  setText(row.parts.kind, object.namespace ? `${object.kind} · ${object.namespace}` : object.kind);
  setText(row.parts.state, object.stateText ?? "");
  row.title = `${object.kind} ${object.name}: ${object.state}${object.stateText ? `, ${object.stateText}` : ""}`;
  row.setAttribute("aria-label", row.title);
}

const KEYS = [
  ["?", "Show this list", () => showHelp(KEYS, dialog)],
  ["/", "Filter by text", () => { showView("objects"); $("filter-text").focus(); $("filter-text").select(); }],
  ["o", "Go to the objects", () => { showView("objects"); $("object-list").focus(); }],
  ["g", "Go to the graph", () => { showView("graph"); graphView.focus(); }],
  ["t", "Go to the timeline", () => { showView("timeline"); $("timeline-list").focus(); }],
  ["p", "Go to the panel", () => { if (selection) { showView("panel"); $("panel").querySelector("[role=tab][aria-selected=true], .content").focus(); } }],
  ["↑ ↓ ← →", "Move in a list or in the graph (also j and k)"],
  ["Enter", "Open the marked item"],
  ["Escape", "Close the panel", () => choose(null)],
  ["1", "Status of the object", () => objectPanel.show("status")],
  ["2", "Manifest with field managers", () => objectPanel.show("manifest")],
  ["3", "Events", () => objectPanel.show("events")],
  ["4", "Reconciles of the object", () => objectPanel.show("reconciles")],
  ["w", "Widen the panel", toggleWide],
  ["[", "Go back to the previous reconcile", () => travel.step(-1)],
  ["]", "Go to the next reconcile", () => travel.step(1)],
  ["l", "Live again", () => travel.goLive()],
  ["s", "Show or hide system objects", () => filterView.toggleSystem()],
  ["c", "Clear the filter", () => setFilter(NO_FILTER)],
  ["a", "Apply a manifest", () => actions.apply()],
  ["d", "Light, dark, or as the system", () => theme.next()],
  ["+ − 0", "Zoom the graph in, out, to fit"],
];

listen(KEYS, dialog);
$("help").addEventListener("click", () => showHelp(KEYS, dialog));
$("apply").addEventListener("click", () => actions.apply());
$("apply-sample").addEventListener("click", () => actions.apply());
$("clear-filter").addEventListener("click", () => setFilter(NO_FILTER));
$("close").addEventListener("click", () => choose(null));
$("widen").addEventListener("click", toggleWide);
for (const button of $("views").children) button.addEventListener("click", () => showView(button.dataset.view));
// Countdowns and ages.
setInterval(schedule, 1000);
feed.connect();
schedule();
