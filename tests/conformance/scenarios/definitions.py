"""Custom resources: their definitions, schemas, defaults, subresources, versions and ends."""

from typing import Any

from conformance_exchange import Step

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
C = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
P = "/apis/ex.io/v1/namespaces/definitions/foos"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["min", "max"],
    "properties": {
        "min": {"type": "integer", "minimum": 0},
        "max": {"type": "integer", "maximum": 100},
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "names": {
            "type": "array",
            "items": {"type": "string", "maxLength": 10},
            "maxItems": 5,
            "x-kubernetes-list-type": "set",
        },
        "ports": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "proto": {"type": "string", "default": "TCP"},
                    "x": {"type": "string"},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
        },
        "nul": {"type": "string", "nullable": True},
        "ios": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "emb": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "dt": {"type": "string", "format": "date-time"},
        "pat": {"type": "string", "pattern": "^a+$"},
        "num": {"type": "number"},
        "sel": {"type": "string"},
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string"},
    },
}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
COLUMNS = [
    {"name": "Min", "type": "integer", "jsonPath": ".spec.min"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
SCALE = {
    "specReplicasPath": ".spec.max",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def version(name: str = "v1", *, schema: Any = SCHEMA, storage: bool = True, **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def crd(
    plural: str, kind: str, *versions: dict[str, Any], scope: str = "Namespaced", **names: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions),
        },
    }


def foo(name: str, spec: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec, **more}


def established(status: int, body: Any) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


def named(status: int, body: Any) -> bool:
    return bool(body.get("status", {}).get("conditions"))


def served(status: int, body: Any) -> bool:
    return status == 200


def registered(status: int, body: Any) -> bool:
    return status == 200 and bool(body.get("status", {}).get("conditions"))


def old_default(status: int, body: Any) -> bool:
    return status == 200 and "added" in body.get("spec", {})


FOO = crd(
    "foos",
    "Foo",
    version(
        subresources={"status": {}, "scale": SCALE},
        additionalPrinterColumns=COLUMNS,
        selectableFields=[{"jsonPath": ".spec.sel"}],
    ),
    shortNames=["fo"],
    categories=["all"],
)
BARE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
BARS = crd(
    "bars",
    "Bar",
    version("v1", schema=BARE),
    version("v1beta1", schema=BARE, storage=False, deprecated=True),
    version("v2", schema=BARE, storage=False, deprecated=True, deprecationWarning="use v1"),
    scope="Cluster",
)

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "definitions"}}, compared=False),
    Step("before", "GET", "/apis/ex.io/v1/foos"),
    Step("create", "POST", C, FOO),
    Step("established", "GET", f"{C}/foos.ex.io", until=established),
    Step("table-of-definitions", "GET", f"{C}/foos.ex.io", headers=TABLE),
    Step("served", "GET", P, until=served),
    Step("discovered", "GET", "/apis/ex.io/v1", until=served),
    Step("group", "GET", "/apis/ex.io", until=served),
    Step("registered", "GET", f"{SERVICES}/v1.ex.io", until=registered),
    Step(
        "object",
        "POST",
        P,
        foo(
            "a",
            {
                "min": 1,
                "max": 2,
                "unk": 1,
                "ports": [{"port": 1}],
                "nul": None,
                "free": {"q": 1},
                "ios": "5",
                "mode": None,
            },
            status={"phase": "x"},
        ),
    ),
    Step("strict", "POST", f"{P}?fieldValidation=Strict", foo("a2", {"min": 1, "max": 2, "unk": 1})),
    Step(
        "unknown-metadata",
        "POST",
        f"{P}?fieldValidation=Strict",
        foo("a2", {"min": 1, "max": 2}, metadata={"name": "a2", "bogus": 1}),
    ),
    Step(
        "wrong-metadata",
        "POST",
        P,
        foo("a2", {"min": 1, "max": 2}, metadata={"name": "a2", "labels": {"a": 1}}),
    ),
    Step(
        "invalid",
        "POST",
        P,
        foo(
            "b",
            {
                "min": "x",
                "max": 200,
                "mode": "Z",
                "names": ["a", "a", "bbbbbbbbbbbbbbbbbb"],
                "ports": [{"port": 1}, {"port": 1}],
                "ios": 1.5,
                "emb": {},
                "pat": "b",
                "dt": "nope",
            },
        ),
    ),
    Step("required", "POST", P, foo("b", {})),
    Step("wrong-spec", "POST", P, foo("b", "x")),
    Step("no-spec", "POST", P, {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "b"}}),
    Step("no-version", "POST", P, {"kind": "Foo", "metadata": {"name": "b"}}),
    Step("no-kind", "POST", P, {"apiVersion": "ex.io/v1", "metadata": {"name": "b"}}),
    Step("other-kind", "POST", P, {"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": {"name": "b"}}),
    Step("other-version", "POST", P, {"apiVersion": "ex.io/v9", "kind": "Foo", "metadata": {"name": "b"}}),
    Step("bad-name", "POST", P, foo("Bad_Name", {"min": 1, "max": 2})),
    Step(
        "finalizer-warns",
        "POST",
        P,
        foo("fin", {"min": 1, "max": 2}, metadata={"name": "fin", "finalizers": ["simple"]}),
    ),
    Step("finalizer-off", "PATCH", f"{P}/fin", {"metadata": {"finalizers": None}}, MERGE),
    Step(
        "numbers",
        "POST",
        P,
        foo("num", {"min": 1.0, "max": 2, "num": 1.5, "free": {"f": 2.0, "big": 9007199254740993}}),
    ),
    Step("c", "POST", P, foo("c", {"min": 1, "max": 2})),
    Step("label", "PATCH", f"{P}/c", {"metadata": {"labels": {"z": "1"}}}, MERGE),
    Step("status-through-main", "PATCH", f"{P}/c", {"status": {"phase": "x"}}, MERGE),
    Step(
        "status",
        "PATCH",
        f"{P}/c/status",
        {
            "status": {"phase": "x", "junk": 1},
            "spec": {"min": 0},
            "metadata": {"labels": {"via": "status"}, "annotations": {"a": "b"}},
        },
        MERGE,
    ),
    Step("get-status", "GET", f"{P}/c/status"),
    Step(
        "status-apply",
        "PATCH",
        f"{P}/c/status?fieldManager=s",
        foo("c", {"min": 9}, status={"replicas": 3}),
        APPLY,
    ),
    Step("status-invalid", "PATCH", f"{P}/c/status", {"status": {"phase": 1}}, MERGE),
    Step("status-of-missing", "PATCH", f"{P}/nope/status", {"status": {}}, MERGE),
    Step(
        "status-apply-missing", "PATCH", f"{P}/nope/status?fieldManager=s", foo("nope", {}, status={}), APPLY
    ),
    Step("spec", "PATCH", f"{P}/c", {"spec": {"min": 0}}, MERGE),
    Step("scale", "GET", f"{P}/c/scale"),
    Step("scale-table", "GET", f"{P}/c/scale", headers=TABLE),
    Step("scale-patch", "PATCH", f"{P}/c/scale", {"spec": {"replicas": 7}}, MERGE),
    Step(
        "scale-put",
        "PUT",
        f"{P}/c/scale",
        {"metadata": {"name": "c", "namespace": "definitions"}, "spec": {"replicas": 8}},
    ),
    Step(
        "scale-negative",
        "PUT",
        f"{P}/c/scale",
        {"metadata": {"name": "c", "namespace": "definitions"}, "spec": {"replicas": -1}},
    ),
    Step(
        "scale-stale",
        "PUT",
        f"{P}/c/scale",
        {
            "metadata": {"name": "c", "namespace": "definitions", "resourceVersion": "1"},
            "spec": {"replicas": 1},
        },
    ),
    Step("scaled", "GET", f"{P}/c"),
    Step("strategic", "PATCH", f"{P}/c", {"spec": {}}, STRATEGIC),
    Step("json-patch", "PATCH", f"{P}/c", [{"op": "replace", "path": "/spec/mode", "value": "B"}], JSON),
    Step("patch-invalid", "PATCH", f"{P}/c", {"spec": {"max": 1000}}, MERGE),
    Step("select", "GET", f"{P}?fieldSelector=spec.sel%3Dq"),
    Step("select-unknown", "GET", f"{P}?fieldSelector=spec.min%3D1"),
    Step("table", "GET", P, headers=TABLE),
    Step(
        "protobuf-or-json",
        "GET",
        f"{P}/c",
        headers={"Accept": "application/vnd.kubernetes.protobuf,application/json"},
    ),
    Step("html", "GET", f"{P}/c", headers={"Accept": "text/html"}),
    Step("list", "GET", f"{P}?limit=1"),
    Step("put-missing", "PUT", f"{P}/newput", foo("newput", {"min": 1, "max": 2})),
    Step("put-unconditional", "PUT", f"{P}/c", foo("c", {"min": 1, "max": 2})),
    Step(
        "apply",
        "PATCH",
        f"{P}/ap?fieldManager=m",
        foo("ap", {"min": 1, "max": 2, "ports": [{"port": 80, "proto": "TCP"}], "names": ["a1"]}),
        APPLY,
    ),
    Step(
        "apply-more",
        "PATCH",
        f"{P}/ap?fieldManager=m2",
        foo("ap", {"ports": [{"port": 80, "proto": "TCP", "x": "1"}, {"port": 81}], "names": ["a2"]}),
        APPLY,
    ),
    Step("apply-null", "PATCH", f"{P}/ap?fieldManager=m4", foo("ap", {"sel": None}), APPLY),
    Step("apply-null-default", "PATCH", f"{P}/ap?fieldManager=m4", foo("ap", {"mode": None}), APPLY),
    Step("apply-null-nullable", "PATCH", f"{P}/ap?fieldManager=m4", foo("ap", {"nul": None}), APPLY),
    Step(
        "apply-null-new",
        "PATCH",
        f"{P}/nl?fieldManager=m4",
        foo("nl", {"min": 1, "max": 2, "sel": None}),
        APPLY,
    ),
    Step("create-null", "POST", P, foo("nl2", {"min": 1, "max": 2, "sel": None, "mode": None})),
    Step("merge-null", "PATCH", f"{P}/c", {"spec": {"sel": None}}, MERGE),
    Step("json-null", "PATCH", f"{P}/c", [{"op": "add", "path": "/spec/sel", "value": None}], JSON),
    Step("apply-unknown", "PATCH", f"{P}/ap?fieldManager=m3", foo("ap", {"unk": 1}), APPLY),
    Step("delete", "DELETE", f"{P}/ap"),
    Step("bars", "POST", C, BARS),
    Step("bars-established", "GET", f"{C}/bars.ex.io", until=established, compared=False),
    Step("bars-served", "GET", "/apis/ex.io/v1beta1/bars", until=served),
    Step(
        "bar",
        "POST",
        "/apis/ex.io/v1beta1/bars",
        {"apiVersion": "ex.io/v1beta1", "kind": "Bar", "metadata": {"name": "b"}, "any": {"thing": 1}},
    ),
    Step("bar-as-v1", "GET", "/apis/ex.io/v1/bars/b"),
    Step("bar-as-v2", "GET", "/apis/ex.io/v2/bars/b"),
    Step("bar-versions", "GET", "/apis/ex.io", until=lambda _, body: len(body.get("versions", ())) == 3),
    Step("bar-no-status", "GET", "/apis/ex.io/v1/bars/b/status"),
    Step("bar-in-namespace", "GET", "/apis/ex.io/v1/namespaces/definitions/bars"),
    Step("bar-generation", "PATCH", "/apis/ex.io/v1/bars/b", {"status": {"a": 1}}, MERGE),
    Step(
        "no-type",
        "POST",
        C,
        crd(
            "baras",
            "Bara",
            version(
                schema={"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}}
            ),
        ),
    ),
    Step(
        "bad-default",
        "POST",
        C,
        crd(
            "bards",
            "Bard",
            version(schema={"type": "object", "properties": {"d": {"type": "integer", "default": "x"}}}),
        ),
    ),
    Step(
        "bad-definition-name",
        "POST",
        C,
        {**crd("bares", "Bare", version()), "metadata": {"name": "wrong.ex.io"}},
    ),
    Step("no-schema", "POST", C, crd("barhs", "Barh", {"name": "v1", "served": True, "storage": True})),
    Step("no-storage", "POST", C, crd("baris", "Bari", version(storage=False))),
    Step("two-storages", "POST", C, crd("barjs", "Barj", version("v1"), version("v2"))),
    Step("conflicting-kind", "POST", C, crd("bargs", "Foo", version(schema=BARE)), compared=False),
    Step("not-accepted", "GET", f"{C}/bargs.ex.io", until=named),
    Step("conflicting-gone", "DELETE", f"{C}/bargs.ex.io", compared=False),
    Step("change-scope", "PATCH", f"{C}/foos.ex.io", {"spec": {"scope": "Cluster"}}, MERGE),
    Step("change-plural", "PATCH", f"{C}/foos.ex.io", {"spec": {"names": {"plural": "fooz"}}}, MERGE),
    Step("put-definition-unconditional", "PUT", f"{C}/foos.ex.io", FOO),
    Step("services-of-bars", "GET", f"{SERVICES}/v2.ex.io", until=registered),
    Step(
        "add-default",
        "PATCH",
        f"{C}/foos.ex.io",
        [
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/added",
                "value": {"type": "string", "default": "later"},
            }
        ],
        JSON,
        compared=False,
    ),
    Step("old-object-gets-default", "GET", f"{P}/c", until=old_default),
    Step("delete-definition", "DELETE", f"{C}/bars.ex.io"),
    Step("definition-gone", "GET", f"{C}/bars.ex.io", until=lambda status, _: status == 404),
    Step("service-gone", "GET", f"{SERVICES}/v2.ex.io", until=lambda status, _: status == 404),
    Step("service-left", "GET", f"{SERVICES}/v1.ex.io", until=registered),
    Step("objects-gone", "GET", "/apis/ex.io/v1/bars", until=lambda status, _: status == 404),
]
