"""Read YAML and JSON documents as Kubernetes reads them.

`read_yaml` resolves scalars of YAML 1.1 as Go's library does and makes every key text. PyYAML's own loaders read other
values (`22:22` as a number, `2024-01-01` as a date), follow any depth of nesting and any expansion of aliases: a file
of a few lines could crash the process or fill the memory. So documents are built here from the parser's events.
Depth, and the nodes and characters that aliases add, are counted before anything is built from them.
"""

import copy
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml.scanner import ScannerError

MAX_DEPTH = 200
"""Encoders recurse into every value on Python's call stack, so this is far below Go's 10,000."""
MAX_ALIASED_NODES = 100_000
MAX_ALIASED_CHARACTERS = 10_000_000
"""Far above the size of a request; the limit of nodes does not help if a long text is repeated."""

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = frozenset({".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
_STR = "tag:yaml.org,2002:str"
_MERGE = "<<"
_TOO_DEEP = f"exceeded max depth of {MAX_DEPTH}"

# libyaml's parser where PyYAML was built with it; both have the same methods.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(ValueError):
    """A text is not YAML or JSON that Kubernetes reads; `line` and `column` start at 1, and are 0 if unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class YamlDocument(NamedTuple):
    """One document of a stream; `repeated` lists its repeated keys, of which the last one won."""

    value: Any
    repeated: list[str]


def read_yaml(text: bytes | str) -> Iterator[YamlDocument]:
    """Yield the documents of a YAML stream; raise DocumentError at the first that cannot be read."""
    return _Reader(text).documents()


def read_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; raise DocumentError if it is invalid, nested too deeply, or repeats a key."""
    try:
        value = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise DocumentError(str(error), error.lineno, error.colno) from None
    except UnicodeDecodeError as error:
        raise DocumentError(str(error)) from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    if depth_of(value) > MAX_DEPTH:
        raise DocumentError(_TOO_DEEP)
    return value


def depth_of(value: object) -> int:
    """Count how deep the collections of a JSON value are nested."""
    depth, level = 0, _collections([value])
    while level:
        depth += 1
        level = [inner for item in level for inner in _collections(_members(item))]
    return depth


def _members(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _collections(values: list[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted(key for key in found if keys.count(key) > 1)
        raise DocumentError(", ".join(f'key "{key}" already set in object' for key in repeated))
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise DocumentError(f"unsupported value: {constant}")


class _Anchored(NamedTuple):
    """The value of an anchor and what an alias of it adds to the document."""

    value: Any
    nodes: int
    characters: int
    depth: int


class _Open:
    """A collection that is being read, with the key that waits for its value."""

    def __init__(
        self, value: Any, line: int, anchor: str | None, nodes_before: int, characters_before: int
    ) -> None:
        self.value = value
        self.line = line
        self.is_list = isinstance(value, list)
        self.anchor = anchor
        self.nodes_before = nodes_before
        self.characters_before = characters_before
        self.depth = 1
        """How many collections are nested in it, itself included, as far as it was read."""
        self.key: str | None = None


class _Reader:
    """Build plain values from parser events; open collections are kept in a list, so nesting uses no call stack."""

    def __init__(self, text: bytes | str) -> None:
        self._events = _Parser(text)
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._characters = 0
        self._aliased_nodes = 0
        self._aliased_characters = 0
        self._result: Any = None
        self._repeated: list[str] = []

    def documents(self) -> Iterator[YamlDocument]:
        try:
            while not isinstance(event := self._events.get_event(), yaml.StreamEndEvent):
                if isinstance(event, yaml.DocumentEndEvent):
                    yield YamlDocument(self._result, self._repeated)
                    # The limits for aliases apply to all documents together; anchors are per document.
                    self._anchors, self._result, self._repeated = {}, None, []
                else:
                    self._take(event)
        except yaml.YAMLError as problem:
            raise _explained(problem) from None
        finally:
            self._events.dispose()

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = _Anchored(value, 1, len(event.value), 0)
            self._characters += len(event.value)
            self._add(value, 0, _line(event), event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._open) >= MAX_DEPTH:
                raise _too_deep(event)
            empty: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._open.append(_Open(empty, _line(event), event.anchor, self._nodes, self._characters))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            found = self._expanded(str(event.anchor), event)
            self._add(copy.deepcopy(found.value), found.depth, _line(event), event)

    def _close(self, event: yaml.Event) -> None:
        done = self._open.pop()
        if done.anchor:
            self._anchors[done.anchor] = _Anchored(
                done.value,
                self._nodes - done.nodes_before + 1,
                self._characters - done.characters_before,
                done.depth,
            )
        self._add(done.value, done.depth, done.line, event)

    def _expanded(self, anchor: str, event: yaml.Event) -> _Anchored:
        if any(opened.anchor == anchor for opened in self._open):
            raise _error(f"anchor '{anchor}' value contains itself", event)
        found = self._anchors.get(anchor)
        if found is None:
            raise _error(f"unknown anchor '{anchor}' referenced", event)
        if len(self._open) + found.depth > MAX_DEPTH:
            raise _too_deep(event)
        self._nodes += found.nodes
        self._characters += found.characters
        self._aliased_nodes += found.nodes
        self._aliased_characters += found.characters
        if self._aliased_nodes > MAX_ALIASED_NODES or self._aliased_characters > MAX_ALIASED_CHARACTERS:
            raise _error("document contains excessive aliasing", event)
        return found

    def _add(self, value: Any, depth: int, line: int, event: yaml.Event) -> None:
        self._nodes += 1
        if not self._open:
            self._result = value
            return
        parent = self._open[-1]
        parent.depth = max(parent.depth, depth + 1)
        if parent.is_list:
            parent.value.append(value)
        elif parent.key is None:
            parent.key = _MERGE if value == _MERGE and _is_plain(event) else _key(value, event)
        else:
            key, parent.key = parent.key, None
            if key == _MERGE:
                # As in Go's library: it overrides the keys before it, and keys after it override it.
                for source in _merged(value, event):
                    parent.value.update(source)
                return
            # As in Go's library: a repeated key is reported after those inside its value, at the line of the value.
            if key in parent.value:
                self._repeated.append(f'line {line}: key "{key}" already set in map')
            parent.value[key] = value


def _merged(value: Any, event: yaml.Event) -> list[Any]:
    """Return the maps to merge, the one that wins last."""
    sources: list[Any] = list(reversed(value)) if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownArgumentType]
    if not all(isinstance(source, dict) for source in sources):
        raise _error("map merge requires map or sequence of maps as the value", event)
    return sources


def _key(value: Any, event: yaml.Event) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        raise _error("unsupported map key of type: %!s(<nil>), key: <nil>", event)
    raise _error(f"invalid map key: {value!r}", event)


def _is_plain(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and bool(event.implicit[0])


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = event.value
    if event.tag == _STR or (event.tag in {None, "!"} and not event.implicit[0]):
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "")
    if _INTEGER.fullmatch(plain) and -(1 << 63) <= (number := _integer(plain)) < 1 << 64:
        return number
    if _FLOAT.fullmatch(plain) and math.isfinite(number := float(plain)):
        return number
    if text.lstrip("+-") in _NOT_FINITE:
        raise _error(f"unsupported value: {text}", event)
    return text


def _integer(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        digits = "0o" + digits[1:]
    return sign * int(digits[:100], 0)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


def _error(message: str, event: yaml.Event) -> DocumentError:
    mark = event.start_mark
    return (
        DocumentError(message, mark.line + 1, mark.column + 1) if mark is not None else DocumentError(message)
    )


def _too_deep(event: yaml.Event) -> DocumentError:
    return _error(_TOO_DEEP, event)


def _explained(problem: yaml.YAMLError) -> DocumentError:
    """Return the parser's error in the words of its Go port, which leaves the first line without a number."""
    if not isinstance(problem, yaml.MarkedYAMLError):
        return DocumentError(str(getattr(problem, "reason", problem)))
    mark = problem.problem_mark
    line = mark.line if mark is not None else 0
    if line and isinstance(problem, ScannerError):
        line += 1
    elif not line and problem.context_mark is not None:
        line = problem.context_mark.line
    text = f"line {line}: {problem.problem}" if line else str(problem.problem)
    return DocumentError(text, mark.line + 1, mark.column + 1) if mark is not None else DocumentError(text)
