"""The API of the CEL environment: types, declarations, functions and variables."""

from typing import Any

import pytest

from kubewright.schema.cel import (
    AUTHORIZER,
    BOOL,
    BYTES,
    CALL_LIMIT,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    RESOURCE_CHECK,
    STRING,
    TIMESTAMP,
    AuthorizationCheck,
    AuthorizationDecision,
    Authorizer,
    CelEnvironment,
    CompileError,
    CostExceeded,
    DeclaredType,
    Library,
    Program,
    ResourceCheck,
    Type,
    authorization_library,
    declare,
    list_of,
    map_of,
    opaque,
    struct,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", BOOL),
        ("b'x'", BYTES),
        ("1.5", DOUBLE),
        ("duration('1s')", DURATION),
        ("1", INT),
        ("'x'", STRING),
        ("timestamp('2020-01-01T00:00:00Z')", TIMESTAMP),
        ("dyn(1)", DYN),
        ("[1]", list_of(INT)),
        ("{'a': 1.5}", map_of(STRING, DOUBLE)),
        ("ip('10.0.0.1')", opaque("net.IP")),
        ("quantity('1')", struct("kubernetes.Quantity")),
    ],
)
def test_an_expression_has_a_type(text: str, expected: Type) -> None:
    program = CelEnvironment({}).compile(text)
    assert isinstance(program, Program)
    assert program.type == expected


def test_a_program_has_its_source_names_and_cost() -> None:
    program = CelEnvironment({"a": INT, "b": INT}).compile("a > 1")
    assert (program.source, program.names, program.greatest_cost) == ("a > 1", {"a"}, 2)
    assert program.run({"a": 2}) == (True, 2)


def test_an_evaluation_has_a_limit() -> None:
    assert CALL_LIMIT == 1_000_000
    with pytest.raises(CostExceeded):
        CelEnvironment({"a": list_of(INT)}).compile("a.all(x, x > 0)").evaluate({"a": [1] * 9}, limit=5)


def test_a_schema_declares_the_fields_that_expressions_can_use() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "a-b": {"type": "string", "maxLength": 5},
        },
    }
    declared = declare(schema, name="Thing")
    assert isinstance(declared, DeclaredType)
    assert declared.type == struct("Thing")
    assert {name: field.type for name, field in declared.fields.items()} == {
        "size": INT,
        "at": TIMESTAMP,
        "a__dash__b": STRING,
    }
    environment = CelEnvironment({"self": declared})
    given = {"self": {"size": 3, "at": "2020-01-02T00:00:00Z", "a-b": "x"}}
    assert environment.compile("self.at.getDayOfMonth() + self.size").evaluate(given) == 4
    assert environment.compile("self.a__dash__b").evaluate(given) == "x"
    with pytest.raises(CompileError, match="undefined field 'nope'"):
        environment.compile("self.nope")
    assert declare({"x-kubernetes-preserve-unknown-fields": True}) is None


def test_functions_can_be_added() -> None:
    library = Library()
    library.add("shout", "shout_string", (STRING,), STRING, str.upper)
    library.method("twice", "int_twice", (INT,), INT, lambda number: number * 2)
    environment = CelEnvironment({}, functions=library)
    assert environment.compile("shout('a') + string(4.twice())").evaluate({}) == "A8"
    with pytest.raises(CompileError, match="found no matching overload for 'shout' applied to"):
        environment.compile("shout(1)")


def test_expressions_can_check_the_authorization_of_a_request() -> None:
    asked: list[AuthorizationCheck] = []

    def answer(question: AuthorizationCheck) -> AuthorizationDecision:
        asked.append(question)
        return AuthorizationDecision(allowed=True)

    environment = CelEnvironment(
        {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK},
        functions=authorization_library(),
    )
    about = ResourceCheck(answer, AuthorizationCheck(resource="pods", namespace="n"))
    given = {"authorizer": Authorizer(answer), "authorizer.requestResource": about}
    assert environment.compile("authorizer.requestResource.check('get').allowed()").evaluate(given) is True
    assert asked == [AuthorizationCheck(verb="get", resource="pods", namespace="n")]
