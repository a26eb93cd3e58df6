// Keys of the page, and the overlay that lists them: both come from one table.

import { el } from "./dom.js";

const typing = (target) => target.closest?.("input:not([type=range]), textarea, select, [contenteditable]");

/** `keys` is a list of [key, description, action]; rows without an action are described only. */
export function listen(keys, dialog) {
  const actions = new Map(keys.filter(([, , action]) => action).map(([key, , action]) => [key, action]));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.key === "Escape" && typing(event.target)) {
      event.target.blur();
      return;
    }
    const action = actions.get(event.key);
    if (!action || typing(event.target)) return;
    event.preventDefault();
    action();
  });
}

/** Show the list of keys. */
export function showHelp(keys, dialog) {
  dialog.replaceChildren(
    el("h2", { id: "dialog-title", text: "Keys" }),
    el("dl", { class: "keys" }, keys.map(([key, description]) => el("div", {}, el("dt", {}, el("kbd", { text: key })), el("dd", { text: description })))),
    el("form", { method: "dialog", class: "actions" }, el("button", { type: "submit", text: "Close" })),
  );
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.showModal();
}
