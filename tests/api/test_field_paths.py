"""Paths in class keywords are checked against the types when the class is made."""

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pytest

from kubewright.api import (
    Column,
    Condition,
    DeclarationError,
    Field,
    FieldPath,
    Index,
    Meta,
    Model,
    Resource,
    Scale,
    field_path,
    kind_of,
    plain_type,
    to_wire,
)
from kubewright.schema import crd


class _Spec(Model):
    replicas: int = 1
    colors: dict[str, str] = {}
    anything: Any = None


class _Status(Model):
    ready_replicas: int = 0
    conditions: list[Condition] = []


def declare(**keywords: Any) -> type[Resource[_Spec, _Status]]:
    class Thing(Resource[_Spec, _Status], group="paths.example.com", version="v1", **keywords):
        """A thing."""

    return Thing


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"columns": [Column("Ready", ".status.readyReplica")]},
            (
                "Thing: columns: Column('Ready', '.status.readyReplica'): .status has no field 'readyReplica': "
                "did you mean 'readyReplicas'?"
            ),
        ),
        (
            {"columns": [Column("Ready", ".status.ready_replicas")]},
            (
                "Thing: columns: Column('Ready', '.status.ready_replicas'): .status has no field 'ready_replicas': "
                "did you mean 'readyReplicas'?"
            ),
        ),
        (
            {"columns": [Column("Type", ".status.conditions.type")]},
            (
                "Thing: columns: Column('Type', '.status.conditions.type'): .status.conditions is a list: "
                "write .status.conditions[*].type"
            ),
        ),
        (
            {"columns": [Column("Size", "spec.replicas")]},
            "Thing: columns: Column('Size', 'spec.replicas'): a path begins with a dot: \".spec.replicas\"",
        ),
        (
            {"scale": Scale(spec=".spec.replica", status=".status.readyReplicas")},
            "Thing: scale: Scale(spec='.spec.replica'): .spec has no field 'replica': did you mean 'replicas'?",
        ),
        (
            {"selectable_fields": [".spec.shape"]},
            (
                "Thing: selectable_fields: '.spec.shape': .spec has no field 'shape': "
                "its fields are anything, colors, replicas"
            ),
        ),
        (
            {"columns": [Column("Size", ".spec.replicas", type=cast(Any, "int"))]},
            (
                "Thing: columns: Column('Size', '.spec.replicas'): unknown type 'int': "
                "use string, integer, number, boolean or date"
            ),
        ),
        (
            {"scale": Scale(spec=".spec.replicas", status="{.status.readyReplicas}")},
            (
                "Thing: scale: Scale(status='{.status.readyReplicas}'): a path has no braces here: "
                'write ".status.readyReplicas"'
            ),
        ),
        (
            {"columns": [Column("Deep", ".spec.replicas.count")]},
            "Thing: columns: Column('Deep', '.spec.replicas.count'): .spec.replicas has no fields",
        ),
    ],
)
def test_a_path_that_leads_to_no_field_is_refused_when_the_class_is_made(
    keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError) as refusal:
        declare(**keywords)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "path",
    [
        ".spec.replicas",
        ".spec.colors.red",
        ".spec.anything.at.all",
        ".metadata.creationTimestamp",
        ".metadata.labels.app\\.kubernetes\\.io/name",
        ".metadata.labels['app.kubernetes.io/name']",
        '.status.conditions[?(@.type=="Ready")].status',
        ".status.conditions[0].reason",
        ".status.conditions[*].type",
        ".kind",
    ],
)
def test_a_path_that_leads_to_a_field_is_accepted(path: str) -> None:
    assert crd(declare(columns=[Column("Shown", path)]))


def test_a_path_through_a_class_that_is_defined_later_is_checked_when_the_definition_is_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_kinds.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("late_kinds")
    with pytest.raises(DeclarationError, match="did you mean 'size'"):
        crd(module.Thing)


LATE = """
from kubewright.api import Column, Model, Resource

class Spec(Model):
    inner: "Inner | None" = None

class Status(Model):
    pass

class Thing(
    Resource[Spec, Status], group="paths.example.com", version="v1", columns=[Column("Size", ".spec.inner.sise")]
):
    "A thing."

class Inner(Model):
    size: int = 0
"""


class _Holder(Model):
    secret: str | None = None
    size: int = 0


class _NamesSpec(Model):
    login: str = ""
    extra: list[str] | None = None
    holders: list[_Holder] = []
    holder: _Holder | None = None
    tags: dict[str, str] = {}
    mode: Literal["a", "b"] = "a"
    count: int = 0
    anything: Any = None


class Named(Resource[_NamesSpec, _Status], group="paths.example.com", version="v1"):
    """Names things."""


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.logins", "Index(Named): 'spec.logins': .spec has no field 'logins': did you mean 'login'?"),
        (
            ".spec.holders.secret",
            "'.spec.holders.secret': .spec.holders is a list: write .spec.holders[*].secret",
        ),
        ("spec.count", "'spec.count': Named.spec.count does not hold text or a list of texts"),
        ("spec.holder", "'spec.holder': Named.spec.holder does not hold text or a list of texts"),
        ("spec.holders[*].size", "does not hold text or a list of texts"),
        (
            "spec.holders[0].secret",
            'is not a path of fields: write it like "spec.login" or "spec.users[*].login"',
        ),
        ("kind", "is not a path of fields"),
        ("", "is not a path of fields"),
        ("spec.login[?", "is not a path of fields"),
    ],
)
def test_a_path_of_an_index_that_leads_to_no_text_is_refused_when_the_index_is_made(
    path: str, message: str
) -> None:
    with pytest.raises(DeclarationError) as refusal:
        Index(Named, path)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.login", ["ada"]),
        (".spec.login", ["ada"]),
        ("spec.extra", ["x", "y"]),
        ("spec.holders[*].secret", ["one", "two"]),
        ("spec.holder.secret", []),
        ("spec.tags.color", ["red"]),
        ("spec.tags['color']", ["red"]),
        ("spec.mode", ["b"]),
        ("metadata.name", ["n"]),
        ("metadata.labels['example.com/a']", ["b"]),
    ],
)
def test_an_index_by_path_holds_the_texts_at_the_path(path: str, expected: list[str]) -> None:
    spec = _NamesSpec(
        login="ada",
        extra=["x", "", "y", "x"],
        holders=[_Holder(secret="one"), _Holder(), _Holder(secret="two")],
        tags={"color": "red"},
        mode="b",
    )
    named = Named(Meta("n", labels={"example.com/a": "b"}), spec=spec)
    assert list(Index(Named, path).values(named)) == expected
    assert field_path(kind_of(Named), path, "test").texts(to_wire(named)) == expected


def test_a_value_that_is_not_text_in_an_object_without_a_class_is_an_error() -> None:
    path: FieldPath = field_path(kind_of(Named), "spec.count", "test")
    with pytest.raises(TypeError, match=r"spec.count: expected text, got int"):
        path.texts({"metadata": {"name": "n"}, "spec": {"count": 3}})


def test_a_type_is_plain_without_its_extras_and_none() -> None:
    assert plain_type(Annotated[list[str] | None, Field(max_items=3)]) == list[str]
    assert plain_type(int | str) is Any
