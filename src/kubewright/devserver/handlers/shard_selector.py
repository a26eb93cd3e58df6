"""The `shardSelector` of a list or watch (feature gate ShardedListAndWatch, KEP-5866): parsed, and matched with records.

A selector is a CEL expression of which only the tree is read: calls of `shardRange(object.metadata.uid, '0x...', '0x...')`
joined by `||`. An object matches if the 64-bit FNV-1a hash of its uid or namespace is in one of the ranges.
"""

from typing import Final

import msgspec

from kubewright.api import problems
from kubewright.api.sharding import HashRange, ShardField, shard_hash
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.storage import Record
from kubewright.schema.cel import CompileError
from kubewright.schema.cel.ast import Call, CreateList, CreateMap, CreateStruct, Expr, Ident, Literal, Select
from kubewright.schema.cel.parser import parse
from kubewright.schema.cel.values import Uint

GATE: Final = "ShardedListAndWatch"

_FIELDS: dict[str, ShardField] = {"object.metadata.uid": "uid", "object.metadata.namespace": "namespace"}
_DIGITS = frozenset("0123456789abcdef")
_END = "0x10000000000000000"
# The numbers that cel-go's kinds of nodes have in its messages.
_KINDS: dict[type[Expr], int] = {
    Call: 1,
    Ident: 3,
    CreateList: 4,
    Literal: 5,
    CreateMap: 6,
    Select: 7,
    CreateStruct: 8,
}
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    Uint: "uint64",
    int: "int64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
}


class _InvalidSelectorError(ValueError):
    """A selector that is rejected, with kube-apiserver's reason."""


class _ShardRange(msgspec.Struct, frozen=True):
    """One call of `shardRange`, with its bounds as they were written."""

    path: str
    start: str
    end: str

    def __str__(self) -> str:
        return f"shardRange({self.path}, '{self.start}', '{self.end}')"


class ShardSelector:
    """The ranges that a request selects."""

    def __init__(self, by: ShardField, ranges: list[HashRange], text: str) -> None:
        self._by = by
        self._ranges = ranges
        self.text: str = text
        """The selector in normal form, as `shardInfo` has it."""

    def matches(self, record: Record) -> bool:
        """Return True if the object is in one of the ranges."""
        found = record.uid_hash if self._by == "uid" else shard_hash(record.key.rpartition("/")[0])
        return any(found in one for one in self._ranges)


def parse_shard_selector(text: str) -> ShardSelector:
    """Read a selector; raise StatusError with kube-apiserver's text for an invalid one."""
    try:
        found = _parsed(text.strip())
    except _InvalidSelectorError as error:
        raise StatusError.unknown(f"invalid shard selector: {error}") from None
    ranges = [HashRange(int(one.start, 16), int(one.end, 16)) for one in found]
    return ShardSelector(_FIELDS[found[0].path], ranges, " || ".join(map(str, found)))


def _parsed(text: str) -> list[_ShardRange]:
    if not text:
        raise _InvalidSelectorError(
            "empty shard selector is not allowed; omit the parameter for unfiltered lists"
        )
    try:
        tree = parse(text, plain=True)
    except CompileError as error:
        raise _InvalidSelectorError(f"CEL parse error: {error.issues[0].message}") from None
    found = _ranges(tree)
    for one in found[1:]:
        if one.path != found[0].path:
            first, second = problems.quoted(found[0].path), problems.quoted(one.path)
            raise _InvalidSelectorError(f"all shard ranges must use the same field, got {first} and {second}")
    return found


def _ranges(node: Expr) -> list[_ShardRange]:
    if not isinstance(node, Call):
        raise _InvalidSelectorError(
            f"unexpected expression kind {_KINDS[type(node)]}; expected shardRange() call or || operator"
        )
    if node.function == "_||_":
        return [found for part in node.args for found in _ranges(part)]
    if node.function != "shardRange":
        raise _InvalidSelectorError(
            f"unsupported function {problems.quoted(node.function)}; only shardRange() and || are allowed"
        )
    if len(node.args) != 3:
        raise _InvalidSelectorError(f"shardRange() requires exactly 3 arguments, got {len(node.args)}")
    path = _path(node.args[0])
    if path not in _FIELDS:
        raise _InvalidSelectorError(
            f"unsupported field path {problems.quoted(path)}; supported: {', '.join(_FIELDS)}"
        )
    start, end = _bound(node.args[1], "hexStart"), _bound(node.args[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise _InvalidSelectorError(f"shard range start {start} must be less than end {end}")
    return [_ShardRange(path, start, end)]


def _path(node: Expr) -> str:
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select):
        return f"{_path(node.operand)}.{node.field}"
    raise _InvalidSelectorError(
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), "
        f"got expression kind {_KINDS[type(node)]}"
    )


def _bound(node: Expr, name: str) -> str:
    if not isinstance(node, Literal):
        raise _InvalidSelectorError(
            f"{name} must be a string literal (e.g. '0xff'), got expression kind {_KINDS[type(node)]}"
        )
    text = node.value
    if not isinstance(text, str):
        raise _InvalidSelectorError(f"{name} must be a string literal, got {_GO_TYPES[type(node.value)]}")
    shown = problems.quoted(text)
    if not text.startswith("0x"):
        raise _InvalidSelectorError(f"{name} must have '0x' prefix, got {shown}")
    digits = text[2:]
    size = len(digits.encode())
    if not digits:
        raise _InvalidSelectorError(f"{name}: hex value is required after '0x'")
    if size > 17:
        raise _InvalidSelectorError(
            f"{name}: hex value too long ({size} chars, max 17): {problems.quoted(digits)}"
        )
    for sign in digits:
        if sign not in _DIGITS:
            raise _InvalidSelectorError(f"{name}: invalid hex character {problems.quoted(sign)} in {shown}")
    if size == 17 and text != _END:
        raise _InvalidSelectorError(f"{name}: 17-digit hex value must be '{_END}' (2^64), got {shown}")
    if size < 16:
        padded = problems.quoted(f"0x{digits:0>16}")
        raise _InvalidSelectorError(
            f"{name} must be a 0x-prefixed 16-digit hex value, got {shown} (did you mean {padded}?)"
        )
    return text
