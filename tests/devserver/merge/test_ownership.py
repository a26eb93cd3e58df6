"""Ownership of fields: what always holds, and what the recorded writes do not show."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.merge import (
    ApplyConflicts,
    ApplyError,
    FieldWrite,
    MergeSchema,
    apply,
    keep_timestamps,
    merge_schema_of_crd,
    resets_ownership,
    update_managed_fields,
)

JsonObject = dict[str, Any]

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
EMPTY: JsonObject = {"apiVersion": "ex.io/v1", "kind": "Thing"}
SPEC: JsonObject = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
            "items": {
                "type": "object",
                "properties": {
                    "port": {"type": "integer"},
                    "proto": {"type": "string", "default": "TCP"},
                    "note": {"type": "string"},
                },
            },
        },
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = merge_schema_of_crd({"type": "object", "properties": {"spec": SPEC}})


def thing(**spec: Any) -> JsonObject:
    return {**EMPTY, "metadata": {"name": "t", "uid": "u"}, "spec": spec}


def config(**spec: Any) -> JsonObject:
    return {**EMPTY, "metadata": {"name": "t"}, "spec": spec}


def by(manager: str, time: str = NOW, subresource: str = "") -> FieldWrite:
    return FieldWrite(manager, "ex.io/v1", time, subresource)


def applied(live: JsonObject, manager: str, force: bool = False, **spec: Any) -> JsonObject:
    return apply(SCHEMA, live, config(**spec), by(manager), force=force, empty=EMPTY)


def owned(value: JsonObject) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in value["metadata"].get("managedFields", [])}


def leaves(fields: JsonObject, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """List the paths of a FieldsV1 set that lead to a value."""
    if not fields:
        return {path}
    return set().union(*(leaves(child, (*path, key)) for key, child in fields.items() if key != ".")) or {
        path
    }


WORDS = st.sampled_from(["a", "b", "c"])
PORT = st.fixed_dictionaries(
    {"port": st.sampled_from([80, 443])},
    optional={"proto": st.sampled_from(["TCP", "UDP"]), "note": WORDS},
)


def specs(least: int) -> st.SearchStrategy[JsonObject]:
    """Make specs whose collections have at least so many members."""
    tree = st.recursive(
        WORDS | st.integers(0, 1),
        lambda inner: st.dictionaries(WORDS, inner, min_size=least, max_size=2),
        max_leaves=5,
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "number": st.integers(0, 2),
            "labels": st.dictionaries(WORDS, WORDS, min_size=least),
            "tags": st.lists(WORDS, unique=True, min_size=least),
            "plain": st.lists(WORDS, min_size=least),
            "ports": st.lists(
                PORT,
                unique_by=lambda port: (port["port"], port.get("proto", "TCP")),
                min_size=least,
                max_size=3,
            ),
            "any": st.dictionaries(WORDS, tree, min_size=least, max_size=2),
        },
    )


SPECS = specs(0)
# An empty list owns nothing, and an object emptied by others stays behind as null: not what these are about.
FULL_SPECS = specs(1).filter(bool)


@given(SPECS, SPECS, SPECS)
def test_applying_again_changes_nothing(before: JsonObject, first: JsonObject, second: JsonObject) -> None:
    live = applied(applied(thing(**before), "one", force=True, **first), "two", force=True, **second)
    again = applied(live, "two", **second)
    assert keep_timestamps(again, live) == live


@given(SPECS, SPECS)
def test_applied_fields_are_set_and_owned(before: JsonObject, spec: JsonObject) -> None:
    live = applied(thing(**before), "one", force=True, **spec)
    for key in ("number", "plain"):
        if key in spec:
            assert live["spec"][key] == spec[key]
    assert set(spec.get("tags", ())) <= set(live["spec"].get("tags") or ())
    assert spec.get("labels", {}).items() <= (live["spec"].get("labels") or {}).items()
    mine = owned(live).get("one", {}).get("f:spec", {})
    assert {f"f:{key}" for key, item in spec.items() if item not in ({}, [])} <= mine.keys()


@given(FULL_SPECS, FULL_SPECS)
def test_fields_without_another_owner_are_removed_with_their_applier(
    first: JsonObject, second: JsonObject
) -> None:
    live = applied(applied(EMPTY, "one", **first), "two", force=True, **second)
    nothing = {**EMPTY, "metadata": {"name": "t"}}
    alone = apply(SCHEMA, live, nothing, by("one"), force=True, empty=EMPTY)
    only_two = applied(EMPTY, "two", **second)
    assert owned(alone) == owned(only_two)
    assert _in_order(alone["spec"]) == _in_order(only_two["spec"])


def _in_order(spec: JsonObject) -> JsonObject:
    """Sort keyed lists: their order may depend on earlier elements."""
    ports = sorted(spec.get("ports", ()), key=lambda port: (port["port"], port.get("proto", "TCP")))
    return {**spec, "tags": sorted(spec.get("tags", ())), "ports": ports}


@given(SPECS, SPECS, SPECS)
def test_every_field_of_an_object_created_by_apply_has_an_owner(
    first: JsonObject, second: JsonObject, third: JsonObject
) -> None:
    live = applied(EMPTY, "one", **first)
    live = applied(live, "two", force=True, **second)
    live = applied(live, "one", force=True, **third)
    everything = update_managed_fields(SCHEMA, EMPTY, {**live, "metadata": {"name": "t"}}, by("all"))
    paths = {path for path in leaves(owned(everything).get("all", {})) if path and path[-1] != "f:spec"}
    by_anyone = {path for fields in owned(live).values() for path in leaves(fields)}
    assert {path for path in paths if not _is_empty(live, path)} <= by_anyone | {
        path[:n] for path in by_anyone for n in range(len(path))
    }


def _is_empty(live: JsonObject, path: tuple[str, ...]) -> bool:
    """Return True if a path leads to an empty collection, which may remain when its elements are removed."""
    value: Any = live
    for element in path:
        if not element.startswith("f:") or not isinstance(value, dict):
            return False
        value = value.get(element[2:])
    return value in (None, {}, [])


@given(SPECS, SPECS)
def test_an_apply_without_force_takes_no_field_from_other_managers(
    first: JsonObject, second: JsonObject
) -> None:
    live = applied(EMPTY, "one", **first)
    try:
        after = applied(live, "two", **second)
    except ApplyConflicts:
        return
    assert owned(after).get("one") == owned(live).get("one")


@given(SPECS, SPECS)
def test_an_update_without_changes_records_no_manager(first: JsonObject, second: JsonObject) -> None:
    live = applied(applied(thing(), "one", **first), "two", force=True, **second)
    after = update_managed_fields(SCHEMA, live, live, by("other", "2030-01-01T00:00:00Z"))
    assert after == live


def test_an_update_takes_what_it_changes_from_all_others() -> None:
    live = applied(EMPTY, "one", number=1, labels={"a": "1", "b": "1"})
    new = {**live, "metadata": {"name": "t", "uid": "u"}, "spec": {"number": 2, "labels": {"b": "1"}}}
    assert owned(update_managed_fields(SCHEMA, live, new, by("two"))) == {
        "one": {"f:spec": {"f:labels": {"f:b": {}}}},
        "two": {"f:spec": {"f:number": {}}},
    }


def test_several_conflicts_are_grouped_by_manager() -> None:
    live = applied(applied(EMPTY, "one", number=1, labels={"a": "1"}), "two", tags=["x"], labels={"b": "1"})
    with pytest.raises(ApplyConflicts) as problem:
        applied(live, "three", number=2, labels={"a": "2", "b": "2"})
    assert str(problem.value) == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.number\n- .spec.labels.a\n'
        'conflicts with "two":\n- .spec.labels.b'
    )


def test_a_conflict_with_an_updater_names_version_and_subresource() -> None:
    new = {**thing(number=1), "metadata": {"name": "t"}}
    live = update_managed_fields(SCHEMA, EMPTY, new, by("upd", subresource="status"))
    with pytest.raises(ApplyConflicts) as problem:
        applied(live, "two", number=2)
    assert problem.value.conflicts[0].manager == '"upd" with subresource "status" using ex.io/v1'


def test_keys_are_noted_in_order_of_their_values() -> None:
    ports = [{"port": 443}, {"port": 80, "proto": "UDP"}, {"port": 80}]
    noted = owned(applied(EMPTY, "one", ports=ports))["one"]["f:spec"]["f:ports"]
    assert list(noted) == [
        'k:{"port":80,"proto":"TCP"}',
        'k:{"port":80,"proto":"UDP"}',
        'k:{"port":443,"proto":"TCP"}',
    ]


def test_members_of_both_lists_follow_the_applied_order() -> None:
    live = thing(tags=["a", "x", "b", "y", "c"])
    assert applied(live, "one", tags=["c", "n", "a"])["spec"]["tags"] == ["x", "b", "y", "c", "n", "a"]


def test_text_in_keys_is_escaped_as_the_real_server_does() -> None:
    noted = owned(applied(EMPTY, "one", tags=['<&"é']))["one"]["f:spec"]["f:tags"]
    assert list(noted) == ['v:"\\u003c\\u0026\\"é"']


def test_members_that_share_a_key_in_the_live_object_are_one() -> None:
    live = thing(ports=[{"port": 80, "note": "a"}, {"port": 80, "note": "b"}, {"port": 81}])
    new = thing(ports=[{"port": 80, "note": "a"}, {"port": 80, "note": "c"}, {"port": 81}])
    live = update_managed_fields(SCHEMA, EMPTY, {**live, "metadata": {"name": "t"}}, by("one", THEN))
    after = update_managed_fields(SCHEMA, live, new, by("two"))
    assert owned(after)["two"] == {"f:spec": {"f:ports": {'k:{"port":80,"proto":"TCP"}': {}}}}
    merged = applied(after, "three", force=True, ports=[{"port": 80, "note": "d"}])
    assert [port for port in merged["spec"]["ports"] if port["port"] == 80] == [{"port": 80, "note": "d"}]


def test_fields_of_an_untracked_object_belong_to_before_first_apply() -> None:
    live = applied(thing(number=1, tags=["a"]), "one", force=True, number=2)
    assert owned(live) == {
        "one": {"f:spec": {"f:number": {}}},
        "before-first-apply": {"f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}}},
    }


def test_untracked_objects_stay_so_through_updates() -> None:
    after = update_managed_fields(SCHEMA, thing(number=1), thing(number=2), by("one"))
    assert "managedFields" not in after["metadata"]


@pytest.mark.parametrize(
    ("entries", "asked"), [([], True), ([{}], True), ([{"manager": "x"}], False), (None, False), ("x", False)]
)
def test_an_empty_managed_fields_list_resets_ownership(entries: Any, asked: bool) -> None:
    assert resets_ownership({"metadata": {"managedFields": entries}}) is asked


def test_resetting_ownership_removes_all_managers() -> None:
    live = applied(thing(), "one", number=1)
    new = thing(number=2)
    assert "managedFields" not in update_managed_fields(SCHEMA, live, new, by("two"), reset=True)["metadata"]


def test_a_client_may_send_its_own_view_of_ownership_back() -> None:
    live = applied(applied(thing(), "one", number=1), "two", tags=["a"])
    new = {**live, "metadata": {**live["metadata"], "managedFields": live["metadata"]["managedFields"][:1]}}
    assert len(update_managed_fields(SCHEMA, live, new, by("three"))["metadata"]["managedFields"]) == 1
    on_status = update_managed_fields(SCHEMA, live, new, by("three", subresource="status"))
    assert on_status["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_invalid_entries_sent_by_a_client_are_ignored() -> None:
    live = applied(EMPTY, "one", number=1)
    new = {
        **live,
        "metadata": {**live["metadata"], "managedFields": [{"manager": "x", "operation": "Delete"}]},
    }
    assert owned(update_managed_fields(SCHEMA, live, new, by("two"))).keys() == {"one"}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"operation": "Delete"}, "operation must be `Apply` or `Update`"),
        ({"operation": "Apply"}, "apiVersion must not be empty"),
        ({"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        ({"operation": "Apply", "apiVersion": "v1", "fieldsType": "X"}, 'invalid fieldsType "X" in managed fields entry 0'),
    ],
)  # fmt: skip
def test_applying_to_an_object_with_broken_entries_fails(entry: JsonObject, text: str) -> None:
    live = thing()
    live["metadata"]["managedFields"] = [entry]
    with pytest.raises(ApplyError) as problem:
        applied(live, "one", number=1)
    assert str(problem.value) == text


def test_changed_times_alone_are_not_a_change() -> None:
    old = applied(EMPTY, "one", number=1)
    new = {
        **old,
        "metadata": {
            **old["metadata"],
            "managedFields": [{**old["metadata"]["managedFields"][0], "time": THEN}],
        },
    }
    assert keep_timestamps(new, old) == old
    assert keep_timestamps({**new, "spec": {"number": 2}}, old) != old


def test_managers_of_a_version_that_is_gone_are_dropped() -> None:
    def convert(value: JsonObject, api_version: str) -> tuple[JsonObject, MergeSchema] | None:
        return None if api_version == "ex.io/v0" else (value, SCHEMA)

    new = {**thing(number=1), "metadata": {"name": "t"}}
    live = update_managed_fields(SCHEMA, EMPTY, new, FieldWrite("old", "ex.io/v0", THEN))
    after = apply(SCHEMA, live, config(number=2), by("new"), empty=EMPTY, convert=convert)
    assert owned(after) == {"new": {"f:spec": {"f:number": {}}}}


def test_an_applier_in_another_version_is_the_same_applier() -> None:
    def convert(value: JsonObject, api_version: str) -> tuple[JsonObject, MergeSchema]:
        return {**value, "apiVersion": api_version}, SCHEMA

    live = apply(
        SCHEMA, EMPTY, config(number=1, tags=["a"]), FieldWrite("one", "ex.io/v1beta1", THEN), empty=EMPTY
    )
    after = apply(SCHEMA, live, config(tags=["a"]), by("one"), empty=EMPTY, convert=convert)
    assert [(e["manager"], e["apiVersion"]) for e in after["metadata"]["managedFields"]] == [
        ("one", "ex.io/v1")
    ]
    assert after["spec"] == {"tags": ["a"]}
    assert after["apiVersion"] == "ex.io/v1"


def test_field_sets_recorded_before_a_field_became_atomic_shrink_to_the_field() -> None:
    whole = {
        **SPEC,
        "properties": {
            **SPEC["properties"],
            "labels": {**SPEC["properties"]["labels"], "x-kubernetes-map-type": "atomic"},
        },
    }
    later = merge_schema_of_crd({"type": "object", "properties": {"spec": whole}})
    live = applied(EMPTY, "one", labels={"a": "1"})
    after = apply(later, live, config(number=1), by("two"), empty=EMPTY)
    assert owned(after)["one"] == {"f:spec": {"f:labels": {}}}


def test_true_and_1_are_different_values() -> None:
    live = applied(EMPTY, "one", any={"x": 1, "l": [1]})
    new = {**live, "spec": {"any": {"x": True, "l": [True]}}}
    assert owned(update_managed_fields(SCHEMA, live, new, by("two")))["two"] == {
        "f:spec": {"f:any": {"f:l": {}, "f:x": {}}}
    }


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"bogus": 1}, ".spec.bogus: field not declared in schema"),
        ({"number": "x"}, ".spec.number: expected numeric (int or float), got string"),
        ({"number": [1]}, ".spec.number: expected numeric (int or float), got []interface {}"),
        ({"labels": {"a": 1}}, ".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"labels": []}, ".spec.labels: expected map, got &{[]}"),
        ({"tags": "x"}, ".spec.tags: expected list, got &{x}"),
        ({"tags": [None]}, ".spec.tags: element 0: associative list without keys has an element that's an explicit null"),
        ({"tags": [{}]}, ".spec.tags: element 0: associative list without keys has an element that's a map type"),
        ({"ports": ["x"]}, ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        ({"ports": [{"port": 1}, {"port": 1}]}, '.spec.ports: duplicate entries for key [port=1,proto="TCP"]'),
        ({"ports": [{"port": 1, "x": 1}]}, '.spec.ports[port=1,proto="TCP"].x: field not declared in schema'),
        ({"plain": ["a", 5]}, ".spec.plain[1]: expected string, got &value.valueUnstructured{Value:5}"),
        ({"number": "x", "labels": 1}, "errors:\n  .spec.number: expected numeric (int or float), got string\n  .spec.labels: expected map, got &{1}"),
    ],
)  # fmt: skip
def test_refuses_configurations_that_do_not_fit_the_schema(spec: JsonObject, text: str) -> None:
    with pytest.raises(ApplyError) as problem:
        applied(EMPTY, "one", **spec)
    assert str(problem.value) == f"failed to create typed patch object (/t; ex.io/v1, Kind=Thing): {text}"
