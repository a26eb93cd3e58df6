"""What a Pod's specification refers to: fields of the Pod, resources, keys of ConfigMaps and Secrets."""

import math
import re
from dataclasses import dataclass
from typing import TypeVar

from kubewright.api import NotFound, Object, Quantity
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.places import ROOM, Place

T = TypeVar("T", bound=Object)

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Unprepared(RuntimeError):
    """A container cannot be started yet: something it refers to is missing."""


@dataclass(frozen=True, slots=True)
class Values:
    """Look up what one Pod refers to."""

    client: Client
    pod: core_v1.Pod
    place: Place

    async def config_map(self, name: str, *, optional: bool | None) -> dict[str, bytes]:
        """Read a ConfigMap, text and binary keys alike."""
        found = await self._read(core_v1.ConfigMap, name, optional)
        if found is None:
            return {}
        return {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}

    async def secret(self, name: str, *, optional: bool | None) -> dict[str, bytes]:
        """Read a Secret."""
        found = await self._read(core_v1.Secret, name, optional)
        return {} if found is None else found.data

    async def _read(self, kind: type[T], name: str, optional: bool | None) -> T | None:
        try:
            return await self.client.get(kind, name, self.pod.metadata.namespace)
        except NotFound:
            if optional:
                return None
            raise Unprepared(f'{kind.__name__.lower()} "{name}" not found') from None

    def key(
        self, kind: str, name: str, values: dict[str, bytes], key: str, *, optional: bool | None
    ) -> bytes | None:
        """Return the value of a key; raise as the kubelet does if a required key is missing."""
        if key in values or optional:
            return values.get(key)
        raise Unprepared(f"couldn't find key {key} in {kind} {self.pod.metadata.namespace}/{name}")

    def field(self, path: str) -> str:
        """Read a field of the Pod."""
        meta, spec = self.pod.metadata, self.pod.spec
        if keyed := _KEYED.fullmatch(path):
            return (meta.labels if keyed[1] == "labels" else meta.annotations).get(keyed[2], "")
        address = self.place.host_ip if spec.host_network else self.place.pod_ip
        fields = {
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "metadata.uid": meta.uid,
            "metadata.labels": _listed(meta.labels),
            "metadata.annotations": _listed(meta.annotations),
            "spec.nodeName": spec.node_name,
            "spec.serviceAccountName": spec.service_account_name,
            "status.hostIP": self.place.host_ip,
            "status.hostIPs": self.place.host_ip,
            "status.podIP": address,
            "status.podIPs": address,
        }
        if path not in fields:
            raise Unprepared(f"unsupported fieldPath: {path}")
        return fields[path]

    def resource(self, asked: core_v1.ResourceFieldSelector, container: core_v1.Container) -> str:
        """Read a limit or request of a container; a limit that is not set is all that the node has."""
        named = [item for item in self.pod.spec.containers if item.name == asked.container_name]
        amounts = (named[0] if named else container).resources
        section, _, name = asked.resource.partition(".")
        found = amounts.limits.get(name) or (ROOM.get(name) if section == "limits" else None)
        if section == "requests":
            found = amounts.requests.get(name)
        divisor = asked.divisor if asked.divisor is not None and asked.divisor.value else Quantity("1")
        return str(math.ceil((found or Quantity("0")).value / divisor.value))


def _listed(pairs: dict[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(pairs.items()))
