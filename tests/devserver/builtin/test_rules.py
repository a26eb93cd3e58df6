"""Rows of a path and rules: where they look, in which order they report, and what they fill in."""

from typing import Any

import pytest

from kubewright.api import FieldError, names
from kubewright.devserver.builtin.rules import (
    absent,
    at_least,
    between,
    changes,
    defaults,
    distinct,
    each,
    each_once,
    first,
    fits,
    fixed,
    given,
    immutable,
    max_bytes,
    missing,
    named,
    one_of,
    required,
    rules,
    unique,
    unset,
    validated,
)


def fields(errors: list[FieldError]) -> list[str]:
    return [error.field for error in errors]


def texts(errors: Any) -> list[str]:
    return [str(error) for error in errors]


def test_treats_a_missing_object_as_empty() -> None:
    assert fields(rules(("spec.handler", required())).validate({})) == ["spec.handler"]


def test_stops_at_an_optional_field_that_is_not_set() -> None:
    checked = rules(("spec.service?.name", required()))
    assert checked.validate({"spec": {"service": None}}) == []
    assert fields(checked.validate({"spec": {"service": {}}})) == ["spec.service.name"]


def test_checks_every_item_of_a_list() -> None:
    checked = rules(("drivers[].name", required()))
    assert fields(checked.validate({"drivers": [{"name": "a"}, {}, {"name": ""}]})) == [
        "drivers[1].name",
        "drivers[2].name",
    ]


def test_runs_neighbouring_rows_of_one_list_item_by_item() -> None:
    checked = rules(("drivers[].name", required()), ("drivers[].id", required()), ("last", required()))
    assert fields(checked.validate({"drivers": [{}, {}]})) == [
        "drivers[0].name",
        "drivers[0].id",
        "drivers[1].name",
        "drivers[1].id",
        "last",
    ]


def test_checks_only_items_that_have_the_value_of_a_condition() -> None:
    checked = rules(("subjects[kind=User].user", required()))
    assert fields(checked.validate({"subjects": [{"kind": "Group"}, {"kind": "User"}]})) == [
        "subjects[1].user"
    ]


@pytest.mark.parametrize(
    ("condition", "spec", "checked"),
    [
        ("type=A", {"type": "A"}, True),
        ("type=A", {"type": "B"}, False),
        ("type!=A", {"type": "B"}, True),
        ("type!=A", {}, True),
        ("type!=A", {"type": "A"}, False),
        ("type=A|B", {"type": "B"}, True),
        ("type=A|B", {"type": "C"}, False),
        ("type!=A|B", {"type": "B"}, False),
        ("suspend=true", {"suspend": True}, True),
        ("suspend!=true", {}, True),
        ("service", {"service": {}}, True),
        ("service", {"service": ""}, False),
        ("!service", {}, True),
        ("!service", {"service": []}, True),
        ("!service", {"service": {}}, False),
    ],
)
def test_goes_on_only_if_the_condition_holds(condition: str, spec: Any, checked: bool) -> None:
    errors = rules((f"spec{{{condition}}}.name", required())).validate({"spec": spec})
    assert fields(errors) == (["spec.name"] if checked else [])


def test_applies_conditions_to_every_item_of_a_list() -> None:
    checked = rules(("rules[]{!verbs}{kind=A}", missing("say what")))
    assert fields(
        checked.validate({"rules": [{"kind": "A", "verbs": ["x"]}, {"kind": "A"}, {"kind": "B"}]})
    ) == ["rules[1]"]


def test_uses_compiled_rows_as_a_rule_of_other_rows() -> None:
    target = rules(("name", required()), ("port", at_least(1, "must be positive")))
    assert fields(rules(("spec.targets[]", target)).validate({"spec": {"targets": [{}]}})) == [
        "spec.targets[0].name",
        "spec.targets[0].port",
    ]


