"""What the cases of webhooks and of policies share: rules, match conditions, and the writes that they meet."""

import random
from typing import Any

from compare_case import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, CaseBuilder, query
from compare_cel import draw_expression

R = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "/api/v1/namespaces/{ns}"
CONFIG_MAPS = f"{NAMESPACE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
PODS = f"{NAMESPACE}/pods"
OWN_NAMESPACE: dict[str, Any] = {"matchLabels": {"run": "{run}"}}
"""Selects the namespace of the run: configurations must not disturb other cases."""
MISTAKES = 0.01
"""The probability of a mistake in an expression: one is enough for a configuration to be refused."""
PARTS = {
    "bool": (
        *("has(object.data)", "has(object.metadata.labels)", "request.dryRun", "oldObject == null"),
        *("object == null", "'a' in object.metadata.labels", "has(request.subResource)"),
        "authorizer.group('').resource('configmaps').namespace('default').check('get').allowed()",
    ),
    "int": ("size(object.metadata.name)", "size(object.metadata.labels)", "object.spec.replicas"),
    "string": (
        *("object.metadata.name", "request.operation", "request.name", "request.namespace"),
        *(
            "request.userInfo.username",
            "request.kind.kind",
            "request.resource.resource",
            "request.subResource",
        ),
        *("object.metadata.labels['a']", "object.metadata.?labels['a'].orValue('')", "object.data.k"),
        *(
            "namespaceObject.metadata.name",
            "oldObject.metadata.name",
            "namespaceObject.metadata.labels['team']",
        ),
    ),
    "list": ("request.userInfo.groups", "object.metadata.?finalizers.orValue([])"),
    "map": ("object.metadata.labels", "object.data", "object.metadata.?annotations.orValue({})"),
}
_LABELS = ({"matchLabels": {"a": "b"}},) * 3 + (
    {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
    {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]},
    {},
)


_POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def draw_rule(chance: random.Random) -> dict[str, Any]:
    """Draw a rule; of cluster-scoped objects it matches only namespaces, which labels of the run select."""
    operations = chance.choice(
        (
            ["*"],
            ["*"],
            ["CREATE"],
            ["CREATE", "UPDATE"],
            ["UPDATE", "DELETE"],
            ["DELETE"],
            ["CONNECT", "CREATE"],
        )
    )
    way = chance.random()
    if way < 0.45:
        # Most writes should meet a webhook or a policy.
        return {
            "operations": chance.choice((["*"], ["CREATE", "UPDATE"], ["*"])),
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "resources": chance.choice((["*"], ["*/*"], ["configmaps", "deployments"])),
            "scope": "Namespaced",
        }
    if way < 0.53:
        return {
            "operations": operations,
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": chance.choice(
                (["namespaces"], ["namespaces/*"], ["namespaces", "namespaces/status"])
            ),
            "scope": chance.choice(("Cluster", "*", "Namespaced")),
        }
    return {
        "operations": operations,
        "apiGroups": chance.choice(([""], ["*"], ["apps"], ["", "apps"], ["", "policy"])),
        "apiVersions": chance.choice((["v1"], ["*"], ["v1", "v1beta1"], ["v2"])),
        "resources": chance.choice(
            (
                *(
                    ["configmaps"],
                    ["configmaps"],
                    ["*"],
                    ["*"],
                    ["*/*"],
                    ["deployments", "deployments/scale"],
                ),
                *(
                    ["*/scale"],
                    ["configmaps", "deployments"],
                    ["pods", "pods/*"],
                    ["pods/eviction", "*/status"],
                ),
            )
        ),
        "scope": "Namespaced",
    }


def draw_conditions(chance: random.Random) -> list[Any]:
    """Draw match conditions."""
    return [
        {"name": f"c{index}", "expression": draw_expression(chance, PARTS, mistakes=MISTAKES)}
        for index in range(chance.choice((1, 1, 2, 3)))
    ]


def draw_labels(chance: random.Random) -> dict[str, Any]:
    """Draw a selector of the labels that objects have."""
    return chance.choice(_LABELS)


def create_objects(case: CaseBuilder) -> None:
    """Create objects to be updated and deleted, before webhooks and policies are in effect."""
    labels = {"a": "b", "c": "a"}
    case.prepare("POST", CONFIG_MAPS, {"metadata": {"name": "a", "labels": labels}, "data": {"k": "a"}})
    case.prepare(
        "POST", DEPLOYMENTS, {"metadata": {"name": "a", "labels": labels}, "spec": _deployment_spec()}
    )
    case.prepare("POST", PODS, _POD)


