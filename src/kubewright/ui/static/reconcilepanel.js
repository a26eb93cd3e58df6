// The panel of one reconcile: causes, writes with their differences side by side, Events, log, reads.

import { Details } from "./details.js";
import { changesTable } from "./diff.js";
import { el, replaceChildren, stateIcon } from "./dom.js";
import { fetchReconcile } from "./feed.js";
import { clock, duration, millis, oneLine, plural } from "./format.js";
import { none, section } from "./objectpanel.js";
import { causeText, outcome, retryText, timerText, writeText } from "./timeline.js";

export class ReconcilePanel {
  #details;
  #seen = [];

  constructor({ openNamed, changed, travel }) {
    Object.assign(this, { openNamed, travel });
    this.#details = new Details(changed);
    this.heading = el("div", { class: "panel-heading" });
    this.content = el("div", { class: "content", tabindex: "0", role: "group", "aria-label": "Reconcile" });
    this.element = el("div", { class: "reconcile-panel" }, this.heading, this.content);
  }

  render(operator, id) {
    const summary = this.travel.store.log.get(operator, id);
    this.#details.want(`${operator}\n${id}`, String(summary?.repeated ?? 0), (signal) => fetchReconcile(operator, id, signal));
    const { data, error } = this.#details;
    const record = data?.reconcile;
    const about = record ?? summary;
    const retry = about ? retryText(about, this.travel.now) : "";
    const seen = [operator, id, summary, data, error, retry];
    if (seen.every((value, place) => value === this.#seen[place])) return;
    const sameContent = seen.slice(0, 5).every((value, place) => value === this.#seen[place]);
    this.#seen = seen;
    replaceChildren(this.heading, ...this.#head(operator, about, retry));
    if (!sameContent) replaceChildren(this.content, ...(record ? body(record, summary) : [el("p", { class: "placeholder", text: error || "Loading…" })]));
  }

  #head(operator, about, retry) {
    if (!about) return [el("h2", { text: "Reconcile" })];
    const [word, kind] = outcome({ ...about, logs: about.log?.length ?? about.logs, events: about.events?.length ?? about.events });
    const started = millis(about.startedAt);
    return [
      el("div", { class: "title" }, el("span", { class: `pill ${kind}`, text: word }),
        el("h2", {}, el("button", { type: "button", class: "link", "data-key": `subject ${about.uid} ${about.name}`, text: `${about.kind}/${about.name}`, onclick: () => this.openNamed(about) }))),
      el("p", { class: "muted", text: [about.namespace, `${clock(started, true)} for ${duration(about.duration)}`, about.repeated ? `${about.repeated + 1} times` : "", retry, operator].filter(Boolean).join(" · ") }),
      el("div", { class: "actions" }, el("button", { type: "button", "data-key": `moment ${about.id}`, text: "Show this moment", onclick: () => this.travel.goTo(started + about.duration * 1000) })),
    ];
  }
}

function body(record, summary) {
  const { causes = [], writes = [], calls = [], reads = [], events = [], log = [] } = record;
  const skipped = record.skippedApplies ? none(`${record.skippedApplies} unchanged, not sent`) : null;
  return [
    record.error ? section("Error", el("pre", { class: "error", text: record.error })) : null,
    section("Causes", causes.length ? causes.map(cause) : none(timerText(summary ?? {}))),
    section("Writes", writes.length ? writes.map(write) : none("It wrote nothing."), skipped),
    calls.length ? section("External calls", el("ul", { class: "calls" }, calls.map(call))) : null,
    events.length ? section("Events", el("ul", { class: "events" }, events.map((event) => el(
      "li", {}, el("div", { class: "head" }, stateIcon(event.type === "Warning" ? "waiting" : "ready"), el("strong", { text: event.reason })), el("p", { text: event.note }))))) : null,
    section("Log", log.length ? el("ol", { class: "log" }, log.map((line) => el(
      "li", { class: `level-${String(line.level).toLowerCase()}` },
      el("span", { class: "time", text: clock(millis(line.at), true) }), el("span", { class: "level", text: line.level }), el("span", { class: "message", text: line.message })))) : none("It logged nothing.")),
    reads.length ? el("details", { class: "reads" }, el("summary", { text: plural(reads.length, "read") }), el("ul", {}, reads.map((read) => el("li", { text: readText(read) })))) : null,
  ];
}

function cause(each) {
  const changes = each.changes ?? [];
  return el("div", { class: "cause-block" }, el("p", { text: causeText(each) }),
    changes.length ? changesTable(changes, `What changed in ${each.kind} ${each.name}`) : null);
}

function write(each) {
  const failed = Boolean(each.error);
  const changes = each.changes ?? [];
  const result = failed ? [each.status || "", each.error].filter(Boolean).join(" ") : each.created ? "created" : changes.length ? plural(changes.length + (each.moreChanges ?? 0), "field") : "no field changed";
  return el(
    "div",
    { class: "write" },
    el("div", { class: "head" }, el("code", { text: writeText(each) }), el("span", { class: `pill ${failed ? "failed" : "idle"}`, text: result })),
    each.message ? el("p", { class: failed ? "bad" : "muted", text: each.message }) : null,
    changes.length ? changesTable(changes, `Fields that ${writeText(each)} changed`, each.moreChanges) : null,
  );
}

function call({ function: name, arguments: given = {}, answer, error, missing }) {
  const passed = Object.entries(given).map(([key, value]) => `${key}=${oneLine(value)}`).join(", ");
  return el("li", {}, el("code", { text: `${name}(${passed})` }), el("code", { class: error ? "bad" : "muted", text: ` → ${error || missing || oneLine(answer) || "nothing"}` }));
}

function readText(read) {
  const what = read.name ? `${read.kind || read.resource}/${read.name}` : `${read.kind || read.resource}${read.labels ? ` (${read.labels})` : ""}`;
  const found = read.error || (read.verb === "list" ? plural((read.found ?? []).length, "object") : read.found?.length ? "found" : "not found");
  return `${read.verb} ${what} from the ${read.source}: ${found}`;
}
