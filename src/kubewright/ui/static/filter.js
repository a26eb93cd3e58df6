// Filter objects and reconciles by text, kind, namespace and state. Pure functions, except for the controls at the end.
// System objects, which every cluster has, are hidden by default unless their kind is chosen.

import { STATES, el, setAttribute, setText, stateIcon } from "./dom.js";
import { count } from "./format.js";
import { kindKey } from "./objects.js";

export const NO_FILTER = Object.freeze({ text: "", kind: "", namespace: "", state: "", system: false });

export const isActive = (filter) => Boolean(filter.text.trim() || filter.kind || filter.namespace || filter.state);

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** Return the objects of an index that match; the index's own list if all of them match. */
export function filterObjects(index, filter) {
  const system = filter.system || Boolean(filter.kind) || index.systemCount === 0;
  const objects = system ? index.sorted : index.sorted.filter((object) => !object.system);
  if (!isActive(filter)) return objects;
  const needed = words(filter.text);
  return objects.filter(
    (object) =>
      (!filter.kind || kindKey(object) === filter.kind) &&
      (!filter.namespace || (object.namespace ?? "") === filter.namespace) &&
      (!filter.state || object.state === filter.state) &&
      needed.every((word) => object.searchText.includes(word)),
  );
}

/** Return the reconciles of matching objects; the text also finds causes, writes and errors. */
export function filterReconciles(reconciles, filter, index) {
  if (!isActive(filter)) return reconciles;
  const needed = words(filter.text);
  return reconciles.filter((each) => {
    if (filter.kind && kindKey(each) !== filter.kind) return false;
    if (filter.namespace && (each.namespace ?? "") !== filter.namespace) return false;
    if (filter.state && index.get(each.uid)?.state !== filter.state) return false;
    if (!needed.length) return true;
    each.searchText ??= [
      each.controller, each.kind, each.namespace, each.name, each.outcome, each.error,
      ...(each.causes ?? []).map((cause) => `${cause.kind} ${cause.name} ${cause.type}`),
      ...(each.writes ?? []).map((write) => `${write.verb} ${write.resource} ${write.name} ${write.error ?? ""}`),
    ].join(" ").toLowerCase();
    return needed.every((word) => each.searchText.includes(word));
  });
}

/** Return how many objects are in each state. */
export function countStates(objects) {
  const states = {};
  for (const { state } of objects) states[state] = (states[state] ?? 0) + 1;
  return states;
}

/** The controls of the filter; the counts of states are both a legend and a filter. */
export class FilterView {
  #seen = {};

  constructor(root, change) {
    this.text = root.querySelector("#filter-text");
    this.kind = root.querySelector("#filter-kind");
    this.namespace = root.querySelector("#filter-namespace");
    this.states = root.querySelector("#states");
    this.system = el("button", { class: "chip", type: "button", id: "system", title: "Show system objects, which every cluster has (s)", onclick: () => this.toggleSystem() });
    this.change = change;
    this.text.addEventListener("input", () => change({ text: this.text.value }));
    this.kind.addEventListener("change", () => change({ kind: this.kind.value }));
    this.namespace.addEventListener("change", () => change({ namespace: this.namespace.value }));
    this.chips = new Map(
      STATES.map((state) => {
        const number = el("span", { class: "number" });
        const chip = el(
          "button",
          { class: "chip", type: "button", "aria-pressed": "false", "data-state": state, onclick: () => this.#toggle(state) },
          stateIcon(state), number, el("span", { class: "word", text: state }),
        );
        return [state, { chip, number }];
      }),
    );
    this.states.append(...[...this.chips.values()].map(({ chip }) => chip), this.system);
  }

  toggleSystem() {
    this.change({ system: !this.filter?.system });
  }

  #toggle(state) {
    this.change({ state: this.filter?.state === state ? "" : state });
  }

  render(filter, index) {
    if (this.#seen.filter === filter && this.#seen.index === index && this.#seen.version === index.version) return;
    this.#seen = { filter, index, version: index.version };
    this.filter = filter;
    if (this.text.value !== filter.text) this.text.value = filter.text;
    options(this.kind, "All kinds", index.kinds, filter.kind);
    options(this.namespace, "All namespaces", index.namespaces.filter(([name]) => name), filter.namespace);
    this.system.hidden = !index.systemCount;
    setText(this.system, `+ ${count(index.systemCount)} system`);
    setAttribute(this.system, "aria-pressed", String(filter.system));
    const counts = countStates(filterObjects(index, { ...filter, state: "" }));
    for (const [state, { chip, number }] of this.chips) {
      const there = counts[state] ?? 0;
      chip.hidden = !there && filter.state !== state;
      setText(number, count(there));
      setAttribute(chip, "aria-pressed", String(filter.state === state));
      setAttribute(chip, "aria-label", `${there} ${state}`);
    }
  }
}

function options(select, all, counted, chosen) {
  // A chosen kind stays in the list when its last object is deleted.
  const rows = chosen && !counted.some(([key]) => key === chosen) ? [...counted, [chosen, 0]] : counted;
  const names = rows.map(([key]) => key.split(".")[0]);
  // The group is shown where two kinds have the same name.
  const label = (key, place) => (names.indexOf(names[place]) === names.lastIndexOf(names[place]) ? names[place] : key);
  const wanted = [["", all], ...rows.map(([key, number], place) => [key, `${label(key, place)} (${count(number)})`])];
  while (select.options.length > wanted.length) select.remove(select.options.length - 1);
  wanted.forEach(([value, label], place) => {
    const option = select.options[place] ?? select.appendChild(el("option"));
    if (option.value !== value) option.value = value;
    setText(option, label);
  });
  select.value = chosen;
}
