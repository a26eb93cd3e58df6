"""Decide whether an apply must be sent; `controller/running/writer.py` asks here and sends it.

The invariant: an apply is skipped only if the server would change nothing, neither in the object nor in its
managedFields, relative to the live version that was read and to unchanged admission (webhooks, policies, and the
schema of the kind). In doubt it is sent: one request, never a loop, because an apply that changes nothing moves no
resourceVersion and causes no event.

What the server does: it merges the desired object into the live one, removes what our managedFields entry lists and
the desired object no longer has, completes and admits the result, and replaces our entry by the set of fields of the
desired object. Nothing changes if both of these hold:

1. our entry already is the set of fields of the desired object, in the same apiVersion;
2. merging the desired object into the live one gives the live one.

`unproven_field` checks both, walking the desired object, the live object and our entry at the same time. The schema of
the kind is not known here; the entry stands in for it, because the server wrote it by the schema:

- a node with `f:` steps is a map that merges field by field: exactly these fields must be desired;
- a node with `k:` or `v:` steps is a keyed list or a set: exactly these elements must be desired, and they must stand
  in the live list in the desired order, since the server would otherwise reorder them; elements of others may stand
  between them;
- an empty node is one value (a scalar, an atomic list or map): the live value must be exactly equal;
- a desired field that the entry does not list, or that the live object does not have, is not proven, whatever its
  value: `[]`, `{}`, `""` and null are values too.

Two kinds of nodes can be read in two ways: an empty node of a map or list that is not empty (an atomic value, or one
that was applied as `{}` or null before and merges field by field), and a map that is listed itself beside its fields
(an entry of a map, or a declared field after an edit of the entry). `Shapes` holds what the responses to our own applies
showed about these places of a kind, and what Kubernetes declares for the classes of built-in kinds: until then they
are not proven. So the first object of a custom kind may be sent once after a start, and the others of the kind are not.

Everything that is not proven is sent, and the response is remembered (`ApplyMemory`): the same desired object is not
sent again as long as the live object is what the response was. Compared are the content without status (which an apply
of the rest does not touch), versions and generation, and all managedFields entries that can own a field that our entry
lists: if another manager becomes a joint owner of a field that the server rewrites on each apply, or changes the order
of a list, the next apply does change something and is sent.

A status apply is the same question about the `status` subresource and our entry for that.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, cast, get_args, get_origin

import msgspec
from msgspec.structs import replace

from kubewright.api import JsonObject, Kind, RawObject, field_types, parse
from kubewright.controller.managed_fields import (
    SELF,
    STATUS,
    OwnedFields,
    OwnershipEntry,
    applied_entry,
    fields_of,
    is_element,
    sharing_entries,
)

CAPACITY = 100_000
"""Objects whose last apply is remembered; one that was forgotten costs one more request."""

MAX_SHAPES = 10_000
"""Places whose shape is remembered for one kind; maps with very many keys would fill the memory."""

_WHOLE: Mapping[type, str] = {dict: "whole map", list: "whole list"}
_ITEM = "k"
_ENTRIES = "metadata.managedFields"
"""The field that is not proven where our entry is missing or of another version."""

fingerprint: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode
"""Return bytes that are equal for equal JSON values, whatever the order of their keys."""

_UNOWNED = frozenset({"name", "namespace"})
"""Metadata that names the object; no manager owns it."""

ATOMIC_TYPES = frozenset(
    [
        "ConfigMapKeySelector",
        "CrossVersionObjectReference",
        "EndpointAddress",
        "EndpointPort",
        "EvictionResponder",
        "FileKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "MatchResources",
        "NamedRuleWithOperations",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "OwnerReference",
        "ParamKind",
        "ParamRef",
        "ResourceFieldSelector",
        "RoleRef",
        "ScopeSelector",
        "SecretKeySelector",
        "SecretReference",
        "ServiceBackendPort",
        "Subject",
        "TopologySelectorTerm",
        "TypedLocalObjectReference",
        "Variable",
    ]
)
"""Types of the built-in kinds that Kubernetes declares to be one value (x-kubernetes-map-type: atomic)."""
ATOMIC_FIELDS = frozenset(
    {
        ("PodSpec", "nodeSelector"),
        ("ReplicationControllerSpec", "selector"),
        ("Scheduling", "nodeSelector"),
        ("ServiceSpec", "selector"),
    }
)
"""Maps of the built-in kinds that are one value. Their lists are one value unless the class has keys for them."""

Shape = dict[str, Any]
"""What is known of a place of a kind: whether maps or lists there are one value (`_WHOLE`), whether the place is listed
itself (`SELF`), and the steps to places below."""


def applied_part(desired: JsonObject, subresource: str = "") -> dict[str, Any]:
    """Return what of the document that is sent can be owned: without its type and its name."""
    if subresource:
        return {subresource: desired.get(subresource)}
    part = {key: value for key, value in desired.items() if key not in ("apiVersion", "kind", "metadata")}
    meta = {key: value for key, value in desired.get("metadata", {}).items() if key not in _UNOWNED}
    return part | {"metadata": meta} if meta else part


def unproven_field(part: JsonObject, live: JsonObject, owned: OwnedFields, shape: Shape) -> str | None:
    """Return the path of a field for which it is not proven that an apply changes nothing; None if there is none.

    `part` is `applied_part` of what would be sent, `owned` the fields of our entry, `shape` that of the kind's root.
    """
    return _unproven_in_map(part, live, owned, shape)


def _unproven_value(desired: Any, live: Any, owned: OwnedFields, shape: Shape | None) -> str | None:
    """Return the path below here that is not proven, empty if it is the value itself; None if all is proven."""
    if not owned:
        if not _equal(desired, live):
            return ""
        whole = _WHOLE.get(desired.__class__)
        return None if whole is None or not desired or (shape is not None and whole in shape) else ""
    # Classes are compared, not cast: this runs for each field of each child on each new version of it.
    form = desired.__class__
    if form is dict and live.__class__ is dict:
        if SELF in owned and (shape is None or SELF not in shape):
            return ""
        return _unproven_in_map(desired, live, owned, shape)
    if form is list and live.__class__ is list:
        return _unproven_in_list(desired, live, owned, shape)
    return ""


def _unproven_in_map(
    desired: JsonObject, live: JsonObject, owned: OwnedFields, shape: Shape | None
) -> str | None:
    # The path is put together on the way back: most of what is compared is equal.
    for key, value in desired.items():
        step = f"f:{key}"
        below = owned.get(step)
        if below is None or key not in live:
            return key
        if value.__class__ is str and not below and value == live[key]:
            continue  # most fields are texts: they need no call
        found = _unproven_value(value, live[key], below, None if shape is None else shape.get(step))
        if found is not None:
            return _joined(key, found)
    if len(owned) - (SELF in owned) > len(desired):
        return next(step[2:] for step in owned if step != SELF and step[2:] not in desired)
    return None


def _unproven_in_list(
    desired: list[Any], live: list[Any], owned: OwnedFields, shape: Shape | None
) -> str | None:
    if SELF in owned or len(owned) != len(desired):
        return ""
    steps = list(owned)
    elements = _Elements.of(steps)
    if elements is None:
        is_set = all(step.startswith("v:") for step in steps)
        return _unproven_in_set(desired, live, steps) if is_set else ""
    places = elements.places(live)
    below = None if shape is None else shape.get(_ITEM)
    last = -1
    seen: set[str] = set()
    for index, item in enumerate(desired):
        step = elements.step_of(item)
        place = None if step is None else places.get(step)
        # The server puts our elements into our order; one that is there twice it replaces.
        if step is None or step in seen or place is None or place <= last:
            return f"[{index}]"
        last = place
        seen.add(step)
        node = owned[step]
        if not node:
            found = _unproven_value(item, live[place], node, below)
        elif SELF not in node:
            found = ""
        else:
            found = _unproven_in_map(item, live[place], node, below)
        if found is not None:
            return _joined(f"[{index}]", found)
    return None


def _unproven_in_set(desired: list[Any], live: list[Any], steps: Sequence[str]) -> str | None:
    ours = [fingerprint(item) for item in desired]
    listed = {fingerprint(msgspec.json.decode(step[2:])) for step in steps}
    there = [one for one in map(fingerprint, live) if one in listed]
    return None if ours == there and len(listed) == len(ours) and listed == set(ours) else ""


class _Elements:
    """The elements of a keyed list that an entry lists, found by the keys of an item."""

    def __init__(
        self, names: tuple[str, ...], by_keys: dict[bytes, str], keys: dict[str, JsonObject]
    ) -> None:
        self._names = names
        self._by_keys = by_keys
        self._keys = keys

    @classmethod
    def of(cls, steps: Sequence[str]) -> "_Elements | None":
        """Read the steps; None if they are not all elements by the same keys."""
        names: tuple[str, ...] = ()
        by_keys: dict[bytes, str] = {}
        keys: dict[str, JsonObject] = {}
        for step in steps:
            if not step.startswith("k:"):
                return None
            one = keys[step] = msgspec.json.decode(step[2:])
            names = names or tuple(sorted(one))
            if len(one) != len(names):
                return None
            key = _key(one, names)
            if key is None:
                return None
            by_keys[key] = step
        return cls(names, by_keys, keys) if names else None

    def step_of(self, item: Any) -> str | None:
        """Return the step of a desired item; keys that it leaves out were filled in by the server's defaults."""
        if not isinstance(item, dict):
            return None
        element = cast("JsonObject", item)
        key = _key(element, self._names)
        if key is not None:
            return self._by_keys.get(key)
        # Which default it was shows in the entry: an element that was applied with the key lists the key.
        fitting = [
            step
            for step, keys in self._keys.items()
            if all(name not in element or _equal(element[name], value) for name, value in keys.items())
        ]
        return fitting[0] if len(fitting) == 1 and is_element(fitting[0], element) else None

    def places(self, live: Sequence[Any]) -> dict[str, int | None]:
        """Return where each element stands in the live list; None for one that is there twice."""
        found: dict[str, int | None] = {}
        for place, item in enumerate(live):
            key = _key(cast("JsonObject", item), self._names) if isinstance(item, dict) else None
            step = None if key is None else self._by_keys.get(key)
            if step is not None:
                found[step] = None if step in found else place
        return found


