"""Kinds that describe the cluster: Nodes, classes for Pods, devices, and the API services of the server."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.deprecations import NODE_LABELS
from kubewright.devserver.builtin.pods.containers import check_resources
from kubewright.devserver.builtin.pods.scheduling import TAINT_EFFECTS, check_tolerations
from kubewright.devserver.builtin.pods.volumes import check_driver
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, Cell, cell, printed
from kubewright.devserver.builtin.rules import (
    FieldRule,
    between,
    changes,
    defaults,
    fixed,
    immutable,
    in_bytes,
    named,
    one_of,
    required,
    rules,
    unset,
    validated,
    without,
)
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, flag_at, restore, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy, TableColumn
from kubewright.devserver.strategy.tables import age

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"
_MAX_USER_PRIORITY = 1000000000
_MAX_TAINT_CONDITIONS = 8
_MAX_FEATURE = 253
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
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
    return [*_node_parts(node), *_NODE.validate(node)]


def _node_parts(node: JsonObject) -> list[FieldError]:
    """Check what the real server checks once for each node, and a second time for a changed one."""
    return [*_taints(node), *_NODE_STATUS.validate(node)]


def _taints(node: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(items(section(node, "spec"), "taints")):
        # The real server reports taints under metadata.
        path = f"metadata.taints[{index}]"
        errors += _TAINT(path, taint)
        identity = taint.get("key", ""), taint.get("effect", "")
        if identity in seen:
            shown = {**check.struct(taint, "key value effect"), "TimeAdded": taint.get("timeAdded")}
            text = "taints must be unique by key and effect pair"
            errors.append(check.duplicate_struct(path, shown, text))
        seen.add(identity)
    return errors


def _validate_node_change(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _node_parts(new)
    for index, address in enumerate(addresses := items(section(new, "status"), "addresses")):
        if address in addresses[:index]:
            shown = check.struct(address, "type address")
            errors.append(check.duplicate_struct(f"status.addresses[{index}]", shown))
    after, before = section(new, "spec"), section(old, "spec")
    networks, earlier = items(after, "podCIDRs"), items(before, "podCIDRs")
    changed = [one != other for one, other in zip(networks, earlier, strict=False)]
    if earlier and len(networks) != len(earlier):
        changed = [True]
    text = 'node updates may not change podCIDR except from "" to valid'
    errors += [problems.forbidden("spec.podCIDRs", text) for _ in filter(None, changed)]
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        done = "modified" if after.get("providerID") else "cleared"
        errors.append(problems.invalid("spec.providerID", None, f"field cannot be {done} once set"))
    if before.get("externalID", "") != after.get("externalID", ""):
        errors.append(problems.forbidden("spec.externalID", "may not be updated"))
    return errors


def _declared_features(path: str, features: Sequence[str] | None) -> Iterator[FieldError]:
    found = features or ()
    for index, name in enumerate(found):
        if len(name) > _MAX_FEATURE:
            text = f"must be no more than {_MAX_FEATURE} characters"
        elif not _FEATURE.fullmatch(name):
            text = (
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
                "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            )
        else:
            text = ""
        if text:
            yield problems.invalid(
                f"{path}[{index}]", name, f"invalid feature name {problems.quoted(name)}: {text}"
            )
        if index and name == found[index - 1]:
            yield problems.duplicate(f"{path}[{index}]", name)
        elif index and name < found[index - 1]:
            yield problems.invalid(f"{path}[{index}]", name, "list must be sorted alphabetically")


def _node_resources(path: str, resources: JsonObject | None) -> Iterator[FieldError]:
    for name, value in (resources or {}).items():
        yield from check.resource_quantity(f"{path}.{name}", name, value)


def _swap_capacity(path: str, node: JsonObject) -> Iterator[FieldError]:
    capacity = section(node, "status", "nodeInfo", "swap").get("capacity")
    if capacity is not None and capacity <= 0:
        # The real server reports it under metadata.
        yield problems.invalid("metadata.nodeSwapStatus.capacity", capacity, check.NOT_POSITIVE)


# Dynamic kubelet configuration no longer exists, the feature gate of the preemption policy is off.
_drop_disabled_fields = without("spec.configSource", "status.config")


def _keep_node_spec(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")
    _drop_disabled_fields(new)


def _pod_networks(path: str, networks: Sequence[str] | None) -> Iterator[FieldError]:
    for index, item in enumerate(networks or ()):
        yield from ip_checks.network(f"{path}[{index}]", item)
    parsed = [ip_checks.parse_network(item) for item in networks or ()]
    if len(parsed) > 1 and None in parsed:
        index = parsed.index(None)
        text = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {(networks or ())[index]})"
        yield problems.internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{text}")
    if len(parsed) > 1 and (
        len(parsed) > 2 or len({item.version for item in parsed if item is not None}) < 2
    ):
        yield problems.invalid(path, networks, "may specify no more than one CIDR for each IP family")


_NODE = rules(("", _swap_capacity), ("spec.podCIDRs", _pod_networks))
_NODE_STATUS = rules(
    ("status.capacity", _node_resources),
    ("status.allocatable", _node_resources),
    ("status.declaredFeatures", _declared_features),
)


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


_PRIORITY_CLASS = rules(
    ("", _priority), ("preemptionPolicy", one_of("PreemptLowerPriority", "Never", required=True))
)


def _distinct_tolerations(path: str, tolerations: Sequence[JsonObject] | None) -> Iterator[FieldError]:
    seen: list[JsonObject] = []
    for index, item in enumerate(tolerations or ()):
        shown = check.struct(item, "key operator value effect")
        if shown in seen:
            seconds = {"TolerationSeconds": item.get("tolerationSeconds")}
            yield check.duplicate_struct(f"{path}[{index}]", {**shown, **seconds})
        seen.append(shown)


# Declared.
_HANDLER = rules(("handler", named(in_bytes(names.dns1123_label), required=True)))
# A change is refused before the declared rule applies, so the one that is not declared reports the name.
_CHANGED_HANDLER = rules(("handler", named(names.dns1123_label, required=True)))
_RUNTIME_CLASS = rules(
    ("overhead?", lambda path, value: check_resources({"limits": section(value, "podFixed")}, path)),
    ("scheduling?.nodeSelector", check.labels),
    (
        "scheduling?.tolerations",
        lambda path, value: check_tolerations(value or (), path),
        _distinct_tolerations,
    ),
)


# Devices


def _own_taint_time(rule: JsonObject) -> None:
    """Reserve the place of the time, which is set later but belongs to the writer."""
    rule.setdefault("spec", {}).setdefault("taint", {}).setdefault("timeAdded", None)


def _date_taint(rule: JsonObject) -> None:
    taint: JsonObject = section(rule, "spec", "taint")
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = rule["metadata"].get("creationTimestamp")


def _keep_taint_time(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "status")
    taint: JsonObject = section(new, "spec", "taint")
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = old["spec"]["taint"].get("timeAdded")


_TAINT_RULE = rules(
    ("spec.deviceSelector?.driver?", check_driver),
    ("spec.taint.key", named(names.qualified_name, empty=True)),
    ("spec.taint.value", named(names.label_value)),
    # Declared.
    ("spec.taint.effect", one_of("NoExecute", "NoSchedule", "None", required=True)),
)


def _taint_rule_conditions(rule: JsonObject) -> Iterator[FieldError]:
    conditions, path = items(section(rule, "status"), "conditions"), "status.conditions"
    yield from check.check_conditions(conditions, path)
    if len(conditions) > _MAX_TAINT_CONDITIONS:
        yield problems.too_many(path, len(conditions), _MAX_TAINT_CONDITIONS)


def _default_requests(spec: JsonObject) -> None:
    for request in items(section(spec, "devices"), "requests"):
        for device in (request.get("exactly"), *items(request, "firstAvailable")):
            if device is None:
                continue
            device["allocationMode"] = device.get("allocationMode") or "ExactCount"
            if device["allocationMode"] == "ExactCount" and not device.get("count"):
                device["count"] = 1
            _default_tolerations(device)


def _default_claim(claim: JsonObject) -> None:
    _default_requests(section(claim, "spec"))
    for result in items(section(claim, "status", "allocation", "devices"), "results"):
        _default_tolerations(result)


def _default_tolerations(device: JsonObject) -> None:
    for toleration in items(device, "tolerations"):
        toleration["operator"] = toleration.get("operator") or "Equal"


def _claim_state(claim: JsonObject) -> str:
    status: JsonObject = section(claim, "status")
    if claim["metadata"].get("deletionTimestamp"):
        return "deleted" + (",allocated" if status.get("allocation") else "")
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


# Storage version migrations


def _one_text(syntax: Callable[[str], list[str]]) -> FieldRule:
    """Make the rule that a text, if there is one, has a syntax; all errors are in one."""

    def run(path: str, value: str | None) -> Iterator[FieldError]:
        if value and (errors := syntax(value)):
            yield problems.invalid(path, value, ",".join(errors))

    return run


_MIGRATION = rules(
    ("spec.resource.resource", required("resource is required to be set"), _one_text(names.dns1035_label)),
    ("spec.resource.group", _one_text(names.dns1123_subdomain)),
)


def _same_migration(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = section(new, "spec"), section(old, "spec")
    if after == before:
        return []
    resource = section(after, "resource")
    shown = {"Resource": {"group": resource.get("group", ""), "resource": resource.get("resource", "")}}
    return [check.invalid_struct("spec", shown, check.IMMUTABLE)]


def _migration_status(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    after, before = section(new, "status"), section(old, "status")
    conditions, path = items(after, "conditions"), "status.conditions"
    version = after.get("resourceVersion", "")
    if version and (version.startswith("0") or not version.isdecimal()):
        yield problems.invalid(
            "status.resourceVersion", version, f"resource version is not well formed: {version}"
        )
    yield from check.check_conditions(conditions, path)
    if before.get("resourceVersion") and before["resourceVersion"] != version:
        yield problems.invalid("status.resourceVersion", version, check.IMMUTABLE)
    now, earlier = (_true_conditions(status) for status in (after, before))
    if {"Succeeded", "Failed"} <= now:
        text = "Both success and failed conditions cannot be true at the same time"
        yield problems.invalid(path, conditions, text)
    for kind, title in (("Succeeded", "Success"), ("Failed", "Failed")):
        if kind in earlier - now:
            text = f"{title} condition cannot be set to false once it is true"
            yield problems.invalid(path, conditions, text)


def _true_conditions(status: JsonObject) -> set[str]:
    return {item.get("type", "") for item in items(status, "conditions") if item.get("status") == "True"}


def _migrated_resource(migration: JsonObject) -> str:
    resource = section(section(migration, "spec"), "resource")
    return ".".join(filter(None, (resource.get("resource"), resource.get("group"))))


def _migration_state(migration: JsonObject) -> str:
    states = ("Running", "Failed", "Succeeded")
    shown = "Unknown"
    for item in items(section(migration, "status"), "conditions"):
        if item.get("status") == "True" and item.get("type") in states:
            shown = item["type"]
    return shown


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
    spec = section(obj, "spec")
    group, version = spec.get("group", ""), spec.get("version", "")
    expected = f"{version}.{group}"
    for field in ("generateName", "name"):
        name = obj["metadata"].get(field, "")
        if errors := check.named(f"metadata.{field}", name, names.path_segment(name)):
            yield from errors
        elif name and name != expected:
            text = f'must be `spec.version+"."+spec.group`: {problems.quoted(expected)}'
            yield problems.invalid(f"metadata.{field}", name, text)
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


# Warnings


def _warn_about_node(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec = section(new, "spec")
    found: list[str] = []
    if spec.get("configSource") is not None:
        found.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, text in enumerate(items(spec, "podCIDRs")):
        found += ip_checks.form_warnings(f"spec.podCIDRs[{index}]", text)
    return found


def _warn_about_runtime_class(new: JsonObject, old: JsonObject | None) -> list[str]:
    labels = section(new, "scheduling", "nodeSelector")
    return [f"scheduling.nodeSelector: {NODE_LABELS[label]}" for label in labels if label in NODE_LABELS]


def _warn_about_slice(new: JsonObject, old: JsonObject | None) -> list[str]:
    driver: str = section(new, "spec").get("driver", "")
    if driver == driver.lower():
        return []
    text = f"driver names should be lowercase; {problems.quoted(driver)} contains uppercase characters"
    return [f"spec.driver: {text}"]


STRATEGIES = {
    ("", "Node"): Strategy(
        warnings=_warn_about_node,
        default=_default_node,
        prepare_create=_drop_disabled_fields,
        prepare_update=lambda new, old: _drop_disabled_fields(new),
        prepare_status_update=_keep_node_spec,
        validate=_validate_node,
        validate_update=lambda new, old: _validate_node(new) + _validate_node_change(new, old),
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
        validate_update=changes(
            fixed("value", text="may not be changed in an update."), immutable("preemptionPolicy")
        ),
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
        warnings=_warn_about_runtime_class,
        validate=rules(("", _RUNTIME_CLASS), ("", _HANDLER)).validate,
        validate_update=changes(
            _RUNTIME_CLASS.validate_update,
            immutable("handler", missing="", shown=False),
            _CHANGED_HANDLER.validate_update,
        ),
        allow_unconditional_update=False,
        allow_create_on_update=True,
        **printed(NAME, cell("Handler", "handler"), AGE),
    ),
    ("resource.k8s.io", "DeviceClass"): Strategy(
        name_check=in_bytes(names.dns1123_subdomain),
        has_generation=True,
        returns_deleted=True,
        **printed(NAME, AGE),
    ),
    ("resource.k8s.io", "DeviceTaintRule"): Strategy(
        default=_own_taint_time,
        prepare_create=_date_taint,
        prepare_update=_keep_taint_time,
        validate=_TAINT_RULE.validate,
        validate_update=_TAINT_RULE.validate_update,
        validate_status_update=lambda new, old: [*_taint_rule_conditions(new)],
        has_generation=True,
        allow_unconditional_update=False,
        **printed(
            NAME,
            cell("Key", "spec.taint.key"),
            cell("Value", "spec.taint.value"),
            cell("Effect", "spec.taint.effect"),
            Cell(
                TableColumn("TimeAdded"), lambda rule, now: age(rule["spec"]["taint"].get("timeAdded"), now)
            ),
            AGE,
        ),
    ),
    ("resource.k8s.io", "ResourceClaim"): Strategy(
        default=_default_claim,
        validate_update=changes(immutable("spec")),
        returns_deleted=True,
        **printed(NAME, cell("State", _claim_state), AGE),
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): Strategy(
        default=lambda template: _default_requests(section(template, "spec", "spec")),
        validate_update=changes(immutable("spec")),
        returns_deleted=True,
        **printed(NAME, AGE),
    ),
    ("resource.k8s.io", "ResourceSlice"): Strategy(
        warnings=_warn_about_slice,
        has_generation=True,
        returns_deleted=True,
        indexed_field="spec.nodeName",
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
    ("storagemigration.k8s.io", "StorageVersionMigration"): Strategy(
        validate=_MIGRATION.validate,
        validate_update=changes(_MIGRATION.validate_update, _same_migration),
        validate_status_update=lambda new, old: [*_migration_status(new, old)],
        allow_unconditional_update=False,
        **printed(
            Cell(TableColumn("Name"), lambda obj, now: obj["metadata"]["name"]),
            cell("Resource", _migrated_resource),
            cell("Status", _migration_state),
        ),
    ),
    ("apiregistration.k8s.io", "APIService"): Strategy(
        repeats_errors=True,
        default=defaults(("spec.service?.port", 443)),
        prepare_create=_new_service,
        **validated(_API_SERVICE),
        validate_status_update=_API_SERVICE_STATUS.validate_update,
        # The name is checked together with the group and version that it is made of.
        name_check=names.path_segment,
        allow_unconditional_update=False,
        **printed(NAME, cell("Service", _destination), cell("Available", _availability), AGE),
    ),
}