def draw_write(case: CaseBuilder, policies: int = 1) -> None:
    """Add a write of a ConfigMap, a Deployment, a Pod or the namespace, in any way.

    If there are several policies, an object has a label that says which of them applies to it.
    """
    chance = case.random
    dry = "All" if chance.random() < 0.2 else ""
    kind = chance.random()
    if kind < 0.06:
        _change_namespace(case, dry)
    elif kind < 0.16:
        _write_pod(case, dry)
    else:
        _write_object(case, dry, _metadata(chance, policies), deployment=kind < 0.4)


def _deployment_spec() -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": _POD["spec"]}
    return {"selector": {"matchLabels": {"a": "b"}}, "template": template}


def _metadata(chance: random.Random, policies: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": chance.choice(("a", "b"))}
    if chance.random() < 0.1:
        metadata["generateName"] = "gen-"
        if chance.random() < 0.7:
            metadata.pop("name")
    if chance.random() < 0.7:
        metadata["labels"] = {key: chance.choice("ab") for key in chance.sample("abc", 2)}
    if policies > 1:
        metadata.setdefault("labels", {})["policy"] = str(chance.randrange(policies))
    if chance.random() < 0.15:
        metadata["finalizers"] = ["ex.io/f"]
    return metadata


def _write_object(case: CaseBuilder, dry: str, metadata: dict[str, Any], *, deployment: bool) -> None:
    chance = case.random
    name = metadata.get("name", "a")
    path = DEPLOYMENTS if deployment else CONFIG_MAPS
    body: dict[str, Any] = {"metadata": metadata}
    if deployment:
        body["spec"] = _deployment_spec()
    elif chance.random() < 0.7:
        body["data"] = {"k": chance.choice(("a", "b", ""))}
    applied = {
        "apiVersion": "apps/v1" if deployment else "v1",
        "kind": "Deployment" if deployment else "ConfigMap",
        **body,
    }
    way = chance.random()
    if way < 0.45:
        case.send("POST", query(path, dryRun=dry), body)
    elif way < 0.58:
        case.send("PUT", query(f"{path}/{name}", dryRun=dry), body)
    elif way < 0.66:
        patch = {"metadata": {"labels": {"a": chance.choice(("b", "c", None))}}}
        case.send("PATCH", query(f"{path}/{name}", dryRun=dry), patch, MERGE_PATCH)
    elif way < 0.72:
        finalizers = chance.choice(([], ["ex.io/f"]))
        patch = [{"op": "add", "path": "/metadata/finalizers", "value": finalizers}]
        case.send("PATCH", query(f"{path}/{name}", dryRun=dry), patch, JSON_PATCH)
    elif way < 0.8:
        case.send("PATCH", query(f"{path}/{name}", fieldManager="one", dryRun=dry), applied, APPLY_PATCH)
    elif way < 0.88 and deployment:
        part = chance.choice(("scale", "status"))
        patch = {"spec": {"replicas": 2}} if part == "scale" else {"status": {"replicas": 1}}
        case.send("PATCH", query(f"{path}/{name}/{part}", dryRun=dry), patch, MERGE_PATCH)
    elif way < 0.95:
        options = chance.choice((None, None, {"propagationPolicy": "Background"}, {"dryRun": ["All"]}))
        case.send("DELETE", query(f"{path}/{name}", dryRun=dry), options)
    else:
        case.send("DELETE", query(path, dryRun=dry))


def _write_pod(case: CaseBuilder, dry: str) -> None:
    chance = case.random
    chance.choice(
        (
            lambda: case.send("POST", query(PODS, dryRun=dry), _POD),
            lambda: case.send("POST", query(f"{PODS}/p/eviction", dryRun=dry), {"metadata": {"name": "p"}}),
            lambda: case.send(
                "POST",
                query(f"{PODS}/p/binding", dryRun=dry),
                {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
            ),
            lambda: case.send(
                "PATCH", query(f"{PODS}/p/status", dryRun=dry), {"status": {"message": "m"}}, MERGE_PATCH
            ),
            lambda: case.send("DELETE", query(f"{PODS}/p", dryRun=dry), {"gracePeriodSeconds": 0}),
        )
    )()


def _change_namespace(case: CaseBuilder, dry: str) -> None:
    patch = {"metadata": {"annotations": {"a": case.random.choice(("b", "c"))}}}
    path = case.random.choice((NAMESPACE, NAMESPACE, f"{NAMESPACE}/status"))
    case.send("PATCH", query(path, dryRun=dry), patch, MERGE_PATCH)
