"""Security contexts of Pods and containers, and the fields that depend on the operating system."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.field_checks import invalid_struct
from kubewright.devserver.builtin.rules import (
    between,
    first,
    fits,
    given,
    max_bytes,
    one_of,
    required,
    rules,
    unset,
)
from kubewright.devserver.objects import JsonObject, items, section, words

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_ID = 2147483647
_MAX_PATH = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL_SIZE = 253
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_SECURITY_FIELDS = (
    "capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem "
    "allowPrivilegeEscalation procMount seccompProfile appArmorProfile"
)
_PARTS: dict[str, dict[str, Any]] = {
    "Capabilities": {"add": None, "drop": None},
    "SELinuxOptions": {"user": "", "role": "", "type": "", "level": ""},
    "SeccompProfile": {"type": "", "localhostProfile": None},
    "AppArmorProfile": {"type": "", "localhostProfile": None},
}
_MAX_CREDENTIAL_KIB = 64
_MAX_WINDOWS_DOMAIN = 256
_MAX_WINDOWS_USER = 104
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_WINDOWS_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_LINUX_POD_FIELDS = words(
    "appArmorProfile seLinuxOptions seccompProfile fsGroup fsGroupChangePolicy sysctls runAsUser "
    "runAsGroup supplementalGroups supplementalGroupsPolicy seLinuxChangePolicy"
)
_LINUX_CONTAINER_FIELDS = words(
    "appArmorProfile seLinuxOptions seccompProfile capabilities readOnlyRootFilesystem privileged "
    "allowPrivilegeEscalation procMount runAsUser runAsGroup"
)


def check_pod_security(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the security context of a whole Pod."""
    context, where = section(spec, "securityContext"), f"{path}.securityContext"
    yield from _IDS(where, context)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield problems.invalid(f"{path}.shareProcessNamespace", True, text)
    yield from _sysctls(context, spec, f"{where}.sysctls")
    yield from _POLICIES(where, context)
    yield from _windows_options(context, where)
    yield from _host_processes(spec, path)


