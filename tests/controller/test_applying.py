"""When an apply is skipped, case by case; `running/test_apply_property.py` compares drawn cases with a server."""

import copy
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import JsonObject, Kind, RawObject, encode, kind_of, raw_object
from kubewright.api.builtin import apps_v1
from kubewright.controller.applying import (
    ATOMIC_FIELDS,
    ATOMIC_TYPES,
    ApplyMemory,
    applied_part,
    may_change_again,
    mismatches,
)
from kubewright.controller.managed_fields import (
    applied_entry,
    hand_over,
    owners_of,
    read_entries,
    sharing_entries,
    union,
)
from kubewright.devserver import data
from kubewright.devserver.data import KubernetesRelease

DEPLOYMENT = Kind(group="apps", version="v1", kind="Deployment", plural="deployments", status=True)
BETA = Kind(group="apps", version="v1beta1", kind="Deployment", plural="deployments", status=True)


def fields_of(value: Any) -> JsonObject:
    """Return the FieldsV1 of an applied value, for a schema with elements keyed by name and other lists atomic."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {"k:" + json.dumps({"name": item["name"]}): {".": {}} | fields_of(item) for item in value}
    return {}


def entry(
    fields: JsonObject,
    *,
    manager: str = "ours",
    operation: str = "Apply",
    version: str = "apps/v1",
    subresource: str = "",
) -> JsonObject:
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return made | ({"subresource": subresource} if subresource else {})


def deployment() -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo", "namespace": "ns", "labels": {"app": "demo"}},
        "spec": {
            "replicas": 3,
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "busybox",
                            "env": [{"name": "A", "value": "1"}, {"name": "B"}],
                        },
                        {"name": "side", "image": "sidecar"},
                    ]
                }
            },
        },
    }


def containers(desired: JsonObject) -> list[JsonObject]:
    return desired["spec"]["template"]["spec"]["containers"]


def live_object(content: JsonObject, *entries: JsonObject, version: str = "5", uid: str = "u") -> RawObject:
    meta = content.get("metadata", {}) | {"uid": uid, "resourceVersion": version}
    return raw_object(encode({**content, "metadata": meta | {"managedFields": list(entries)}}))


def defaulted(desired: JsonObject) -> JsonObject:
    """Return what the server and others make of it: the same with more around."""
    live = copy.deepcopy(desired)
    live["metadata"] |= {"annotations": {"revision": "1"}}
    live["metadata"]["labels"]["added"] = "by-another"
    live["spec"]["strategy"] = {"type": "RollingUpdate"}
    for container in containers(live):
        container["imagePullPolicy"] = "Always"
    containers(live).insert(0, {"name": "injected", "image": "mesh"})
    live["status"] = {"readyReplicas": 1}
    return live


def applied(desired: JsonObject) -> RawObject:
    return live_object(defaulted(desired), entry(fields_of(applied_part(desired))))


def doubt_after(change: Callable[[JsonObject], object]) -> str | None:
    """Return the field in doubt when the desired object changes after it was applied."""
    desired = deployment()
    live = applied(desired)
    change(desired)
    found = ApplyMemory("ours").reason_to_send(DEPLOYMENT, desired, live)
    return None if found is None else found.field


def doubt(desired: JsonObject, live: JsonObject, fields: JsonObject) -> str | None:
    """Return the field in doubt for a custom resource."""
    memory, kind = ApplyMemory("ours"), Kind(group="", version="v1", kind="Thing", plural="things")
    found = memory.reason_to_send(kind, desired, live_object(live, entry(fields, version="v1")))
    return None if found is None else found.field


def test_skips_an_apply_if_all_desired_fields_are_live_and_ours() -> None:
    assert doubt_after(lambda desired: None) is None


def test_sends_a_changed_value() -> None:
    assert doubt_after(lambda d: d["spec"].update(replicas=0)) == "spec.replicas"
    path = doubt_after(lambda d: containers(d)[0].update(image="x"))
    assert path == "spec.template.spec.containers[0].image"


def test_sends_when_a_field_or_an_element_is_no_longer_desired() -> None:
    assert doubt_after(lambda d: containers(d)[0]["env"].pop()) is not None
    assert doubt_after(lambda d: d["metadata"]["labels"].pop("app")) == "metadata.labels.app"
    assert doubt_after(lambda d: containers(d).pop()) is not None
    assert doubt_after(lambda d: d["spec"].pop("replicas")) == "spec.replicas"


def test_sends_a_field_that_another_manager_owns() -> None:
    assert (
        doubt_after(lambda d: d["metadata"]["labels"].update(added="by-another")) == "metadata.labels.added"
    )


def test_sends_keyed_elements_in_another_order() -> None:
    assert doubt_after(lambda d: containers(d).reverse()) is not None


def test_sends_a_set_in_another_order() -> None:
    fields = {"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}
    live = {"metadata": {"finalizers": ["other", "b", "more", "a"]}}
    assert doubt({"metadata": {"finalizers": ["b", "a"]}}, live, fields) is None
    assert doubt({"metadata": {"finalizers": ["a", "b"]}}, live, fields) == "metadata.finalizers"
    assert doubt({"metadata": {"finalizers": ["b"]}}, live, fields) is not None
    assert doubt({"metadata": {"finalizers": ["b", "a", "c"]}}, live, fields) is not None


@pytest.mark.parametrize("empty", [[], {}, "", None])
def test_sends_an_empty_value_that_the_live_object_does_not_have(empty: Any) -> None:
    live = {"spec": {"a": 1}}
    assert doubt({"spec": {"a": 1, "allow": empty}}, live, {"f:spec": {"f:a": {}}}) == "spec.allow"
    listed = {"f:spec": {"f:a": {}, "f:allow": {}}}
    assert doubt({"spec": {"a": 1, "allow": empty}}, live, listed) == "spec.allow"
    assert doubt({"spec": {"a": 1, "allow": empty}}, {"spec": {"a": 1, "allow": empty}}, listed) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("protocol", "TCP"), ("kind", "PersistentVolumeClaim"), ("apiVersion", "v1"), ("status", "True")],
)
def test_sends_when_an_element_of_an_atomic_list_has_more_than_desired(field: str, value: str) -> None:
    live = {"spec": {"rules": [{"host": "a", field: value}]}}
    assert doubt({"spec": {"rules": [{"host": "a"}]}}, live, {"f:spec": {"f:rules": {}}}) == "spec.rules"


def test_sends_what_was_applied_in_another_version_or_twice() -> None:
    desired = deployment() | {"apiVersion": "apps/v1beta1"}
    found = ApplyMemory("ours").reason_to_send(BETA, desired, applied(deployment()))
    assert found is not None
    assert found.field == "metadata.managedFields"
    own = entry(fields_of(applied_part(deployment())))
    live = live_object(defaulted(deployment()), own, own)
    assert ApplyMemory("ours").reason_to_send(DEPLOYMENT, deployment(), live) is not None


def test_sends_what_our_manager_wrote_by_updates() -> None:
    own = entry(fields_of(applied_part(deployment())), operation="Update")
    live = live_object(defaulted(deployment()), own)
    assert ApplyMemory("ours").reason_to_send(DEPLOYMENT, deployment(), live) is not None


def test_matches_keys_that_the_server_filled_in() -> None:
    tcp, udp = 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":80,"protocol":"UDP"}'
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]
    left_out, given_all = {".": {}, "f:port": {}}, {".": {}, "f:port": {}, "f:protocol": {}}
    live: JsonObject = {"spec": {"ports": ports}}
    assert doubt({"spec": {"ports": [{"port": 80}]}}, live, {"f:spec": {"f:ports": {tcp: left_out}}}) is None
    # Applied with UDP before; the default that is meant now is another element.
    assert (
        doubt({"spec": {"ports": [{"port": 80}]}}, live, {"f:spec": {"f:ports": {udp: given_all}}})
        is not None
    )
    both = {"f:spec": {"f:ports": {tcp: left_out, udp: given_all}}}
    assert doubt({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}}, live, both) is not None


def test_sends_when_a_list_has_duplicate_elements() -> None:
    fields = {"f:spec": {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}}
    twice = {"spec": {"items": [{"name": "a"}, {"name": "a"}]}}
    assert doubt({"spec": {"items": [{"name": "a"}]}}, twice, fields) == "spec.items[0]"


def test_owner_references_are_one_value_each() -> None:
    reference = {"apiVersion": "v1", "kind": "Shell", "name": "a", "uid": "u", "controller": True}
    other = {"apiVersion": "v1", "kind": "Other", "name": "b", "uid": "x"}
    fields = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}}
    live = {"metadata": {"ownerReferences": [other, reference]}}
    assert doubt({"metadata": {"ownerReferences": [reference]}}, live, fields) is None
    assert doubt({"metadata": {"ownerReferences": [other]}}, live, fields) is not None
    assert doubt({"metadata": {"ownerReferences": [reference | {"name": "c"}]}}, live, fields) is not None


def test_a_value_of_another_type_is_another_value() -> None:
    fields = {"f:spec": {"f:on": {}, "f:count": {}}}
    live = {"spec": {"on": True, "count": 1}}
    assert doubt({"spec": {"on": True, "count": 1.0}}, live, fields) is None
    assert doubt({"spec": {"on": 1, "count": 1}}, live, fields) == "spec.on"
    assert doubt({"spec": {"on": True, "count": "1"}}, live, fields) == "spec.count"


def test_sends_an_object_that_we_never_applied_even_if_nothing_is_desired_of_it() -> None:
    live = live_object(defaulted(deployment()), entry({"f:spec": {}}, manager="theirs"))
    assert ApplyMemory("ours").reason_to_send(DEPLOYMENT, deployment(), live) is not None
    bare = {"metadata": {"name": "demo", "namespace": "ns"}}
    assert ApplyMemory("ours").reason_to_send(DEPLOYMENT, bare, live) is not None


def test_an_atomic_value_is_proven_once_an_answer_showed_that_it_is_one() -> None:
    def with_selector(name: str) -> JsonObject:
        return {"metadata": {"name": name}, "spec": {"selector": {"app": "a"}, "command": ["sh"]}}

    memory = ApplyMemory("ours")
    fields = entry({"f:spec": {"f:selector": {}, "f:command": {}}})
    first, second = (live_object(with_selector(name), fields, uid=name) for name in ("first", "second"))
    assert memory.reason_to_send(DEPLOYMENT, with_selector("second"), second) is not None
    memory.learn(DEPLOYMENT, with_selector("first"), first)
    assert memory.reason_to_send(DEPLOYMENT, with_selector("second"), second) is None
    assert ApplyMemory("ours").reason_to_send(DEPLOYMENT, with_selector("second"), second) is not None


def test_a_map_that_was_applied_empty_is_not_taken_for_an_atomic_one() -> None:
    live = {"spec": {"options": {"level": 3}}}
    assert doubt({"spec": {"options": {"level": 3}}}, live, {"f:spec": {"f:options": {}}}) == "spec.options"


def altering_server(memory: ApplyMemory) -> tuple[JsonObject, JsonObject, JsonObject]:
    """Have the memory learn an answer that is not as desired; returns the desired object, the content and our entry."""
    desired = {"metadata": {"name": "a"}, "spec": {"cpu": "1000m"}}
    content = {"metadata": {"name": "a"}, "spec": {"cpu": "1", "extra": True}, "status": {"ready": 0}}
    own = entry({"f:spec": {"f:cpu": {}}})
    memory.learn(DEPLOYMENT, desired, live_object(content, own))
    return desired, content, own


def test_fields_altered_by_the_server_are_not_applied_again_while_the_object_equals_the_response() -> None:
    memory = ApplyMemory("ours")
    desired, content, own = altering_server(memory)

    def must_send(change: JsonObject, *entries: JsonObject, version: str) -> bool:
        live = live_object(content | change, *(entries or (own,)), version=version)
        return memory.reason_to_send(DEPLOYMENT, desired, live) is not None

    assert not must_send({}, version="5")
    assert not must_send({"status": {"ready": 1}}, version="6")
    status = entry({"f:status": {"f:ready": {}}}, manager="theirs", operation="Update", subresource="status")
    assert not must_send({"status": {"ready": 2}}, own, status, version="7")
    assert not must_send({}, own | {"time": "2026-01-01T00:00:00Z"}, version="8")
    assert must_send({"spec": {"cpu": "2", "extra": True}}, version="9")
    assert must_send({"spec": {"cpu": "1"}}, version="9")
    assert must_send({"metadata": {"name": "a", "labels": {"x": "y"}}}, version="9")


def test_fields_altered_by_the_server_are_applied_again_when_another_manager_shares_them() -> None:
    memory = ApplyMemory("ours")
    desired, content, own = altering_server(memory)
    joint = entry({"f:spec": {"f:cpu": {}}}, manager="theirs")
    assert (
        memory.reason_to_send(DEPLOYMENT, desired, live_object(content, own, joint, version="6")) is not None
    )


def test_a_changed_desired_object_is_sent_whatever_was_remembered() -> None:
    memory = ApplyMemory("ours")
    desired, content, own = altering_server(memory)
    other = copy.deepcopy(desired)
    other["spec"]["cpu"] = "1001m"
    assert memory.reason_to_send(DEPLOYMENT, other, live_object(content, own)) is not None


def test_the_oldest_answer_is_forgotten_first() -> None:
    memory = ApplyMemory("ours", capacity=2)
    desired = {"metadata": {"name": "a"}, "spec": {"cpu": "1000m"}}
    states = [
        live_object(
            {"metadata": {"name": "a"}, "spec": {"cpu": "1"}}, entry({"f:spec": {"f:cpu": {}}}), uid=uid
        )
        for uid in "abc"
    ]
    for state in states:
        memory.learn(DEPLOYMENT, desired, state)
    assert [memory.reason_to_send(DEPLOYMENT, desired, state) is None for state in states] == [
        False,
        True,
        True,
    ]


def drift_after(change: Callable[[JsonObject], object]) -> str | None:
    """Return the drifted field when the live object is changed after it was applied."""
    memory, desired = ApplyMemory("ours"), deployment()
    memory.learn(DEPLOYMENT, desired, applied(desired))
    changed = defaulted(desired)
    change(changed)
    live = live_object(changed, entry(fields_of(applied_part(desired))), version="6")
    fresh = ApplyMemory("ours").reason_to_send(DEPLOYMENT, desired, live)
    assert fresh is None or fresh.drift is None
    found = memory.reason_to_send(DEPLOYMENT, desired, live)
    return None if found is None or found.drift is None else found.drift.text


def test_drift_is_a_change_of_applied_fields() -> None:
    assert drift_after(lambda live: None) is None
    assert drift_after(lambda live: live["metadata"]["labels"].update(more="theirs")) is None
    assert drift_after(lambda live: live["spec"].update(replicas=9)) == "spec.replicas"
    assert drift_after(lambda live: live["spec"].pop("replicas")) == "spec.replicas"
    assert drift_after(lambda live: containers(live).reverse()) == "spec.template.spec.containers[1]"


def test_fields_altered_by_the_server_are_not_drift() -> None:
    memory = ApplyMemory("ours")
    desired, content, own = altering_server(memory)
    found = memory.reason_to_send(DEPLOYMENT, desired, live_object(content | {"other": 1}, own, version="6"))
    assert found is not None
    assert found.drift is None
    changed = content | {"spec": {"cpu": "7", "extra": True}}
    found = memory.reason_to_send(DEPLOYMENT, desired, live_object(changed, own, version="7"))
    assert found is not None
    assert found.drift is not None
    assert (found.drift.text, found.drift.live) == ("spec.cpu", "7")


def test_a_change_of_an_object_without_desired_fields_is_not_drift() -> None:
    memory, bare = ApplyMemory("ours"), {"metadata": {"name": "demo", "namespace": "ns"}}
    theirs = entry({"f:spec": {"f:replicas": {}}}, manager="theirs")
    memory.learn(DEPLOYMENT, bare, live_object(defaulted(deployment()), theirs))
    found = memory.reason_to_send(DEPLOYMENT, bare, live_object(defaulted(deployment()), theirs, version="6"))
    assert found is not None
    assert found.drift is None


def test_a_status_is_compared_by_our_entry_of_the_subresource() -> None:
    own = entry({"f:status": {"f:ready": {}}}, subresource="status")
    live = live_object({"metadata": {"name": "a"}, "status": {"ready": 1, "other": 2}}, own)

    def must_send(status: JsonObject) -> bool:
        document = {"metadata": {"name": "a"}, "status": status}
        return (
            ApplyMemory("ours").reason_to_send(DEPLOYMENT, document, live, subresource="status") is not None
        )

    assert not must_send({"ready": 1})
    assert must_send({"ready": 0})
    assert must_send({})
    assert must_send({"ready": 1, "other": 2})


def test_a_status_that_differs_only_in_transition_times_is_unchanged() -> None:
    memory = ApplyMemory("ours")
    own = entry({"f:status": {"f:at": {}}}, subresource="status")
    answer = live_object({"metadata": {"name": "a"}, "status": {}}, own)
    memory.learn(DEPLOYMENT, {"status": {"at": 1}}, answer, subresource="status", source="same")
    assert (
        memory.reason_to_send(DEPLOYMENT, {"status": {"at": 2}}, answer, subresource="status", source="same")
        is None
    )
    assert (
        memory.reason_to_send(DEPLOYMENT, {"status": {"at": 2}}, answer, subresource="status", source="x")
        is not None
    )


@pytest.mark.parametrize(
    ("part", "answer", "again"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 2}}, False),
        ({"spec": {"a": {}}}, {"spec": {"a": {}}}, False),
        ({"spec": {"a": {}}}, {"spec": {}}, True),
        ({"spec": {"a": []}}, {}, True),
        ({"spec": {"a": None}}, {"spec": {"a": 1}}, True),
        ({"spec": {"a": [{"b": []}]}}, {"spec": {"a": [{}]}}, True),
    ],
)
def test_an_empty_value_that_the_server_dropped_is_applied_again(
    part: JsonObject, answer: JsonObject, again: bool
) -> None:
    assert may_change_again(encode(part), live_object(answer, entry({}))) is again
    assert may_change_again(encode(part), raw_object(encode(answer | {"metadata": {"name": "x"}})))


def test_a_mismatch_names_the_field_and_its_live_value() -> None:
    live = defaulted(deployment())
    assert list(mismatches(deployment(), live)) == []
    containers(live)[1]["env"][0]["value"] = "2"
    del live["spec"]["replicas"]
    assert [(found.text, found.live) for found in mismatches(deployment(), live)] == [
        ("spec.replicas", None),
        ("spec.template.spec.containers[0].env[0].value", "2"),
    ]
    assert list(mismatches({"spec": {"none": [], "text": ""}}, live)) == []


names = st.text("abcd", min_size=1, max_size=3)
leaves = st.one_of(st.integers(), st.booleans(), st.text("xy", min_size=1, max_size=3))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(names, inner, min_size=1, max_size=3),
        st.lists(st.dictionaries(names, inner, max_size=2), min_size=1, max_size=3).map(
            lambda items: [item | {"name": f"n{number}"} for number, item in enumerate(items)]
        ),
    ),
    max_leaves=12,
)
specs = st.dictionaries(names, values, min_size=1, max_size=4)


def with_defaults(value: Any, extra: Any) -> Any:
    """Return the value with a default in every map and named list that is in it."""
    if isinstance(value, dict):
        return {key: with_defaults(below, extra) for key, below in value.items()} | {"zzdefault": extra}
    if isinstance(value, list):
        return [*(with_defaults(item, extra) for item in value), {"name": "zz", "zzdefault": extra}]
    return value


@given(specs, leaves)
def test_unchanged_objects_are_not_applied_again_whatever_the_server_adds(
    spec: JsonObject, extra: Any
) -> None:
    assert doubt({"spec": spec}, {"spec": with_defaults(spec, extra)}, {"f:spec": fields_of(spec)}) is None


def variants(value: Any) -> list[Any]:
    """Return values that differ from this one in exactly one place."""
    if isinstance(value, dict):
        removed = [{k: v for k, v in value.items() if k != key} for key in value if key != "name"]
        changed = [value | {key: other} for key in value if key != "name" for other in variants(value[key])]
        return [*removed, *changed, value | {"zznew": 1}]
    if isinstance(value, list):
        changed = [
            [*value[:at], other, *value[at + 1 :]]
            for at in range(len(value))
            for other in variants(value[at])
        ]
        return [*changed, value[:-1], [*value, {"name": "zznew"}]] + ([value[::-1]] if len(value) > 1 else [])
    if isinstance(value, bool):
        return [not value, int(value)]
    return [f"{value}!"]


@given(specs, st.data())
def test_any_change_of_an_applied_field_is_sent(spec: JsonObject, data: st.DataObject) -> None:
    desired = data.draw(st.sampled_from(variants(spec)))
    live = {"spec": with_defaults(spec, 1)}
    assert doubt({"spec": desired}, live, {"f:spec": fields_of(spec)}) is not None


def test_entries_are_found_by_manager_operation_and_subresource() -> None:
    entries = [
        entry({"f:a": {}}, manager="other"),
        entry({"f:b": {}}, operation="Update"),
        entry({"f:c": {}}, subresource="status"),
        entry({"f:d": {}}),
    ]
    assert read_entries(json.dumps(entries).encode()) == entries
    assert read_entries(b"") == []
    assert read_entries(b"null") == []
    assert applied_entry(entries, "ours") == entries[3]
    assert applied_entry(entries, "ours", "status") == entries[2]
    assert applied_entry(entries, "missing") is None


def test_entries_that_share_a_part_with_ours_are_of_the_status_or_of_the_rest() -> None:
    rest, status = entry({"f:spec": {}}, manager="a") | {"time": "now"}, entry({"f:status": {}}, manager="b")
    assert sharing_entries([rest, status], {"f:metadata": {}}) == [entry({"f:spec": {}}, manager="a")]
    assert sharing_entries([rest, status], {"f:status": {}}) == [status]


def test_owners_of_a_field_are_found_through_keyed_lists_and_atomic_values() -> None:
    keyed = {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}}}
    entries = [
        entry(keyed, manager="keyed"),
        entry({"f:spec": {"f:selector": {}}}, manager="atomic"),
        entry(keyed),
    ]
    image = ("spec", "containers", {"name": "main", "image": "x"}, "image")
    assert owners_of(entries, image, apart="ours") == ["keyed"]
    assert owners_of(entries, ("spec", "selector", "app"), apart="ours") == ["atomic"]
    assert owners_of(entries, ("spec", "replicas"), apart="ours") == []


def test_former_managers_hand_over_what_they_applied() -> None:
    update = entry({"f:x": {}}, manager="old", operation="Update")
    handed = hand_over([entry({"f:a": {}}, manager="old"), update], "new", ["old"])
    assert handed == [update, entry({"f:a": {}}, manager="new")]
    former = entry({"f:a": {}, "f:b": {"f:c": {}}}, manager="old")
    merged = hand_over([former, entry({"f:b": {}}, manager="new")], "new", ["old"])
    assert merged == [entry({"f:a": {}, "f:b": {".": {}, "f:c": {}}}, manager="new")]
    assert hand_over([entry({"f:b": {}}, manager="new")], "new", ["old"]) is None


trees = st.recursive(st.just({}), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)


@given(trees, trees)
def test_a_union_holds_both_and_is_the_same_either_way(one: JsonObject, other: JsonObject) -> None:
    assert union(one, other) == union(other, one)
    assert union(union(one, other), one) == union(one, other)


def test_the_atomic_types_and_maps_are_those_that_kubernetes_declares() -> None:
    types, fields = set[str](), set[tuple[str, str]]()
    for path in (Path(data.__file__).parent / "openapi").glob("*.json.xz"):
        schemas = json.loads(lzma.decompress(path.read_bytes()))["components"]["schemas"]
        for name, schema in schemas.items():
            short = name.rpartition(".")[2]
            if schema.get("x-kubernetes-map-type") == "atomic":
                types.add(short)
            for key, below in schema.get("properties", {}).items():
                if below.get("x-kubernetes-map-type") == "atomic":
                    fields.add((short, key))
    assert types == ATOMIC_TYPES
    assert fields == ATOMIC_FIELDS


CHANGED_RULES = {("io.k8s.api.core.v1.PodStatus", "nodeAllocatableResourceClaimStatuses")}
"""One value in 1.36, a keyed list since: not declared as one value, so an apply of it is sent, as it has to be."""


def merge_rules(release: KubernetesRelease) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return how a release merges each type and each field of a type that is a list or a map."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for document in release.openapi_hashes:
        schemas = json.loads(release.openapi(document))["components"]["schemas"]
        for name, schema in schemas.items():
            for field, below in {"": schema, **schema.get("properties", {})}.items():
                if below.get("type") in ("array", "object"):
                    rules = ("list-type", "list-map-keys", "map-type")
                    found[name, field] = tuple(below.get(f"x-kubernetes-{rule}") for rule in rules)
    return found


@pytest.mark.parametrize("version", KubernetesRelease.known()[:-1])
def test_earlier_releases_merge_built_in_types_as_the_present_one_does(version: str) -> None:
    # `Shapes.declare` uses the declarations of the present release on servers of all of them.
    present, earlier = merge_rules(KubernetesRelease.find()), merge_rules(KubernetesRelease.find(version))
    shared = present.keys() & earlier.keys()
    assert len(shared) > 500
    assert {place for place in shared if present[place] != earlier[place]} <= CHANGED_RULES


def test_atomic_fields_of_built_in_kinds_are_known_before_the_first_apply() -> None:
    kind = kind_of(apps_v1.Deployment)
    desired = deployment()
    desired["spec"]["selector"] = {"matchLabels": {"app": "demo"}}
    containers(desired)[0]["command"] = ["sleep", "1"]
    fields = fields_of({"metadata": {"labels": {"app": "demo"}}, "spec": desired["spec"]})
    fields["f:spec"]["f:selector"] = {}
    live = live_object(desired, entry(fields))
    unknown = ApplyMemory("ours").reason_to_send(kind, desired, live)
    assert unknown is not None
    assert ApplyMemory("ours").reason_to_send(kind, desired, live, form=apps_v1.Deployment) is None
