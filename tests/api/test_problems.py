"""What is wrong with a field, in the server's words."""

from typing import Any

import pytest

import kubewright as kw
from kubewright.api import FieldError, invalid_message, problems


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (problems.invalid("a", 5, "no"), "a: Invalid value: 5: no"),
        (problems.invalid("a", "x\n", ""), 'a: Invalid value: "x\\n"'),
        (problems.invalid("a", {"b": 1, "a": "<"}, "no"), 'a: Invalid value: {"b":1,"a":"\\u003c"}: no'),
        (problems.type_invalid("a", True, "no"), "a: Invalid value: true: no"),
        (problems.required("a"), "a: Required value"),
        (problems.required("a", "say it"), "a: Required value: say it"),
        (problems.duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"'),
        (
            problems.not_supported("a", "x", ["y", "z"]),
            'a: Unsupported value: "x": supported values: "y", "z"',
        ),
        (problems.forbidden("a", "no"), "a: Forbidden: no"),
        (problems.too_long("a", 1), "a: Too long: may not be more than 1 byte"),
        (problems.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
        (problems.not_found("a", "x"), 'a: Not found: "x"'),
        (problems.internal("a", "oops"), "a: Internal error: oops"),
    ],
)
def test_field_errors_have_the_messages_of_the_server(error: FieldError, text: str) -> None:
    assert str(error) == text
    assert error.cause() == {"reason": error.type, "message": error.message, "field": error.field}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (100000.0, "100000"),
        (1234567.5, "1.2345675e+06"),
        (1e21, "1e+21"),
        (1e-5, "1e-05"),
        (0.0, "0"),
        (-2.0, "-2"),
    ],
)
def test_writes_numbers_as_go_does(value: Any, text: str) -> None:
    assert problems.number(value) == text


def test_all_field_errors_are_in_one_message() -> None:
    one, two = problems.required("a"), problems.required("b")
    assert (
        invalid_message("Foo.example.com", "x", [one]) == 'Foo.example.com "x" is invalid: a: Required value'
    )
    assert (
        invalid_message("Foo", "x", [one, two, one])
        == 'Foo "x" is invalid: [a: Required value, b: Required value]'
    )
    assert invalid_message("Foo", "", []) == 'Foo "" is invalid'


def test_reports_a_value_that_must_be_unique() -> None:
    found = kw.admission.duplicate("spec.ports[1].name", "web")
    assert str(found) == 'spec.ports[1].name: Duplicate value: "web"'
