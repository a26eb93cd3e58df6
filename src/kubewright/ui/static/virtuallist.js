// A list that creates only the rows in view, and reuses their elements while it scrolls.

import { el, setAttribute } from "./dom.js";

const OVERSCAN = 4;

/**
 * `draw(row, item)` fills a row's element, `key(item)` identifies an item, `open(item)` is called on click and Enter.
 * It is a listbox: it has one tab stop, arrow keys move, and rows report their position to screen readers.
 */
export class VirtualList {
  #items = [];
  #rows = [];
  #active = -1;
  #activeKey = null;
  #selectedKey = null;
  #rowHeight = 0;
  #asked = false;

  constructor(viewport, { label, draw, create, key, open, rowHeight }) {
    Object.assign(this, { viewport, draw, create, key, open, rowHeightOf: rowHeight });
    viewport.setAttribute("role", "listbox");
    viewport.setAttribute("aria-label", label);
    viewport.tabIndex = 0;
    this.space = viewport.appendChild(el("div", { class: "space", role: "presentation" }));
    viewport.addEventListener("scroll", () => this.#soon(), { passive: true });
    viewport.addEventListener("keydown", (event) => this.#key(event));
    viewport.addEventListener("focus", () => {
      if (this.#active < 0 && this.#items.length) this.#activate(Math.floor(viewport.scrollTop / this.#rowHeight));
    });
    new ResizeObserver(() => this.#soon()).observe(viewport);
  }

  get items() {
    return this.#items;
  }

  /** Show these items. Visible rows keep their position, unless the list is scrolled to its top. */
  update(items, selectedKey) {
    const height = this.rowHeightOf();
    const top = this.viewport.scrollTop;
    const first = top > height / 2 ? this.#items[Math.floor(top / (this.#rowHeight || height))] : undefined;
    const anchor = first && this.key(first);
    this.#items = items;
    this.#rowHeight = height;
    this.#selectedKey = selectedKey;
    this.space.style.height = `${items.length * height}px`;
    if (anchor !== undefined) {
      const place = this.#find(anchor);
      if (place >= 0) {
        const moved = place * height + (top % height);
        if (Math.abs(moved - top) >= 1) this.viewport.scrollTop = moved;
      }
    }
    if (this.#activeKey !== null) this.#active = this.#find(this.#activeKey);
    this.#drawRows();
  }

  /** Scroll so that an item is in view. */
  reveal(key) {
    const place = this.#find(key);
    if (place >= 0) this.#scrollTo(place);
  }

  #find(key) {
    return this.#items.findIndex((item) => this.key(item) === key);
  }

  #soon() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.#drawRows();
    });
  }

  #drawRows() {
    const { scrollTop, clientHeight } = this.viewport;
    const height = this.#rowHeight;
    if (!height) return;
    const from = Math.max(0, Math.floor(scrollTop / height) - OVERSCAN);
    const to = clientHeight ? Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / height) + OVERSCAN) : from;
    while (this.#rows.length < to - from) {
      const row = this.create();
      row.setAttribute("role", "option");
      row.addEventListener("click", () => {
        this.#activate(row.place, false);
        this.open(row.item);
      });
      this.#rows.push(row);
      this.space.append(row);
    }
    // Items are assigned to rows by position modulo the number of rows, so scrolling by one row updates one row.
    const total = this.#rows.length;
    const used = new Set();
    for (let place = from; place < to; place++) {
      const row = this.#rows[place % total];
      used.add(row);
      const item = this.#items[place];
      row.hidden = false;
      if (row.place !== place) row.style.transform = `translateY(${place * height}px)`;
      row.place = place;
      row.item = item;
      row.id = `${this.viewport.id}-${place % total}`;
      setAttribute(row, "aria-posinset", place + 1);
      setAttribute(row, "aria-setsize", this.#items.length);
      setAttribute(row, "aria-selected", String(this.key(item) === this.#selectedKey));
      row.classList.toggle("active", place === this.#active);
      this.draw(row, item);
    }
    for (const row of this.#rows) if (!used.has(row)) row.hidden = true;
    const active = this.#rows.find((row) => !row.hidden && row.place === this.#active);
    setAttribute(this.viewport, "aria-activedescendant", active?.id);
  }

  #activate(place, scroll = true) {
    this.#active = Math.max(0, Math.min(this.#items.length - 1, place));
    const item = this.#items[this.#active];
    this.#activeKey = item === undefined ? null : this.key(item);
    if (scroll) this.#scrollTo(this.#active);
    this.#drawRows();
  }

  #scrollTo(place) {
    const { scrollTop, clientHeight } = this.viewport;
    const top = place * this.#rowHeight;
    if (top < scrollTop) this.viewport.scrollTop = top;
    else if (top + this.#rowHeight > scrollTop + clientHeight) this.viewport.scrollTop = top + this.#rowHeight - clientHeight;
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.viewport.clientHeight / this.#rowHeight) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.#activate(this.#active + moves[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && this.#items[this.#active]) this.open(this.#items[this.#active]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
