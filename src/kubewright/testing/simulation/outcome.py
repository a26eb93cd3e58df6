"""The final state of a run, without values that differ between two runs with the same result.

Versions, uids and times are left out, and so are objects that existed before the run or that the cluster's own controllers
created. Names that the API server generated are replaced by their prefix, also in references.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.testing.simulation.network import CLUSTER
from kubewright.testing.simulation.world import World

_SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"}
)
_NOT_COMPARED = frozenset(
    {
        "leases.coordination.k8s.io",
        "events",
        "events.events.k8s.io",
        # The addresses of webhooks change with each restart of an operator that serves them by URL.
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
# Fields that the cluster sets, in an order that depends on the history: addresses, nodes, numbers of rollouts.
_CLUSTER_FIELDS = {
    "pods": ("status", "spec.nodeName"),
    "services": ("spec.clusterIP", "spec.clusterIPs"),
    "deployments.apps": ("metadata.annotations.deployment.kubernetes.io/revision", "status.conditions"),
    "persistentvolumeclaims": ("spec.volumeName",),
}
# The ServiceAccount admission plugin names volumes with a random suffix.
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def outcome_of(world: World, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return all objects by resource and key, without values that differ from run to run; see the module.

    Resources in `without` are left out, as are leases, Events and the registrations of webhooks.
    """
    left_out = _NOT_COMPARED | set(without)
    compared = [
        (resource, obj)
        for resource, _, obj in world.everything()
        if resource not in left_out and world.creator(obj["metadata"]["uid"]) not in ("", CLUSTER)
    ]
    normalize = _Normalizer(compared)
    found: dict[str, list[Any]] = {}
    for resource, obj in compared:
        found.setdefault(normalize.key(resource, obj), []).append(normalize.object(resource, obj))
    return {
        name if number == 0 else f"{name} ({number + 1})": obj
        for name, objects in sorted(found.items())
        for number, obj in enumerate(sorted(objects, key=_canonical))
    }


class _Normalizer:
    """Replace the values that the API server generated, wherever they are used."""

    def __init__(self, objects: Iterable[tuple[str, JsonObject]]) -> None:
        self._generated: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        for resource, obj in objects:
            metadata = obj["metadata"]
            if metadata.get("generateName"):
                self._generated[metadata["name"]] = f"{metadata['generateName']}*"
            self._uids[metadata["uid"]] = f"uid of {self.key(resource, obj)}"

    def key(self, resource: str, obj: JsonObject) -> str:
        metadata = obj["metadata"]
        name = self._generated.get(metadata["name"], metadata["name"])
        namespace = metadata.get("namespace")
        return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"

    def object(self, resource: str, obj: JsonObject) -> JsonObject:
        generation = obj["metadata"].get("generation")
        metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_FIELDS}
        found = self._value({**obj, "metadata": metadata}, generation)
        for path in _CLUSTER_FIELDS.get(resource, ()):
            _remove(found, path)
        return found

    def _value(self, value: Any, generation: int | None) -> Any:
        if isinstance(value, dict):
            return {
                name: (item == generation) if name == "observedGeneration" else self._value(item, generation)
                for name, item in cast(JsonObject, value).items()
            }
        if isinstance(value, list):
            return [self._value(item, generation) for item in cast(list[Any], value)]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if (uid := self._uids.get(text)) is not None:
            return uid
        for name, pattern in self._generated.items():
            if name in text:
                text = text.replace(name, pattern)
        if text.startswith("kube-api-access-"):
            return _TOKEN_VOLUME.sub("kube-api-access-*", text)
        return _TIME.sub("(time)", text) if "T" in text else text


def _remove(obj: JsonObject, path: str) -> None:
    first, _, rest = path.partition(".")
    if path in obj:
        del obj[path]
    elif rest and isinstance(inner := obj.get(first), dict):
        _remove(cast(JsonObject, inner), rest)


def _canonical(obj: JsonObject) -> bytes:
    return msgspec.json.encode(obj, order="deterministic")
