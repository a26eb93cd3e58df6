"""Kinds that describe the cluster: Nodes, classes for Pods, devices, and the API services of the server."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.pods.containers import check_resources
from kubewright.devserver.builtin.pods.scheduling import TAINT_EFFECTS, check_tolerations
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, cell, printed
from kubewright.devserver.builtin.rules import (
    between,
    changes,
    defaults,
    immutable,
    named,
    one_of,
    required,
    rules,
    unset,
)
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, flag_at, keep_spec, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"
_MAX_USER_PRIORITY = 1000000000
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")


# Nodes


def _default_node(node: JsonObject) -> None:
    spec: JsonObject = section(node, "spec")
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    elif spec.get("podCIDRs") and spec["podCIDRs"][0] != spec["podCIDR"]:
        # If the two fields differ, the older one wins.
        spec["podCIDRs"] = [spec["podCIDR"]]
    status: JsonObject = section(node, "status")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _taint_value(path: str, value: str | None) -> Iterator[FieldError]:
    if reasons := names.label_value(value or ""):
        yield problems.invalid(path, value, ";".join(reasons))


_TAINT = rules(
    ("key", named(names.qualified_name, empty=True)),
    ("value", _taint_value),
    ("effect", one_of(*TAINT_EFFECTS, required=True)),
)


def _validate_node(node: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(items(section(node, "spec"), "taints")):
        # The real server reports taints under metadata.
        path = f"metadata.taints[{index}]"
        errors += _TAINT(path, taint)
        identity = taint.get("key", ""), taint.get("effect", "")
        if identity in seen:
            key, effect = identity
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect}
            text = "taints must be unique by key and effect pair"
            errors.append(check.duplicate_struct(path, {**shown, "TimeAdded": taint.get("timeAdded")}, text))
        seen.add(identity)
    return errors + _NODE.validate(node)


def _update_node(new: JsonObject, old: JsonObject) -> list[FieldError]:
    # The real server checks a changed node twice.
    return _validate_node(new) * 2 + _validate_node_change(new, old)


def _validate_node_change(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, address in enumerate(addresses := items(section(new, "status"), "addresses")):
        if address in addresses[:index]:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            errors.append(check.duplicate_struct(f"status.addresses[{index}]", shown))
    after, before = section(new, "spec"), section(old, "spec")
    networks, earlier = items(after, "podCIDRs"), items(before, "podCIDRs")
    changed = [one != other for one, other in zip(networks, earlier, strict=False)]
    if earlier and len(networks) != len(earlier):
        changed = [True]
    text = 'node updates may not change {} except from "" to valid'
    errors += [problems.forbidden("spec.podCIDRs", text.format("podCIDR")) for _ in filter(None, changed)]
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        errors.append(problems.forbidden("spec.providerID", text.format("providerID")))
    return errors


def _drop_config_source(node: JsonObject) -> None:
    """Remove the field of dynamic kubelet configuration, which no longer exists."""
    section(node, "spec").pop("configSource", None)


def _pod_networks(path: str, networks: Sequence[str] | None) -> Iterator[FieldError]:
    for index, item in enumerate(networks or ()):
        yield from ip_checks.network(f"{path}[{index}]", item)
    parsed = [ip_checks.parse_network(item) for item in networks or ()]
    if len(parsed) > 1 and (
        len(parsed) > 2 or len({item.version for item in parsed if item is not None}) < 2
    ):
        yield problems.invalid(path, networks, "may specify no more than one CIDR for each IP family")


_NODE = rules(("spec.podCIDRs", _pod_networks))


def _node_state(node: JsonObject) -> str:
    ready = [item for item in items(section(node, "status"), "conditions") if item["type"] == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[0].get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if section(node, "spec").get("unschedulable") else state


def _node_roles(node: JsonObject) -> str:
    labels: dict[str, str] = section(node["metadata"], "labels")
    roles = {key[len(_ROLE_PREFIX) :] for key in labels if key.startswith(_ROLE_PREFIX)}
    return ",".join(sorted((roles | {labels.get(_ROLE_LABEL, "")}) - {""})) or NONE


def _node_address(kind: str) -> Any:
    def read(node: JsonObject) -> str:
        found = (item for item in items(section(node, "status"), "addresses") if item["type"] == kind)
        return next((item["address"] for item in found), NONE)

    return read


def _kernel(node: JsonObject) -> str:
    info: JsonObject = section(node, "status", "nodeInfo")
    version, machine = info.get("kernelVersion"), info.get("architecture")
    if not version:
        return _UNKNOWN
    return f"{version} ({machine})" if machine else version


# Priority and runtime classes


def _priority(path: str, obj: JsonObject) -> Iterator[FieldError]:
    name = obj["metadata"].get("name", "")
    if name.startswith("system-"):
        if name not in _SYSTEM_PRIORITIES:
            text = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            yield problems.forbidden("metadata.name", text)
    elif obj.get("value", 0) > _MAX_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_MAX_USER_PRIORITY}"
        yield problems.forbidden("value", text)


def _same_priority(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    if new.get("value", 0) != old.get("value", 0):
        yield problems.forbidden("value", "may not be changed in an update.")


_PRIORITY_CLASS = rules(
    ("", _priority), ("preemptionPolicy", one_of("PreemptLowerPriority", "Never", required=True))
)


def _distinct_tolerations(path: str, tolerations: Sequence[JsonObject] | None) -> Iterator[FieldError]:
    fields = ("key", "operator", "value", "effect")
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(tolerations or ()):
        identity = tuple(item.get(name, "") for name in fields)
        if identity in seen:
            shown = {name.capitalize(): value for name, value in zip(fields, identity, strict=True)}
            seconds = {"TolerationSeconds": item.get("tolerationSeconds")}
            yield check.duplicate_struct(f"{path}[{index}]", {**shown, **seconds})
        seen.add(identity)


_RUNTIME_CLASS = rules(
    ("handler", named(names.dns1123_label, required=True)),
    ("overhead?", lambda path, value: check_resources({"limits": section(value, "podFixed")}, path)),
    ("scheduling?.nodeSelector", check.labels),
    (
        "scheduling?.tolerations",
        lambda path, value: check_tolerations(value or (), path),
        _distinct_tolerations,
    ),
)


# Devices


def _default_claim(claim: JsonObject) -> None:
    _default_requests(section(claim, "spec"))


def _default_claim_template(template: JsonObject) -> None:
    _default_requests(section(template, "spec", "spec"))


def _default_requests(spec: JsonObject) -> None:
    for request in items(section(spec, "devices"), "requests"):
        for device in (request.get("exactly"), *items(request, "firstAvailable")):
            if device is None:
                continue
            device["allocationMode"] = device.get("allocationMode") or "ExactCount"
            if device["allocationMode"] == "ExactCount" and not device.get("count"):
                device["count"] = 1


def _claim_state(claim: JsonObject) -> str:
    status: JsonObject = section(claim, "status")
    if claim["metadata"].get("deletionTimestamp"):
        return "deleted" + (",allocated" if status.get("allocation") else "")
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


# API services


def _new_service(obj: JsonObject) -> None:
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


def _service_name(path: str, obj: JsonObject) -> Iterator[FieldError]:
    spec, name = section(obj, "spec"), obj["metadata"].get("name", "")
    group, version = spec.get("group", ""), spec.get("version", "")
    expected = f"{version}.{group}"
    if errors := check.named("metadata.name", name, names.path_segment(name)):
        yield from errors
    elif name != expected:
        text = f'must be `spec.version+"."+spec.group`: {problems.quoted(expected)}'
        yield problems.invalid("metadata.name", name, text)
    if group:
        yield from check.named("spec.group", group, names.dns1123_subdomain(group))
    elif version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        yield problems.required("spec.group", text)


def _no_bundle(path: str, bundle: str | None) -> Iterator[FieldError]:
    if bundle:
        shown = f"{len(base64.b64decode(bundle))} bytes"
        yield problems.invalid(path, shown, "local APIServices may not have a caBundle")


_API_SERVICE = rules(
    ("", _service_name),
    ("spec.version", named(names.dns1035_label, empty=True)),
    ("spec.groupPriorityMinimum", between(1, 20000, "must be positive and less than 20000")),
    ("spec.versionPriority", between(1, 1000, "must be positive and less than 1000")),
    ("spec{!service}.caBundle", _no_bundle),
    ("spec{!service}.insecureSkipTLSVerify", unset("local APIServices may not have insecureSkipTLSVerify")),
    ("spec.service?.namespace", required()),
    ("spec.service?.name", required()),
    ("spec.service?.port?", between(1, 65535, f"port is not valid: {check.PORT_RANGE}")),
    ("spec{service}{caBundle}.insecureSkipTLSVerify", unset("may not be true if caBundle is present")),
)
_API_SERVICE_STATUS = rules(("status.conditions[].status", one_of("True", "False", "Unknown")))


def _destination(obj: JsonObject) -> str:
    service: JsonObject | None = section(obj, "spec").get("service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _availability(obj: JsonObject) -> str:
    shown = "Unknown"
    for item in items(section(obj, "status"), "conditions"):
        if item.get("type") == "Available":
            shown = item.get("status", "")
            if shown != "True":
                shown = f"{shown} ({item.get('reason', '')})"
    return shown


STRATEGIES = {
    ("", "Node"): Strategy(
        default=_default_node,
        prepare_create=_drop_config_source,
        prepare_status_update=keep_spec,
        validate=_validate_node,
        validate_update=_update_node,
        validate_status_update=_validate_node_change,
        # A kubelet registers its node together with the status.
        status_on_create=True,
        selectable_fields={"spec.unschedulable": flag_at("spec", "unschedulable")},
        reset_fields=SPEC_AND_STATUS,
        **printed(
            NAME,
            cell("Status", _node_state),
            cell("Roles", _node_roles),
            AGE,
            cell("Version", "status.nodeInfo.kubeletVersion"),
            cell("Internal-IP", _node_address("InternalIP"), wide=True),
            cell("External-IP", _node_address("ExternalIP"), wide=True),
            cell("OS-Image", "status.nodeInfo.osImage", _UNKNOWN, wide=True),
            cell("Kernel-Version", _kernel, wide=True),
            cell("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", _UNKNOWN, wide=True),
        ),
    ),
    ("scheduling.k8s.io", "PriorityClass"): Strategy(
        default=defaults(("preemptionPolicy", "PreemptLowerPriority")),
        validate=_PRIORITY_CLASS.validate,
        validate_update=changes(_same_priority, immutable("preemptionPolicy")),
        has_generation=True,
        **printed(
            NAME,
            cell("Value", "value", 0, "integer"),
            cell("Global-Default", "globalDefault", False, "boolean"),
            AGE,
            cell("PreemptionPolicy", "preemptionPolicy", "PreemptLowerPriority"),
        ),
    ),
    ("node.k8s.io", "RuntimeClass"): Strategy(
        validate=_RUNTIME_CLASS.validate,
        validate_update=changes(immutable("handler")),
        allow_unconditional_update=False,
        allow_create_on_update=True,
        **printed(NAME, cell("Handler", "handler"), AGE),
    ),
    ("resource.k8s.io", "DeviceClass"): Strategy(
        has_generation=True, returns_deleted=True, **printed(NAME, AGE)
    ),
    ("resource.k8s.io", "ResourceClaim"): Strategy(
        default=_default_claim,
        validate_update=changes(immutable("spec")),
        returns_deleted=True,
        **printed(NAME, cell("State", _claim_state), AGE),
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): Strategy(
        default=_default_claim_template,
        validate_update=changes(immutable("spec")),
        returns_deleted=True,
        **printed(NAME, AGE),
    ),
    ("resource.k8s.io", "ResourceSlice"): Strategy(
        has_generation=True,
        returns_deleted=True,
        selectable_fields={
            "spec.nodeName": text_at("spec", "nodeName"),
            "spec.driver": text_at("spec", "driver"),
        },
        unselectable="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
        **printed(
            NAME,
            cell("Node", "spec.nodeName"),
            cell("Driver", "spec.driver"),
            cell("Pool", "spec.pool.name"),
            AGE,
        ),
    ),
    ("apiregistration.k8s.io", "APIService"): Strategy(
        default=defaults(("spec.service?.port", 443)),
        prepare_create=_new_service,
        validate=_API_SERVICE.validate,
        validate_update=_API_SERVICE.validate_update,
        validate_status_update=_API_SERVICE_STATUS.validate_update,
        # The name is checked together with the group and version that it is made of.
        name_check=names.path_segment,
        allow_unconditional_update=False,
        **printed(NAME, cell("Service", _destination), cell("Available", _availability), AGE),
    ),
}
