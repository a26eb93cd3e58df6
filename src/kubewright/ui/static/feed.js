// The connection to the server: its stream of events, and requests for details and actions.

const EVENTS = ["hello", "objects", "reconciles", "operators", "problems", "history"];
const FIRST_RETRY = 300;
const LAST_RETRY = 5000;

/** Read the stream while the page is open. After an interruption the server sends everything again. */
export class Feed {
  #source = null;
  #retry = FIRST_RETRY;

  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
  }

  connect() {
    this.#source?.close();
    const source = (this.#source = new EventSource("/api/stream"));
    for (const type of EVENTS) {
      source.addEventListener(type, (event) => {
        this.store.receive(type, JSON.parse(event.data));
        this.changed();
      });
    }
    source.addEventListener("open", () => {
      this.#retry = FIRST_RETRY;
      this.#connection("open");
    });
    source.addEventListener("error", () => {
      source.close();
      this.#connection("lost");
      setTimeout(() => this.#again(), this.#retry);
      this.#retry = Math.min(LAST_RETRY, this.#retry * 1.6);
    });
  }

  // An EventSource does not report the status code, so a request finds out whether the link is no longer valid or the
  // server is only restarting.
  async #again() {
    const probe = new AbortController();
    try {
      const response = await fetch("/api/stream", { signal: probe.signal, headers: { Accept: "text/event-stream" } });
      probe.abort();
      if (response.status === 401 || response.status === 403) {
        this.#connection("refused");
        return;
      }
      this.connect();
    } catch {
      setTimeout(() => this.#again(), this.#retry);
      this.#retry = Math.min(LAST_RETRY, this.#retry * 1.6);
    }
  }

  #connection(state) {
    this.store.setConnection(state);
    this.changed();
  }
}

async function json(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not respond. The page reconnects by itself.");
  }
  const text = await response.text();
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    body = { message: text.slice(0, 500) };
  }
  if (!response.ok) throw new Error(body.message || `${response.status} ${response.statusText}`);
  return body;
}

const query = (parameters) =>
  new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null)).toString();
const time = (at) => (at === null || at === undefined ? undefined : new Date(at).toISOString());

export const fetchSnapshot = (at, signal) => json(`/api/snapshot?${query({ at: time(at) })}`, { signal });
export const fetchObject = (uid, at, signal) => json(`/api/object?${query({ uid, at: time(at) })}`, { signal });
export const fetchReconcile = (operator, id, signal) => json(`/api/reconcile?${query({ operator, id })}`, { signal });
export const fetchSamples = () => json("/api/samples");

/** Send an action to the server; return its message. */
export async function act(action) {
  const body = await json("/api/actions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(action),
  });
  return body.message;
}
