// Times, durations and names as text.

const two = (number) => String(number).padStart(2, "0");

/** Return milliseconds since the epoch for an RFC 3339 time. */
export const millis = (time) => Date.parse(time);

/** Return the local time of day, optionally with milliseconds. */
export function clock(ms, precise = false) {
  const at = new Date(ms);
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return precise ? `${text}.${String(at.getMilliseconds()).padStart(3, "0")}` : text;
}

/** Return a duration in seconds as kubectl shows an age: the two largest units at most. */
export function age(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return s < 600 && s % 60 ? `${Math.floor(s / 60)}m${s % 60}s` : `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

/** Return how long a reconcile took. */
export function duration(seconds) {
  if (seconds < 0.00005) return "< 0.1 ms";
  if (seconds < 0.0095) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

/** Return a number with thousands separated. */
export const count = (number) => number.toLocaleString("en");

/** Return "1 write", "2 writes". */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Shorten a name in its middle: Pods of one owner differ in their suffix. */
export function shorten(name, length) {
  if (name.length <= length) return name;
  const tail = Math.min(12, Math.floor(length / 2));
  return `${name.slice(0, length - tail - 1)}…${name.slice(-tail)}`;
}

const pen = document.createElement("canvas").getContext("2d");
const fitted = new Map();

/** Shorten a text to a width in pixels, in its middle or at its end. */
export function fit(text, width, font, atEnd = false) {
  const key = `${width} ${font} ${text}`;
  const known = fitted.get(key);
  if (known !== undefined) return known;
  pen.font = font;
  const shortened = (length) => (text.length <= length ? text : atEnd ? `${text.slice(0, length - 1).trimEnd()}…` : shorten(text, length));
  let length = text.length;
  while (length > 4 && pen.measureText(shortened(length)).width > width) length--;
  if (fitted.size > 5000) fitted.clear();
  fitted.set(key, shortened(length));
  return fitted.get(key);
}

/** Return a value of a field on one line. */
export function oneLine(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
