"""How containers are asked whether they live, and told that they start and stop."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items, section

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def check_handlers(container: JsonObject, path: str, spec: JsonObject) -> Iterator[FieldError]:
    """Check a container's hooks and probes, in a Pod's spec that says how long it has to stop."""
    grace = spec.get("terminationGracePeriodSeconds")
    lifecycle: JsonObject = section(container, "lifecycle")
    for name in HOOKS:
        if (hook := lifecycle.get(name)) is not None:
            yield from _handler(hook, f"{path}.lifecycle.{name}", grace)
    for kind in PROBES:
        if container.get(kind) is not None:
            yield from _probe(container[kind], f"{path}.{kind}", kind, grace)


def _probe(probe: JsonObject, path: str, kind: str, grace: int | None) -> Iterator[FieldError]:
    yield from _handler(probe, path, grace)
    yield from check.none_negative(
        probe,
        path,
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    )
    own, where = probe.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    if own is not None and own <= 0:
        yield problems.invalid(where, own, "must be greater than 0")
    if kind == "readinessProbe":
        if own is not None:
            yield problems.invalid(where, own, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield problems.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(action: JsonObject, path: str, grace: int | None) -> Iterator[FieldError]:
    given = [name for name in _HANDLERS if action.get(name) is not None]
    if not given:
        yield problems.required(path, "must specify a handler type")
        return
    yield from _action(given[0], action[given[0]], f"{path}.{given[0]}", grace)
    for extra in given[1:]:
        yield problems.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")


def _action(kind: str, action: Any, path: str, grace: int | None) -> Iterator[FieldError]:
    if kind == "exec" and not action.get("command"):
        yield problems.required(f"{path}.command")
    elif kind == "httpGet":
        yield from _http(action, path)
    elif kind == "tcpSocket":
        yield from check.port_or_name(f"{path}.port", action.get("port"))
    elif kind == "grpc":
        yield from check.port(f"{path}.port", action.get("port", 0))
    elif kind == "sleep" and grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield problems.invalid(path, action["seconds"], text)


def _http(action: JsonObject, path: str) -> Iterator[FieldError]:
    if not action.get("path"):
        yield problems.required(f"{path}.path")
    yield from check.port_or_name(f"{path}.port", action.get("port"))
    yield from check.one_of(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
    for header in items(action, "httpHeaders"):
        name = header.get("name", "")
        yield from check.named(f"{path}.httpHeaders", name, names.http_header_name(name))
