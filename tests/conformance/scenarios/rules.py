"""Validation rules of custom resources: what CEL sees, messages, costs, and errors in rules."""

from typing import Any

from conformance_exchange import Step

C = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "rules.ex.io"
P = f"/apis/{GROUP}/v1/namespaces/rules/things"
S = f"/apis/{GROUP}/v1/namespaces/rules/scaleds"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def rule(expression: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"rule": expression, **({"message": message} if message else {}), **more}


SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["low"],
    "x-kubernetes-validations": [
        rule("self.low <= self.high", "low must not exceed high"),
        rule("!has(self.name) || self.name != 'bad'", reason="FieldValueForbidden", fieldPath=".name"),
        rule(
            "!has(self.name) || self.name.size() < 6",
            messageExpression="'name ' + self.name + ' is too long'",
        ),
        rule("!has(oldSelf.fixed) || (has(self.fixed) && self.fixed == oldSelf.fixed)", "fixed is fixed"),
    ],
    "properties": {
        "low": {"type": "integer", "x-kubernetes-validations": [rule("self >= 0")]},
        "high": {"type": "integer", "default": 10},
        "name": {"type": "string", "maxLength": 20},
        "fixed": {"type": "string", "maxLength": 20},
        "grows": {"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf", "only up")]},
        "first": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [
                rule(
                    "!oldSelf.hasValue() || oldSelf.value() == self",
                    "set once",
                    optionalOldSelf=True,
                )
            ],
        },
        "amount": {"type": "string", "maxLength": 20},
        "items": {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string", "maxLength": 10}, "n": {"type": "integer"}},
                "required": ["key"],
                "x-kubernetes-validations": [rule("!has(self.n) || self.n < 10", "n is small")],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
            "x-kubernetes-validations": [
                rule("self.all(x, x.key != 'no')"),
                rule("self.map(x, has(x.n) ? x.n : 0).sum() <= 15", "sum is small"),
            ],
        },
        "labels": {
            "type": "object",
            "maxProperties": 5,
            "additionalProperties": {"type": "string", "maxLength": 10},
            "x-kubernetes-validations": [rule("self.all(k, k.matches('^[a-z]+$'))", "keys are words")],
        },
        "dash-ed": {"type": "string", "maxLength": 5},
        "quantity": {"x-kubernetes-int-or-string": True},
    },
}
ROOT = {
    "type": "object",
    "properties": {"spec": SPEC, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "x-kubernetes-validations": [
        rule("self.metadata.name != 'forbidden'", "this name is taken"),
        rule("!has(self.spec.dash__dash__ed) || self.spec.dash__dash__ed == 'x'"),
    ],
}


def definition(plural: str, schema: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "kind": plural[:-1].capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


SCALED = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "maximum": 10},
                "name": {"type": "string", "maxLength": 3},
                "names": {
                    "type": "array",
                    "maxItems": 5,
                    "items": {"type": "string", "maxLength": 5},
                    "x-kubernetes-list-type": "set",
                },
            },
            "x-kubernetes-validations": [rule("!has(self.replicas) || self.replicas != -2", "not minus two")],
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def scaled_definition() -> dict[str, Any]:
    found = definition("scaleds", SCALED)
    found["spec"]["versions"][0]["subresources"]["scale"] = SCALE
    return found


def reported(body: Any, values: Any) -> Any:
    """Compare the message too: here the order of its parts is fixed."""
    return [body.get("message"), body.get("details")]


def scaled(name: str, /, **spec: Any) -> Step:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Scaled", "metadata": {"name": name}, "spec": spec}
    return Step(f"scaled-{name}", "POST", S, body, pick=reported)


def scaled_status(name: str, status: Any) -> Step:
    return Step(
        f"scaled-status-{name}", "PATCH", f"{S}/base/status", {"status": status}, MERGE, pick=reported
    )


def thing(name: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"low": 1, **spec},
    }


def create(name: str, /, **spec: Any) -> Step:
    return Step(f"create-{name}", "POST", P, thing(name, **spec))


def change(step: str, name: str, /, **spec: Any) -> Step:
    return Step(step, "PATCH", f"{P}/{name}", {"spec": spec}, MERGE)


