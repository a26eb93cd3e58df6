// The data that the server has sent: objects, reconciles, operators, problems; and the state of the connection.

import { millis } from "./format.js";
import { ObjectIndex } from "./objects.js";

/** Maximum number of reconciles that the page keeps; the server has its own limit. */
const KEPT = 20000;

const reconcileKey = (reconcile) => `${reconcile.operator}\n${reconcile.id}`;

/** The known reconciles, oldest first. */
export class ReconcileLog {
  entries = [];
  dropped = 0;
  version = 0;
  #byKey = new Map();

  get(operator, id) {
    return this.#byKey.get(reconcileKey({ operator, id }));
  }

  /** Add reconciles, newest last; a reconcile replaces the one with the same id. */
  add(reconciles) {
    this.version++;
    for (const reconcile of reconciles) {
      const key = reconcileKey(reconcile);
      const old = this.#byKey.get(key);
      if (old) this.entries.splice(this.entries.lastIndexOf(old), 1);
      reconcile.at = millis(reconcile.startedAt);
      this.#byKey.set(key, reconcile);
      let place = this.entries.length;
      // Several operators report independently, so reconciles may arrive slightly out of order.
      while (place > 0 && this.entries[place - 1].at > reconcile.at) place--;
      this.entries.splice(place, 0, reconcile);
    }
    if (this.entries.length > KEPT * 1.1) {
      const old = this.entries.splice(0, this.entries.length - KEPT);
      for (const each of old) this.#byKey.delete(reconcileKey(each));
      this.dropped += old.length;
    }
  }

  /** Return how many reconciles had started at that time. */
  countUntil(at) {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.entries[middle].at <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class Store {
  hello = null;
  index = new ObjectIndex();
  log = new ReconcileLog();
  operators = [];
  problems = [];
  /** The kept history in milliseconds. */
  history = { from: 0, to: 0 };
  /** "connecting", "open", "lost" (reconnecting) or "refused" (the link is no longer valid). */
  connection = "connecting";
  /** When the connection was lost. */
  lostAt = 0;
  loaded = false;
  version = 0;
  #clockOffset = 0;
  // A reset arrives in parts, which are collected here; the page shows the old data until it is complete.
  #nextIndex = null;
  #nextLog = null;

  /** Return the time of the server. */
  now() {
    return this.hello?.live === false ? this.history.to : Date.now() + this.#clockOffset;
  }

  /** Return the end of the history: now, the end of a record file, or the time at which the connection was lost. */
  get end() {
    return this.hello?.live && this.connection === "open" ? Math.max(this.history.to, this.now()) : this.history.to;
  }

  /** Process one event of the stream. */
  receive(type, data) {
    this.version++;
    this[`_${type}`]?.(data);
  }

  setConnection(connection) {
    this.version++;
    if (connection === "lost" && this.connection === "open") this.lostAt = Date.now();
    if (connection === "lost") this.#nextIndex = this.#nextLog = null;
    this.connection = connection;
  }

  _hello(hello) {
    this.hello = hello;
    this.#clockOffset = millis(hello.now) - Date.now();
    this._history(hello.history);
  }

  _history({ from, to }) {
    this.history = { from: millis(from), to: millis(to) };
  }

  _objects({ reset, more, changed = [], removed = [] }) {
    if (reset) this.#nextIndex = new ObjectIndex();
    const index = this.#nextIndex ?? this.index;
    index.put(changed);
    for (const { uid } of removed) index.remove(uid);
    if (this.#nextIndex && !more) {
      // The version must increase, so that views notice that the index was replaced.
      this.#nextIndex.version += this.index.version;
      this.index = this.#nextIndex;
      this.#nextIndex = null;
      this.loaded = true;
    }
  }

  _reconciles({ reset, more, added = [], dropped = 0 }) {
    if (reset) this.#nextLog = new ReconcileLog();
    const log = this.#nextLog ?? this.log;
    log.add(added);
    log.dropped = Math.max(log.dropped, dropped);
    if (this.#nextLog && !more) {
      this.#nextLog.version += this.log.version;
      this.log = this.#nextLog;
      this.#nextLog = null;
    }
  }

  _operators({ operators }) {
    this.operators = operators;
  }

  _problems({ problems }) {
    this.problems = problems;
  }
}
