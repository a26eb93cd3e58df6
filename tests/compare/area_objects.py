"""Objects of every built-in kind, as recorded or changed in one place: created, replaced, and their status patched."""

import random
from typing import Any

from compare_case import MERGE_PATCH, CaseBuilder, query
from compare_corpus import Drawer, Kind, bend, copy, corpus

# Stored objects of these kinds change how the server answers other cases.
_ONLY_DRY_RUN = {
    *("APIService", "CustomResourceDefinition", "FlowSchema", "PriorityLevelConfiguration", "PriorityClass"),
    *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ResourceQuota", "LimitRange"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Namespace", "StorageClass"),
    *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ServiceCIDR", "IngressClass"),
}
# Their names follow rules of their own.
_FIXED_NAMES = {"APIService", "CustomResourceDefinition", "IPAddress"}
_BENDS = 6
_RECORDED = 25


def objects(case: CaseBuilder) -> None:
    """Draw a kind and an object of it; create it changed in several ways, then update it likewise."""
    chance = case.random
    made = chance.choice(sorted(corpus(), key=lambda item: (item.api_version, item.name)))
    obj = copy(chance.choice(corpus()[made]))
    obj["metadata"] = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
    if made.namespaced:
        case.namespace()
    for _ in range(_BENDS):
        body = _bent(obj, made, chance)
        case.send("POST", query(made.collection, dryRun="All", fieldValidation="Ignore"), body)
    if made.name not in _ONLY_DRY_RUN and "update" in made.verbs:
        _update(case, made, obj)


def recorded(case: CaseBuilder) -> None:
    """Create objects of the recorded cases unchanged, which shows what an earlier release does otherwise."""
    case.namespace()
    known = [(made, obj) for made, objects in corpus().items() for obj in objects]
    for made, found in case.random.sample(known, _RECORDED):
        obj = copy(found)
        obj["metadata"].pop("namespace", None)
        case.send("POST", query(made.collection, dryRun="All"), obj)


def _bent(obj: Any, made: Kind, chance: random.Random) -> Any:
    body = bend(obj, made, chance)
    if chance.random() < 0.15:
        body = bend(body, made, chance)
    return body


def _update(case: CaseBuilder, made: Kind, obj: Any) -> None:
    chance = case.random
    if not made.namespaced and made.name not in _FIXED_NAMES:
        obj["metadata"]["name"] = "{run}"
    path = f"{made.collection}/{obj['metadata']['name']}"
    if not made.namespaced:
        case.clean(path)
    case.send("POST", made.collection, obj, save={"rv": "metadata.resourceVersion"})
    for _ in range(_BENDS):
        body = _bent(obj, made, chance)
        if chance.random() < 0.8 and isinstance(body.get("metadata"), dict):
            body["metadata"]["resourceVersion"] = "{rv}"
        case.send("PUT", query(path, dryRun="All"), body)
    if "status" in made.subresources:
        schema = Drawer(made, chance).schema(("status",))
        for _ in range(3 if schema else 0):
            status = Drawer(made, chance).value(schema or {}, "status")
            case.send("PATCH", query(f"{path}/status", dryRun="All"), {"status": status}, MERGE_PATCH)
