"""Applying to the scale subresource, as a real server was seen to do it."""

from typing import Any

import pytest

from kubewright.api import GroupVersionKind
from kubewright.devserver.merge import ApplyConflicts, FieldWrite, apply_scale, update_managed_fields
from kubewright.devserver.wire import load_types

TYPES = load_types()
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SCHEMA, EMPTY = TYPES.merge_schema(DEPLOYMENT), TYPES.zero(DEPLOYMENT)
SCALE = TYPES.merge_schema(GroupVersionKind("autoscaling", "v1", "Scale"))
NOW = "2026-01-01T00:00:00Z"
OWNED = {"f:spec": {"f:replicas": {}}}


def scaled(
    live: dict[str, Any], manager: str, spec: dict[str, Any], *, force: bool = False
) -> dict[str, Any]:
    config = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": spec}
    write = FieldWrite(manager, "apps/v1", NOW, "scale")
    return apply_scale(SCHEMA, live, ("spec", "replicas"), config, SCALE, write, force=force, empty=EMPTY)


@pytest.fixture
def live() -> dict[str, Any]:
    made = TYPES.decode(DEPLOYMENT, {**EMPTY, "metadata": {"name": "d"}, "spec": {"replicas": 4}})[0]
    return update_managed_fields(SCHEMA, EMPTY, made, FieldWrite("sc", "apps/v1", NOW, "scale"))


def test_conflicts_name_the_fields_of_the_scale(live: dict[str, Any]) -> None:
    with pytest.raises(ApplyConflicts) as problem:
        scaled(live, "ap", {"replicas": 6})
    assert str(problem.value) == (
        'Apply failed with 1 conflict: conflict with "sc" with subresource "scale" using autoscaling/v1: .spec.replicas'
    )


def test_the_applier_owns_the_replicas_of_the_object_behind(live: dict[str, Any]) -> None:
    after = scaled(live, "ap", {"replicas": 6}, force=True)
    assert after["spec"]["replicas"] == 6
    entry = {
        "manager": "ap",
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
    }
    assert after["metadata"]["managedFields"] == [{**entry, "fieldsV1": OWNED, "subresource": "scale"}]


def test_a_scale_without_replicas_owns_nothing(live: dict[str, Any]) -> None:
    assert scaled(live, "ap", {}) == live
