"""Declarations that the API server would reject raise a one-line error that names the field."""

import types
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, cast

import pytest

from kubewright.api import DeclarationError, Field, Model, Object, Resource, Rule
from kubewright.schema import crd, structural


class Status(Model):
    done: bool = False


def _kind(spec: type[Model], **keywords: Any) -> type[Object]:
    class Thing(Resource[spec, Status], group="ex.io", version="v1", **keywords): ...

    return Thing


def low() -> type[Object]:
    class Low(Model):
        size: Annotated[int, Field(ge=5)] = 1

    return _kind(Low)


def large() -> type[Object]:
    class Large(Model):
        size: int = 2**40

    return _kind(Large)


def mistyped() -> type[Object]:
    class Mistyped(Model):
        text: str = 5  # pyright: ignore[reportAssignmentType] (the mistake)

    return _kind(Mistyped)


def listed() -> type[Object]:
    class Item(Model):
        size: Annotated[int, Field(le=3)] = 4

    class Listed(Model):
        more: list[list[Item]] = []

    return _kind(Listed)


def endless() -> type[Object]:
    class Endless(Model):
        ratio: float = float("inf")

    return _kind(Endless)


def timeless() -> type[Object]:
    class Timeless(Model):
        when: datetime = datetime(2024, 1, 1)  # noqa: DTZ001 (the mistake)

    return _kind(Timeless)


def misruled() -> type[Object]:
    class Misruled(Model, rules=[Rule("self.nope > 1")]):
        size: int

    return _kind(Misruled)


def costly() -> type[Object]:
    class Costly(Model):
        names: Annotated[list[str], Field(rules=[Rule("self.all(x, self.all(y, x == y))")])] = []

    return _kind(Costly)


def unapproved() -> type[Object]:
    class Foo(Object, group="apps.k8s.io", version="v1"): ...

    return Foo


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Annotated[int, Field(ge=5, lt=1)], "ge=5 is greater than lt=1: no value satisfies both"),
        (Annotated[str, Field(min_length=3, max_length=2)], "min_length=3 is greater than max_length=2: no value satisfies both"),
        (Annotated[int, Field(ge=cast(Any, "x"))], "ge='x' is not a number"),
        (Annotated[str, Field(rules=cast(Any, ["self != ''"]))], "rules=[\"self != ''\"]: expected Rule objects: write Rule(\"self != ''\")"),
        (Annotated[str, Field(enum=["a", 1])], "enum: 1 is not a string: use values of the field's type"),
        (Annotated[int, Field(enum=[True])], "enum: True is not a number: use values of the field's type"),
    ],
)  # fmt: skip
def test_rejects_constraints_that_no_value_satisfies(annotation: Any, text: str) -> None:
    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(__annotations__={"part": annotation}, __module__=__name__)

    with pytest.raises(DeclarationError) as caught:
        structural(types.new_class("Odd", (Model,), exec_body=fill))
    assert str(caught.value) == f"Odd.part: {text}"


def test_rejects_restricted_keys_of_a_map_because_a_schema_cannot_have_them() -> None:
    restricted = dict[Annotated[str, Field(pattern="^a")], int]

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(__annotations__={"part": restricted}, __module__=__name__)

    with pytest.raises(
        DeclarationError, match=r"^Odd\.part: keys cannot be restricted: use dict\[str, \.\.\.\] and a"
    ):
        structural(types.new_class("Odd", (Model,), exec_body=fill))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (low, "Thing: spec.size.default: Invalid value: 1: "),
        (large, "Thing: spec.size.default: Invalid value: "),
        (mistyped, 'Thing: spec.text.default: Invalid value: "integer": '),
        (listed, "Thing: spec.more.items.items.size.default: Invalid value: 4: "),
        (endless, "Endless.ratio: default inf: not a JSON number: use a finite number"),
        (timeless, "Timeless.when: default 2024-01-01T00:00:00 has no time zone: use datetime.now(UTC)"),
        (misruled, "Thing: spec: the rule 'self.nope > 1' does not compile: ERROR: <input>:1:5: undefined field 'nope'"),
        (costly, "Thing: spec.names.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget"),
        (unapproved, "Foo: metadata.annotations[api-approved.kubernetes.io]: Required value: "),
    ],
)  # fmt: skip
def test_rejects_declarations_that_the_server_would_reject(
    make: Callable[[], type[Object]], text: str
) -> None:
    with pytest.raises(DeclarationError) as caught:
        crd(make())
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
