"""The command and the environment variables of a container's process, and the references that they contain."""

import math
import os
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kubewright.api import NotFound, Object, Quantity
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.addresses import NODE_CAPACITY, PodAddresses
from kubewright.devcluster.pod_scenarios import untagged

T = TypeVar("T", bound=Object)
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
# Variables inherited from this process. A container has the environment of its image; a process needs these few.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "VIRTUAL_ENV", "PYTHONPATH")
_REFERENCE = re.compile(r"\$(\$|\(([^()]+)\))")
Images = Mapping[str, Sequence[str]]
# Matches an address of all interfaces with a port. A bare number below 80 is not a port: `:0` is a display or any
# port.
_EVERYWHERE = re.compile(
    r"((?:.*=)?(?:[a-z][a-z0-9+.-]*://)?)(?:(?:0\.0\.0\.0|\[::\])(:\d{1,5})|(:(?:[89]\d|[1-9]\d{2,4})))"
)


class ContainerConfigError(RuntimeError):
    """The container cannot be started because something it refers to is missing."""


@dataclass(frozen=True, slots=True)
class ReferenceResolver:
    """Resolves references in one Pod: ConfigMaps, Secrets, fields and resources."""

    client: Client
    pod: core_v1.Pod
    addresses: PodAddresses

    async def config_map(self, name: str, *, optional: bool | None) -> dict[str, bytes]:
        """Return the data of a ConfigMap, including binary data."""
        found = await self._read(core_v1.ConfigMap, name, optional)
        if found is None:
            return {}
        return {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}

    async def secret(self, name: str, *, optional: bool | None) -> dict[str, bytes]:
        """Return the data of a Secret."""
        found = await self._read(core_v1.Secret, name, optional)
        return {} if found is None else found.data

    async def _read(self, kind: type[T], name: str, optional: bool | None) -> T | None:
        try:
            return await self.client.get(kind, name, self.pod.metadata.namespace)
        except NotFound:
            if optional:
                return None
            raise ContainerConfigError(f'{kind.__name__.lower()} "{name}" not found') from None

    def key(
        self, kind: str, name: str, data: dict[str, bytes], key: str, *, optional: bool | None
    ) -> bytes | None:
        """Return the value of a key; raise the kubelet's error if it is missing and required."""
        if key in data or optional:
            return data.get(key)
        raise ContainerConfigError(f"couldn't find key {key} in {kind} {self.pod.metadata.namespace}/{name}")

    def field(self, path: str) -> str:
        """Return a field of the Pod (fieldRef)."""
        meta, spec = self.pod.metadata, self.pod.spec
        if keyed := _KEYED.fullmatch(path):
            return (meta.labels if keyed[1] == "labels" else meta.annotations).get(keyed[2], "")
        address = self.addresses.host_ip if spec.host_network else self.addresses.pod_ip
        fields = {
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "metadata.uid": meta.uid,
            "metadata.labels": _listed(meta.labels),
            "metadata.annotations": _listed(meta.annotations),
            "spec.nodeName": spec.node_name,
            "spec.serviceAccountName": spec.service_account_name,
            "status.hostIP": self.addresses.host_ip,
            "status.hostIPs": self.addresses.host_ip,
            "status.podIP": address,
            "status.podIPs": address,
        }
        if path not in fields:
            raise ContainerConfigError(f"unsupported fieldPath: {path}")
        return fields[path]

    def resource(self, asked: core_v1.ResourceFieldSelector, container: core_v1.Container) -> str:
        """Return a limit or request of a container (resourceFieldRef); an unset limit is the node's capacity."""
        named = [item for item in self.pod.spec.containers if item.name == asked.container_name]
        amounts = (named[0] if named else container).resources
        section, _, name = asked.resource.partition(".")
        found = amounts.limits.get(name) or (NODE_CAPACITY.get(name) if section == "limits" else None)
        if section == "requests":
            found = amounts.requests.get(name)
        divisor = asked.divisor if asked.divisor is not None and asked.divisor.value else Quantity("1")
        return str(math.ceil((found or Quantity("0")).value / divisor.value))


