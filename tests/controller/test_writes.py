from datetime import UTC, datetime

import pytest

from kubewright.api import Kind, OwnerReference, PartialMeta, json_patch, kind_of
from kubewright.controller import CannotOwn, OwnedByAnother
from kubewright.controller.writes import (
    check_controlled,
    child_document,
    finalizer_added,
    finalizer_removed,
    stamp_conditions,
    with_finalizer,
    with_owner,
)

from .kinds import Note, Shell, Zone

SECRET = Kind(group="", version="v1", kind="Secret", plural="secrets", builtin=True)
OWNER = PartialMeta(name="owner", namespace="ns", uid="u1")


def test_a_child_is_applied_without_server_fields_in_the_namespace_of_its_owner() -> None:
    child = {
        "apiVersion": "shells.example.com/v1",
        "kind": "Shell",
        "metadata": {
            "name": "a",
            "uid": "x",
            "resourceVersion": "1",
            "managedFields": [],
            "labels": {"k": "v"},
        },
        "spec": {"size": 1},
        "status": {"ready": 0},
    }
    assert child_document(child, kind_of(Shell), "ns") == {
        "apiVersion": "shells.example.com/v1",
        "kind": "Shell",
        "metadata": {"name": "a", "labels": {"k": "v"}, "namespace": "ns"},
        "spec": {"size": 1},
    }


def test_string_data_is_folded_into_data() -> None:
    secret = {"metadata": {"name": "a"}, "stringData": {"k": "v"}, "data": {"x": "eQ=="}}
    sent = child_document(secret, SECRET, "ns")
    assert sent["data"] == {"x": "eQ==", "k": "dg=="}
    assert "stringData" not in sent


def test_the_owner_reference_names_the_controller_once() -> None:
    child = {"metadata": {"name": "a", "namespace": "ns"}}
    owned = with_owner(child, kind_of(Note), OWNER, kind_of(Shell))
    assert owned["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "shells.example.com/v1",
            "kind": "Shell",
            "name": "owner",
            "uid": "u1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert with_owner(owned, kind_of(Note), OWNER, kind_of(Shell)) == owned


def test_owner_references_that_the_cluster_forbids_are_refused() -> None:
    elsewhere = {"metadata": {"name": "a", "namespace": "b"}}
    with pytest.raises(CannotOwn, match="another namespace"):
        with_owner(elsewhere, kind_of(Note), OWNER, kind_of(Shell))
    with pytest.raises(CannotOwn, match="cluster-scoped"):
        with_owner({"metadata": {"name": "a"}}, kind_of(Zone), OWNER, kind_of(Shell))
    assert with_owner(elsewhere, kind_of(Note), PartialMeta(name="zone", uid="z"), kind_of(Zone))


@pytest.mark.parametrize("adopt", [True, False])
def test_a_child_of_another_owner_is_refused(adopt: bool) -> None:
    other = OwnerReference(api_version="v1", kind="Other", name="o", uid="u2", controller=True)
    child = PartialMeta(name="a", owner_references=[other])
    with pytest.raises(OwnedByAnother, match="controlled by Other o"):
        check_controlled(child, kind_of(Note), OWNER, kind_of(Shell), adopt=adopt)


def test_a_child_without_a_controller_is_refused_unless_it_is_adopted() -> None:
    shared = OwnerReference(api_version="v1", kind="Other", name="o", uid="u2")
    child = PartialMeta(name="a", owner_references=[shared])
    with pytest.raises(OwnedByAnother, match="exists and is not controlled by Shell"):
        check_controlled(child, kind_of(Note), OWNER, kind_of(Shell), adopt=False)
    check_controlled(child, kind_of(Note), OWNER, kind_of(Shell), adopt=True)


def test_a_childs_finalizer_is_added_once() -> None:
    child = with_finalizer({"metadata": {"name": "a"}}, "x/y")
    assert child["metadata"]["finalizers"] == ["x/y"]
    assert with_finalizer(child, "x/y") == child


@pytest.mark.parametrize("before", [[], ["a"], ["a", "b"]])
def test_a_finalizer_is_added_and_removed_among_others(before: list[str]) -> None:
    document = {"metadata": {"resourceVersion": "7"} | ({"finalizers": before} if before else {})}
    added = json_patch(document, finalizer_added(PartialMeta(resource_version="7", finalizers=before), "x/y"))
    assert added["metadata"]["finalizers"] == [*before, "x/y"]
    meta = PartialMeta(resource_version="7", finalizers=added["metadata"]["finalizers"])
    assert json_patch(added, finalizer_removed(meta, "x/y"))["metadata"]["finalizers"] == before


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LIVE = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}


def test_a_transition_time_moves_only_with_the_status() -> None:
    same = stamp_conditions(
        {"conditions": [{"type": "Ready", "status": "True", "reason": "New"}]}, LIVE, 4, NOW
    )
    assert same["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "New",
            "lastTransitionTime": "2020-01-01T00:00:00Z",
            "observedGeneration": 4,
        }
    ]
    moved = stamp_conditions({"conditions": [{"type": "Ready", "status": "False"}]}, LIVE, 4, NOW)
    assert moved["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_conditions_without_an_observed_generation_are_given_none() -> None:
    progressing = {"conditions": [{"type": "Progressing", "status": "True"}]}
    assert "observedGeneration" not in stamp_conditions(progressing, {}, None, NOW)["conditions"][0]


def test_a_status_without_conditions_is_left_as_it_is() -> None:
    assert stamp_conditions({"ready": 1}, {}, 1, NOW) == {"ready": 1}
    assert stamp_conditions({"conditions": ["text"]}, {}, 1, NOW) == {"conditions": ["text"]}
