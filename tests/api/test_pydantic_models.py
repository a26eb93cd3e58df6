"""Pydantic models as spec and status: their schema, reading and writing, and what is refused."""

import enum
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field
from pydantic.alias_generators import to_camel

import kubewright as kw
from kubewright.api import DeclarationError, DecodeError, decode, from_wire, to_wire, typed_diff
from kubewright.schema import crd, structural


class CamelModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(CamelModel):
    """A part."""

    part_name: str = Field(min_length=1)
    weight: float = Field(gt=0, lt=5)
    note: str | None = None


class RackSpec(CamelModel):
    """What a rack should be."""

    height: int = Field(ge=1, le=48, description="In units.")
    parts: list[Part] = []
    main_part: Part | None = None
    colour: Colour = Colour.RED
    mode: Literal["fixed"] = "fixed"
    port: int | str = 80
    labels: dict[str, str] = {}
    settings: dict[str, Any] = {}
    since: datetime | None = None


class RackStatus(CamelModel):
    free_units: int = 0


class Rack(kw.Resource[RackSpec, RackStatus], group="racks.example.com", version="v1"):
    """A rack."""


def rack(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"apiVersion": "racks.example.com/v1", "kind": "Rack", "metadata": {"name": "one"}}
    return {**head, "spec": spec, **more}


PART = {
    "type": "object",
    "description": "A part.",
    "required": ["partName", "weight"],
    "properties": {
        "partName": {"type": "string", "minLength": 1},
        "weight": {
            "type": "number",
            "format": "double",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 5,
            "exclusiveMaximum": True,
        },
        "note": {"type": "string", "nullable": True},
    },
}


def test_the_schema_is_structural_with_references_inlined() -> None:
    schema = structural(Rack)
    assert schema["required"] == ["spec"]
    assert schema["properties"]["status"] == {
        "type": "object",
        "properties": {"freeUnits": {"type": "integer", "format": "int64"}},
    }
    assert schema["properties"]["spec"] == {
        "type": "object",
        "description": "What a rack should be.",
        "required": ["height"],
        "properties": {
            "height": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 48, "description": "In units."},
            "parts": {"type": "array", "items": PART},
            "mainPart": {**PART, "nullable": True},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "mode": {"type": "string", "enum": ["fixed"], "default": "fixed"},
            "port": {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "default": 80,
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "settings": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "since": {"type": "string", "format": "date-time", "nullable": True},
        },
    }  # fmt: skip
    crd(Rack)


def test_kubernetes_keywords_pass_through() -> None:
    class Spec(BaseModel):
        names: list[str] = Field([], json_schema_extra={"x-kubernetes-list-type": "set"})

    class Shelf(kw.Resource[Spec, RackStatus], group="racks.example.com", version="v1"):
        """A shelf."""

    names = structural(Shelf)["properties"]["spec"]["properties"]["names"]
    assert names == {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    crd(Shelf)


def test_the_spec_is_the_validated_model() -> None:
    read = decode(
        Rack, json.dumps(rack({"height": 2, "colour": "blue", "parts": [{"partName": "a", "weight": 1}]}))
    )
    assert isinstance(read.spec, RackSpec)
    assert read.spec.colour is Colour.BLUE
    assert read.spec.parts[0].part_name == "a"
    assert read.status == RackStatus()


@pytest.mark.parametrize(
    "value",
    [
        rack({"height": 2}),
        rack({"height": 2, "colour": "red", "mode": "fixed", "port": "http", "parts": []}),
        rack({"height": 2, "mainPart": None, "since": "2026-01-02T03:04:05Z"}),
        rack({"height": 2, "settings": {"a": [None, {"b": 1}]}}, status={"freeUnits": 0}),
    ],
)
def test_an_object_is_the_same_after_it_was_read_and_written(value: dict[str, Any]) -> None:
    assert to_wire(from_wire(Rack, value)) == value


def test_a_default_that_was_changed_in_place_is_written() -> None:
    made = Rack(kw.Meta("one"), spec=RackSpec(height=2))
    assert to_wire(made)["spec"] == {"height": 2}
    made.spec.labels["a"] = "b"
    made.spec.parts.append(Part(part_name="fan", weight=1))
    assert to_wire(made)["spec"] == {
        "height": 2,
        "labels": {"a": "b"},
        "parts": [{"partName": "fan", "weight": 1.0}],
    }


def test_a_difference_leaves_unknown_fields_alone() -> None:
    parts = [{"partName": "a", "weight": 1.0, "unknown": 1}, {"partName": "b", "weight": 2.0, "unknown": 2}]
    raw = rack({"height": 2, "unknown": {"x": 1}, "parts": parts})
    before, after = from_wire(Rack, raw), from_wire(Rack, raw)
    after.spec.height = 3
    after.spec.parts[1].weight = 4
    assert typed_diff(before, after, raw) == [
        {"op": "replace", "path": "/spec/height", "value": 3},
        {"op": "replace", "path": "/spec/parts/1/weight", "value": 4.0},
    ]


@pytest.mark.parametrize(
    ("spec", "message", "path"),
    [
        ({"height": 99}, "Rack: spec.height: input should be less than or equal to 48", "spec.height"),
        ({}, "Rack: spec.height: field required", "spec.height"),
        (
            {"height": 1, "parts": [{"partName": "a", "weight": 9}]},
            "Rack: spec.parts[0].weight: input should be less than 5",
            "spec.parts[0].weight",
        ),
        (
            {"height": "secret", "colour": "secret"},
            "Rack: spec.height: input should be a valid integer, unable to parse string as an integer (and 1 more)",
            "spec.height",
        ),
    ],
)
def test_an_invalid_object_is_a_decode_error_with_its_field(
    spec: dict[str, Any], message: str, path: str
) -> None:
    with pytest.raises(DecodeError) as refused:
        decode(Rack, json.dumps(rack(spec)))
    assert str(refused.value) == message
    assert refused.value.path == path


class Tree(BaseModel):
    children: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def make_kind(field: Any) -> None:
    class Spec(BaseModel):
        inner: field

    class Odd(kw.Resource[Spec, RackStatus], group="racks.example.com", version="v1"):
        """Has a field without a structural schema."""


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (list[Tree], r"Odd\.spec\.inner\[\]\.children\[\]: Tree contains itself"),
        (int | float, r"Odd\.spec\.inner: the union integer \| number has no structural schema"),
        (Cat | Dog, r"Odd\.spec\.inner: the union Cat \| Dog has no structural schema"),
        (tuple[int, str], r"Odd\.spec\.inner: a tuple has no structural schema: use list"),
        (set[str], r"Odd\.spec\.inner: a set has no order: use list"),
        (dict[Literal["a"], int], r"Odd\.spec\.inner: keys cannot be restricted"),
        (Literal["a", 1], r"Odd\.spec\.inner: the values of an enumeration must all be of one type"),
        (Callable[[], int], r"Odd\.spec: Spec has no JSON schema: "),
        (None, r"Odd\.spec\.inner: type null is not allowed"),
    ],
)
def test_schemas_that_are_not_structural_are_refused_when_the_class_is_created(
    field: Any, message: str
) -> None:
    with pytest.raises(DeclarationError, match=rf"^{message}"):
        make_kind(field)


