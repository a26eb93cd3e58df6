"""A definition that changes while its objects are watched: watches end, and cannot resume from before."""

from typing import Any

from conformance_exchange import Step

GROUP = "changed.ex.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"
MERGE = {"Content-Type": "application/merge-patch+json"}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
VERSION: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
COLUMN = {"name": "A", "type": "string", "jsonPath": ".a"}


def expired(status: int, body: Any) -> bool:
    return status == 200 and bool(body) and body[0]["type"] == "ERROR"


STEPS = [
    Step(
        "definition",
        "POST",
        DEFINITIONS,
        {
            "metadata": {"name": f"things.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                "versions": [VERSION],
            },
        },
        compared=False,
    ),
    Step(
        "thing",
        "POST",
        THINGS,
        {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "x"}},
        until=lambda status, _: status == 201,
        save={"rv": "metadata.resourceVersion"},
        compared=False,
    ),
    Step(
        "annotated",
        "PATCH",
        f"{DEFINITIONS}/things.{GROUP}",
        {"metadata": {"annotations": {"a": "b"}}},
        MERGE,
        compared=False,
    ),
    Step("watch-after-an-annotation", "GET", f"{THINGS}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}"),
    Step(
        "changed",
        "PATCH",
        f"{DEFINITIONS}/things.{GROUP}",
        {"spec": {"versions": [{**VERSION, "additionalPrinterColumns": [COLUMN]}]}},
        MERGE,
        compared=False,
    ),
    Step(
        "watch-from-before",
        "GET",
        f"{THINGS}?watch=1&timeoutSeconds=1&resourceVersion={{rv}}",
        until=expired,
    ),
    Step(
        "list-from-before",
        "GET",
        f"{THINGS}?resourceVersion={{rv}}&resourceVersionMatch=Exact",
        until=lambda status, _: status == 200,
    ),
    Step("watch-from-any", "GET", f"{THINGS}?watch=1&timeoutSeconds=1&resourceVersion=0"),
    Step("gone", "DELETE", f"{DEFINITIONS}/things.{GROUP}", compared=False),
]