def _listed(pairs: dict[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(pairs.items()))


def expanded(text: str, known: dict[str, str]) -> str:
    """Expand `$(NAME)` references; `$$` is a literal dollar sign, and unknown names stay unchanged."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


async def environment(
    resolver: ReferenceResolver, container: core_v1.Container, given: dict[str, str]
) -> dict[str, str]:
    """Build a container's environment: inherited variables, then those given, then its own."""
    pod = resolver.pod
    made = {name: os.environ[name] for name in INHERITED if name in os.environ}
    made["HOSTNAME"] = pod.spec.hostname or pod.metadata.name
    made.update(given)
    for source in container.env_from:
        made.update(await _all_of(resolver, source))
    for item in container.env:
        value = await _value(resolver, container, item, made)
        if value is not None:
            made[item.name] = value
    return made


async def _all_of(resolver: ReferenceResolver, source: core_v1.EnvFromSource) -> dict[str, str]:
    found: dict[str, bytes] = {}
    if source.config_map_ref is not None:
        found = await resolver.config_map(source.config_map_ref.name, optional=source.config_map_ref.optional)
    elif source.secret_ref is not None:
        found = await resolver.secret(source.secret_ref.name, optional=source.secret_ref.optional)
    return {f"{source.prefix}{key}": value.decode(errors="replace") for key, value in found.items()}


async def _value(
    resolver: ReferenceResolver, container: core_v1.Container, item: core_v1.EnvVar, known: dict[str, str]
) -> str | None:
    source = item.value_from
    if source is None:
        return expanded(item.value, known)
    if source.field_ref is not None:
        return resolver.field(source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return resolver.resource(source.resource_field_ref, container)
    if (asked := source.config_map_key_ref) is not None:
        found = await resolver.config_map(asked.name, optional=asked.optional)
        picked = resolver.key("ConfigMap", asked.name, found, asked.key, optional=asked.optional)
    elif (asked := source.secret_key_ref) is not None:
        found = await resolver.secret(asked.name, optional=asked.optional)
        picked = resolver.key("Secret", asked.name, found, asked.key, optional=asked.optional)
    else:
        return None
    return None if picked is None else picked.decode(errors="replace")


def command_of(container: core_v1.Container, images: Images, known: dict[str, str]) -> list[str]:
    """Return a container's command: the one given for its image, else its own, followed by its arguments."""
    stand_in = images.get(container.image) or images.get(untagged(container.image))
    words = list(stand_in) if stand_in else [expanded(word, known) for word in container.command]
    return [*words, *(expanded(word, known) for word in container.args)] if words else []


def at_own_address(text: str, address: str) -> str:
    """Replace an all-interfaces address by the Pod's address: `:8081` becomes `127.128.0.5:8081`."""
    found = _EVERYWHERE.fullmatch(text)
    return f"{found[1]}{address}{found[2] or found[3]}" if found is not None else text


def can_bind(address: str) -> bool:
    """Return True if processes can listen on the address; macOS allows only 127.0.0.1 by default."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def runs_here(container: core_v1.Container, images: Images) -> bool:
    """Return True if the container's command exists on this machine."""
    words = command_of(container, images, dict(os.environ))
    return bool(words) and shutil.which(words[0]) is not None


def folder_of(container: core_v1.Container, mounts: Path) -> Path:
    """Return the working directory of a container.

    It is the container's own if that exists here, else below its mounts; by default the current directory.
    """
    if not container.working_dir:
        return Path.cwd()
    named = Path(container.working_dir)
    if named.is_dir():
        return named
    inside = mounts / container.working_dir.lstrip("/")
    inside.mkdir(parents=True, exist_ok=True)
    return inside
