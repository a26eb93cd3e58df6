"""Objects that CEL expressions create, as in mutating admission policies, with the answers of a real API server."""

from typing import Any

import pytest

from kubewright.schema.cel import (
    DYN,
    INT,
    JSON_PATCH,
    OBJECT,
    STRING,
    CelEnvironment,
    CelMessage,
    CompileError,
    EvaluationError,
    MessageType,
    list_of,
    misplaced,
    mutation_library,
    to_json,
)  # fmt: skip

MUTATION = CelEnvironment(
    {"object": DYN, "count": INT}, functions=mutation_library(), messages=[OBJECT, JSON_PATCH]
)


def made(text: str) -> Any:
    return MUTATION.compile(text).evaluate({"object": {"metadata": {}}, "count": 3})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Object{}", {}),
        (".Object{}", {}),
        ("Object{,}", {}),
        ("Object{spec: Object.spec{replicas: count},}", {"spec": {"replicas": 3}}),
        (
            "Object{spec: Object.spec{for: [1, 2], namespace: 'x'}}",
            {"spec": {"for": [1, 2], "namespace": "x"}},
        ),
        ("Object{metadata: Object.metadata{labels: {'a': 'b'}}}", {"metadata": {"labels": {"a": "b"}}}),
        ("Object{?a: optional.of(1), ?b: optional.none()}", {"a": 1}),
        ("Object{a: 1, a: 2}", {"a": 2}),
        ("Object{a: [1, 2, 3]}.a.sum()", 6),
        ("has(Object{a: 1}.a) && !has(Object{}.a)", True),
        ("Object{a: 1} == Object{a: 2 - 1}", True),
        ("dyn(Object{a: 1}) == dyn(Object.a{a: 1})", False),
        ("dyn(Object{a: 1}) == dyn({'a': 1})", False),
        ("string(type(Object.spec{}) == type(1))", "false"),
        ("optional.ofNonZeroValue(Object{}).hasValue()", False),
        ("true ? Object{} : null", {}),
        (
            "JSONPatch{op: 'add', path: '/spec/x', value: Object.spec.x{a: 1}}",
            {"op": "add", "path": "/spec/x", "value": {"a": 1}},
        ),
        ("JSONPatch{op: 'remove'}.path", ""),
        ("has(JSONPatch{op: 'remove'}.path)", False),
        (
            "'/metadata/labels/' + jsonpatch.escapeKey('k8s.io/my~label')",
            "/metadata/labels/k8s.io~1my~0label",
        ),
    ],
)
def test_expressions_create_objects(text: str, expected: object) -> None:
    assert made(text) == expected


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("Invalid{}", 8, "undeclared reference to 'Invalid' (in container '')"),
        ("[JSONPatch.x{op: 'x'}]", 13, "undeclared reference to 'JSONPatch.x' (in container '')"),
        ("kubernetes.Quantity{}", 20, "undeclared reference to 'kubernetes.Quantity' (in container '')"),
        ("object{}", 7, "undeclared reference to 'object' (in container '')"),
        ("int{}", 4, "'int' is not a message type"),
        ("Object{?data: 1}", 15, "expected type 'optional_type(int)' but found 'int'"),
        ('Object{data: {"a": 1, "b": "x"}}', 28, "expected type 'int' but found 'string'"),
        ("Object{a: nope}", 11, "undeclared reference to 'nope' (in container '')"),
        ("[JSONPatch{op: 1}]", 14, "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("[JSONPatch{op:null}]", 14, "expected type of field 'op' is 'string' but provided type is 'null'"),
        ("[JSONPatch{nope: 1}]", 16, "expected type of field 'nope' is '' but provided type is 'int'"),
        ("Object{`a-b`: 1}", 8, "unsupported syntax: '`'"),
        ("object.metadata.`a-b` == 1", 17, "unsupported syntax: '`'"),
        (
            "Object{in: 1}",
            8,
            "Syntax error: mismatched input 'in' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
        ),
        ('Object{namespace: 1, "x": 2}', 22, "Syntax error: mismatched input '\"x\"' expecting '}'"),
        ("Object{a 1}", 10, "Syntax error: missing ':' at '1'"),
        (
            "type(quantity('1')) == kubernetes.Quantity",
            24,
            "undeclared reference to 'kubernetes' (in container '')",
        ),
        (
            "true ? Object{} : Object.spec{}",
            6,
            "found no matching overload for '_?_:_' applied to '(bool, Object, Object.spec)'",
        ),
    ],
)
def test_rejects_invalid_objects_with_the_messages_of_the_server(text: str, at: int, message: str) -> None:
    with pytest.raises(CompileError) as refusal:
        MUTATION.compile(text)
    assert str(refusal.value).splitlines()[0] == f"ERROR: <input>:1:{at}: {message}"


def test_types_are_known_after_compilation() -> None:
    assert MUTATION.compile("Object{}").type == OBJECT.type
    assert str(MUTATION.compile("Object.spec{}").type) == "Object.spec"
    assert MUTATION.compile("[JSONPatch{op: dyn(1)}]").type == list_of(JSON_PATCH.type)
    assert MUTATION.compile("Object{spec: 1}.spec").type == DYN
    assert MUTATION.compile("JSONPatch{}.op").type == STRING
    assert MUTATION.compile("JSONPatch{}.nope").type == DYN


def test_type_names_are_not_values() -> None:
    with pytest.raises(EvaluationError, match="reference to undefined type: Object"):
        MUTATION.compile("type(Object{}) == Object")


def test_dynamic_values_are_checked_at_evaluation() -> None:
    with pytest.raises(EvaluationError, match="for JSONPatchType 'op' field"):
        made("JSONPatch{op: dyn(1)}")


def test_objects_have_a_cost() -> None:
    program = MUTATION.compile("Object{spec: Object.spec{replicas: 1}}")
    assert program.run({})[1] == program.greatest_cost == 80


def test_rejects_objects_whose_type_does_not_match_their_path() -> None:
    right = made("Object{spec: Object.spec{list: [Object.spec.list{a: 1}], map: {'x': Object.spec.map{}}}}")
    assert isinstance(right, CelMessage)
    assert right.type_name == "Object"
    assert misplaced(right) == []
    wrong = made("Object{spec: Object.spec{selector: Object.spec.wrong{}}}")
    expected = (
        'unexpected type name "Object.spec.wrong", expected "Object.spec.selector", '
        "which matches field name path from root Object type"
    )
    assert misplaced(wrong) == [expected]


def test_converts_values_to_json() -> None:
    text = "Object{a: b'xy', b: duration('90s'), c: timestamp('2020-01-02T03:04:05Z'), d: 2.0, e: {1: true}, f: 1u}"
    assert to_json(made(text)) == {
        "a": "eHk=",
        "b": "90s",
        "c": "2020-01-02T03:04:05Z",
        "d": 2,
        "e": {"1": True},
        "f": 1,
    }
    assert to_json(2**60) == str(2**60)
    with pytest.raises(EvaluationError, match=r"a value of type net\.IP has no form in JSON"):
        to_json(made("Object{a: ip('10.0.0.1')}"))


def test_an_environment_without_message_types_has_none() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'Object'"):
        CelEnvironment({}).compile("Object{}")


def test_custom_message_types_can_be_declared() -> None:
    environment = CelEnvironment({}, messages=[MessageType("Point", {"x": INT, "y": INT})])
    assert environment.compile("Point{x: 1, y: 2}.x").evaluate({}) == 1
