"""RBAC rules that a user needs to install an operator: its objects by name, and the rules that its roles grant.

No role contains `escalate` or `bind`. Kubernetes lets users grant only permissions that they have, so the installing
user has the operator's permissions, and an operator that needs more than before is not installed until an
administrator grants them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kubewright.api import JsonObject, plural_of
from kubewright.controller import Operator
from kubewright.generate.manifests import PARTS, USUAL, Settings, manifests, names_of
from kubewright.generate.names import Names
from kubewright.generate.rbac import GROUP, RBAC, named

# With server-side apply the name is known when a create is authorized, so `create` can be limited by name too.
_VERBS = ["create", "delete", "get", "patch"]
# To report why a Deployment does not become available.
_DIAGNOSIS: list[dict[str, Any]] = [
    {"apiGroups": [""], "resources": ["events", "pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]


def installer(operator: Operator, subject: str, settings: Settings = USUAL) -> list[JsonObject]:
    """Render the namespace, and the roles with which a user or ServiceAccount (`namespace/name`) installs the rest.

    The roles cover every part except samples, which are for users of the kinds.
    """
    names = names_of(operator, settings)
    documents = manifests(operator, [part for part in PARTS if part != "samples"], settings)
    places: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for document in documents:
        places[document["metadata"].get("namespace", "")].append(document)
    rendered = [document for document in documents if document["kind"] == "Namespace"]
    for namespace, there in sorted(places.items()):
        rules = [*_by_name(there), *_granted_rules(there)]
        if namespace == names.namespace:
            rules += _DIAGNOSIS
        rendered += _role_and_binding(names, namespace, rules, subject)
    return rendered


def _by_name(documents: Iterable[JsonObject]) -> list[JsonObject]:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for document in documents:
        group = document["apiVersion"].rpartition("/")[0]
        found[group, plural_of(document["kind"])].append(document["metadata"]["name"])
    return [
        {"apiGroups": [group], "resources": [plural], "resourceNames": sorted(called), "verbs": _VERBS}
        for (group, plural), called in sorted(found.items())
    ]


def _granted_rules(documents: Iterable[JsonObject]) -> list[JsonObject]:
    rules: list[JsonObject] = []
    for document in documents:
        rules += [rule for rule in document.get("rules", ()) if rule not in rules]
    return rules


def _role_and_binding(
    names: Names, namespace: str, rules: Sequence[JsonObject], subject: str
) -> list[JsonObject]:
    kind = "Role" if namespace else "ClusterRole"
    role = named(RBAC, kind, names.installer, names, namespace)
    binding = named(RBAC, f"{kind}Binding", names.installer, names, namespace)
    reference = {"apiGroup": GROUP, "kind": kind, "name": names.installer}
    for document in (role, binding):
        # No labels: pruning selects by label and must not delete the administrator's roles.
        del document["metadata"]["labels"]
    return [
        {**role, "rules": list(rules)},
        {**binding, "roleRef": reference, "subjects": [_subject(subject)]},
    ]


def _subject(text: str) -> JsonObject:
    namespace, slash, account = text.partition("/")
    if slash:
        return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {"apiGroup": GROUP, "kind": "User", "name": text}
