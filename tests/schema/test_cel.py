"""CEL expressions outside of schemas: admission policies, match conditions, and arbitrary input."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.schema.cel import (
    AUTHORIZER,
    BOOL,
    DYN,
    INT,
    STRING,
    AuthorizationCheck,
    AuthorizationDecision,
    Authorizer,
    CelEnvironment,
    CompileError,
    CostExceeded,
    EvaluationError,
    InstantiationFailed,
    authorization_library,
    called_functions,
    escape,
    list_of,
    map_of,
)  # fmt: skip

POLICY = CelEnvironment(
    {"object": DYN, "oldObject": DYN, "request": DYN, "params": DYN, "variables": map_of(STRING, DYN)}
)
REQUEST: dict[str, Any] = {
    "object": {"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"replicas": 3}},
    "oldObject": None,
    "request": {"operation": "CREATE", "userInfo": {"groups": ["system:masters"]}},
    "params": {"limit": 5},
    "variables": {"big": False},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas <= params.limit", True),
        ("oldObject == null && request.operation == 'CREATE'", True),
        ("'system:masters' in request.userInfo.groups", True),
        ("has(object.metadata.labels) && 'x' in object.metadata.labels", True),
        ("object.metadata.?annotations[?'y'].orValue('none')", "none"),
        ("variables.big", False),
        ("object.spec.replicas > 2 ? 'many' : 'few'", "many"),
        ("object.spec.replicas + 1", 4),
        ("object.metadata.name.startsWith('a')", True),
    ],
)
def test_evaluates_expressions_of_policies(text: str, expected: object) -> None:
    assert POLICY.compile(text).evaluate(dict(REQUEST)) == expected


def test_evaluation_does_not_change_the_variables() -> None:
    variables = {"x": [1, 2], "y": 5}
    program = CelEnvironment({"x": list_of(INT), "y": INT}).compile("x.all(y, y > 0) && y == 5")
    assert program.evaluate(variables) is True
    assert variables == {"x": [1, 2], "y": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("object.spec.nope", "no such key: nope"),
        ("object.spec.replicas.x", "no such key: x"),
        ("object.spec.replicas['x']", "no such key: x"),
        ("oldObject.metadata.name.lowerAscii()", "no such key: metadata"),
        ("request.userInfo.groups.map(g, dyn([g]))[0].x", "unsupported index type 'string' in list"),
        ("has(dyn(request.userInfo.groups).x)", "unsupported index type 'string' in list"),
        ("object.spec.replicas + 'a'", "no such overload"),
        ("request.userInfo.groups[9]", "index out of bounds: 9"),
        ("object.spec.replicas / 0", "division by zero"),
    ],
)
def test_evaluation_errors_have_the_messages_of_the_server(text: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message.replace("(", r"\(")):
        POLICY.compile(text).evaluate(dict(REQUEST))


def test_the_result_type_is_known_after_compilation() -> None:
    environment = CelEnvironment({"n": INT, "s": STRING})
    assert environment.compile("n > 1").type == BOOL
    assert environment.compile("s + 'x'").type == STRING
    assert environment.compile("[n].map(x, string(x))").type == list_of(STRING)


def test_evaluation_stops_at_the_cost_limit() -> None:
    program = CelEnvironment({"l": list_of(INT)}).compile("l.all(x, l.all(y, l.all(z, x + y + z >= 0)))")
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"l": list(range(200))})
    assert program.evaluate({"l": [1, 2]}) is True


def test_the_cost_limit_allows_two_authorization_checks() -> None:
    asked: list[AuthorizationCheck] = []

    def answer(question: AuthorizationCheck) -> AuthorizationDecision:
        asked.append(question)
        return AuthorizationDecision(question.verb == "get", "because")

    environment = CelEnvironment({"authorizer": AUTHORIZER}, functions=authorization_library())
    check = "authorizer.group('apps').resource('deployments').namespace('x').name('y').check('get').allowed()"
    path = "authorizer.serviceAccount('n', 's').path('/healthz').check('post').reason() == 'because'"
    assert environment.compile(f"{check} && {path}").evaluate({"authorizer": Authorizer(answer)}) is True
    assert asked == [
        AuthorizationCheck(verb="get", group="apps", resource="deployments", namespace="x", name="y"),
        AuthorizationCheck(verb="post", path="/healthz", service_account=("n", "s")),
    ]
    with pytest.raises(CostExceeded):
        environment.compile(f"{check} && {check} && {check}").evaluate({"authorizer": Authorizer(answer)})


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("int", "int"),
        ("1a", None),
        ("a b", None),
        ("", None),
    ],
)
def test_escapes_property_names_for_rules(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 5000 + "]" * 5000,
        " + ".join(["1"] * 5000),
        "x" + ".a" * 5000,
        "string(" * 5000 + "1" + ")" * 5000,
    ],
)
def test_rejects_expressions_that_nest_too_deeply(text: str) -> None:
    with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
        CelEnvironment({"x": DYN}).compile(text)


def test_a_long_chain_of_conditions_does_not_count_as_nesting() -> None:
    program = CelEnvironment({"n": INT}).compile(" && ".join(["n > 0"] * 2000))
    assert program.evaluate({"n": 1}) is True


_WORDS = st.sampled_from(
    [
        "self",
        "x",
        ".",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "&&",
        "||",
        "!",
        "in",
        "true",
        "null",
        "1",
        "2.5",
        "1u",
        "'a'",
        "b'b'",
        "all",
        "exists",
        "map",
        "has",
        "size",
        ".?",
        "[?",
    ]
)


@given(st.lists(_WORDS, max_size=12).map(" ".join))
def test_any_expression_has_a_value_or_a_known_error(text: str) -> None:
    with contextlib.suppress(CompileError, EvaluationError):
        CelEnvironment({"self": DYN, "x": list_of(INT)}).compile(text).evaluate(
            {"self": {"a": 1}, "x": [1, 2]}
        )


@given(st.text(max_size=30))
def test_any_text_compiles_or_raises_compile_error(text: str) -> None:
    with contextlib.suppress(CompileError, EvaluationError):
        CelEnvironment({}).compile(text)


@pytest.mark.parametrize(
    "text",
    ["'abc'.charAt(number)", "'abc'.substring(number, 2)", "'abc'.replace('a', word, number)", "word.trim()"],
)
def test_a_value_of_another_type_than_declared_is_no_such_overload(text: str) -> None:
    """An object that was stored in another version may not fit the schema that an expression was checked by."""
    program = CelEnvironment({"number": INT, "word": STRING}).compile(text)
    with pytest.raises(EvaluationError, match="no such overload"):
        program.evaluate({"number": {}, "word": []})


def test_a_constant_that_cannot_be_converted_fails_with_the_type_of_the_expression() -> None:
    with pytest.raises(InstantiationFailed, match="type conversion error from 'string' to 'int'") as failed:
        CelEnvironment({}).compile("int('x') > 1")
    assert failed.value.type == BOOL


def test_the_first_overload_decides_the_type_of_an_empty_list() -> None:
    assert CelEnvironment({"d": DYN}).compile("[].map(x, x + d).map(x, x.size())").type == list_of(INT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size(self.a) > 1", {"size", "_>_"}),
        ("self.all(x, lists.range(3)[0] == x)", {"all", "lists.range", "range", "_[_]", "_==_"}),
        ("self.all(i, x, x > i)", {"all/2", "_>_"}),
        ("self.", set()),
    ],
)
def test_the_functions_macros_and_operators_of_an_expression_are_found(text: str, expected: set[str]) -> None:
    assert called_functions(text) == expected
