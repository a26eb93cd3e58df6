"""What is refused in the spec of a Pod or a Pod template."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, QuantityError, names, problems
from kubewright.devserver.objects import Wire

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_PORT = "must be between 1 and 65535, inclusive"
_PORT_NAME = re.compile(r"[-a-z0-9]{1,15}")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_ENV_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def validate_pod_spec(
    spec: Wire, path: str, *, restart_policies: Sequence[str] = RESTART_POLICIES
) -> list[FieldError]:
    """Check a Pod's spec."""
    errors: list[FieldError] = []
    volumes = list(_validate_volumes(spec.get("volumes") or (), f"{path}.volumes", errors))
    containers: Sequence[Wire] = spec.get("containers") or ()
    if not containers:
        errors.append(problems.required(f"{path}.containers", ""))
    seen: set[str] = set()
    for index, container in enumerate(containers):
        _validate_container(container, f"{path}.containers[{index}]", volumes, seen, errors)
    for index, container in enumerate(spec.get("initContainers") or ()):
        _validate_container(container, f"{path}.initContainers[{index}]", volumes, seen, errors)
    policy = spec.get("restartPolicy", "")
    if policy not in restart_policies:
        errors.append(_choice(f"{path}.restartPolicy", policy, restart_policies))
    if (dns := spec.get("dnsPolicy", "")) not in DNS_POLICIES:
        errors.append(problems.not_supported(f"{path}.dnsPolicy", dns, DNS_POLICIES))
    if (grace := spec.get("terminationGracePeriodSeconds")) is None:
        errors.append(problems.required(f"{path}.terminationGracePeriodSeconds", ""))
    elif grace < 0:
        errors.append(
            problems.invalid(
                f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"
            )
        )
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            errors += [
                problems.invalid(f"{path}.{field}", spec[field], text)
                for text in names.dns1123_subdomain(spec[field])
            ]
    return errors


def validate_resources(resources: Wire, path: str) -> list[FieldError]:
    """Check requests and limits of a container."""
    errors: list[FieldError] = []
    limits: dict[str, Any] = resources.get("limits") or {}
    requests: dict[str, Any] = resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            quantity = _quantity(amount)
            if quantity is None or quantity < Quantity("0"):
                detail = "must be greater than or equal to 0"
                errors.append(problems.invalid(f"{path}.{part}[{name}]", amount, detail))
    for name, amount in requests.items():
        if (
            name in limits
            and _quantity(amount) is not None
            and Quantity(str(amount)) > Quantity(str(limits[name]))
        ):
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            errors.append(problems.invalid(f"{path}.requests", str(amount), detail))
    return errors


def validate_env(env: Sequence[Wire], path: str) -> list[FieldError]:
    """Check environment variables."""
    errors: list[FieldError] = []
    for index, variable in enumerate(env):
        where = f"{path}[{index}]"
        name = variable.get("name", "")
        if not name:
            errors.append(problems.required(f"{where}.name", ""))
        elif not _ENV_NAME.fullmatch(name):
            errors.append(problems.invalid(f"{where}.name", name, _ENV_RULE))
        source: Wire | None = variable.get("valueFrom")
        if source is None:
            continue
        given = [kind for kind in source if source[kind] is not None]
        if not given:
            detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            errors.append(problems.invalid(f"{where}.valueFrom", "", detail))
        elif variable.get("value"):
            detail = "may not be specified when `value` is not empty"
            errors.append(problems.invalid(f"{where}.valueFrom", "", detail))
        for kind in ("configMapKeyRef", "secretKeyRef"):
            if (reference := source.get(kind)) is not None and not reference.get("key"):
                errors.append(problems.required(f"{where}.valueFrom.{kind}.key", ""))
    return errors


def _validate_container(
    container: Wire, path: str, volumes: Sequence[str], seen: set[str], errors: list[FieldError]
) -> None:
    name = container.get("name", "")
    if not name:
        errors.append(problems.required(f"{path}.name", ""))
    elif name in seen:
        errors.append(problems.duplicate(f"{path}.name", name))
    else:
        errors += [problems.invalid(f"{path}.name", name, text) for text in names.dns1123_label(name)]
    seen.add(name)
    image = container.get("image", "")
    if not image:
        errors.append(problems.required(f"{path}.image", ""))
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        errors.append(problems.invalid(f"{path}.image", image, detail))
    policy = container.get("imagePullPolicy", "")
    if policy not in PULL_POLICIES:
        errors.append(_choice(f"{path}.imagePullPolicy", policy, PULL_POLICIES))
    errors += _validate_ports(container.get("ports") or (), f"{path}.ports")
    errors += validate_env(container.get("env") or (), f"{path}.env")
    errors += _validate_mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    errors += validate_resources(container.get("resources") or {}, f"{path}.resources")
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(kind) is not None:
            errors += _validate_probe(container[kind], f"{path}.{kind}")


def _validate_ports(ports: Sequence[Wire], path: str) -> Iterable[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if name := port.get("name"):
            if not _PORT_NAME.fullmatch(name) or not re.search("[a-z]", name):
                detail = (
                    "must be no more than 15 characters"
                    if len(name) > 15
                    else ("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
                )
                yield problems.invalid(f"{where}.name", name, detail)
            elif name in seen:
                yield problems.duplicate(f"{where}.name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            yield problems.required(f"{where}.containerPort", "")
        elif not 0 < number < 65536:
            yield problems.invalid(f"{where}.containerPort", number, _PORT)
        if (host := port.get("hostPort", 0)) and not 0 < host < 65536:
            yield problems.invalid(f"{where}.hostPort", host, _PORT)
        if (protocol := port.get("protocol", "")) not in PROTOCOLS:
            yield _choice(f"{where}.protocol", protocol, PROTOCOLS)


def _validate_mounts(mounts: Sequence[Wire], path: str, volumes: Sequence[str]) -> Iterable[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        name, folder = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield problems.required(f"{where}.name", "")
        elif name not in volumes:
            yield problems.not_found(f"{where}.name", name)
        if not folder:
            yield problems.required(f"{where}.mountPath", "")
        elif folder in seen:
            yield problems.invalid(f"{where}.mountPath", folder, "must be unique")
        seen.add(folder)


def _validate_probe(probe: Wire, path: str) -> Iterable[FieldError]:
    handlers = [name for name in ("exec", "httpGet", "tcpSocket", "grpc") if probe.get(name) is not None]
    if not handlers:
        yield problems.required(path, "must specify a handler type")
    for extra in handlers[1:]:
        yield problems.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        if (value := probe.get(name, 0)) < 0:
            yield problems.invalid(f"{path}.{name}", value, "must be greater than or equal to 0")


def _validate_volumes(volumes: Sequence[Wire], path: str, errors: list[FieldError]) -> Iterable[str]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        where = f"{path}[{index}]"
        if not name:
            errors.append(problems.required(f"{where}.name", ""))
            continue
        if troubles := names.dns1123_label(name):
            errors += [problems.invalid(f"{where}.name", name, text) for text in troubles]
        elif name in seen:
            errors.append(problems.duplicate(f"{where}.name", name))
        seen.add(name)
        sources = [kind for kind in volume if kind != "name"]
        for extra in sources[1:]:
            errors.append(problems.forbidden(f"{where}.{extra}", "may not specify more than 1 volume type"))
        yield name


def _choice(path: str, value: str, choices: Sequence[str]) -> FieldError:
    return problems.not_supported(path, value, choices) if value else problems.required(path, "")


def _quantity(value: Any) -> Quantity | None:
    try:
        return Quantity(str(value))
    except QuantityError:
        return None
