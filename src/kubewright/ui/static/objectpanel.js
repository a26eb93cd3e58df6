// The panel of one object: conditions and relatives, manifest with field managers, Events, reconciles.

import { Details } from "./details.js";
import { manifestsTable } from "./diff.js";
import { el, replaceChildren, setAttribute, stateIcon } from "./dom.js";
import { fetchObject } from "./feed.js";
import { age, clock, duration, millis, plural } from "./format.js";
import { managersByPath, yamlLines } from "./manifest.js";
import { kindKey } from "./objects.js";
import { causeText, outcome, retryText, timerText } from "./timeline.js";

/** Minimum time in milliseconds between two requests for an object that changes all the time. */
const LIVE_INTERVAL = 1000;
const TABS = { status: "Status", manifest: "Manifest", events: "Events", reconciles: "Reconciles" };
/** Types of conditions that report a problem when they are True. */
const BAD_IF_TRUE = /(Fail|Error|Pressure|Unavailable|Degraded|Stalled|Disruption)/;
/** Number of manifest lines that the browser lays out together. */
const CHUNK = 60;

export class ObjectPanel {
  #details;
  #older;
  #compared = "";
  #summary = null;
  #seen = [];
  tab = "status";

  constructor({ open, openReconcile, actions, changed, travel }) {
    Object.assign(this, { open, openReconcile, actions, changed, travel });
    this.#details = new Details(changed);
    this.#older = new Details(changed);
    this.heading = el("div", { class: "panel-heading" });
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Object" }, Object.entries(TABS).map(([id, label]) =>
      el("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "object-content", "data-tab": id, text: label, onclick: () => this.show(id) })));
    this.content = el("div", { id: "object-content", class: "content", role: "tabpanel", tabindex: "0" });
    this.element = el("div", { class: "object-panel" }, this.heading, this.tabs, this.content);
    this.tabs.addEventListener("keydown", (event) => this.#arrow(event));
  }

  /** Show one of the tabs. */
  show(tab) {
    this.tab = tab;
    this.content.scrollTop = 0;
    this.changed();
  }

  #arrow(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS);
    this.show(names[(names.indexOf(this.tab) + step + names.length) % names.length]);
    this.tabs.querySelector(`[data-tab=${this.tab}]`).focus();
    event.preventDefault();
  }

  render(uid) {
    const { travel } = this;
    const present = travel.index.get(uid);
    if (this.#summary?.uid !== uid) this.#compared = "";
    if (present) this.#summary = present;
    else if (this.#summary?.uid !== uid) this.#summary = travel.store.index.get(uid) ?? null;
    const summary = this.#summary;
    const at = travel.at;
    const key = at === null ? (present ? `${present.resourceVersion} ${present.failing?.id ?? ""}` : "gone") : `at ${at}`;
    // At another time the manifest is another one: do not show the old one while the new one is loaded.
    const subject = `${uid} ${at ?? "live"}`;
    this.#details.want(subject, key, (signal) => fetchObject(uid, at, signal), LIVE_INTERVAL);
    const { data, error } = this.#details;
    if (this.#compared) this.#older.want(`${uid} ${this.#compared}`, this.#compared, (signal) => fetchObject(uid, millis(this.#compared), signal));
    const seconds = Math.floor(travel.now / 1000);
    const seen = [uid, present, data, error, this.tab, at, this.#compared, this.#older.data, this.#older.error, this.tab === "manifest" ? 0 : seconds, travel.index.version];
    if (seen.every((value, place) => value === this.#seen[place])) return;
    const sameContent = this.tab === "manifest" && seen.slice(0, 10).every((value, place) => value === this.#seen[place]);
    this.#seen = seen;
    replaceChildren(this.heading, ...this.#head(summary, Boolean(present)));
    for (const button of this.tabs.children) {
      const chosen = button.dataset.tab === this.tab;
      setAttribute(button, "aria-selected", String(chosen));
      setAttribute(button, "tabindex", chosen ? "0" : "-1");
    }
    setAttribute(this.content, "aria-labelledby", `tab-${this.tab}`);
    if (!sameContent) replaceChildren(this.content, this.#body(summary, data, error));
  }

  #head(summary, present) {
    if (!summary) return [el("h2", { text: "Object" })];
    const place = [summary.kind, summary.namespace, `${age((this.travel.now - millis(summary.created)) / 1000)} old`];
    return [
      el("div", { class: "title" }, stateIcon(summary.state), el("h2", { title: summary.name, text: summary.name })),
      el("p", { class: "muted", text: [...place.filter(Boolean), summary.stateText].filter(Boolean).join(" · ") }),
      present ? null : el("p", { class: "notice", text: this.travel.live ? "This object has been deleted. Move back in time to see it." : "This object does not exist at this moment." }),
      present && summary.deleting ? el("p", { class: "notice", text: `Being deleted since ${clock(millis(summary.deleting))}: finalizers or owned objects are left.` }) : null,
      present ? this.actions.buttons(summary) : null,
    ];
  }

  #body(summary, data, error) {
    if (this.tab === "status" && summary) return this.#status(summary, data);
    if (!data) return el("p", { class: "placeholder", text: error || "Loading…" });
    if (this.tab === "manifest") return this.#manifest(data);
    if (this.tab === "events") return events(data.events ?? [], this.travel.now);
    return this.#reconciles(data.reconciles ?? []);
  }

  #status(summary, data) {
    const fields = scalars(data?.object?.status);
    const { index } = this.travel;
    const owners = (summary.owners ?? []).map((owner) => [owner, index.get(owner.uid)]);
    const references = (summary.references ?? []).map((reference) => [reference, index.named(reference)]);
    const conditions = (summary.conditions ?? []).map((condition) => this.#condition(condition));
    return [
      summary.failing ? this.#failure(summary) : null,
      section("Conditions", conditions.length ? el("ul", { class: "conditions" }, conditions) : none("It has no conditions.")),
      fields.length ? section("Other fields of the status", el("dl", { class: "fields" }, fields.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: String(value) })]))) : null,
      owners.length ? section("Owners", this.#links(owners)) : null,
      section("Owned objects", this.#children(index.children(summary.uid))),
      references.length ? section("References", this.#links(references)) : null,
      section("Version", el("p", { class: "muted", text: `generation ${summary.generation ?? "–"} · resourceVersion ${summary.resourceVersion} · ${summary.uid}` })),
    ];
  }

  /** Return elements with the error of the last reconcile, the number of failures, and the time of the next retry. */
  #failure(summary) {
    const { failing } = summary;
    const { live, now, store } = this.travel;
    // The operator's count includes failures whose reconciles are no longer kept.
    const retries = live ? store.operators.flatMap((operator) => operator.retries ?? []) : [];
    const planned = retries.find((retry) => kindKey(retry) === kindKey(summary) && retry.name === summary.name && (retry.namespace ?? "") === (summary.namespace ?? ""));
    const failures = Math.max(failing.failures, planned?.failures ?? 0);
    const left = failing.retryAt ? Math.ceil((millis(failing.retryAt) - now) / 1000) : 0;
    const next = summary.state === "paused" ? "it is paused: reconciled when it is resumed" : !failing.retryAt ? "not tried again until something changes"
      : left > 0 ? `next try in ${age(left)}` : `next try was due at ${clock(millis(failing.retryAt))}`;
    const title = failing.outcome === "error" ? "Reconcile failed" : "Reconcile waits";
    return section(title,
      el("p", { class: `failure ${failing.outcome === "error" ? "bad" : ""}`, text: failing.error }),
      el("p", { class: "muted", text: [`controller ${failing.controller}`, failures > 1 ? `${plural(failures, "time")} in a row` : "once", next].join(" · ") }),
      el("p", {}, el("button", { type: "button", class: "link", "data-key": `failing ${failing.id}`, text: "Show this reconcile", onclick: () => this.openReconcile(failing.operator, failing.id) })),
    );
  }

  #condition({ type, status, reason, message, since }) {
    const bad = BAD_IF_TRUE.test(type);
    const state = type === "Paused" && status === "True" ? "paused" : status === "Unknown" ? "unknown" : bad ? (status === "True" ? "failed" : "ready") : status === "True" ? "ready" : "waiting";
    return el(
      "li",
      {},
      el("div", { class: "head" }, stateIcon(state), el("strong", { text: type }), el("span", { class: "pill idle", text: status }),
        el("span", { class: "muted", text: since ? age((this.travel.now - millis(since)) / 1000) : "" })),
      el("p", { class: "muted", text: [reason, message].filter(Boolean).join(": ") }),
    );
  }

  #children(children) {
    if (!children.length) return none("It owns nothing.");
    const shown = children.slice(0, 50);
    const more = children.length > shown.length ? none(`and ${children.length - shown.length} more`) : null;
    return [this.#links(shown.map((child) => [child, child])), more];
  }

  #links(pairs) {
    return el("ul", { class: "links" }, pairs.map(([named, object]) => el(
      "li",
      {},
      object ? stateIcon(object.state) : el("span", { class: "missing", title: "not known", text: "?" }),
      object
        ? el("button", { type: "button", class: "link", "data-key": object.uid, text: `${object.kind}/${object.name}`, onclick: () => this.open(object.uid) })
        : el("span", { text: `${named.kind}/${named.name}` }),
      el("span", { class: "muted", text: named.path ?? object?.stateText ?? "" }),
    )));
  }

  #manifest({ object, managers = [], versions = [] }) {
    // The shown version is not offered: comparing it with itself is useless.
    const shown = versions.find(({ resourceVersion }) => resourceVersion === object.metadata?.resourceVersion);
    if (shown?.at === this.#compared) this.#compared = "";
    const chooser = this.#chooser(versions.filter((version) => version !== shown));
    if (this.#compared) {
      const older = this.#older;
      const table = older.data ? manifestsTable(older.data.object, object, "Manifest then and now") : el("p", { class: "placeholder", text: older.error || "Loading…" });
      return [chooser, table];
    }
    const { find, selectors } = managersByPath(managers);
    const names = [...new Set(managers.map((each) => each.manager))];
    let last;
    const rows = yamlLines(object, selectors).map(({ indent, text, path }) => {
      const manager = find(path);
      const label = manager && manager !== last && manager.manager !== last?.manager ? manager.manager : "";
      last = manager;
      const about = manager && [manager.manager, manager.operation, manager.subresource, manager.time].filter(Boolean).join(" · ");
      return el("div", { class: `line manager-${manager ? names.indexOf(manager.manager) % 6 : "none"}`, title: about },
        el("span", { class: "manager", text: label }), el("code", { text: "  ".repeat(indent) + text }));
    });
    const chunks = [];
    for (let start = 0; start < rows.length; start += CHUNK) chunks.push(el("div", { class: "chunk" }, rows.slice(start, start + CHUNK)));
    return [chooser, el("div", { class: "manifest", role: "group", "aria-label": "Manifest with the manager of each field" }, chunks)];
  }

  #chooser(versions) {
    const older = versions.slice(-30).reverse();
    if (!older.length) return null;
    const select = el("select", { id: "compare", "data-key": `compare ${this.#summary?.uid}`, onchange: (event) => { this.#compared = event.target.value; this.changed(); } },
      el("option", { value: "", text: "nothing" }),
      older.map(({ at, resourceVersion }) => el("option", { value: at, selected: at === this.#compared, text: `${clock(millis(at))} (${resourceVersion})` })));
    return el("p", { class: "chooser" }, el("label", { for: "compare", text: "Compare with " }), select);
  }

  #reconciles(reconciles) {
    if (!reconciles.length) return none("No reconciles of this object are available.");
    return el("ul", { class: "reconciles" }, reconciles.map((each) => {
      const [word, kind] = outcome(each);
      const cause = each.causes?.[0];
      return el("li", {}, el(
        "button",
        { type: "button", class: "entry", "data-key": each.id, onclick: () => this.openReconcile(each.operator, each.id) },
        el("span", { class: "head" }, el("span", { class: "time", text: clock(millis(each.startedAt)) }), el("span", { class: `pill ${kind}`, text: word }),
          el("span", { class: "muted", text: [duration(each.duration), each.repeated ? `× ${each.repeated + 1}` : "", retryText(each, this.travel.now)].filter(Boolean).join(" · ") })),
        el("span", { text: `${cause ? causeText(cause) : timerText(each)} → ${plural(each.writes?.length ?? 0, "write")}` }),
        each.error ? el("span", { class: "bad", text: each.error }) : null,
      ));
    }));
  }
}

/** Return the fields of a status that are a text, a number or a boolean. */
const scalars = (status) => Object.entries(status ?? {}).filter(([, value]) => value !== null && typeof value !== "object");

export const section = (title, ...content) => el("section", {}, el("h3", { text: title }), ...content.flat());
export const none = (text) => el("p", { class: "muted", text });

function events(list, now) {
  if (!list.length) return none("No Events.");
  return el("ul", { class: "events" }, list.map((event) => el(
    "li",
    {},
    el("div", { class: "head" }, stateIcon(event.type === "Warning" ? "waiting" : "ready"), el("strong", { text: event.reason }),
      el("span", { class: "muted", text: [event.count > 1 ? `× ${event.count}` : "", event.lastSeen ? `${age((now - millis(event.lastSeen)) / 1000)} ago` : "", event.from].filter(Boolean).join(" · ") })),
    el("p", { text: event.message }),
  )));
}
