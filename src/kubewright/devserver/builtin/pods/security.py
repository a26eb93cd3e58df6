"""Security contexts of Pods and containers, and the fields that depend on the operating system."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.field_checks import invalid_struct
from kubewright.devserver.objects import JsonObject, items, section

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_ID = 2147483647
_MAX_PATH = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL_SIZE = 253
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_SECURITY_FIELDS = {
    "capabilities": "Capabilities",
    "privileged": "Privileged",
    "seLinuxOptions": "SELinuxOptions",
    "windowsOptions": "WindowsOptions",
    "runAsUser": "RunAsUser",
    "runAsGroup": "RunAsGroup",
    "runAsNonRoot": "RunAsNonRoot",
    "readOnlyRootFilesystem": "ReadOnlyRootFilesystem",
    "allowPrivilegeEscalation": "AllowPrivilegeEscalation",
    "procMount": "ProcMount",
    "seccompProfile": "SeccompProfile",
    "appArmorProfile": "AppArmorProfile",
}
_PARTS: dict[str, dict[str, Any]] = {
    "Capabilities": {"add": None, "drop": None},
    "SELinuxOptions": {"user": "", "role": "", "type": "", "level": ""},
    "SeccompProfile": {"type": "", "localhostProfile": None},
    "AppArmorProfile": {"type": "", "localhostProfile": None},
}
_LINUX_POD_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_LINUX_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def check_pod_security(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the security context of a whole Pod."""
    context, where = section(spec, "securityContext"), f"{path}.securityContext"
    yield from _ids(context, where, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(items(context, "supplementalGroups")):
        yield from _id(group, f"{where}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield problems.invalid(f"{where}.shareProcessNamespace", True, text)
    yield from _sysctls(context, spec, f"{where}.sysctls")
    yield from _choice(context, where, "fsGroupChangePolicy", "Always", "OnRootMismatch")
    yield from _seccomp(context.get("seccompProfile"), f"{where}.seccompProfile")
    yield from _app_armor(context.get("appArmorProfile"), f"{where}.appArmorProfile")
    yield from _choice(context, where, "supplementalGroupsPolicy", "Merge", "Strict")
    yield from _choice(context, where, "seLinuxChangePolicy", "Recursive")


def check_container_security(
    context: JsonObject | None, path: str, *, host_users: bool
) -> Iterator[FieldError]:
    """Check the security context of a container."""
    if context is None:
        return
    yield from _ids(context, path, "runAsUser", "runAsGroup")
    yield from _choice(context, path, "procMount", "Default", "Unmasked")
    if host_users and context.get("procMount") == "Unmasked":
        text = "`hostUsers` must be false to use `Unmasked`"
        yield problems.invalid(f"{path}.procMount", "Unmasked", text)
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            yield invalid_struct(path, _struct(context), f"{text} `privileged` to true")
        if "CAP_SYS_ADMIN" in items(section(context, "capabilities"), "add"):
            yield invalid_struct(path, _struct(context), f"{text} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def check_os(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the operating system of a Pod, and that no field of the other one is set."""
    if (system := spec.get("os")) is None:
        return
    name = system.get("name", "")
    if not name:
        yield problems.required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield problems.not_supported(f"{path}.os", name, ("linux", "windows"))
    else:
        yield from _fields_of_other_system(spec, path, name)


def _fields_of_other_system(spec: JsonObject, path: str, system: str) -> Iterator[FieldError]:
    linux = system == "linux"
    text = "windows options cannot be set for a linux pod" if linux else "cannot be set for a windows pod"
    context = section(spec, "securityContext")
    for field in ("windowsOptions",) if linux else _LINUX_POD_FIELDS:
        if context.get(field) not in (None, []):
            yield problems.forbidden(f"{path}.securityContext.{field}", text)
    for field in () if linux else ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if spec.get(field) is not None and (spec[field] or field in ("hostUsers", "shareProcessNamespace")):
            yield problems.forbidden(f"{path}.{field}", text)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, group)):
            context = section(container, "securityContext")
            for field in ("windowsOptions",) if linux else _LINUX_CONTAINER_FIELDS:
                if context.get(field) is not None:
                    yield problems.forbidden(f"{path}.{group}[{index}].securityContext.{field}", text)


def _struct(context: JsonObject) -> Mapping[str, Any]:
    """Return a security context as Go prints it, with its nested structs."""
    shown = {go_name: context.get(name) for name, go_name in _SECURITY_FIELDS.items()}
    for name, fields in _PARTS.items():
        if (part := shown[name]) is not None:
            shown[name] = {
                field[0].upper() + field[1:]: part.get(field, empty) for field, empty in fields.items()
            }
    return shown


def _ids(context: JsonObject, path: str, *fields: str) -> Iterator[FieldError]:
    for name in fields:
        if (value := context.get(name)) is not None:
            yield from _id(value, f"{path}.{name}")


def _id(value: int, path: str) -> Iterator[FieldError]:
    if not 0 <= value <= _MAX_ID:
        yield problems.invalid(path, value, f"must be between 0 and {_MAX_ID}, inclusive")


def _choice(context: JsonObject, path: str, field: str, *choices: str) -> Iterator[FieldError]:
    if (value := context.get(field)) is not None:
        yield from check.one_of(f"{path}.{field}", value, choices)


def _sysctls(context: JsonObject, spec: JsonObject, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(items(context, "sysctls")):
        name, where = item.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield problems.required(where)
        elif len(name) > _SYSCTL_SIZE or not re.fullmatch(_SYSCTL, name):
            text = f"must have at most {_SYSCTL_SIZE} characters and match regex {_SYSCTL}"
            yield problems.invalid(where, name, text)
        elif name in seen:
            yield problems.duplicate(where, name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield problems.invalid(where, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            yield problems.invalid(where, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _seccomp(profile: JsonObject | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield problems.required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        yield from check.one_of(f"{path}.type", kind, _PROFILES)
    if kind != "Localhost":
        if file is not None:
            text = "can only be set when seccomp type is Localhost"
            shown = {"Type": kind, "LocalhostProfile": file}
            yield invalid_struct(f"{path}.localhostProfile", shown, text)
    elif file is None:
        text = "must be set when seccomp type is Localhost"
        yield problems.required(f"{path}.localhostProfile", text)
    else:
        yield from check.clean_relative_path(f"{path}.localhostProfile", file)


def _app_armor(profile: JsonObject | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, file, where = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not kind:
        yield problems.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield problems.not_supported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if file is not None:
            yield problems.invalid(where, file, "can only be set when AppArmor type is Localhost")
    elif not file:
        yield problems.required(where, "must be set when AppArmor type is Localhost")
    else:
        if file.strip() != file:
            yield problems.invalid(where, file, "must not be padded with whitespace")
        if len(file.encode()) > _MAX_PATH:
            yield problems.too_long(where, _MAX_PATH)
