// Manifests as lines of YAML, each with the path of its field and the manager that owns it. Pure.

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./@%+-]*( [A-Za-z0-9_./@%+(),-]+)*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;

// Characters that are valid in JSON strings but that YAML treats as line breaks or refuses.
const SPECIAL = /[\u007f-\u009f\u2028\u2029\ufeff]/g;
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
// Text that a YAML block scalar would change: spaces at its start or at the end of a line, or several final line breaks.
const NO_BLOCK = /^\s|[^\S\n]\n|[^\S\n]$|\n\n$|[\t\r\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/;

/** Return a scalar as YAML that reads back as the same value. */
export function scalar(value) {
  if (typeof value !== "string") return value === null ? "null" : String(value);
  return PLAIN.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value).replace(SPECIAL, escaped);
}

const isEmpty = (value) => value === null || typeof value !== "object" || Object.keys(value).length === 0;

/** Return [{indent, text, path}] for a value; paths of list elements have the journal's format. */
export function yamlLines(value, selectors = new Map()) {
  const lines = [];
  const put = (indent, text, path) => lines.push({ indent, text, path });
  const leaf = (indent, lead, item, path) => {
    if (typeof item === "string" && /\n./.test(item) && !NO_BLOCK.test(item)) {
      put(indent, `${lead}|${item.endsWith("\n") ? "" : "-"}`, path);
      for (const line of item.replace(/\n$/, "").split("\n")) put(indent + 1, line, path);
    } else {
      const shown = Array.isArray(item) ? "[]" : item !== null && typeof item === "object" ? "{}" : scalar(item);
      put(indent, lead + shown, path);
    }
  };
  const walk = (item, indent, path) => {
    if (Array.isArray(item)) {
      item.forEach((element, place) => {
        const own = `${path}[${selector(element, place, selectors.get(path))}]`;
        if (isEmpty(element)) return leaf(indent, "- ", element, own);
        const start = lines.length;
        walk(element, indent + 1, own);
        lines[start].text = `- ${lines[start].text}`;
        lines[start].indent = indent;
      });
      return;
    }
    for (const [name, inner] of Object.entries(item)) {
      const own = path ? `${path}.${name}` : name;
      if (isEmpty(inner)) leaf(indent, `${scalar(name)}: `, inner, own);
      else {
        put(indent, `${scalar(name)}:`, own);
        walk(inner, Array.isArray(inner) ? indent : indent + 1, own);
      }
    }
  };
  if (isEmpty(value)) leaf(0, "", value, "");
  else walk(value, 0, "");
  return lines;
}

/** Return the text of lines. */
export const yamlText = (value) => yamlLines(value).map(({ indent, text }) => "  ".repeat(indent) + text).join("\n") + "\n";

// The key of a list element in managedFields: "name=app" or "containerPort=80,protocol=TCP".
function selector(element, place, known = []) {
  const matches = (each) =>
    each.split(",").every((pair) => {
      const [key, ...rest] = pair.split("=");
      return rest.length ? String(element?.[key]) === rest.join("=").replace(/^"|"$/g, "") : String(element) === key;
    });
  return known.find((each) => each !== String(place) && matches(each)) ?? place;
}

/** Return a function that maps a path to the manager of that field, or of the nearest enclosing field. */
export function managersByPath(managers) {
  const byPath = new Map(managers.map((each) => [each.path, each]));
  const selectors = new Map();
  for (const { path } of managers) {
    for (const found of path.matchAll(/\[([^\]]*)\]/g)) {
      const list = path.slice(0, found.index);
      if (!selectors.has(list)) selectors.set(list, []);
      if (!selectors.get(list).includes(found[1])) selectors.get(list).push(found[1]);
    }
  }
  const find = (path) => {
    for (let at = path; at; at = at.slice(0, Math.max(at.lastIndexOf("."), at.lastIndexOf("["), 0))) {
      const manager = byPath.get(at);
      if (manager) return manager;
    }
    return undefined;
  };
  return { find, selectors };
}
