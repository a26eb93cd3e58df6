"""Read YAML bodies as the real server does: YAML 1.1 scalars, string keys, no runaway aliases."""

import copy
import math
import re
from typing import Any

import yaml
from yaml.scanner import ScannerError

from kubewright.devserver.wire.errors import DecodeError
from kubewright.devserver.wire.json_documents import parse_json
from kubewright.devserver.wire.values import MAX_DEPTH, TOO_DEEP, is_list, is_object

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = frozenset({".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
_STR = "tag:yaml.org,2002:str"
_MERGE = "<<"
_MAX_ALIASED = 100_000
_PREFIX = "yaml: "

# libyaml's parser where PyYAML was built with it; both have the same methods.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Parse the first document of a YAML body; also list repeated keys with their lines."""
    if body.lstrip()[:1] == b"{":
        try:
            return parse_json(body)
        except DecodeError:
            pass  # flow style that is no JSON
    reader = _Reader(body)
    return reader.read(), reader.repeated


class _Open:
    """A collection being read: its value, the key waiting for a value, what its anchor is called."""

    def __init__(self, value: Any, anchor: str | None, size_before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.size_before = size_before
        self.key: str | None = None


class _Reader:
    """Build plain values from parser events; collections lie on a list, so depth costs no stack."""

    def __init__(self, body: bytes) -> None:
        self._events = _Parser(body)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._aliased = 0
        self._result: Any = None
        self.repeated: list[str] = []

    def read(self) -> Any:
        """Return the first document's value."""
        try:
            while not isinstance(
                event := self._events.get_event(), yaml.StreamEndEvent | yaml.DocumentEndEvent
            ):
                self._take(event)
        except yaml.YAMLError as problem:
            raise DecodeError(_PREFIX + _described(problem)) from None
        finally:
            self._events.dispose()
        return self._result

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._add(value, event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._open) >= MAX_DEPTH:
                raise DecodeError(f"{_PREFIX}{TOO_DEEP} of {MAX_DEPTH}")
            empty: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._open.append(_Open(empty, event.anchor, self._count))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._aliased_value(str(event.anchor)), event)

    def _close(self, event: yaml.Event) -> None:
        done = self._open.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._count - done.size_before + 1)
        self._add(done.value, event)

    def _aliased_value(self, anchor: str) -> Any:
        if any(opened.anchor == anchor for opened in self._open):
            raise DecodeError(f"{_PREFIX}anchor '{anchor}' value contains itself")
        if anchor not in self._anchors:
            raise DecodeError(f"{_PREFIX}unknown anchor '{anchor}' referenced")
        value, size = self._anchors[anchor]
        self._count += size
        self._aliased += size
        if self._aliased > _MAX_ALIASED:
            raise DecodeError(f"{_PREFIX}document contains excessive aliasing")
        return copy.deepcopy(value)

    def _add(self, value: Any, event: yaml.Event) -> None:
        self._count += 1
        if not self._open:
            self._result = value
            return
        parent = self._open[-1]
        if is_list(parent.value):
            parent.value.append(value)
        elif parent.key is None:
            parent.key = _MERGE if value == _MERGE and _is_plain(event) else self._key(value)
            if parent.key in parent.value:
                line = _line(event.start_mark)
                self.repeated.append(f'line {line}: key "{parent.key}" already set in map')
        else:
            key, parent.key = parent.key, None
            if key == _MERGE:
                # As the real server's library has it: over what stands before, under what follows.
                for source in self._merged(value):
                    parent.value.update(source)
            else:
                parent.value[key] = value

    def _merged(self, value: Any) -> list[Any]:
        """List the maps to merge, the one that wins last."""
        sources = value[::-1] if is_list(value) else [value]
        if not all(is_object(source) for source in sources):
            raise DecodeError(f"{_PREFIX}map merge requires map or sequence of maps as the value")
        return sources

    def _key(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return f"{value:g}"
        if value is None:
            raise DecodeError("unsupported map key of type: %!s(<nil>), key: <nil>")
        raise DecodeError(f"{_PREFIX}invalid map key: {value!r}")


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
        raise DecodeError(f"json: unsupported value: {text}")
    return text


def _integer(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        digits = "0o" + digits[1:]
    return sign * int(digits[:100], 0)


def _line(mark: Any) -> int:
    return mark.line + 1 if mark is not None else 0


def _described(problem: yaml.YAMLError) -> str:
    """Say the problem as the Go port of the same parser does; the first line goes without a number."""
    if not isinstance(problem, yaml.MarkedYAMLError):
        return str(getattr(problem, "reason", problem))
    line = problem.problem_mark.line if problem.problem_mark is not None else 0
    if line and isinstance(problem, ScannerError):
        line += 1
    elif not line and problem.context_mark is not None:
        line = problem.context_mark.line
    return f"line {line}: {problem.problem}" if line else str(problem.problem)
