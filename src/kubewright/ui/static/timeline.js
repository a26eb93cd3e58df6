// The timeline: the cause, the outcome and the writes of each reconcile, newest first; and the slider for the shown time.

import { el, setAttribute, setText, svg } from "./dom.js";
import { age, clock, duration, millis, plural } from "./format.js";
import { VirtualList } from "./virtuallist.js";

const OUTCOMES = { success: "done", error: "error", requeue: "retry", requeue_after: "requeued" };

/** Return an outcome's name and its class. */
export function outcome(reconcile) {
  if (reconcile.outcome === "error") return ["error", "failed"];
  if (reconcile.outcome === "requeue") return ["retry", "waiting"];
  if (reconcile.outcome === "paused") return ["paused", "idle"];
  const idle = !(reconcile.writes?.length || reconcile.events || reconcile.logs);
  if (reconcile.outcome === "success" && idle) return ["no change", "idle"];
  return [OUTCOMES[reconcile.outcome] ?? reconcile.outcome, "ready"];
}

const VERBS = { create: "created", update: "updated", delete: "deleted", initial: "listed at start" };

/** Return a cause as text: "Deployment/web updated". */
export function causeText(cause) {
  const subject = cause.kind ? `${cause.kind}/${cause.name}` : cause.name;
  return `${subject} ${VERBS[cause.type] ?? cause.type}`.trim();
}

/** Return the reason for a reconcile without causes, which follows from the outcome of the previous one. */
export function timerText({ previousOutcome }) {
  if (previousOutcome === "error") return "retry after an error";
  return previousOutcome === "requeue" ? "retry after RetryLater" : "requeue or resync";
}

/** Return a write as text: "apply deployments.apps/web". */
export const writeText = (write) => `${write.verb} ${write.resource}/${write.name}`;

export const reconcileKey = (reconcile) => `${reconcile.operator}\n${reconcile.id}`;

/** Return when the next retry is due, or what happened to it. */
export function retryText(reconcile, now) {
  if (!reconcile.retryAt) return "";
  const left = (millis(reconcile.retryAt) - now) / 1000;
  return left > 0 ? `next in ${age(Math.ceil(left))}` : "";
}

export class TimelineView {
  constructor(root, { open }) {
    this.empty = root.querySelector("#timeline-empty");
    this.list = new VirtualList(root.querySelector("#timeline-list"), {
      label: "Reconciles, newest first",
      key: reconcileKey,
      create: createRow,
      draw: (row, reconcile) => drawRow(row, reconcile, this.now),
      open,
      rowHeight: () => 52,
    });
  }

  render(reconciles, now, selected) {
    this.now = now;
    // Newest first; the list is reversed only when it has changed.
    if (this.reconciles !== reconciles || this.count !== reconciles.length || this.last !== reconciles.at(-1)) {
      this.reversed = [...reconciles].reverse();
      [this.reconciles, this.count, this.last] = [reconciles, reconciles.length, reconciles.at(-1)];
    }
    this.list.update(this.reversed, selected);
    this.empty.hidden = reconciles.length > 0;
  }
}

function createRow() {
  const row = el("div", { class: "row reconcile" });
  row.parts = {};
  const line = (name, tag = "span") => (row.parts[name] = el(tag, { class: name }));
  row.append(
    el("div", { class: "cell when" }, line("time"), line("took")),
    el("div", { class: "cell cause" }, line("causes"), line("fields")),
    el("span", { class: "arrow", "aria-hidden": "true", text: "→" }),
    el("div", { class: "cell what" }, el("span", { class: "head" }, line("subject"), line("pill")), line("about")),
    el("span", { class: "arrow", "aria-hidden": "true", text: "→" }),
    el("div", { class: "cell writes" }, line("first"), line("rest")),
  );
  return row;
}