def _key(element: JsonObject, names: tuple[str, ...]) -> bytes | None:
    """Return the values of these fields as bytes; None if the element does not have them all."""
    values: list[Any] = []
    for name in names:
        if name not in element:
            return None
        values.append(element[name])
    return fingerprint(values)


def _joined(above: str, below: str) -> str:
    return f"{above}.{below}" if below and below[0] != "[" else f"{above}{below}"


def _equal(one: Any, other: Any) -> bool:
    # Most values are texts. Values of JSON compare as Python's do, except that true is not 1.
    kind = one.__class__
    if kind is str:
        return bool(one == other)
    if kind is dict:
        if other.__class__ is not dict or len(one) != len(other):
            return False
        for key, value in one.items():
            if key not in other:
                return False
            if not (value == other[key] if value.__class__ is str else _equal(value, other[key])):
                return False
        return True
    if kind is list:
        return other.__class__ is list and len(one) == len(other) and all(map(_equal, one, other))
    if kind is bool or isinstance(other, bool):
        return one is other
    return bool(one == other)


def may_change_again(sent: bytes, response: RawObject, subresource: str = "") -> bool:
    """Return True if sending the same document once more may change the object that the server responded with.

    An apply of `{}`, `[]` or null removes our fields below it and with them the map or list itself; only the next
    apply adds the empty value. So what is desired empty must be there, or be applied a second time. And an object
    whose last manager has gone is given one by the next apply.
    """
    if not response.meta.managed_fields:
        return True
    # Finding them in the bytes costs less than a walk; a text may have them too, and then the walk decides.
    # Not `in`: bytes first try their operand as a number, and the error that this makes costs more than the search.
    if sent.find(b"{}") < 0 and sent.find(b"[]") < 0 and sent.find(b"null") < 0:
        return False
    return _lacks_empty(applied_part(parse(sent), subresource), parse(response.raw))


