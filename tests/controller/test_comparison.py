import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import JsonObject
from kubewright.controller.comparison import apply_difference, content_of, fingerprint, status_difference
from kubewright.controller.ownership import applied_fields, hand_over, read_entries, union


def fields_of(value: Any) -> JsonObject:
    """Return the FieldsV1 that a server keeps for an applied value: named elements keyed, other lists atomic."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {"k:" + json.dumps({"name": item["name"]}): {".": {}} | fields_of(item) for item in value}
    return {}


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
                        {"name": "side", "image": "sidecar", "command": ["sh", "-c"]},
                    ]
                }
            },
        },
    }


def owned_by_applying(desired: JsonObject) -> JsonObject:
    return {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": fields_of(desired["spec"])}


def defaulted(desired: JsonObject) -> JsonObject:
    """Return what the server makes of it: the same with defaults around."""
    live = copy.deepcopy(desired)
    live["metadata"] |= {"uid": "u", "resourceVersion": "5", "annotations": {"revision": "1"}}
    live["metadata"]["labels"]["added"] = "by-someone"
    live["spec"]["strategy"] = {"type": "RollingUpdate"}
    for container in containers(live):
        container["imagePullPolicy"] = "Always"
    containers(live).insert(0, {"name": "injected", "image": "mesh"})
    live["status"] = {"readyReplicas": 1}
    return live


def difference_after(change: Any) -> str | None:
    """Return the difference found when the desired object changes after it was applied."""
    applied = deployment()
    live, owned = defaulted(applied), owned_by_applying(applied)
    desired = copy.deepcopy(applied)
    change(desired)
    return apply_difference(desired, live, owned)


def containers(desired: JsonObject) -> list[JsonObject]:
    return desired["spec"]["template"]["spec"]["containers"]


def test_nothing_changes_when_all_is_there_among_defaults() -> None:
    assert difference_after(lambda desired: None) is None


def test_a_changed_value_is_found() -> None:
    assert difference_after(lambda d: d["spec"].update(replicas=0)) == "spec.replicas"
    path = difference_after(lambda d: containers(d)[0].update(image="x"))
    assert path == "spec.template.spec.containers[0].image"


def test_an_env_entry_a_label_and_a_container_taken_out_are_found() -> None:
    assert difference_after(lambda d: containers(d)[0]["env"].pop()) is not None
    assert difference_after(lambda d: d["metadata"]["labels"].pop("app")) == "metadata.labels.app"
    assert difference_after(lambda d: containers(d).pop()) is not None
    assert difference_after(lambda d: d["spec"].pop("replicas")) == "spec.replicas"
    assert difference_after(lambda d: containers(d)[1].pop("command")) is not None


def test_an_added_entry_is_found() -> None:
    assert difference_after(lambda d: containers(d).append({"name": "third"})) is not None
    assert difference_after(lambda d: d["metadata"]["labels"].update(added="by-someone")) is not None


def test_the_order_of_named_elements_does_not_matter_that_of_others_does() -> None:
    assert difference_after(lambda d: containers(d).reverse()) is None
    assert difference_after(lambda d: containers(d)[1]["command"].reverse()) is not None


def test_an_object_we_never_applied_is_taken_over() -> None:
    assert apply_difference(deployment(), defaulted(deployment()), None) == "metadata.managedFields"


def test_an_object_that_only_has_to_exist_is_never_listed_as_ours() -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "ns"},
    }
    assert apply_difference(account, account | {"secrets": []}, None) is None


def test_keys_that_the_server_filled_in_still_match() -> None:
    desired = {"metadata": {}, "spec": {"ports": [{"containerPort": 80}]}}
    live = {"metadata": {}, "spec": {"ports": [{"containerPort": 80, "protocol": "TCP"}]}}
    key = 'k:{"containerPort":80,"protocol":"TCP"}'
    owned = {"f:spec": {"f:ports": {key: {".": {}, "f:containerPort": {}}}}}
    assert apply_difference(desired, live, owned) is None
    both = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    assert apply_difference({"spec": {"ports": both}}, live, owned) == "spec.ports[1]"


def test_keyed_elements_may_be_owned_as_a_whole() -> None:
    reference = {"apiVersion": "v1", "kind": "Shell", "name": "a", "uid": "u", "controller": True}
    owned = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}}
    other = {"apiVersion": "v1", "kind": "Other", "name": "b", "uid": "x"}
    live = {"metadata": {"ownerReferences": [other, reference]}}
    assert apply_difference({"metadata": {"ownerReferences": [reference]}}, live, owned) is None
    assert apply_difference({"metadata": {"ownerReferences": [other]}}, live, owned) is not None
    renamed = reference | {"name": "c"}
    assert apply_difference({"metadata": {"ownerReferences": [renamed]}}, live, owned) is not None


def test_sets_are_compared_as_sets() -> None:
    owned = {"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}
    live = {"metadata": {"finalizers": ["other", "b", "a"]}}
    assert apply_difference({"metadata": {"finalizers": ["a", "b"]}}, live, owned) is None
    assert apply_difference({"metadata": {"finalizers": ["a"]}}, live, owned) is not None
    assert apply_difference({"metadata": {"finalizers": ["a", "b", "c"]}}, live, owned) is not None


def test_a_field_of_another_type_is_another_value() -> None:
    owned = {"f:spec": {"f:on": {}, "f:count": {}}}
    live = {"metadata": {}, "spec": {"on": True, "count": 1}}
    assert apply_difference({"spec": {"on": True, "count": 1.0}}, live, owned) is None
    assert apply_difference({"spec": {"on": 1, "count": 1}}, live, owned) == "spec.on"
    assert apply_difference({"spec": {"on": True, "count": "1"}}, live, owned) == "spec.count"


def test_an_empty_list_is_the_same_as_none_but_an_empty_choice_is_not() -> None:
    owned = {"f:spec": {"f:a": {}}}
    assert apply_difference({"spec": {"a": 1, "list": [], "text": ""}}, {"spec": {"a": 1}}, owned) is None
    assert apply_difference({"spec": {"a": 1, "emptyDir": {}}}, {"spec": {"a": 1}}, owned) == "spec.emptyDir"


def test_claim_templates_are_compared_past_what_the_server_fills_in() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    kept: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
        "status": {"phase": "Pending"},
    }
    owned = {"f:spec": {"f:volumeClaimTemplates": {}}}
    live = {"metadata": {}, "spec": {"volumeClaimTemplates": [kept]}}
    assert apply_difference({"spec": {"volumeClaimTemplates": [template]}}, live, owned) is None
    kept["spec"]["storageClassName"] = "left over"
    assert apply_difference({"spec": {"volumeClaimTemplates": [template]}}, live, owned) is not None


def test_a_status_is_compared_by_what_we_own_of_it() -> None:
    owned = {"f:status": {"f:ready": {}}}
    assert status_difference({"ready": 1}, {"ready": 1, "other": 2}, owned) is None
    assert status_difference({"ready": 0}, {"ready": 1}, owned) == "status.ready"
    assert status_difference({}, {"ready": 1}, owned) == "status.ready"
    assert status_difference({"ready": 0}, {}, None) == "status"
    assert status_difference({}, {"other": 1}, None) is None


names = st.text("abcd", min_size=1, max_size=3)
leaves = st.one_of(
    st.integers(),
    st.booleans(),
    st.text("xy", min_size=1, max_size=3),
    st.lists(st.integers(), min_size=1),
)
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
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [*(with_defaults(item, extra) for item in value), {"name": "zz", "zzdefault": extra}]
    return value


# Nested values take a busy machine long to draw; that says nothing about what is tested.


@given(specs, leaves)
def test_what_was_applied_is_not_applied_again_whatever_the_server_adds(spec: JsonObject, extra: Any) -> None:
    live = {"spec": with_defaults(spec, extra), "metadata": {}}
    assert apply_difference({"spec": spec}, live, {"f:spec": fields_of(spec)}) is None


def variants(value: Any) -> list[Any]:
    """Return values that differ from this one in exactly one place."""
    if isinstance(value, dict):
        removed = [{k: v for k, v in value.items() if k != key} for key in value if key != "name"]
        changed = [value | {key: other} for key in value if key != "name" for other in variants(value[key])]
        return [*removed, *changed, value | {"zznew": 1}]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        changed = [
            [*value[:at], other, *value[at + 1 :]]
            for at in range(len(value))
            for other in variants(value[at])
        ]
        return [*changed, value[:-1], [*value, {"name": "zznew"}]]
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, list):
        return [[*value, 7]]
    return [f"{value}!"]


@given(specs, st.data())
def test_any_one_change_of_what_was_applied_is_found(spec: JsonObject, data: st.DataObject) -> None:
    live = {"spec": with_defaults(spec, 1), "metadata": {}}
    desired = data.draw(st.sampled_from(variants(spec)))
    assert apply_difference({"spec": desired}, live, {"f:spec": fields_of(spec)}) is not None


def test_content_leaves_out_what_moves_by_itself() -> None:
    one = {
        "metadata": {"name": "a", "resourceVersion": "1", "managedFields": []},
        "spec": 1,
        "status": {"x": 1},
    }
    two = {
        "metadata": {"resourceVersion": "2", "generation": 2, "name": "a"},
        "spec": 1,
        "status": {"x": 2},
    }
    assert fingerprint(content_of(one, has_status=True)) == fingerprint(content_of(two, has_status=True))
    assert fingerprint(content_of(one, has_status=False)) != fingerprint(content_of(two, has_status=False))


def entry(manager: str, fields: JsonObject, *, operation: str = "Apply", subresource: str = "") -> JsonObject:
    made = {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields}
    return made | ({"subresource": subresource} if subresource else {})


def test_owned_fields_are_found_by_manager_operation_and_subresource() -> None:
    entries = [
        entry("other", {"f:a": {}}),
        entry("ours", {"f:b": {}}, operation="Update"),
        entry("ours", {"f:c": {}}, subresource="status"),
        entry("ours", {"f:d": {}}),
    ]
    assert read_entries(json.dumps(entries).encode()) == entries
    assert read_entries(b"") == []
    assert read_entries(b"null") == []
    assert applied_fields(entries, "ours") == {"f:d": {}}
    assert applied_fields(entries, "ours", "status") == {"f:c": {}}
    assert applied_fields(entries, "nobody") is None


def test_former_managers_hand_over_what_they_applied() -> None:
    update = entry("old", {"f:x": {}}, operation="Update")
    handed = hand_over([entry("old", {"f:a": {}}), update], "new", ["old"])
    assert handed == [update, entry("new", {"f:a": {}})]
    merged = hand_over([entry("old", {"f:a": {}}), entry("new", {"f:b": {}})], "new", ["old"])
    assert merged == [entry("new", {"f:a": {}, "f:b": {}})]
    assert hand_over([entry("new", {"f:b": {}})], "new", ["old"]) is None


trees = st.recursive(st.just({}), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)


@given(trees, trees)
def test_a_union_holds_both_and_is_the_same_either_way(one: JsonObject, other: JsonObject) -> None:
    assert union(one, other) == union(other, one)
    assert union(union(one, other), one) == union(one, other)


def test_a_prefix_of_names_that_we_applied_and_still_want_is_no_difference() -> None:
    desired = deployment()
    desired["metadata"]["generateName"] = "demo-"
    owned = owned_by_applying(desired)
    owned["f:metadata"]["f:generateName"] = {}
    assert apply_difference(desired, copy.deepcopy(desired), owned) is None
    del desired["metadata"]["generateName"]
    assert apply_difference(desired, deployment(), owned) == "metadata.generateName"