def test_fields_with_different_aliases_for_reading_and_writing_are_refused() -> None:
    class Renamed(BaseModel):
        size: int = Field(1, serialization_alias="length")

    class Computed(BaseModel):
        size: int = 1

        @computed_field
        def double(self) -> int:
            return 2 * self.size

    with pytest.raises(
        DeclarationError, match=r"^Odd\.spec\.inner\.length is written but not read: use alias="
    ):
        make_kind(Renamed)
    with pytest.raises(DeclarationError, match=r"^Odd\.spec\.inner\.double is written but not read"):
        make_kind(Computed)


def test_a_pydantic_model_is_refused_inside_a_model() -> None:
    with pytest.raises(
        DeclarationError, match=r"Outer\.part: Part cannot be carried: .*only be the spec or status"
    ):

        class Outer(kw.Model):  # pyright: ignore[reportUnusedClass]
            part: Part


def test_a_status_must_have_defaults() -> None:
    with pytest.raises(DeclarationError, match=r"Odd\.status: Part\.part_name has no default"):

        class Odd(kw.Resource[RackSpec, Part], group="racks.example.com", version="v1"):  # pyright: ignore[reportUnusedClass]
            """Starts with a status that cannot be."""


def test_paths_of_columns_are_checked() -> None:
    with pytest.raises(DeclarationError, match=r"has no field 'partNam': did you mean 'partName'\?"):

        class Odd(  # pyright: ignore[reportUnusedClass]
            kw.Resource[RackSpec, RackStatus],
            group="racks.example.com",
            version="v1",
            columns=[kw.Column("Part", ".spec.parts[0].partNam")],
        ):
            """Has a typo."""


def test_each_object_has_a_default_of_its_own() -> None:
    class Shelf(kw.Object, group="racks.example.com", version="v1"):
        spec: RackSpec
        status: RackStatus = RackStatus()

    first, second = (Shelf(spec=RackSpec(height=1)) for _ in range(2))
    first.status.free_units = 3
    assert second.status.free_units == 0


def test_kubewright_does_not_import_pydantic() -> None:
    code = (
        "import sys, kubewright as kw, kubewright.cli.app, kubewright.testing\n"
        "class S(kw.Model): size: int = 1\n"
        "class K(kw.Resource[S, S], group='a.example.com', version='v1'): pass\n"
        "from kubewright.schema import crd; crd(K)\n"
        "from kubewright.api import decode, encode\n"
        'encode(decode(K, b\'{"spec": {"size": 2}}\'))\n'
        "assert not [name for name in sys.modules if name.startswith('pydantic')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_index_finds_objects_by_a_path_into_a_pydantic_model() -> None:
    spec = RackSpec(height=2, parts=[Part(part_name="fan", weight=1), Part(part_name="disk", weight=1)])
    found = Rack(kw.Meta("one"), spec=spec)
    assert list(kw.Index(Rack, "spec.parts[*].partName").values(found)) == ["fan", "disk"]
    assert list(kw.Index(Rack, "spec.mainPart.partName").values(found)) == []
    with pytest.raises(DeclarationError, match="did you mean 'partName'"):
        kw.Index(Rack, "spec.parts[*].part_name")
    with pytest.raises(DeclarationError, match="does not hold text"):
        kw.Index(Rack, "spec.height")
