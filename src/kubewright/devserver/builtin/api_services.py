"""API services: the groups and versions that are served, here or by another server."""

import base64
from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, object_age
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "apiregistration.k8s.io"


def _default(obj: JsonObject) -> None:
    service: JsonObject | None = section(obj, "spec").get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


def _new(obj: JsonObject) -> None:
    if section(obj, "spec").get("service") is not None:
        obj["status"] = {}
        return
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    obj["status"] = {"conditions": [available]}


def _validate(obj: JsonObject) -> list[FieldError]:
    spec, name = section(obj, "spec"), obj["metadata"].get("name", "")
    group, version = spec.get("group", ""), spec.get("version", "")
    errors = check.named("metadata.name", name, names.path_segment(name))
    if not errors and name != (wanted := f"{version}.{group}"):
        text = f'must be `spec.version+"."+spec.group`: {problems.quoted(wanted)}'
        errors.append(problems.invalid("metadata.name", name, text))
    if group:
        errors += check.named("spec.group", group, names.dns1123_subdomain(group))
    elif version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        errors.append(problems.required("spec.group", text))
    errors += check.named("spec.version", version, names.dns1035_label(version))
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field, 0)
        if not 0 < value <= most:
            text = f"must be positive and less than {most}"
            errors.append(problems.invalid(f"spec.{field}", value, text))
    return [*errors, *_destination(spec)]


def _destination(spec: JsonObject) -> Iterator[FieldError]:
    service: JsonObject | None = spec.get("service")
    bundle, trusting, path = (
        spec.get("caBundle"),
        spec.get("insecureSkipTLSVerify"),
        "spec.insecureSkipTLSVerify",
    )
    if service is None:
        if bundle:
            shown, text = (
                f"{len(base64.b64decode(bundle))} bytes",
                "local APIServices may not have a caBundle",
            )
            yield problems.invalid("spec.caBundle", shown, text)
        if trusting:
            yield problems.invalid(path, trusting, "local APIServices may not have insecureSkipTLSVerify")
        return
    for name in ("namespace", "name"):
        if not service.get(name):
            yield problems.required(f"spec.service.{name}")
    if not 0 < (port := service.get("port", 443)) < 65536:
        yield problems.invalid("spec.service.port", port, f"port is not valid: {check.PORT_RANGE}")
    if trusting and bundle:
        yield problems.invalid(path, trusting, "may not be true if caBundle is present")


def _validate_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return [
        error
        for index, condition in enumerate(items(section(new, "status"), "conditions"))
        for error in check.one_of(
            f"status.conditions[{index}].status", condition.get("status", ""), ("True", "False", "Unknown")
        )
    ]


def _row(obj: JsonObject, now: float) -> list[Any]:
    service: JsonObject | None = section(obj, "spec").get("service")
    place = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    shown = "Unknown"
    for item in items(section(obj, "status"), "conditions"):
        if item.get("type") == "Available":
            shown = item.get("status", "")
            if shown != "True":
                shown = f"{shown} ({item.get('reason', '')})"
    return [obj["metadata"]["name"], place, shown, object_age(obj, now)]


STRATEGIES = {
    (GROUP, "APIService"): Strategy(
        default=_default,
        prepare_create=_new,
        validate=_validate,
        validate_update=lambda new, old: _validate(new),
        validate_status_update=_validate_status,
        # Its name is checked with what it must be made of.
        name_check=names.path_segment,
        allow_unconditional_update=False,
        columns=(NAME, Column("Service"), Column("Available"), AGE),
        row=_row,
    ),
}
