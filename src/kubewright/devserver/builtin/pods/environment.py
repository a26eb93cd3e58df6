"""Environment variables of containers, and references to fields and resources of the running Pod."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items, section, words

VOLUME_FIELDS = words("metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid")
_NAME = re.compile(r"[ -<>-~]+")
_NAME_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_KNOWN_FIELDS = (
    *VOLUME_FIELDS,
    *words("spec.nodeName spec.restartPolicy spec.serviceAccountName spec.schedulerName spec.hostNetwork"),
    *words("status.phase status.hostIP status.hostIPs status.podIP status.podIPs"),
)
_FIELDS = words(
    "metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName status.hostIP "
    "status.hostIPs status.podIP status.podIPs"
)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_BYTES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTES.split(", "), f"{_BYTES} are supported with the memory resource"),
    "ephemeral-storage": (
        _BYTES.split(", "),
        f"{_BYTES} are supported with the local ephemeral storage resource",
    ),
    "hugepages": (_BYTES.split(", "), f"{_BYTES} are supported with the hugepages resource"),
}
_SUBSCRIPT = re.compile(r"(.*?)\['(.*)'\]", re.DOTALL)


def check_env(variables: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check the environment variables of a container."""
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        if not variable.get("name"):
            yield problems.required(f"{where}.name")
        else:
            yield from _name(variable["name"], f"{where}.name")
        if variable.get("valueFrom") is not None:
            yield from _source(variable, f"{where}.valueFrom")


def check_env_from(sources: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check the `envFrom` sources of a container."""
    for index, source in enumerate(sources):
        if prefix := source.get("prefix"):
            yield from _name(prefix, f"{path}[{index}].prefix")
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name, where = source[kind].get("name", ""), f"{path}[{index}].{kind}.name"
            yield from check.name(where, name, lambda text: names.generated(names.dns1123_subdomain, text))
        if not given:
            yield problems.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield problems.invalid(path, "", "may not have more than one field specified at a time")


def check_field(reference: JsonObject, path: str, allowed: Collection[str]) -> Iterator[FieldError]:
    """Check a `fieldRef`."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        yield problems.required(f"{path}.apiVersion")
        return
    if not field:
        yield problems.required(f"{path}.fieldPath")
        return
    subscript = _SUBSCRIPT.fullmatch(field)
    name = subscript[1] if subscript else field
    if version != "v1":
        text = f"error converting fieldPath: unsupported pod version: {version}"
        yield problems.invalid(f"{path}.fieldPath", field, text)
    elif subscript and name in ("metadata.annotations", "metadata.labels"):
        key = subscript[2].lower() if name == "metadata.annotations" else subscript[2]
        yield from check.named(path, key, names.qualified_name(key))
    elif subscript:
        text = f"error converting fieldPath: field label does not support subscript: {field}"
        yield problems.invalid(f"{path}.fieldPath", field, text)
    elif field not in _KNOWN_FIELDS:
        text = f"error converting fieldPath: field label not supported: {field}"
        yield problems.invalid(f"{path}.fieldPath", field, text)
    elif field not in allowed:
        yield problems.not_supported(f"{path}.fieldPath", field, sorted(allowed))


def check_resource(reference: JsonObject, path: str, *, volume: bool = False) -> Iterator[FieldError]:
    """Check a `resourceFieldRef`."""
    name = reference.get("resource", "")
    if volume and not reference.get("containerName"):
        yield problems.required(f"{path}.containerName")
    elif not name:
        yield problems.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(("requests.hugepages-", "limits.hugepages-")):
        yield problems.not_supported(f"{path}.resource", name, _RESOURCES)
    divisor = check.quantity(reference.get("divisor") or "0")
    if divisor == check.quantity("0"):
        return
    kind = name.partition(".")[2]
    units, text = _DIVISORS.get("hugepages" if kind.startswith("hugepages-") else kind, ((), ""))
    if text and str(divisor) not in units:
        yield problems.invalid(f"{path}.divisor", name, f"only divisor's values {text}")


def _name(name: str, path: str) -> Iterator[FieldError]:
    if not _NAME.fullmatch(name):
        yield problems.invalid(path, name, _NAME_RULE)


def _source(variable: JsonObject, path: str) -> Iterator[FieldError]:
    source: JsonObject = variable["valueFrom"]
    given = [kind for kind in _SOURCES if source.get(kind) is not None]
    for kind in given:
        yield from _CHECKS[kind](source[kind], f"{path}.{kind}")
    if not given:
        listed = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield problems.invalid(path, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif variable.get("value"):
        yield problems.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield problems.invalid(path, "", "may not have more than one field specified at a time")


def _env_field(reference: JsonObject, path: str) -> Iterator[FieldError]:
    return check_field(reference, path, _FIELDS)


def _key(reference: JsonObject, path: str) -> Iterator[FieldError]:
    name = reference.get("name", "")
    yield from check.named(f"{path}.name", name, names.dns1123_subdomain(name))
    yield from check.name(f"{path}.key", reference.get("key"), names.config_key)


def _file(reference: JsonObject, path: str) -> Iterator[FieldError]:
    key, volume, file = (reference.get(name, "") for name in ("key", "volumeName", "path"))
    if key:
        yield from _name(key, f"{path}.key")
    else:
        yield problems.required(f"{path}.key")
    yield from check.name(f"{path}.volumeName", volume, names.dns1123_label)
    if not file:
        yield problems.required(f"{path}.path")
    elif ".." in file.split("/"):
        yield problems.invalid(f"{path}.path", file, "must not contain '..'")


def check_file_volumes(spec: JsonObject, path: str, groups: Sequence[str]) -> Iterator[FieldError]:
    """Check that variables are read from files in volumes of the type emptyDir."""
    volumes = {volume.get("name", ""): volume for volume in items(spec, "volumes")}
    for group in groups:
        for index, container in enumerate(items(spec, group)):
            for position, variable in enumerate(items(container, "env")):
                reference: JsonObject | None = section(variable, "valueFrom").get("fileKeyRef")
                if reference is None:
                    continue
                name = reference.get("volumeName", "")
                where = f"{path}.{group}[{index}].env[{position}].valueFrom.fileKeyRef.volumeName"
                if name not in volumes:
                    yield problems.not_found(where, name)
                elif volumes[name].get("emptyDir") is None:
                    yield problems.invalid(where, name, "referenced volume must be of type emptyDir")


_CHECKS: dict[str, Callable[[JsonObject, str], Iterator[FieldError]]] = {
    "fieldRef": _env_field,
    "resourceFieldRef": check_resource,
    "configMapKeyRef": _key,
    "secretKeyRef": _key,
    "fileKeyRef": _file,
}
