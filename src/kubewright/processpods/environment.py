"""The environment of a container's process."""

import os
import re

from kubewright.api.builtin import core_v1
from kubewright.processpods.values import Values

# A container has its image's environment; a process on this machine needs as little of ours as lets programs run.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "VIRTUAL_ENV", "PYTHONPATH")
_REFERENCE = re.compile(r"\$(\$|\(([^()]+)\))")


def expanded(text: str, known: dict[str, str]) -> str:
    """Expand `$(NAME)`; `$$` is one dollar, and unknown names are left unchanged."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


async def environment(values: Values, container: core_v1.Container, given: dict[str, str]) -> dict[str, str]:
    """Build the variables of a container: ours that are inherited, those given, then its own."""
    pod = values.pod
    made = {name: os.environ[name] for name in INHERITED if name in os.environ}
    made["HOSTNAME"] = pod.spec.hostname or pod.metadata.name
    made.update(given)
    for source in container.env_from:
        made.update(await _all_of(values, source))
    for item in container.env:
        value = await _value(values, container, item, made)
        if value is not None:
            made[item.name] = value
    return made


async def _all_of(values: Values, source: core_v1.EnvFromSource) -> dict[str, str]:
    found: dict[str, bytes] = {}
    if source.config_map_ref is not None:
        found = await values.config_map(source.config_map_ref.name, optional=source.config_map_ref.optional)
    elif source.secret_ref is not None:
        found = await values.secret(source.secret_ref.name, optional=source.secret_ref.optional)
    return {f"{source.prefix}{key}": value.decode(errors="replace") for key, value in found.items()}


async def _value(
    values: Values, container: core_v1.Container, item: core_v1.EnvVar, known: dict[str, str]
) -> str | None:
    source = item.value_from
    if source is None:
        return expanded(item.value, known)
    if source.field_ref is not None:
        return values.field(source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return values.resource(source.resource_field_ref, container)
    if (asked := source.config_map_key_ref) is not None:
        found = await values.config_map(asked.name, optional=asked.optional)
        picked = values.key("ConfigMap", asked.name, found, asked.key, optional=asked.optional)
    elif (asked := source.secret_key_ref) is not None:
        found = await values.secret(asked.name, optional=asked.optional)
        picked = values.key("Secret", asked.name, found, asked.key, optional=asked.optional)
    else:
        return None
    return None if picked is None else picked.decode(errors="replace")
