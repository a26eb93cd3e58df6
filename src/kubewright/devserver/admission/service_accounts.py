"""Every Pod runs as a ServiceAccount and is given its token."""

import random
from typing import Any

from kubewright.devserver.admission.pods import is_new_pod
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# An hour and seven seconds: kube-apiserver's mark of tokens for clients that may not reload them.
TOKEN_SECONDS = 3607
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class ServiceAccounts(AdmissionPlugin):
    """Set the ServiceAccount of new Pods, its image pull secrets and the volume with its token."""

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
        if _wants_token(spec, account):
            _mount_token(spec)
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]


def _wants_token(spec: JsonObject, account: JsonObject) -> bool:
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