def _lacks_empty(value: Any, there: Any) -> bool:
    if not _has_empty(value) or _equal(value, there):
        return False
    if value and isinstance(value, dict) and isinstance(there, dict):
        response = cast("JsonObject", there)
        return any(
            _lacks_empty(below, response[key]) if key in response else _has_empty(below)
            for key, below in cast("JsonObject", value).items()
        )
    return True


def _has_empty(value: Any) -> bool:
    kind = value.__class__
    if kind is dict:
        return not value or any(map(_has_empty, value.values()))
    if kind is list:
        return not value or any(map(_has_empty, value))
    return value is None


class Shapes:
    """Know, for each kind and version, which places are one value, as the responses to applies showed it."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, str, str], Shape] = {}
        self._counts: dict[tuple[str, str, str], int] = {}

    def root(self, kind: Kind, subresource: str) -> Shape:
        """Return what is known of a kind."""
        key = (kind.api_version, kind.kind, subresource)
        found = self._roots.get(key)
        if found is None:
            # The metadata of all kinds is the same: an owner reference is one value, found by its uid.
            references: Shape = {"f:ownerReferences": {_ITEM: {_WHOLE[dict]: True}}}
            found = self._roots[key] = {"f:metadata": references}
        return found

    def learn(self, kind: Kind, subresource: str, part: JsonObject, owned: OwnedFields) -> None:
        """Learn from the entry that the server made of an applied part."""
        key = (kind.api_version, kind.kind, subresource)
        left = MAX_SHAPES - self._counts.get(key, 0)
        added = _learn(part, owned, self.root(kind, subresource), left)
        self._counts[key] = self._counts.get(key, 0) + added

    def declare(self, kind: Kind, subresource: str, part: JsonObject, form: type) -> None:
        """Note what Kubernetes declares about the places of an applied part of a built-in kind."""
        _declare(part, form, self.root(kind, subresource))


def _declare(desired: JsonObject, cls: type, shape: Shape) -> None:
    lists: Mapping[str, tuple[str, ...]] = getattr(cls, "__lists__", {})
    for name, wire, hint in _typed_fields(cls):
        value = desired.get(wire)
        if not value or not isinstance(value, dict | list):
            continue
        below: Shape = shape.setdefault(f"f:{wire}", {})
        origin, element = get_origin(hint), get_args(hint)
        if origin is list and isinstance(value, list):
            if name not in lists:
                below[_WHOLE[list]] = True
            elif lists[name] and isinstance(element[0], type):
                item: Shape = below.setdefault(_ITEM, {})
                for one in cast("list[JsonObject]", value):
                    _declare_map(one, element[0], item)
        elif origin is dict and (cls.__name__, wire) in ATOMIC_FIELDS:
            below[_WHOLE[dict]] = True
        elif isinstance(hint, type) and isinstance(value, dict):
            _declare_map(cast("JsonObject", value), hint, below)


def _declare_map(desired: JsonObject, cls: type, shape: Shape) -> None:
    if cls.__name__ in ATOMIC_TYPES:
        shape[_WHOLE[dict]] = True
    elif issubclass(cls, msgspec.Struct):
        _declare(desired, cls, shape)


@cache
def _typed_fields(cls: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Return attribute, wire name and type of each field of a class, without None."""
    hints = field_types(cls)
    return tuple(
        (name, wire, next((one for one in get_args(hints[name]) if one is not type(None)), hints[name]))
        if get_origin(hints[name]) in (Union, UnionType)
        else (name, wire, hints[name])
        for name, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    )


