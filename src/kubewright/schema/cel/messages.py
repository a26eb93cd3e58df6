"""Object literals with a type: `Object{spec: Object.spec{replicas: 3}}`, `JSONPatch{op: "remove", path: "/spec"}`."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.frames import Frame, Step
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import DYN, STRING, Type, struct
from kubewright.schema.cel.values import Duration, Message, Timestamp, Value, type_name
from kubewright.schema.cel.wellknown import WELL_KNOWN, WellKnown

MESSAGE_COST = 40
_EXACT = 2**53 - 1


@dataclass(frozen=True, slots=True)
class MessageType:
    """A type that expressions may make objects of; without `fields` any are allowed, and so are types below its name."""

    name: str
    fields: Mapping[str, Type] | None = None

    @property
    def type(self) -> Type:
        """Return the type that expressions know it by."""
        return struct(self.name)


OBJECT = MessageType("Object")
"""An object of the kind in hand; `Object.spec` is the type of its field `spec`, whatever that holds."""

JSON_PATCH = MessageType("JSONPatch", {"op": STRING, "path": STRING, "from": STRING, "value": DYN})
"""One operation of a JSON patch."""


class MessageTypes:
    """The types of an environment that expressions may make objects of."""

    def __init__(self, types: Iterable[MessageType] = ()) -> None:
        self._types = {kind.name: kind for kind in types}

    def find(self, name: str) -> MessageType | WellKnown | None:
        """Return a type by its name; any name below that of an open type is an open type itself."""
        if name in WELL_KNOWN:
            return WELL_KNOWN[name]
        root = self._types.get(name.partition(".")[0])
        if root is not None and root.fields is None:
            return MessageType(name)
        return self._types.get(name)


def mutation_library() -> Library:
    """Return the functions that mutating admission policies have beyond others."""
    library = Library()
    library.add("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped_key)
    return library


def _escaped_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def creation(kind: MessageType | WellKnown, fields: list[tuple[str, Step, bool]]) -> Step:
    """Make an object of a type from its fields: name, value, and whether the value may be absent."""
    make = kind.create if isinstance(kind, WellKnown) else _maker(kind)

    def step(frame: Frame) -> Value:
        content: dict[str, Any] = {}
        for name, value_step, optional in fields:
            value = value_step(frame)
            if optional:
                if not value.present:
                    content.pop(name, None)
                    continue
                value = value.value
            content[name] = value
        frame.charge(MESSAGE_COST)
        return make(content)

    return step


def _maker(kind: MessageType) -> Callable[[dict[str, Any]], Message]:
    texts = frozenset(name for name, field in (kind.fields or {}).items() if field == STRING)

    def make(content: dict[str, Any]) -> Message:
        for name in texts & content.keys():
            if not isinstance(content[name], str):
                shown = type_name(content[name])
                raise EvaluationError(f"unexpected type {shown} for {kind.name}Type '{name}' field")
        return Message(kind.name, content, texts)

    return make


def misplaced(message: Message) -> list[str]:
    """Tell which objects inside an object have another type than their place asks for: `Object.spec` under `spec`."""
    return list(_misplaced(message, message.type_name))


def _misplaced(value: Value, expected: str) -> Iterator[str]:
    if isinstance(value, Message):
        if value.type_name != expected:
            yield (
                f'unexpected type name "{value.type_name}", expected "{expected}", '
                "which matches field name path from root Object type"
            )
        for name, item in value.items():
            yield from _misplaced(item, f"{expected}.{name}")
    elif isinstance(value, dict):
        for item in value.values():
            yield from _misplaced(item, expected)
    elif isinstance(value, list):
        for item in value:
            yield from _misplaced(item, expected)


def to_json(value: Value) -> Any:
    """Return a value as JSON has it: plain dicts and lists, times and bytes as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        # A JSON number is exact up to here; the API server writes greater ones as text.
        return int(value) if -_EXACT <= value <= _EXACT else str(int(value))
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp | Duration):
        return str(value)
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): to_json(item) for key, item in value.items()}
    raise EvaluationError(f"a value of type {type_name(value)} has no form in JSON")


def _key(key: Value) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