def bad(name: str, expression: str, properties: Any = None, **more: Any) -> Step:
    part = {
        "type": "object",
        "properties": properties or {"a": {"type": "integer"}, "s": {"type": "string"}},
        "x-kubernetes-validations": [rule(expression, **more)],
    }
    schema = {"type": "object", "properties": {"spec": part}}
    return Step(f"bad-{name}", "POST", C, definition(f"bad{name.replace('-', '')}s", schema))


ENDLESS = {
    "l": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
}
STRINGS = {"type": "array", "items": {"type": "string"}}


def established(status: int, body: Any) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "rules"}}, compared=False),
    Step("define", "POST", C, definition("things", ROOT)),
    Step("established", "GET", f"{C}/things.{GROUP}", until=established, compared=False),
    Step("served", "GET", P, until=lambda status, _: status == 200),
    create("fine"),
    create("low", low=20),
    create("negative", low=-1),
    create("named", name="bad"),
    create("long", name="toolong"),
    create("two", low=20, name="bad"),
    create("forbidden"),
    create("items", items=[{"key": "a", "n": 3}, {"key": "no"}, {"key": "b", "n": 20}]),
    create("labels", labels={"ok": "1", "NOT": "2"}),
    create("dashed", **{"dash-ed": "y"}),
    create("unchecked", low="x", name="bad"),
    create("unchecked-long", low=20, name="x" * 30),
    create("checked-anyway", low=20, items=[{"key": "a"}, {"key": "a"}]),
    create("missing", low=None),
    create("base", fixed="a", grows=5, first="one"),
    change("fixed-changed", "base", fixed="b"),
    change("fixed-removed", "base", fixed=None),
    change("grows-down", "base", grows=4),
    change("grows-up", "base", grows=6),
    change("grows-removed", "base", grows=None),
    change("grows-anew", "base", grows=1),
    change("first-changed", "base", first="two"),
    Step("status", "PATCH", f"{P}/base/status", {"status": {"n": 1}, "spec": {"low": 99}}, MERGE),
    Step("apply", "PATCH", f"{P}/applied?fieldManager=m", thing("applied", low=20), APPLY),
    Step("dry-run", "POST", f"{P}?dryRun=All", thing("dry", low=20)),
    bad("syntax", "self.a >"),
    bad("unknown-field", "self.nope == 1"),
    bad("wrong-type", "self.a == 'x'"),
    bad("not-bool", "self.a + 1"),
    bad("function", "self.s.nope()"),
    bad("unbound", "other.a == 1"),
    bad("empty", ""),
    bad("message-expression", "self.a > 0", messageExpression="self.a"),
    bad("both-messages", "self.a > 0", message="m\nn"),
    bad("reason", "self.a > 0", reason="Nope"),
    bad("field-path", "self.a > 0", fieldPath=".nope"),
    bad("cost", "self.l.all(x, self.l.all(y, x.all(z, y.all(w, z == w))))", ENDLESS),
    bad(
        "old-in-set",
        "true",
        {
            "l": {
                **STRINGS,
                "items": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf")]},
            }
        },
    ),
    Step("define-scaled", "POST", C, scaled_definition(), compared=False),
    Step("scaled-established", "GET", f"{C}/scaleds.{GROUP}", until=established, compared=False),
    Step("scaled-served", "GET", S, until=lambda status, _: status == 200, compared=False),
    scaled("base", replicas=1),
    scaled("negative", replicas=-1),
    scaled("negative-rule", replicas=-2),
    scaled("negative-schema", replicas=-2, name="long"),
    scaled("negative-list", replicas=-2, names=["a", "a"]),
    scaled("wrong-type", replicas="x"),
    scaled("huge", replicas=2**31),
    scaled_status("negative", {"replicas": -1}),
    scaled_status("huge", {"replicas": 2**31}),
    scaled_status("wrong-type", {"replicas": "x"}),
    scaled_status("selector", {"selector": 5}),
    Step("end-scaled", "DELETE", f"{C}/scaleds.{GROUP}", compared=False),
    Step("end", "DELETE", f"{C}/things.{GROUP}", compared=False),
]