function drawRow(row, each, now) {
  const retry = retryText(each, now);
  if (row.drawn === each && row.retry === retry) return;
  row.drawn = each;
  row.retry = retry;
  const { time, took, causes, fields, subject, pill, about, first, rest } = row.parts;
  const [word, kind] = outcome(each);
  setText(time, clock(each.at));
  setText(took, duration(each.duration));
  const [cause, ...others] = each.causes ?? [];
  setText(causes, cause ? causeText(cause) : timerText(each));
  const changed = (cause?.changes ?? []).join(", ");
  setText(fields, [changed, others.length ? `+ ${others.length} more` : ""].filter(Boolean).join(" "));
  setText(subject, `${each.kind}/${each.name}`);
  setText(pill, word);
  pill.className = `pill ${kind}`;
  setText(about, [each.controller, each.namespace, each.repeated ? `× ${each.repeated + 1}` : "", retry].filter(Boolean).join(" · "));
  const writes = each.writes ?? [];
  const refused = writes.find((write) => write.error);
  if (each.error) {
    setText(first, each.error);
    setText(rest, refused ? `${writeText(refused)} refused` : writes.length ? plural(writes.length, "write") : "");
  } else {
    setText(first, writes.length ? writeText(writes[0]) : each.skippedApplies ? `${plural(each.skippedApplies, "apply").replace("applys", "applies")} unchanged` : "no writes");
    const changes = writes.reduce((sum, write) => sum + (write.changes ?? 0), 0);
    const more = writes.length > 1 ? `+ ${writes.length - 1} more` : "";
    setText(rest, [writes.length ? (writes[0].created ? "created" : plural(changes, "field")) : "", more].filter(Boolean).join(" · "));
  }
  row.title = [...(each.causes ?? []).map(causeText), each.error, ...writes.map(writeText)].filter(Boolean).join("\n");
  row.setAttribute("aria-label", `${clock(each.at)} ${each.kind} ${each.name}: ${word}${retry ? `, ${retry}` : ""}. ${row.title}`);
  row.classList.toggle("with-error", Boolean(each.error));
  row.classList.toggle("idle", kind === "idle");
}

const BUCKETS = 160;

/** The slider over the history, with a histogram of reconciles. */
export class TimeBar {
  #drawn = {};

  constructor(root, travel) {
    this.travel = travel;
    this.slider = root.querySelector("#time");
    this.label = root.querySelector("#time-label");
    this.from = root.querySelector("#time-from");
    this.liveButton = root.querySelector("#live");
    this.bars = root.querySelector("#histogram");
    this.cursor = root.querySelector("#cursor");
    this.slider.addEventListener("input", () => {
      const at = travel.store.history.from + Number(this.slider.value);
      if (Number(this.slider.value) >= Number(this.slider.max)) travel.goLive();
      else travel.goTo(at);
    });
    this.liveButton.addEventListener("click", () => travel.goLive());
    root.querySelector("#earlier").addEventListener("click", () => travel.step(-1));
    root.querySelector("#later").addEventListener("click", () => travel.step(1));
  }

  render() {
    const { travel } = this;
    const { store } = travel;
    const { from } = store.history;
    const end = Math.max(Math.floor(store.end), from + 1000);
    const shown = travel.at ?? end;
    setAttribute(this.slider, "max", end - from);
    const value = String(shown - from);
    if (this.slider.value !== value) this.slider.value = value;
    const ago = `${age((store.now() - shown) / 1000)} ago`;
    const record = store.hello?.live === false;
    const text = travel.live ? (record ? `${clock(end)} · end of the record` : `${clock(store.now())} · live`) : `${clock(shown, true)}${record ? "" : ` · ${ago}`}`;
    setText(this.label, text);
    setAttribute(this.slider, "aria-valuetext", text);
    setText(this.from, from ? clock(from) : "");
    setText(this.liveButton, record ? "End" : "Live");
    setAttribute(this.liveButton, "aria-pressed", String(travel.live));
    const part = ((shown - from) / (end - from)) * 100;
    this.cursor.style.left = `${part.toFixed(2)}%`;
    this.#drawBars(store.log, from, end);
  }

  #drawBars(log, from, to) {
    // Once a second is enough for 160 bars.
    const second = Math.floor(to / 1000);
    if (this.#drawn.version === log.version && this.#drawn.second === second) return;
    if (this.#drawn.second === second && this.#drawn.log === log) return;
    this.#drawn = { version: log.version, second, log };
    const buckets = histogram(log.entries, from, to, BUCKETS);
    const most = Math.max(4, ...buckets.map((bucket) => bucket.all));
    const height = (number) => (number ? Math.max(6, Math.sqrt(number / most) * 100) : 0);
    const path = (of) => buckets.map((bucket, place) => (of(bucket) ? `M${place} 100v${-height(of(bucket)).toFixed(1)}h.7V100z` : "")).join("");
    this.bars.replaceChildren(
      svg("path", { class: "bar", d: path((bucket) => bucket.all) }),
      svg("path", { class: "bar failed", d: path((bucket) => bucket.failed) }),
    );
  }
}

/** Count reconciles and failed reconciles in equal intervals of a time range. */
export function histogram(entries, from, to, parts) {
  const buckets = Array.from({ length: parts }, () => ({ all: 0, failed: 0 }));
  for (const { at, outcome: result } of entries) {
    if (at < from || at > to) continue;
    const bucket = buckets[Math.min(parts - 1, Math.floor(((at - from) / (to - from)) * parts))];
    bucket.all++;
    if (result === "error") bucket.failed++;
  }
  return buckets;
}