def _learn(desired: Any, owned: OwnedFields, shape: Shape, left: int) -> int:
    """Note the shape of this place and of those below, of at most `left` new ones; returns how many were new."""
    if not owned:
        shape[_WHOLE[desired.__class__]] = True
        return 0
    if SELF in owned:
        shape[SELF] = True
    added = 0
    for step, node, value in _below(desired, owned):
        below: Shape | None = shape.get(step)
        if below is None:
            if added >= left:
                continue
            below = shape[step] = {}
            added += 1
        added += _learn(value, node, below, left - added)
    return added


def _below(desired: Any, owned: OwnedFields) -> list[tuple[str, OwnedFields, Any]]:
    """Return the steps to maps and lists that are not empty, with what is owned and desired there."""
    if isinstance(desired, dict):
        pairs = [(f"f:{key}", value) for key, value in cast("JsonObject", desired).items()]
        return [
            (step, owned[step], value)
            for step, value in pairs
            if value and isinstance(value, dict | list) and step in owned
        ]
    elements = _Elements.of([step for step in owned if step != SELF])
    if elements is None or not isinstance(desired, list):
        return []
    found = [(elements.step_of(item), item) for item in cast("list[Any]", desired)]
    return [(_ITEM, owned[step], item) for step, item in found if step is not None and item]


