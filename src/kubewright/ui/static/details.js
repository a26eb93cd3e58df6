// Details from the server for the panel: one request at a time; the last response is shown until the next one arrives.

export class Details {
  #subject = null;
  #key = null;
  #loadedAt = 0;
  #request = null;
  #timer = 0;
  data = null;
  error = "";

  constructor(changed) {
    this.changed = changed;
  }

  get loading() {
    return Boolean(this.#request) && !this.data;
  }

  /**
   * Load what `load(signal)` fetches, unless that was loaded for this key. A new subject drops the data of the old one;
   * for new keys of one subject, such as versions of an object, requests begin at least `interval` milliseconds apart.
   */
  want(subject, key, load, interval = 0) {
    if (subject !== this.#subject) {
      this.#request?.abort();
      clearTimeout(this.#timer);
      this.#subject = subject;
      this.#key = this.#request = this.data = null;
      this.#loadedAt = this.#timer = 0;
      this.error = "";
    }
    if (key === this.#key || this.#request || this.#timer) return;
    const wait = this.#loadedAt + interval - performance.now();
    if (this.#loadedAt && wait > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = 0;
        this.changed();
      }, wait);
      return;
    }
    this.#start(key, load);
  }

  async #start(key, load) {
    const request = (this.#request = new AbortController());
    this.#key = key;
    try {
      const data = await load(request.signal);
      if (this.#request !== request) return;
      this.data = data;
      this.error = "";
    } catch (error) {
      if (this.#request !== request) return;
      this.error = error.message;
      this.data = null;
    }
    this.#loadedAt = performance.now();
    this.#request = null;
    this.changed();
  }
}
