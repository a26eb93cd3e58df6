"""Pods: priority, default tolerations, ServiceAccount with its token."""

import random
from typing import Any

from kubewright.devserver.objects import JsonObject, meta
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.storage import Derived, ObjectStore
from kubewright.devserver.strategy.access import Access

TOLERATION_SECONDS = 300
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# An hour and seven seconds: kube-apiserver's mark of tokens for clients that may not reload them.
TOKEN_SECONDS = 3607
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_CLASSES = ("scheduling.k8s.io", "priorityclasses")
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class PodPriority(AdmissionPlugin):
    """Set a Pod's priority from its PriorityClass."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods"), _CLASSES})

    def __init__(self, store: ObjectStore, api: Access) -> None:
        self._api = api
        self._default = Derived(store, ["priorityclasses.scheduling.k8s.io"], self._read_default)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set priority and preemption policy of a new Pod, and restore those that an update leaves out."""
        if attributes.object is None or not attributes.is_write_of("", "pods", "CREATE", "UPDATE"):
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        if attributes.operation == "UPDATE":
            before: JsonObject = (attributes.old_object or {}).get("spec", {})
            for name in ("priority", "preemptionPolicy"):
                if spec.get(name) is None and before.get(name) is not None:
                    spec[name] = before[name]
            return
        found = self._class_of(attributes, spec)
        priority = found["value"] if found else 0
        given = spec.get("priority")
        if given is not None and given != priority:
            why = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {priority} from the given PriorityClass name"
            )
            raise attributes.forbidden(why)
        spec["priority"] = priority
        policy = (found or {}).get("preemptionPolicy") or "PreemptLowerPriority"
        requested = spec.get("preemptionPolicy")
        if requested is not None and requested != policy:
            why = (
                f"the string value of PreemptionPolicy ({requested}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise attributes.forbidden(why)
        spec["preemptionPolicy"] = policy

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a second default class."""
        new = attributes.object
        if not attributes.is_write_of(*_CLASSES, "CREATE", "UPDATE") or new is None:
            return
        found = self._default.get() if new.get("globalDefault") else None
        if found is None or (attributes.operation == "UPDATE" and meta(found)["name"] == meta(new)["name"]):
            return
        why = f"PriorityClass {meta(found)['name']} is already marked as default. Only one default can exist"
        raise attributes.forbidden(why)

    def _read_default(self) -> JsonObject | None:
        defaults = [item for item in self._api.list(*_CLASSES) if item.get("globalDefault")]
        return min(defaults, key=lambda item: item["value"]) if defaults else None

    def _class_of(self, attributes: AdmissionAttributes, spec: JsonObject) -> JsonObject | None:
        name = spec.get("priorityClassName", "")
        if name:
            found = self._api.find(*_CLASSES, "", name)
            if found is None:
                why = f"no PriorityClass with name {name} was found"
                raise attributes.forbidden(why)
            return found
        chosen = self._default.get()
        if chosen is None:
            return None
        spec["priorityClassName"] = chosen["metadata"]["name"]
        return chosen


class DefaultTolerationSeconds(AdmissionPlugin):
    """Add tolerations of five minutes for nodes that are not ready or unreachable."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods")})

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Add the tolerations that a new or changed Pod does not have."""
        if attributes.object is None or not attributes.is_write_of("", "pods", "CREATE", "UPDATE"):
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        tolerations: list[JsonObject] = spec.get("tolerations") or []
        for taint in _NODE_TAINTS:
            if not any(_tolerates(toleration, taint) for toleration in tolerations):
                tolerations = [
                    *tolerations,
                    {
                        "key": taint,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": TOLERATION_SECONDS,
                    },
                ]
        spec["tolerations"] = tolerations


def is_new_pod(attributes: AdmissionAttributes) -> bool:
    """Return True if the write creates a Pod."""
    group, _, resource = attributes.resource
    return (
        attributes.operation == "CREATE" and (group, resource) == ("", "pods") and not attributes.subresource
    )


def _tolerates(toleration: JsonObject, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


class ServiceAccounts(AdmissionPlugin):
    """Set the ServiceAccount of new Pods, its image pull secrets and the volume with its token."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods")})

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Complete a new Pod."""
        if not is_new_pod(attributes) or attributes.object is None:
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        spec["serviceAccountName"] = name = spec.get("serviceAccountName") or "default"
        spec["serviceAccount"] = name
        account = self._api.find("", "serviceaccounts", attributes.namespace, name)
        if account is None:
            why = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
            raise attributes.forbidden(why)
        if _needs_token(spec, account):
            _mount_token(spec)
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]


def _needs_token(spec: JsonObject, account: JsonObject) -> bool:
    for source in (spec, account):
        if source.get("automountServiceAccountToken") is not None:
            return bool(source["automountServiceAccountToken"])
    return True


def _mount_token(spec: JsonObject) -> None:
    name = f"kube-api-access-{''.join(random.choices(_ALPHABET, k=5))}"
    mounted = False
    containers: list[JsonObject] = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    for container in containers:
        mounts: list[JsonObject] = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            continue
        container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
        mounted = True
    if mounted:
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": name, "projected": _projection()}]


def _projection() -> JsonObject:
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                ]
            }
        },
    ]
    return {"sources": sources, "defaultMode": 0o644}