class _Applied(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of the last apply of one object: what was desired, and what the object was then."""

    desired: int
    version: str
    is_proven: bool
    relevant: int | None = None
    """What must not have changed for what is not proven; None if only the same version is surely the same."""
    altered: frozenset[int] = frozenset()
    """The mismatches that the server's response had: they are its doing, and no other manager's."""


class SendReason(NamedTuple):
    """Why an apply must be sent."""

    field: str
    drift: "Mismatch | None" = None
    """The field that was changed since the same was applied; None if it was not, or nothing of ours was changed."""


class ApplyMemory:
    """Decide for one field manager whether applies must be sent, and remember what the server made of them."""

    def __init__(self, manager: str, capacity: int = CAPACITY) -> None:
        self._manager = manager
        self._capacity = capacity
        self._shapes = Shapes()
        self._applied: OrderedDict[tuple[str, str], _Applied] = OrderedDict()

    def reason_to_send(
        self,
        kind: Kind,
        desired: JsonObject,
        live: RawObject,
        *,
        subresource: str = "",
        source: Any = None,
        form: Any = None,
    ) -> SendReason | None:
        """Return why the document must be sent; None if the server would change nothing.

        `source` is what the document was made of if that says better than the document whether it is the same
        as before: times are stamped into a status. `form` is the class of a built-in kind, if the document has one.
        """
        meta = live.meta
        key, asked = (meta.uid, subresource), _hash(desired if source is None else source)
        known = self._applied.get(key)
        same = known is not None and known.desired == asked
        if known is not None and same and known.version == meta.resource_version:
            return None
        if known is None and not meta.managed_fields:
            # The first apply of most objects: without an entry of ours nothing is proven, whatever the object is.
            return SendReason(_ENTRIES)
        state: JsonObject = parse(live.raw)
        field = self._unproven(kind, desired, state, subresource)
        if field is not None and kind.builtin and isinstance(form, type):
            self._shapes.declare(kind, subresource, applied_part(desired, subresource), form)
            field = self._unproven(kind, desired, state, subresource)
        if field is None:
            self._remember(key, _Applied(asked, meta.resource_version, is_proven=True))
            return None
        if (
            known is not None
            and same
            and known.relevant is not None
            and known.relevant == self._relevant(kind, state, subresource)
        ):
            self._remember(key, replace(known, version=meta.resource_version))
            return None
        return SendReason(
            field, _drift(known, field, applied_part(desired, subresource), state) if same else None
        )

    def learn(
        self,
        kind: Kind,
        desired: JsonObject,
        response: RawObject,
        *,
        subresource: str = "",
        source: Any = None,
    ) -> "Mismatch | None":
        """Learn from the response to an apply.

        Returns a field that the server did not keep as it was applied, unless the same was applied before.
        """
        meta = response.meta
        state: JsonObject = parse(response.raw)
        part = applied_part(desired, subresource)
        entry = self._entry(state, subresource)
        unproven = self._unproven_part(kind, part, entry, state, subresource)
        if unproven is not None and entry is not None:
            # Only now: where all is proven, the entry shows nothing about the places of this part that is not known.
            self._shapes.learn(kind, subresource, part, fields_of(entry))
            unproven = self._unproven_part(kind, part, entry, state, subresource)
        key, asked = (meta.uid, subresource), _hash(desired if source is None else source)
        if unproven is None:
            # The response is the desired object and what others added to it, so no field differs.
            self._remember(key, _Applied(asked, meta.resource_version, is_proven=True))
            return None
        known = self._applied.get(key)
        found = list(mismatches(part, state))
        relevant = self._relevant(kind, state, subresource)
        altered = frozenset(map(_mismatch_hash, found))
        self._remember(
            key, _Applied(asked, meta.resource_version, is_proven=False, relevant=relevant, altered=altered)
        )
        return found[0] if found and (known is None or known.desired != asked) else None

    def _unproven(self, kind: Kind, desired: JsonObject, state: JsonObject, subresource: str) -> str | None:
        part, entry = applied_part(desired, subresource), self._entry(state, subresource)
        return self._unproven_part(kind, part, entry, state, subresource)

    def _unproven_part(
        self, kind: Kind, part: JsonObject, entry: OwnershipEntry | None, state: JsonObject, subresource: str
    ) -> str | None:
        if entry is None or entry.get("apiVersion") != kind.api_version:
            return _ENTRIES
        return unproven_field(part, state, fields_of(entry), self._shapes.root(kind, subresource))

    def _relevant(self, kind: Kind, state: JsonObject, subresource: str) -> int | None:
        """Return a hash of all that decides about the outcome of an apply; None without an entry of ours.

        Without one the cache does not keep those of others, so only the same version is surely the same.
        """
        entry = self._entry(state, subresource)
        if entry is None:
            return None
        shared = sharing_entries(_entries(state), fields_of(entry))
        if subresource:
            content: Any = state.get(subresource)
        else:
            content = content_of(state, has_status=kind.status)
        return _hash([content, sorted(map(fingerprint, shared))])

    def _entry(self, state: JsonObject, subresource: str) -> OwnershipEntry | None:
        return applied_entry(_entries(state), self._manager, subresource)

    def _remember(self, key: tuple[str, str], applied: _Applied) -> None:
        self._applied.pop(key, None)
        self._applied[key] = applied
        if len(self._applied) > self._capacity:
            self._applied.popitem(last=False)


def _drift(known: "_Applied | None", field: str, part: JsonObject, state: JsonObject) -> "Mismatch | None":
    """Return what was changed of an object to which the same was applied before."""
    if known is None:
        return None
    for found in mismatches(part, state):
        if _mismatch_hash(found) not in known.altered:
            return found
    # All values are there. If that was proven before, the order or the ownership of the field was changed.
    return Mismatch(tuple(field.partition("[")[0].split(".")), field, None) if known.is_proven else None


def _mismatch_hash(found: "Mismatch") -> int:
    return _hash([found.text, found.live])


def _entries(state: JsonObject) -> list[OwnershipEntry]:
    return state.get("metadata", {}).get("managedFields") or []


def content_of(live: JsonObject, *, has_status: bool) -> dict[str, Any]:
    """Return the live object without what other writes move: versions, managers, and the status."""
    meta = {
        key: value
        for key, value in live.get("metadata", {}).items()
        if key not in ("resourceVersion", "managedFields", "generation")
    }
    moving = {"metadata", STATUS} if has_status else {"metadata"}
    return {key: value for key, value in live.items() if key not in moving} | {"metadata": meta}


def _hash(value: Any) -> int:
    # Python's own hash is keyed differently in each process, so collisions cannot be aimed at; a cryptographic one costs ten times as much.
    return hash(fingerprint(value))


class Mismatch(NamedTuple):
    """A field in which an object is not as desired."""

    path: tuple[Any, ...]
    """Names of fields, and elements of lists as they are desired."""
    text: str
    live: Any
    """The value that is there; None if there is none."""


def mismatches(part: JsonObject, live: JsonObject) -> Iterator[Mismatch]:
    """Yield the fields that the live object does not have as desired.

    What the server adds is no mismatch, nor is an empty value that it does not keep. This is for reports: no
    apply is skipped for it.
    """
    return _mismatches(part, live, (), "")


def _mismatches(desired: Any, live: Any, path: tuple[Any, ...], text: str) -> Iterator[Mismatch]:
    if isinstance(desired, dict) and isinstance(live, Mapping):
        for key, value in cast("JsonObject", desired).items():
            there = cast("JsonObject", live).get(key)
            if there is not None or value or value in (0, False):
                yield from _mismatches(value, there, (*path, key), _joined(text, key) if text else key)
    elif isinstance(desired, list) and isinstance(live, list) and desired:
        others = cast("list[Any]", live)
        for index, item in enumerate(cast("list[Any]", desired)):
            yield from _item_mismatches(item, index, others, path, f"{text}[{index}]")
    elif not _equal(desired, live):
        yield Mismatch(path, text, live)


def _item_mismatches(
    item: Any, index: int, live: list[Any], path: tuple[Any, ...], text: str
) -> Iterator[Mismatch]:
    twins = [cast("JsonObject", other) for other in live if isinstance(other, dict)]
    if not isinstance(item, dict) or not twins:
        if not any(_equal(item, other) for other in live):
            yield Mismatch((*path, item), text, None)
        return
    element = cast("JsonObject", item)

    # The twin is the element that is most alike: keys are not known here.
    def likeness(pair: tuple[int, JsonObject]) -> tuple[int, bool]:
        place, other = pair
        return sum(_equal(value, other.get(key)) for key, value in element.items()), place == index

    _, twin = max(enumerate(twins), key=likeness)
    yield from _mismatches(element, twin, (*path, element), text)