def check_container_security(
    context: JsonObject | None, path: str, *, host_users: bool
) -> Iterator[FieldError]:
    """Check the security context of a container."""
    if context is None:
        return
    yield from _CONTAINER(path, context)
    if host_users and context.get("procMount") == "Unmasked":
        text = "`hostUsers` must be false to use `Unmasked`"
        yield problems.invalid(f"{path}.procMount", "Unmasked", text)
    yield from _CONTAINER_SECCOMP(path, context)
    if context.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            yield invalid_struct(path, _struct(context), f"{text} `privileged` to true")
        if "CAP_SYS_ADMIN" in items(section(context, "capabilities"), "add"):
            yield invalid_struct(path, _struct(context), f"{text} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _CONTAINER_APP_ARMOR(path, context)
    yield from _windows_options(context, path)


def _windows_options(context: JsonObject, path: str) -> Iterator[FieldError]:
    options, where = section(context, "windowsOptions"), f"{path}.windowsOptions"
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        yield from check.named(f"{where}.gmsaCredentialSpecName", name, names.dns1123_subdomain(name))
    if (content := options.get("gmsaCredentialSpec")) is not None:
        text = ""
        if not content:
            text = "gmsaCredentialSpec cannot be an empty string"
        elif len(content.encode()) > _MAX_CREDENTIAL_KIB * 1024:
            text = f"gmsaCredentialSpec size must be under {_MAX_CREDENTIAL_KIB} KiB"
        if text:
            yield problems.invalid(f"{where}.gmsaCredentialSpec", content, text)
    if (user := options.get("runAsUserName")) is not None:
        for text in _windows_user(user):
            yield problems.invalid(f"{where}.runAsUserName", user, f"runAsUserName{text}")


def _windows_user(name: str) -> Iterator[str]:
    """Return what is wrong with a Windows user, DOMAIN\\USER or USER."""
    domain, backslash, user = name.rpartition("\\")
    if not name:
        yield " cannot be an empty string"
    elif re.search(r"[\x00-\x1f\x7f]", name):
        yield " cannot contain control characters"
    elif "\\" in domain:
        yield " cannot contain more than one backslash"
    else:
        if len(domain.encode()) >= _MAX_WINDOWS_DOMAIN:
            yield f"'s Domain length must be under {_MAX_WINDOWS_DOMAIN} characters"
        if backslash and not (_NETBIOS.fullmatch(domain) or _WINDOWS_DNS.fullmatch(domain)):
            yield "'s Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "'s User cannot be empty"
        elif len(user.encode()) > _MAX_WINDOWS_USER:
            yield f"'s User length must not be longer than {_MAX_WINDOWS_USER} characters"
        if re.fullmatch(r"[. ]+", user):
            yield "'s User cannot contain only periods or spaces"
        if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
            yield """'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]"""


def _host_processes(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check that all containers of a Windows Pod run as host processes, or none."""
    whole = _host_process(spec)
    found: list[bool] = []
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, group)):
            own = _host_process(container)
            if None not in (whole, own) and whole != own:
                text = (
                    f"pod hostProcess value must be identical if both are specified, was {str(whole).lower()}"
                )
                where = f"{path}.{group}[{index}].securityContext.windowsOptions.hostProcess"
                yield problems.invalid(where, own, text)
            found.append(bool(whole if own is None else own))
    if not any(found):
        return
    if not all(found):
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield problems.invalid(path, "", text)
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        yield problems.invalid(f"{path}.hostNetwork", False, text)


def _host_process(holder: JsonObject) -> bool | None:
    return section(holder, "securityContext", "windowsOptions").get("hostProcess")


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
    shown = check.struct(context, _SECURITY_FIELDS, None)
    for name, fields in _PARTS.items():
        if (part := shown[name]) is not None:
            shown[name] = {
                field[0].upper() + field[1:]: part.get(field, empty) for field, empty in fields.items()
            }
    return shown


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


def _seccomp_file(path: str, profile: JsonObject) -> Iterator[FieldError]:
    if profile.get("localhostProfile") is not None:
        shown, text = (
            check.struct(profile, "type localhostProfile"),
            "can only be set when seccomp type is Localhost",
        )
        yield invalid_struct(f"{path}.localhostProfile", shown, text)


_ID = between(0, _MAX_ID, f"must be between 0 and {_MAX_ID}, inclusive")
_IDS = rules(("fsGroup?", _ID), ("runAsUser?", _ID), ("runAsGroup?", _ID), ("supplementalGroups[]", _ID))
_CONTAINER = rules(("runAsUser?", _ID), ("runAsGroup?", _ID), ("procMount?", one_of("Default", "Unmasked")))
_SECCOMP = rules(
    ("type", first(required("type is required when seccompProfile is set"), one_of(*_PROFILES))),
    ("{type!=Localhost}", _seccomp_file),
    (
        "{type=Localhost}.localhostProfile",
        given(check.clean_relative_path, "must be set when seccomp type is Localhost"),
    ),
)
_APP_ARMOR = rules(
    ("type", first(required("type is required when appArmorProfile is set"), one_of(*_PROFILES))),
    (
        "{type=RuntimeDefault|Unconfined}.localhostProfile",
        unset("can only be set when AppArmor type is Localhost"),
    ),
    ("{type=Localhost}.localhostProfile", required("must be set when AppArmor type is Localhost")),
    (
        "{type=Localhost}{localhostProfile}.localhostProfile",
        fits(lambda file: file.strip() == file, "must not be padded with whitespace"),
        max_bytes(_MAX_PATH),
    ),
)
_POLICIES = rules(
    ("fsGroupChangePolicy?", one_of("Always", "OnRootMismatch")),
    ("seccompProfile?", _SECCOMP),
    ("appArmorProfile?", _APP_ARMOR),
    ("supplementalGroupsPolicy?", one_of("Merge", "Strict")),
    ("seLinuxChangePolicy?", one_of("MountOption", "Recursive")),
)
_CONTAINER_SECCOMP = rules(("seccompProfile?", _SECCOMP))
_CONTAINER_APP_ARMOR = rules(("appArmorProfile?", _APP_ARMOR))
