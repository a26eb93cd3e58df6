"""Declaring models where annotations are text."""

from __future__ import annotations

from typing import Annotated

import pytest

from kubewright.api import (
    DeclarationError,
    Field,
    Meta,
    Model,
    Resource,
    check_types,
    decode,
    encode,
    field_info,
    field_types,
)
from kubewright.controller import Context, Controller


class Early(Model):
    healthy: Annotated[bool | None, Field(name="Healthy")] = None
    later: Annotated[Later | None, Field(name="LATER")] = None


class Later(Model):
    note: str = ""


class Status(Model):
    ready: int = 0


class Thing(Resource[Early, Status], group="example.com", version="v1"):
    """A thing."""


def test_reads_wire_names_even_beside_names_that_come_later() -> None:
    early = Early(healthy=True, later=Later(note="x"))
    assert encode(early) == b'{"Healthy":true,"LATER":{"note":"x"}}'
    assert decode(Early, encode(early)) == early
    assert field_info(Early)["later"].name == "LATER"


def test_string_annotations_are_resolved_in_the_enclosing_function() -> None:
    class Inner(Model):
        size: int = 0

    class Outer(Model):
        inner: Inner
        outer: Outer | None = None

    assert decode(Outer, b'{"inner":{"size":3},"outer":{"inner":{}}}') == Outer(
        inner=Inner(size=3), outer=Outer(inner=Inner())
    )


def test_resolvable_annotations_are_checked_at_once() -> None:
    with pytest.raises(DeclarationError, match=r"Bad\.part: set\[str\] cannot be carried"):

        class Bad(Model):
            part: set[str]


def test_annotations_that_are_never_defined_are_refused_when_used() -> None:
    class Bad(Model):
        part: Nowhere  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    with pytest.raises(DeclarationError, match="Bad: name 'Nowhere' is not defined: define or import it in"):
        field_types(Bad)
    with pytest.raises(DeclarationError, match="Bad: name 'Nowhere' is not defined"):
        decode(Bad, b'{"part": 1}')


def test_generic_models_become_concrete() -> None:
    assert field_types(Thing)["spec"] is Early
    assert Thing().status == Status()


class Port(Model):
    opened: Gate | None = None
    number: int


class Door(Resource[Port, Status], group="example.com", version="v1"):
    """A door whose spec names a class that comes later."""


class Gate(Model):
    wide: bool = False


class Hidden(Model):
    names: list[Listed] = []


class Hiding(Model):
    inner: Hidden = Hidden()


Listed = set[str]


class Hider(Resource[Hiding, Status], group="example.com", version="v1"):
    """A kind that hides a type which cannot be."""


class Lost(Model):
    part: Nowhere | None = None  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


class Loser(Resource[Lost, Status], group="example.com", version="v1"):
    """A kind that names what never comes."""


def test_a_kind_may_be_defined_before_the_classes_it_names() -> None:
    door = Door(Meta("a"), spec=Port(opened=Gate(wide=True), number=1))
    assert decode(Door, encode(door)) == door
    check_types(Door)


def test_unsupported_types_in_string_annotations_are_refused_when_the_kind_is_used() -> None:
    with pytest.raises(DeclarationError, match=r"Hidden\.names: set\[str\] cannot be carried: use list"):
        check_types(Hider)
    with pytest.raises(DeclarationError, match="Lost: name 'Nowhere' is not defined: define or import it in"):
        check_types(Loser)


def test_a_controller_refuses_unsupported_types_in_string_annotations() -> None:
    async def reconcile(hider: Hider, ctx: Context) -> None: ...

    with pytest.raises(DeclarationError, match=r"Hidden\.names: set\[str\] cannot be carried: use list"):
        Controller(Hider, reconcile)
