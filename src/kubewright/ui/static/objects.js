// An index of object summaries: by uid, by name, by owner, and sorted. There is one for the live state and one for a past
// time.

/** Return the key that references resolve to. */
export const nameKey = (group, kind, namespace, name) => `${group ?? ""}\n${kind}\n${namespace ?? ""}\n${name}`;

/** Return the key of the kind of an object or of a reconcile; an indexed object has it already. */
export const kindKey = (object) => object.kindKey ?? (object.group ? `${object.kind}.${object.group}` : object.kind);

const sortKey = (o) => `${o.reconciled ? 0 : 1}\n${o.kind}\n${o.group ?? ""}\n${o.namespace ?? ""}\n${o.name}\n${o.uid}`;

function searchText(o) {
  const reasons = (o.conditions ?? []).map((condition) => `${condition.type} ${condition.reason ?? ""}`);
  return [o.kind, o.resource, o.namespace, o.name, o.state, o.stateText, ...reasons].join(" ").toLowerCase();
}

const SYSTEM_NAMESPACES = new Set(["kube-system", "kube-public", "kube-node-lease"]);
const SYSTEM_NAMES = new Set(["kube-root-ca.crt/ConfigMap", "kubernetes/Service", "kubernetes/EndpointSlice", "kubernetes/Endpoints"]);

/** Return true for system objects, which every cluster has: CRDs, roles, nodes, objects of the control plane. */
export function isSystem(object) {
  if (object.reconciled || object.owners?.length) return false;
  if (object.group === "rbac.authorization.k8s.io" || object.kind === "ServiceAccount") return true;
  if (object.namespace) return SYSTEM_NAMESPACES.has(object.namespace) || SYSTEM_NAMES.has(`${object.name}/${object.kind}`);
  return object.group ? /(^|\.)k8s\.io$/.test(object.group) : object.kind !== "PersistentVolume";
}

export class ObjectIndex {
  #byUid = new Map();
  #byName = new Map();
  #children = new Map();
  #sorted = [];
  #kinds = new Map();
  #namespaces = new Map();
  /** How many objects belong to the system. */
  systemCount = 0;
  /** Incremented by each change; views compare it to decide whether to draw again. */
  version = 0;

  get size() {
    return this.#byUid.size;
  }

  get(uid) {
    return this.#byUid.get(uid);
  }

  /** Return the object that a reference refers to, if it is in the index. */
  named({ group, kind, namespace, name }) {
    return this.#byName.get(nameKey(group, kind, namespace, name));
  }

  /** Return all objects: kinds with a controller first, then by kind, namespace and name. */
  get sorted() {
    return this.#sorted;
  }

  /** Return the kinds, sorted, as [key, count]. */
  get kinds() {
    return [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Return the namespaces, sorted, as [name, count]. */
  get namespaces() {
    return [...this.#namespaces].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Return the objects that an object owns. */
  children(uid) {
    const owned = this.#children.get(uid);
    return owned ? [...owned].map((child) => this.#byUid.get(child)).filter(Boolean) : [];
  }

  /** Return the owner that an object is drawn below: its controller, or else the first known owner. */
  parent(object) {
    let found;
    for (const owner of object.owners ?? []) {
      const known = owner.uid === object.uid ? undefined : this.#byUid.get(owner.uid);
      if (known && owner.controller) return known;
      found ??= known;
    }
    return found;
  }

  /** Return the owners of an object up to the root; stop at a cycle. */
  ancestors(object) {
    const found = [];
    for (let at = this.parent(object); at && at !== object && !found.includes(at); at = this.parent(at)) found.push(at);
    return found;
  }

  /** Add or replace objects. */
  put(objects) {
    this.version++;
    const many = objects.length > 500;
    for (const object of objects) {
      const old = this.#byUid.get(object.uid);
      object.sortKey = sortKey(object);
      object.searchText = searchText(object);
      object.kindKey = kindKey(object);
      object.system = isSystem(object);
      if (old && old.sortKey === object.sortKey && !many) {
        this.#sorted[this.#position(old.sortKey)] = object;
      } else if (!many) {
        if (old) this.#sorted.splice(this.#position(old.sortKey), 1);
        this.#sorted.splice(this.#position(object.sortKey), 0, object);
      }
      if (old) this.#unlink(old);
      this.#link(object);
    }
    if (many) this.#sorted = [...this.#byUid.values()].sort((a, b) => (a.sortKey < b.sortKey ? -1 : 1));
  }

  /** Remove an object, if it is known. */
  remove(uid) {
    const object = this.#byUid.get(uid);
    if (!object) return;
    this.version++;
    this.#sorted.splice(this.#position(object.sortKey), 1);
    this.#unlink(object);
  }

  #link(object) {
    this.#byUid.set(object.uid, object);
    this.systemCount += object.system;
    this.#byName.set(nameKey(object.group, object.kind, object.namespace, object.name), object);
    for (const owner of object.owners ?? []) {
      if (!this.#children.has(owner.uid)) this.#children.set(owner.uid, new Set());
      this.#children.get(owner.uid).add(object.uid);
    }
    add(this.#kinds, kindKey(object), 1);
    add(this.#namespaces, object.namespace ?? "", 1);
  }

  #unlink(object) {
    this.#byUid.delete(object.uid);
    this.systemCount -= object.system;
    const key = nameKey(object.group, object.kind, object.namespace, object.name);
    // Another object of the same name may have replaced it already.
    if (this.#byName.get(key)?.uid === object.uid) this.#byName.delete(key);
    for (const owner of object.owners ?? []) {
      const owned = this.#children.get(owner.uid);
      owned?.delete(object.uid);
      if (owned?.size === 0) this.#children.delete(owner.uid);
    }
    add(this.#kinds, kindKey(object), -1);
    add(this.#namespaces, object.namespace ?? "", -1);
  }

  /** Return the position of the object with this sort key, or where it would be inserted. */
  #position(key) {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#sorted[middle].sortKey < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function add(counts, key, change) {
  const now = (counts.get(key) ?? 0) + change;
  if (now > 0) counts.set(key, now);
  else counts.delete(key);
}