def test_refuses_a_path_that_it_cannot_read() -> None:
    with pytest.raises(ValueError, match="spec-x"):
        rules(("spec-x.name", required())).validate({})


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        (absent("cannot be set"), None, []),
        (absent("cannot be set"), 0, ["f: Forbidden: cannot be set"]),
        (unset("cannot be set"), False, ["f: Invalid value: false: cannot be set"]),
        (named(names.dns1123_label), None, []),
        (named(names.dns1123_label, required=True), "", ["f: Required value"]),
        (named(names.dns1123_label, required="say which"), None, ["f: Required value: say which"]),
        (one_of("A", "B"), "A", []),
        (one_of("A", "B"), None, ['f: Unsupported value: "": supported values: "A", "B"']),
        (one_of("A", "B", required=True), None, ["f: Required value"]),
        (between(1, 3, "1 to 3"), 3, []),
        (between(1, 3, "1 to 3"), None, ["f: Invalid value: 0: 1 to 3"]),
        (max_bytes(2), "é", []),
        (max_bytes(2), "éa", ["f: Too long: may not be more than 2 bytes"]),
        (each(one_of("A")), ["A", "B"], ['f: Unsupported value: "B": supported values: "A"']),
        (distinct, ["A", "B", "A"], ['f[2]: Duplicate value: "A"']),
        (each_once(one_of("A", "B")), ["A", "A", "B"], ['f[1]: Duplicate value: "A"']),
        (missing("say which"), None, ["f: Required value: say which"]),
        (given(one_of("A"), "say which"), None, ["f: Required value: say which"]),
        (given(one_of("A")), "", ['f: Unsupported value: "": supported values: "A"']),
        (first(required(), max_bytes(1)), "", ["f: Required value"]),
        (first(required(), max_bytes(1)), "ab", ["f: Too long: may not be more than 1 byte"]),
        (fits(str.islower, "must be lower case"), "A", ['f: Invalid value: "A": must be lower case']),
        (unique("name"), [{"name": ""}, {"name": ""}], ['f[1].name: Duplicate value: ""']),
        (unique("name", empty=False), [{"name": ""}, {"name": ""}], []),
    ],
)
def test_reports_a_value_against_its_rule(rule: Any, value: Any, expected: list[str]) -> None:
    assert texts(rule("f", value)) == expected


def test_checks_an_empty_name_on_request() -> None:
    assert len(texts(named(names.dns1123_label, empty=True)("f", None))) == 1


def test_reports_a_changed_immutable_field_after_the_checks_before_it() -> None:
    checked = changes(rules(("a", required())).validate_update, immutable("b.c"))
    assert texts(checked({"b": {"c": 1}}, {"b": {"c": 2}})) == [
        "a: Required value",
        "b.c: Invalid value: 1: field is immutable",
    ]
    assert checked({"a": 1, "b": {}}, {"a": 1}) == []


def test_runs_the_checks_of_a_new_object_and_of_its_change_in_an_update() -> None:
    checked = validated(rules(("a", required())), immutable("b"), first=[fixed("c", text="{} cannot change")])
    assert texts(checked["validate"]({})) == ["a: Required value"]
    assert texts(checked["validate_update"]({"b": 1, "c": 1}, {})) == [
        "c: Forbidden: c cannot change",
        "a: Required value",
        "b: Invalid value: 1: field is immutable",
    ]


def test_fills_in_defaults_of_items_that_have_the_value_of_a_condition() -> None:
    binding: Any = {"subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}
    defaults(("subjects[kind=User|Group].apiGroup", "rbac"))(binding)
    assert binding == {"subjects": [{"kind": "User", "apiGroup": "rbac"}, {"kind": "ServiceAccount"}]}


def test_fills_in_defaults_where_a_field_is_missing() -> None:
    fill = defaults(("spec.mode", ["Persistent"]), ("spec.share", 30), ("spec.queues!", 64))
    obj: Any = {"spec": {"share": 0, "queues": 0, "mode": []}}
    fill(obj)
    assert obj == {"spec": {"share": 0, "queues": 64, "mode": ["Persistent"]}}


def test_fills_in_defaults_of_a_missing_object_only_if_it_is_not_optional() -> None:
    obj: Any = {}
    defaults(("spec.mode", "A"), ("status?.phase", "Pending"))(obj)
    assert obj == {"spec": {"mode": "A"}}


def test_fills_in_defaults_of_every_item_with_a_copy() -> None:
    obj: Any = {"ports": [{}, {"modes": ["x"]}, {}]}
    defaults(("ports[].modes", ["y"]))(obj)
    obj["ports"][0]["modes"].append("z")
    assert obj == {"ports": [{"modes": ["y", "z"]}, {"modes": ["x"]}, {"modes": ["y"]}]}
