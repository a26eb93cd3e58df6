"""Annotations as people write them: those that can be are read, the others refused with the way out."""

import enum
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import pytest

from kubewright.api import DeclarationError, Duration, Field, Model, decode, encode, field_types
from kubewright.schema import structural

T = TypeVar("T")
UserId = NewType("UserId", str)
Strict = NewType("Strict", UserId)
Port = Annotated[int, Field(ge=1)]


class Box(Model, Generic[T]):
    """A value and more of them."""

    value: T
    others: list[T] = []
    maybe: Annotated[T | None, Field(name="Maybe")] = None
    label: str = "plain"


class Ports(Box[Port]):
    first: bool = False


@dataclass
class Plain:
    size: int


class Typed(TypedDict):
    size: int


class Named(NamedTuple):
    size: int


class Options(enum.Flag):
    READ = 1
    WRITE = 2


def _refusal(annotation: Any, default: Any = ...) -> str:
    body: dict[str, Any] = {"__annotations__": {"part": annotation}, "__module__": __name__}
    if default is not ...:
        body["part"] = default
    with pytest.raises(DeclarationError) as caught:
        types.new_class("Bad", (Model,), exec_body=lambda namespace: namespace.update(body))
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Decimal, "Decimal cannot be carried: use Quantity, which is exact, or float"),
        (time, 'time cannot be carried: use str, with Field(pattern="...") for its form'),
        (Sequence[str], "collections.abc.Sequence[str] cannot be carried: use list[...]"),
        (Mapping[str, str], "collections.abc.Mapping[str, str] cannot be carried: use dict[str, ...]"),
        (Plain, "Plain cannot be carried: derive it from Model"),
        (Typed, "Typed cannot be carried: derive it from Model"),
        (Named, "Named cannot be carried: derive it from Model"),
        (Options, "Options cannot be carried: flags are joined: use list[...] of an Enum"),
        (Box[int], "Box[int] cannot be carried: give it a name: class IntBox(Box[...])"),
        (None, "None alone has no value: use X | None"),
        (Literal["a", None], 'None is no value of a Literal: use Literal[...] | None'),
        (int | float, "the union int | float has no structural schema, only X | None and int | str have: use float"),
    ],
)  # fmt: skip
def test_unsupported_types_are_refused_with_a_fix(annotation: Any, text: str) -> None:
    said = _refusal(annotation).removeprefix("Bad.part: ").replace(f"{__name__}.", "")
    assert said == text


def test_field_metadata_is_not_the_default_value() -> None:
    said = _refusal(int, Field(ge=1))
    assert said == "Bad.part: Field(...) is no default: write part: Annotated[int, Field(...)]"


def test_errors_name_both_fields_of_one_wire_name() -> None:
    with pytest.raises(DeclarationError) as caught:

        class Bad(Model):  # pyright: ignore[reportUnusedClass] (refused)
            some_name: int = 1
            someName: int = 2  # noqa: N815 (the mistake)

    text = 'Bad: some_name and someName are both "someName" on the wire: give one Field(name="...")'
    assert str(caught.value) == text


def test_a_private_name_needs_a_wire_name() -> None:
    with pytest.raises(DeclarationError) as caught:

        class Bad(Model):  # pyright: ignore[reportUnusedClass] (refused)
            _hidden: int = 1

    text = 'Bad._hidden: no wire name follows from it: rename it, or use Field(name="...")'
    assert str(caught.value) == text

    class Good(Model):
        _id: Annotated[str, Field(name="_id")] = ""

    assert decode(Good, b'{"_id":"a"}') == Good(_id="a")


def test_a_new_type_is_treated_as_its_supertype() -> None:
    class User(Model):
        id: Strict
        friends: list[UserId] = []

    assert structural(User)["properties"] == {
        "id": {"type": "string"},
        "friends": {"type": "array", "items": {"type": "string"}},
    }
    assert decode(User, b'{"id":"a","friends":["b"]}') == User(id=Strict(UserId("a")), friends=[UserId("b")])


def test_a_generic_model_is_made_concrete_by_a_class_of_its_own() -> None:
    assert field_types(Ports) == {
        "value": Port,
        "others": list[Port],
        "maybe": Annotated[Port | None, Field(name="Maybe")],
        "label": str,
        "first": bool,
    }
    ports = Ports(value=80, others=[81], maybe=82)
    assert encode(ports) == b'{"value":80,"others":[81],"Maybe":82,"label":"plain","first":false}'
    assert decode(Ports, encode(ports)) == ports
    assert Ports(value=1).others is not Ports(value=1).others
    schema = structural(Ports)
    assert schema["required"] == ["value"]
    assert schema["properties"]["others"]["items"] == {"type": "integer", "format": "int32", "minimum": 1}
    assert schema["properties"]["label"]["default"] == "plain"


def test_a_duration_is_created_from_text() -> None:
    assert Duration("1h30m") == Duration(hours=1, minutes=30)
    assert Duration("90s").to_wire() == "1m30s"
    with pytest.raises(ValueError, match='invalid duration "soon"'):
        Duration("soon")
