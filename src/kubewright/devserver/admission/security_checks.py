"""The Pod Security Standards: what the levels baseline and restricted forbid, in kube-apiserver's words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kubewright.devserver.data import MINOR
from kubewright.devserver.objects import JsonObject, items, meta, section, words

NEWEST = MINOR
CAPABILITIES = frozenset(
    words(
        "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP "
        "SETUID SYS_CHROOT"
    )
)
# Each with the minor version since which it is harmless.
SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
NEW_SELINUX_TYPES = frozenset({"container_engine_t"})
VOLUMES = frozenset(
    words("configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret")
)
_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP = ("RuntimeDefault", "Localhost")


class Violation(NamedTuple):
    """A violation of a Pod Security Standard."""

    reason: str
    detail: str


SecurityCheck = Callable[[JsonObject, int], Violation | None]
"""Check a Pod by the standards of a minor version."""


def containers(pod: JsonObject) -> Iterator[JsonObject]:
    """Return all containers of a Pod, in the order in which violations name them."""
    spec = section(pod, "spec")
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from items(spec, field)


def _context(part: JsonObject) -> JsonObject:
    return section(part, "securityContext")


def _pod_context(pod: JsonObject) -> JsonObject:
    return section(pod, "spec", "securityContext")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _some(singular: str, names: list[str], plural: str = "") -> str:
    return singular if len(names) == 1 else plural or f"{singular}s"


def _containers_text(names: list[str]) -> str:
    return f"{_some('container', names)} {_quoted(names)}"


def _setters(pod: bool, names: list[str]) -> str:
    found = ["pod"] if pod else []
    return " and ".join([*found, _containers_text(names)] if names else found)


def _is_windows(pod: JsonObject, minor: int) -> bool:
    return minor >= 25 and section(pod, "spec", "os").get("name") == "windows"


def _own_users(pod: JsonObject, minor: int) -> bool:
    return minor >= 35 and section(pod, "spec").get("hostUsers") is False


def _offenders(pod: JsonObject, find: Callable[[JsonObject], Iterable[str]]) -> tuple[list[str], list[str]]:
    """Return the names of the containers in which a function finds values, and these values, sorted."""
    found = [(item["name"], set(find(item))) for item in containers(pod)]
    return [name for name, values in found if values], sorted(
        {value for _, values in found for value in values}
    )


def _settings(pod: JsonObject, find: Callable[[JsonObject], Iterable[str]]) -> tuple[str, list[str]]:
    """Return which of the Pod and its containers have values in their security contexts, and these values, sorted."""
    whole = set(find(_pod_context(pod)))
    names, values = _offenders(pod, lambda item: find(_context(item)))
    return _setters(bool(whole), names), sorted({*whole, *values})


def _violation(reason: str, found: Sequence[str], text: str) -> Violation | None:
    return Violation(reason, text) if found else None


def _armor(pod: JsonObject, minor: int) -> Violation | None:
    def find(context: JsonObject) -> set[str]:
        return {section(context, "appArmorProfile").get("type", "RuntimeDefault")} - {*_SECCOMP}

    setters, values = _settings(pod, find)
    annotations: dict[str, str] = meta(pod).get("annotations") or {}
    marked = sorted(
        f'{key}="{value}"'
        for key, value in annotations.items()
        if key.startswith(_ARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    listed = [*values, *marked]
    by = " and ".join(part for part in (setters, _some("annotation", marked) if marked else "") if part)
    text = f"{by} must not set AppArmor profile type to {_quoted(listed)}"
    return _violation(_some("forbidden AppArmor profile", listed), listed, text)


def _capabilities(pod: JsonObject, minor: int) -> Violation | None:
    names, added = _offenders(
        pod, lambda item: set(items(section(_context(item), "capabilities"), "add")) - CAPABILITIES
    )
    text = f"{_containers_text(names)} must not include {_quoted(added)} in securityContext.capabilities.add"
    return _violation("non-default capabilities", names, text)


def _namespaces(pod: JsonObject, minor: int) -> Violation | None:
    spec = section(pod, "spec")
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return _violation("host namespaces", found, ", ".join(found))


def _host_paths(pod: JsonObject, minor: int) -> Violation | None:
    volumes = items(section(pod, "spec"), "volumes")
    names = [item["name"] for item in volumes if item.get("hostPath") is not None]
    return _violation("hostPath volumes", names, f"{_some('volume', names)} {_quoted(names)}")


def _host_ports(pod: JsonObject, minor: int) -> Violation | None:
    names, ports = _offenders(
        pod, lambda item: (str(port["hostPort"]) for port in items(item, "ports") if port.get("hostPort"))
    )
    what = f"{_some('uses', names, 'use')} {_some('hostPort', ports)} {', '.join(ports)}"
    return _violation("hostPort", names, f"{_containers_text(names)} {what}")


def _probe_hosts(pod: JsonObject, minor: int) -> Violation | None:
    def find(container: JsonObject) -> set[str]:
        handlers = [section(container, name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [section(container, "lifecycle", name) for name in ("postStart", "preStop")]
        hosts = {section(item, sort).get("host") for item in handlers for sort in ("httpGet", "tcpSocket")}
        return {str(host) for host in hosts - {None, ""}}

    names, hosts = _offenders(pod, find)
    names, what = sorted(set(names)), _some("probe or lifecycle host", hosts)
    text = f"{_containers_text(names)} {_some('uses', names, 'use')} {what} {_quoted(hosts)}"
    return _violation("probe or lifecycle host", names, text)


def _privileged(pod: JsonObject, minor: int) -> Violation | None:
    names = [item["name"] for item in containers(pod) if _context(item).get("privileged")]
    text = f"{_containers_text(names)} must not set securityContext.privileged=true"
    return _violation("privileged", names, text)


def _proc_mount(pod: JsonObject, minor: int) -> Violation | None:
    return None if _own_users(pod, minor) else _strict_proc_mount(pod, minor)


def _strict_proc_mount(pod: JsonObject, minor: int) -> Violation | None:
    names, sorts = _offenders(pod, lambda item: {_context(item).get("procMount") or "Default"} - {"Default"})
    text = f"{_containers_text(names)} must not set securityContext.procMount to {_quoted(sorts)}"
    return _violation("procMount", names, text)


def _selinux(pod: JsonObject, minor: int) -> Violation | None:
    sorts: set[str] = set()
    marks = {"user": False, "role": False}

    def is_bad(context: JsonObject) -> bool:
        options: Any = context.get("seLinuxOptions")
        if options is None:
            return False
        bad = options.get("type", "") not in SELINUX_TYPES - (NEW_SELINUX_TYPES if minor < 31 else set())
        if bad:
            sorts.add(options["type"])
        for name in marks:
            if options.get(name):
                marks[name] = bad = True
        return bad

    whole = is_bad(_pod_context(pod))
    names = [item["name"] for item in containers(pod) if is_bad(_context(item))]
    if not whole and not names:
        return None
    data = [f"{_some('type', sorted(sorts))} {_quoted(sorted(sorts))}"] if sorts else []
    data += [f"{name} may not be set" for name, found in marks.items() if found]
    text = f"{_setters(whole, names)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Violation("seLinuxOptions", text)


def _seccomp(pod: JsonObject, minor: int) -> Violation | None:
    def find(context: JsonObject) -> set[str]:
        profile: JsonObject | None = context.get("seccompProfile")
        return set() if profile is None else {profile.get("type", "")} - {*_SECCOMP}

    setters, values = _settings(pod, find)
    text = f"{setters} must not set securityContext.seccompProfile.type to {_quoted(values)}"
    return _violation("seccompProfile", values, text)


def _sysctls(pod: JsonObject, minor: int) -> Violation | None:
    names = [item["name"] for item in items(_pod_context(pod), "sysctls")]
    found = [name for name in names if SYSCTLS.get(name, NEWEST + 1) > minor]
    return _violation("forbidden sysctls", found, ", ".join(found))


def _host_process(pod: JsonObject, minor: int) -> Violation | None:
    def find(context: JsonObject) -> list[str]:
        return ["true"] if section(context, "windowsOptions").get("hostProcess") else []

    setters, found = _settings(pod, find)
    text = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return _violation("hostProcess", found, text)


def _escalation(pod: JsonObject, minor: int) -> Violation | None:
    if _is_windows(pod, minor):
        return None
    field = "allowPrivilegeEscalation"
    names = [item["name"] for item in containers(pod) if _context(item).get(field) is not False]
    text = f"{_containers_text(names)} must set securityContext.{field}=false"
    return _violation(f"{field} != false", names, text)


def _few_capabilities(pod: JsonObject, minor: int) -> Violation | None:
    if _is_windows(pod, minor):
        return None

    def listed(container: JsonObject, field: str) -> set[str]:
        return set(items(section(_context(container), "capabilities"), field))

    keeping = [item["name"] for item in containers(pod) if "ALL" not in listed(item, "drop")]
    adding, added = _offenders(pod, lambda item: listed(item, "add") - {"NET_BIND_SERVICE"})
    details: list[str] = []
    if keeping:
        details.append(f'{_containers_text(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = f"must not include {_quoted(added)} in securityContext.capabilities.add"
        details.append(f"{_containers_text(adding)} {what}")
    return _violation("unrestricted capabilities", details, "; ".join(details))


def _volumes(pod: JsonObject, minor: int) -> Violation | None:
    names, sorts = list[str](), set[str]()
    for volume in items(section(pod, "spec"), "volumes"):
        found = [name for name, value in volume.items() if name != "name" and value is not None]
        if not set(found) & VOLUMES:
            names.append(volume["name"])
            sorts.add(found[0] if found else "unknown")
    listed = sorted(sorts)
    what = _some("restricted volume type", listed)
    text = f"{_some('volume', names)} {_quoted(names)} {_some('uses', names, 'use')} {what} {_quoted(listed)}"
    return _violation("restricted volume types", names, text)


def _non_root(pod: JsonObject, minor: int) -> Violation | None:
    if _own_users(pod, minor):
        return None
    whole = _pod_context(pod).get("runAsNonRoot")
    declared = {item["name"]: _context(item).get("runAsNonRoot") for item in containers(pod)}
    names = [name for name, value in declared.items() if value is False]
    if whole is False or names:
        text = f"{_setters(whole is False, names)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", text)
    silent = [] if whole else [name for name, value in declared.items() if value is None]
    text = f"pod or {_containers_text(silent)} must set securityContext.runAsNonRoot=true"
    return _violation("runAsNonRoot != true", silent, text)


def _root_user(pod: JsonObject, minor: int) -> Violation | None:
    if _own_users(pod, minor):
        return None
    setters, found = _settings(pod, lambda context: ["0"] if context.get("runAsUser") == 0 else [])
    return _violation("runAsUser=0", found, f"{setters} must not set runAsUser=0")


def _strict_seccomp(pod: JsonObject, minor: int) -> Violation | None:
    if _is_windows(pod, minor):
        return None
    found = _seccomp(pod, minor)
    if found is not None or _pod_context(pod).get("seccompProfile") is not None:
        return found
    silent = [item["name"] for item in containers(pod) if _context(item).get("seccompProfile") is None]
    allowed = '"RuntimeDefault" or "Localhost"'
    text = f"pod or {_containers_text(silent)} must set securityContext.seccompProfile.type to {allowed}"
    return _violation("seccompProfile", silent, text)


BASELINE: tuple[SecurityCheck, ...] = (
    _armor,
    _capabilities,
    _namespaces,
    _host_paths,
    _host_ports,
    _probe_hosts,
    _privileged,
    _proc_mount,
    _selinux,
    _seccomp,
    _sysctls,
    _host_process,
)
RESTRICTED: tuple[SecurityCheck, ...] = (
    _escalation,
    _few_capabilities,
    _strict_proc_mount,
    _volumes,
    _non_root,
    _root_user,
    _strict_seccomp,
)
# The minor version that a check came with.
SINCE: dict[SecurityCheck, int] = {
    _escalation: 8,
    _few_capabilities: 22,
    _probe_hosts: 34,
    _root_user: 23,
    # Before, profiles were annotations.
    _seccomp: 19,
    _strict_proc_mount: 35,
    _strict_seccomp: 19,
}
REPLACES: dict[SecurityCheck, SecurityCheck] = {
    _few_capabilities: _capabilities,
    _strict_proc_mount: _proc_mount,
    _strict_seccomp: _seccomp,
    _volumes: _host_paths,
}


def violations(level: str, pod: JsonObject, minor: int = NEWEST) -> str:
    """Return the violations of a level by a Pod; empty if there are none."""
    found = [violation for check in _checks(level, minor) if (violation := check(pod, minor)) is not None]
    return ", ".join(f"{item.reason} ({item.detail})" for item in found)


def _checks(level: str, minor: int) -> list[SecurityCheck]:
    strict = [check for check in RESTRICTED if SINCE.get(check, 0) <= minor and level == "restricted"]
    replaced = {REPLACES[check] for check in strict if check in REPLACES}
    base = [
        check for check in BASELINE if SINCE.get(check, 0) <= minor and level in ("baseline", "restricted")
    ]
    return [*(check for check in base if check not in replaced), *strict]
