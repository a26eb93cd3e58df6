// Differences side by side: lines are compared by their longest common subsequence.

import { el } from "./dom.js";
import { yamlLines } from "./manifest.js";

/** With more lines than this on one side, only equal lines at the start and the end are found. */
const LONGEST = 600;

/** Return rows [{left, right, same}]; a side without a line in that row is null. */
export function diffLines(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const equal = (lines) => lines.map((line) => ({ left: line, right: line, same: true }));
  const old = before.slice(head, before.length - tail);
  const fresh = after.slice(head, after.length - tail);
  return [...equal(before.slice(0, head)), ...middle(old, fresh), ...equal(tail ? before.slice(-tail) : [])];
}

function middle(old, fresh) {
  if (old.length > LONGEST || fresh.length > LONGEST) return paired(old, fresh);
  const width = fresh.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        old[i] === fresh[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const rows = [];
  let removed = [];
  let added = [];
  const flush = () => {
    rows.push(...paired(removed, added));
    removed = [];
    added = [];
  };
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      flush();
      rows.push({ left: old[i], right: fresh[j], same: true });
      i++;
      j++;
    } else if (j >= fresh.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) removed.push(old[i++]);
    else added.push(fresh[j++]);
  }
  flush();
  return rows;
}

// Removed and added lines are shown side by side.
function paired(removed, added) {
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, place) => ({
    left: removed[place] ?? null,
    right: added[place] ?? null,
    same: false,
  }));
}

/** Return rows in which long runs of equal lines are replaced by {skipped: number}. */
export function withContext(rows, around = 3) {
  const kept = rows.map(() => false);
  rows.forEach((row, place) => {
    if (!row.same) for (let at = Math.max(0, place - around); at <= Math.min(rows.length - 1, place + around); at++) kept[at] = true;
  });
  const short = [];
  rows.forEach((row, place) => {
    if (kept[place]) short.push(row);
    else if (short.at(-1)?.skipped) short.at(-1).skipped++;
    else short.push({ skipped: 1 });
  });
  return short;
}

const lines = (value) =>
  value === undefined || value === null ? [] : yamlLines(value).map(({ indent, text }) => "  ".repeat(indent) + text);

/** Return a table of changed fields, [{path, before, after}], with the old values on the left. */
export function changesTable(changes, caption, more = 0) {
  const rows = changes.flatMap(({ path, before, after }) => [
    el("tr", { class: "path" }, el("th", { colspan: 2, scope: "rowgroup", text: path })),
    ...tableRows(diffLines(lines(before), lines(after))),
  ]);
  if (more) rows.push(el("tr", { class: "skipped" }, el("td", { colspan: 2, text: `and ${more} more fields` })));
  return table(rows, caption);
}

/** Return a table of two manifests, with equal parts left out. */
export function manifestsTable(before, after, caption) {
  return table(tableRows(withContext(diffLines(lines(before), lines(after)))), caption);
}

function table(rows, caption) {
  return el(
    "table",
    { class: "diff" },
    el("caption", { class: "hidden", text: caption }),
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "Before" }), el("th", { scope: "col", text: "After" }))),
    el("tbody", {}, rows),
  );
}

// Each changed line also has a sign, so that its colour is not the only mark.
function tableRows(rows) {
  return rows.map((row) => {
    if (row.skipped) return el("tr", { class: "skipped" }, el("td", { colspan: 2, text: `${row.skipped} equal lines` }));
    const cell = (text, sign, kind) =>
      el("td", { class: text === null ? "none" : row.same ? "same" : kind, "data-sign": text === null || row.same ? " " : sign, text: text ?? "" });
    return el("tr", {}, cell(row.left, "−", "removed"), cell(row.right, "+", "added"));
  });
}
