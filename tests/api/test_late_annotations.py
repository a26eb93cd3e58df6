"""Declaring models where annotations are text."""

from __future__ import annotations

from typing import Annotated

import pytest

from kubewright.api import DeclarationError, Field, Model, Resource, decode, encode, field_info, field_types


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


def test_reads_types_of_the_function_it_stands_in() -> None:
    class Inner(Model):
        size: int = 0

    class Outer(Model):
        inner: Inner
        outer: Outer | None = None

    assert decode(Outer, b'{"inner":{"size":3},"outer":{"inner":{}}}') == Outer(
        inner=Inner(size=3), outer=Outer(inner=Inner())
    )


def test_refuses_at_once_what_it_can_read() -> None:
    with pytest.raises(DeclarationError, match=r"Bad\.part: set\[str\] cannot be carried"):

        class Bad(Model):
            part: set[str]


def test_refuses_late_what_is_never_defined() -> None:
    class Bad(Model):
        part: Nowhere  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    with pytest.raises(DeclarationError, match="Bad: name 'Nowhere' is not defined: define or import it in"):
        field_types(Bad)
    with pytest.raises(DeclarationError, match="Bad: name 'Nowhere' is not defined"):
        decode(Bad, b'{"part": 1}')


def test_makes_generics_concrete() -> None:
    assert field_types(Thing)["spec"] is Early
    assert Thing().status == Status()
