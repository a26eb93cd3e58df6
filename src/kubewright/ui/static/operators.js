// The operators: leader election, queue depth, workers, retries and throttling of each.

import { el, replaceChildren } from "./dom.js";
import { age, millis, plural } from "./format.js";
import { kindKey } from "./objects.js";

export class OperatorsView {
  #seen = {};

  constructor(root, { openNamed }) {
    this.root = root;
    this.openNamed = openNamed;
  }

  render(operators, now, live) {
    const second = Math.floor(now / 1000);
    if (this.#seen.operators === operators && this.#seen.second === second && this.#seen.live === live) return;
    this.#seen = { operators, second, live };
    this.root.hidden = operators.length === 0;
    // Queues and workers have no history, so they are not shown with past objects.
    const past = el("li", { class: "operator muted", text: "Queues, workers and retries are shown when the page is live." });
    replaceChildren(this.root, live ? operators.map((operator) => this.#card(operator, now)) : [past]);
  }

  #card(operator, now) {
    const { lease } = operator;
    const role = !lease ? null : operator.leading ? el("span", { class: "pill ready", text: "leader" }) : el("span", { class: "pill idle", title: lease.holder ? `Lease ${lease.name} is held by ${lease.holder}` : `Lease ${lease.name} is free`, text: lease.holder ? "standby" : "no leader" });
    const holder = lease && operator.leading && el("span", { class: "muted", title: `Lease ${lease.name}, held by ${lease.holder}`, text: `held by ${lease.holder}` });
    return el(
      "li",
      { class: "operator", title: operator.source },
      el("div", { class: "head" }, el("strong", { text: operator.name }), role, holder),
      el("div", { class: "figures" }, (operator.controllers ?? []).map((controller) => meters(controller, operator)), this.#retries(operator.retries ?? [], now), throttling(operator.throttled)),
      (operator.problems ?? []).map((problem) => el("div", { class: "bad", text: problem })),
      operator.dropped ? el("div", { class: "muted", text: `${plural(operator.dropped, "reconcile")} not kept` }) : null,
    );
  }

  #retries(retries, now) {
    if (!retries.length) return null;
    const [soonest] = [...retries].sort((a, b) => millis(a.at) - millis(b.at));
    const left = Math.max(0, Math.ceil((millis(soonest.at) - now) / 1000));
    const others = retries.length > 1 ? ` (+ ${retries.length - 1} more)` : "";
    return el("button", {
      type: "button", class: "link bad", "data-key": `retry ${kindKey(soonest)} ${soonest.namespace ?? ""}/${soonest.name}`,
      title: `${soonest.kind} ${soonest.namespace ?? ""}/${soonest.name} failed ${plural(soonest.failures, "time")}`,
      text: `retry ${soonest.kind}/${soonest.name} in ${age(left)}${others}`,
      onclick: () => this.openNamed(soonest),
    });
  }
}

function meters(controller, operator) {
  const { name, queueDepth = 0, queueDelayed = 0, workers = 0, busy = 0 } = controller;
  const queue = queueDelayed ? `queue ${queueDepth} + ${queueDelayed} delayed` : `queue ${queueDepth}`;
  const blocks = Array.from({ length: Math.min(workers, 8) }, (_, place) => el("i", { class: place < busy ? "busy" : "" }));
  return el(
    "div",
    { class: "meters" },
    // Most operators have one controller, of the same name.
    operator.controllers.length === 1 && operator.name.startsWith(name) ? null : el("span", { class: "kind", text: name }),
    el("span", { class: queueDepth > 0 ? "filled" : "muted", text: queue }),
    el("span", { class: "workers", role: "img", "aria-label": `${busy} of ${workers} workers are busy`, title: `${busy} of ${workers} workers are busy` }, blocks),
    el("span", { class: "muted", text: `${busy}/${workers}` }),
  );
}

function throttling(throttled) {
  if (!throttled?.waiting && !throttled?.seconds) return null;
  const text = throttled.waiting ? `${plural(throttled.waiting, "request")} throttled` : `throttled ${throttled.seconds.toFixed(1)} s in all`;
  return el("span", { class: throttled.waiting ? "bad" : "muted", text });
}
