"""Field managers that wrote at another version, which lacks a field that is defaulted at the stored version."""

from typing import Any

from conformance_exchange import Step

GROUP = "older.ex.io"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}


def version(name: str, *, storage: bool, **fields: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema}


TEXT = {"type": "string"}
DEFINITION = {
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            version("v1", storage=False, a=TEXT),
            version("v2", storage=True, a=TEXT, b={**TEXT, "default": "x"}),
            version("v3", storage=False, a=TEXT, b=TEXT, c={**TEXT, "default": "y"}),
        ],
    },
}


def path(name: str, version: str = "v2") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/things/{name}"


def thing(name: str, version: str = "v2", **spec: str) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def apply(step: str, name: str, manager: str, version: str = "v2", **spec: str) -> Step:
    query = f"?fieldManager={manager}"
    return Step(step, "PATCH", path(name, version) + query, thing(name, version, **spec), APPLY)


def patch(step: str, name: str, body: Any, version: str = "v2") -> Step:
    return Step(step, "PATCH", path(name, version) + "?fieldManager=patcher", body, MERGE)


STEPS = [
    Step(
        "definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        DEFINITION,
        compared=False,
    ),
    Step(
        "served",
        "GET",
        path("x", "v3"),
        until=lambda status, body: status == 404 and isinstance(body, dict),
        compared=False,
    ),
    apply("apply-older", "x", "m1", "v1", a="1"),
    apply("apply-newer", "x", "m2", b="2"),
    apply("apply-older-again", "x", "m1", "v1", a="1"),
    apply("apply-newer-by-the-same", "x", "m1", a="2"),
    patch("patch-newer", "x", {"spec": {"b": "5"}}),
    patch("patch-older-after", "x", {"spec": {"a": "5"}}, "v1"),
    Step("create-older", "POST", path("", "v1"), thing("y", "v1", a="1")),
    Step("get-newer", "GET", path("y")),
    apply("apply-newer-to-created", "y", "m2", a="1"),
    Step(
        "apply-newer-by-force",
        "PATCH",
        path("y") + "?fieldManager=m2&force=true",
        thing("y", a="9"),
        APPLY,
    ),
    patch("patch-labels", "y", {"metadata": {"labels": {"l": "1"}}}),
    apply("apply-older-after", "y", "m4", "v1", a="1"),
    Step("put-newer", "PUT", path("y"), thing("y", a="3"), compared=False),
    apply("apply-newest", "z", "m1", "v3", a="1", b="1"),
    apply("apply-stored-after-newest", "z", "m2", a="1"),
    patch("patch-newest", "z", {"spec": {"c": "1"}}, "v3"),
    Step(
        "gone",
        "DELETE",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{GROUP}",
        compared=False,
    ),
]
