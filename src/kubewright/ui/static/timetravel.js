// The time that the page shows: now, or a past time in the history.

import { fetchSnapshot } from "./feed.js";
import { ObjectIndex } from "./objects.js";

const NOTHING = new ObjectIndex();

export class TimeTravel {
  /** The shown time in milliseconds; null follows the live state. */
  at = null;
  error = "";
  /** The objects at that time; until they arrive, those of the previously shown time. */
  #past = null;
  #pastAt = null;
  #request = null;
  #versions = 0;

  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
  }

  get live() {
    return this.at === null;
  }

  get loading() {
    return this.at !== null && this.#pastAt !== this.at && !this.error;
  }

  /** Return the objects to show; none if those of the shown time are not available. */
  get index() {
    if (this.error) return NOTHING;
    return this.at === null ? this.store.index : (this.#past ?? this.store.index);
  }

  /** Return the reconciles to show, oldest first. */
  get reconciles() {
    const entries = this.store.log.entries;
    return this.at === null ? entries : entries.slice(0, this.store.log.countUntil(this.at));
  }

  /** Return the time that ages and countdowns are relative to. */
  get now() {
    return this.at ?? this.store.now();
  }

  goLive() {
    this.at = null;
    this.error = "";
    this.#past = this.#pastAt = null;
    this.#request?.abort();
    this.#request = null;
    this.changed();
  }

  /** Show a time. The newest call wins; there is one request at a time. */
  goTo(at) {
    this.at = Math.round(Math.min(Math.max(at, this.store.history.from), this.store.end));
    this.error = "";
    this.changed();
    if (!this.#request) this.#load();
  }

  /** Go to the previous (-1) or next (1) reconcile. */
  step(direction) {
    const entries = this.store.log.entries;
    const started = this.store.log.countUntil(this.now);
    // The current reconcile is the last one that had started at the shown time.
    const target = direction < 0 ? entries[started - (this.at === null ? 1 : 2)] : entries[started];
    if (target) this.goTo(target.at);
    else if (direction > 0) this.goLive();
  }

  async #load() {
    const at = this.at;
    const request = (this.#request = new AbortController());
    try {
      const snapshot = await fetchSnapshot(at, request.signal);
      const index = new ObjectIndex();
      index.put(snapshot.objects);
      // Different from every version of the live index.
      index.version = --this.#versions;
      this.#past = index;
      this.#pastAt = at;
    } catch (error) {
      if (error.name === "AbortError") return;
      if (this.at === at) this.error = error.message;
    }
    this.#request = null;
    this.changed();
    if (this.at !== null && this.at !== at) this.#load();
  }
}
