// Actions on the cluster, each with its dialog: apply, edit, delete, scale, pause, resume, reconcile.

import { el } from "./dom.js";
import { act, fetchObject, fetchSamples } from "./feed.js";
import { yamlText } from "./manifest.js";

const NOTICE = 6000;

export class Actions {
  constructor({ dialog, notices, store, travel }) {
    Object.assign(this, { dialog, notices, store, travel });
    // The close event is dispatched later: by then the dialog may be open again with other content.
    dialog.addEventListener("close", () => { if (!dialog.open) dialog.replaceChildren(); });
  }

  get writable() {
    return Boolean(this.store.hello?.writable) && this.store.connection === "open";
  }

  /** Return the buttons for an object, or nothing if the page is read-only. */
  buttons(object) {
    if (!this.store.hello?.writable) return null;
    const past = !this.travel.live;
    const button = (key, text, run, kind) =>
      el("button", { type: "button", class: kind, "data-key": `${key} ${object.uid}`, disabled: past || !this.writable, title: past ? "Objects can be changed when the page is live (press l)" : null, text, onclick: run });
    return el(
      "div",
      { class: "actions", role: "group", "aria-label": "Actions" },
      object.reconciled ? button("reconcile", "Reconcile now", () => this.run({ action: "reconcile", uid: object.uid })) : null,
      object.reconciled && object.state === "paused" ? button("resume", "Resume", () => this.run({ action: "resume", uid: object.uid })) : null,
      object.reconciled && object.state !== "paused" ? button("pause", "Pause", () => this.run({ action: "pause", uid: object.uid })) : null,
      object.scale ? button("scale", "Scale…", () => this.scale(object.uid)) : null,
      button("edit", "Edit…", () => this.edit(object)),
      button("delete", "Delete…", () => this.remove(object), "danger"),
    );
  }

  /** Send an action and show the server's message. Return true if it succeeded. */
  async run(action) {
    try {
      this.notify(await act(action));
      return true;
    } catch (error) {
      this.notify(error.message, "bad");
      return false;
    }
  }

  notify(message, kind = "") {
    const notice = el("div", { class: `notice ${kind}`, text: message });
    notice.append(el("button", { type: "button", class: "icon", "aria-label": "Dismiss", text: "×", onclick: () => notice.remove() }));
    this.notices.append(notice);
    // Errors stay until they are dismissed.
    if (!kind) setTimeout(() => notice.remove(), NOTICE);
  }

  scale(uid) {
    const object = this.travel.index.get(uid);
    if (!object) return;
    const input = el("input", { id: "replicas", type: "number", min: 0, max: 1000, value: object.scale.replicas, required: true });
    this.#ask(`Scale ${object.kind} ${object.name}`, [el("label", { for: "replicas", text: "Replicas" }), input], "Scale", () =>
      act({ action: "scale", uid: object.uid, replicas: input.valueAsNumber }));
  }

  remove(object) {
    const name = object.namespace ? `${object.namespace}/${object.name}` : object.name;
    const owned = this.travel.index.children(object.uid).length;
    const text = `Delete ${object.kind} ${name}?${owned ? ` The ${owned === 1 ? "object" : `${owned} objects`} that it owns will be deleted too.` : ""}`;
    this.#ask("Delete", [el("p", { text })], "Delete", () => act({ action: "delete", uid: object.uid }), "danger");
  }

  async edit(object) {
    try {
      // The server compares the manifest with the version that was opened, and sends only the changed fields.
      const { object: manifest } = await fetchObject(object.uid, null);
      this.#manifest(`Edit ${object.kind} ${object.name}`, yamlText(manifest), [], "Save");
    } catch (error) {
      this.notify(error.message, "bad");
    }
  }

  /** Open a dialog that applies a manifest; it offers the samples. */
  async apply() {
    if (!this.writable || !this.travel.live) {
      this.notify(this.writable ? "Objects can be changed when the page is live: press l." : "The page is read-only.");
      return;
    }
    let samples = [];
    try {
      if (this.store.hello?.samples) ({ samples } = await fetchSamples());
    } catch (error) {
      this.notify(error.message, "bad");
    }
    this.#manifest("Apply a manifest", samples[0]?.manifest ?? "", samples);
  }

  #manifest(title, text, samples, confirm = "Apply") {
    const area = el("textarea", { id: "manifest-text", rows: 18, spellcheck: "false", required: true, "aria-label": "Manifest" });
    area.value = text;
    const chooser = samples.length
      ? [el("label", { for: "sample", text: "Sample" }), el("select", { id: "sample", onchange: (event) => { area.value = samples[event.target.value].manifest; } },
          samples.map((sample, place) => el("option", { value: place, text: sample.title })))]
      : [];
    this.#ask(title, [...chooser, area], confirm, () => act({ action: "apply", manifest: area.value }), "primary");
  }

  #ask(title, content, confirm, send, kind = "primary") {
    const { dialog } = this;
    const problem = el("p", { class: "bad", role: "alert" });
    const submit = el("button", { type: "submit", class: kind, text: confirm });
    const form = el(
      "form",
      { method: "dialog", "aria-labelledby": "dialog-title" },
      el("h2", { id: "dialog-title", text: title }),
      content,
      problem,
      el("div", { class: "actions" }, el("button", { type: "button", text: "Cancel", onclick: () => dialog.close() }), submit),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        this.notify(await send());
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
        submit.disabled = false;
      }
    });
    dialog.replaceChildren(form);
    dialog.setAttribute("aria-labelledby", "dialog-title");
    dialog.showModal();
  }
}
