"""Sets of field paths, kept as FieldsV1 keeps them, and their algebra.

A set is a dictionary from path elements to what is owned below them. An element with an empty dictionary is a
member; one with a dictionary is a member only if that contains `.`. Sets are immutable once created: operations
share their parts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard, cast

from kubewright.devserver.merge.elements import SELF, is_element, ordered
from kubewright.devserver.objects import is_object

FieldSet = dict[str, Any]

_LEAF: FieldSet = {}


def is_member(node: FieldSet) -> bool:
    """Return True if the element that leads to this node is itself in the set."""
    return not node or SELF in node


def below(node: FieldSet) -> FieldSet:
    """Return the owned paths below a node, without the node itself."""
    if SELF not in node:
        return node
    return {element: child for element, child in node.items() if element != SELF}


def node_of(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Make a node from both; None when there is nothing in it."""
    if not children:
        return _LEAF if member else None
    return {SELF: _LEAF, **children} if member else children


def descend(fields: FieldSet, path: Iterable[str]) -> FieldSet:
    """Return the node at a path of a set that is still being built, made if it is missing, to add something below it."""
    for element in path:
        child = fields.get(element)
        if child is None:
            child = fields[element] = {}
        elif not child:
            # An empty dictionary means membership: keep that before a path is added below it.
            child = fields[element] = {SELF: _LEAF}
        fields = child
    return fields


def insert(fields: FieldSet, path: Iterable[str]) -> None:
    """Add one path to a set that is still being built."""
    *parents, last = path
    fields = descend(fields, parents)
    if last in fields:
        if fields[last]:
            fields[last][SELF] = _LEAF
    else:
        fields[last] = {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of either."""
    if not right or left is right:
        return left
    if not left:
        return right
    out = dict(left)
    for element, node in right.items():
        mine = left.get(element)
        if mine is None:
            out[element] = node
        elif mine is not node:
            member = is_member(mine) or is_member(node)
            out[element] = node_of(union(below(mine), below(node)), member=member)
    return out


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of both."""
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is not None:
            member = is_member(node) and is_member(other)
            kept = node_of(intersection(below(node), below(other)), member=member)
            if kept is not None:
                out[element] = kept
    return out


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of the left that are not in the right."""
    if not right:
        return left
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            out[element] = node
            continue
        member = is_member(node) and not is_member(other)
        kept = node_of(difference(below(node), below(other)), member=member)
        if kept is not None:
            out[element] = kept
    return out


def without_below(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of the left that neither are in the right nor lie below one that is."""
    if not right:
        return left
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            out[element] = node
        elif not is_member(other):
            kept = node_of(without_below(below(node), other), member=is_member(node))
            if kept is not None:
                out[element] = kept
    return out


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Return True if one path is in a set."""
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return is_member(node)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every path: the members of a level in order, then what lies below each."""
    elements = ordered([element for element in fields if element != SELF])
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        yield from paths(below(fields[element]), (*prefix, element))


def encode(fields: FieldSet) -> FieldSet:
    """Put a set into the order FieldsV1 is written in."""
    if len(fields) < 2:
        return {element: encode(node) if node else {} for element, node in fields.items()}
    return {element: encode(fields[element]) if fields[element] else {} for element in ordered(list(fields))}


def decode(value: Any) -> FieldSet:
    """Read FieldsV1; keys that are not path elements are skipped."""
    # What the server wrote is valid: it is only looked at, not built again.
    return below(value if _is_readable(value) else _readable(value))


def _is_readable(value: Any) -> TypeGuard[FieldSet]:
    """Return True if all elements of a node are path elements."""
    if not isinstance(value, dict):
        return False
    for element, node in cast(FieldSet, value).items():
        if element != SELF and not is_element(element):
            return False
        if not (isinstance(node, dict) and (not node or _is_readable(node))):
            return False
    return True


def _readable(value: Any) -> FieldSet:
    """Return a node with only its valid elements."""
    if not is_object(value):
        return _LEAF
    return {
        element: _readable(node) for element, node in value.items() if element == SELF or is_element(element)
    }
