"""Paths in class keywords are checked against the types when the class is made."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import Column, Condition, DeclarationError, Model, Resource, Scale
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
def test_a_path_that_leads_to_a_field_is_taken(path: str) -> None:
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
