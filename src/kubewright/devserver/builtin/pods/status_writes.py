"""Writes of the status of a Pod: what stays as it was, and validation."""

from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.field_checks import invalid_struct
from kubewright.devserver.builtin.pods.annotations import check_changed_annotations
from kubewright.devserver.objects import JsonObject, copy, items, section

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_KEPT = ("resourceClaimStatuses", "extendedResourceClaimStatus")
"""Fields that older clients do not know, and so must not remove."""
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MAX_HEALTH_MESSAGE = 1024
_MAX_USER, _MAX_GROUP = 2**32 - 1, 2**31 - 1
_CLAIM = "claim:"
_UNMATCHED_CLAIM = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


def sync_addresses(status: JsonObject) -> None:
    """Make `podIP` and `podIPs` agree; if they differ, the older field `podIP` wins."""
    first, given = status.get("podIP"), items(status, "podIPs")
    if first and (not given or given[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif given and not first and given[0].get("ip"):
        status["podIP"] = given[0]["ip"]


def keep_pod_status(status: JsonObject, before: JsonObject) -> None:
    """Keep what a new status leaves out and clients cannot remove."""
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    for name in _KEPT:
        if status.get(name) is None and before.get(name) is not None:
            status[name] = copy(before[name])
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    generations: dict[str, list[int]] = {}
    for item in items(before, "conditions"):
        generations.setdefault(item.get("type", ""), []).append(item.get("observedGeneration", 0))
    for item in items(status, "conditions"):
        known = generations.get(item.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not item.get("observedGeneration"):
            item["observedGeneration"] = generation


def check_pod_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check an update of a Pod's status."""
    status, before, spec = section(new, "status"), section(old, "status"), section(new, "spec")
    errors = [*check_changed_annotations(new, old), *_conditions(status)]
    node = status.get("nominatedNodeName", "")
    if node and node != before.get("nominatedNodeName"):
        errors += check.named("status.nominatedNodeName", node, names.dns1123_subdomain(node))
        if section(old, "spec").get("nodeName"):
            text = "may not be set on pods that are already bound to a node"
            errors.append(problems.forbidden("status.nominatedNodeName", text))
    errors += _generation("status.observedGeneration", status)
    if status.get("qosClass", "") != before.get("qosClass", ""):
        errors.append(problems.invalid("status.qosClass", status.get("qosClass", ""), check.IMMUTABLE))
    for name in _STATUSES:
        errors += _transitions(items(status, name), items(before, name), spec, name)
    errors += _claims(items(status, "resourceClaimStatuses"), spec)
    errors += _extended_claim(status.get("extendedResourceClaimStatus"), spec)
    errors += _pod_addresses(status, before) + _host_addresses(status, before)
    system: str = section(spec, "os").get("name", "linux")
    for name in _STATUSES:
        for index, item in enumerate(items(status, name)):
            errors += _user(section(item, "user").get("linux"), system, f"status.{name}[{index}].user.linux")
    for name in _STATUSES:
        for index, item in enumerate(items(status, name)):
            path = f"status.{name}[{index}].allocatedResourcesStatus"
            if name != "ephemeralContainerStatuses":
                containers = items(spec, "containers" if name == "containerStatuses" else "initContainers")
                errors += _allocated(item, containers, status, path)
            elif item.get("allocatedResourcesStatus"):
                errors.append(problems.forbidden(path, "must not be specified in container status"))
    return errors


def _conditions(status: JsonObject) -> Iterator[FieldError]:
    for index, condition in enumerate(items(status, "conditions")):
        path, kind = f"status.conditions[{index}]", condition.get("type", "")
        yield from _generation(f"{path}.observedGeneration", condition)
        if kind not in _SYSTEM_CONDITIONS:
            yield from check.named(f"{path}.Type", kind, names.qualified_name(kind))


def _generation(path: str, holder: JsonObject) -> Iterator[FieldError]:
    if (generation := holder.get("observedGeneration", 0)) < 0:
        yield problems.invalid(path, generation, "must be a non-negative integer")


def _transitions(
    statuses: Sequence[JsonObject], before: Sequence[JsonObject], spec: JsonObject, kind: str
) -> Iterator[FieldError]:
    """Check that containers which ended stay so, unless they are restarted."""
    ephemeral = kind == "ephemeralContainerStatuses"
    if not ephemeral and _restarts_all(spec):
        return
    containers: Sequence[JsonObject] = items(
        spec, "containers" if kind == "containerStatuses" else "initContainers"
    )
    for index, old in enumerate(before):
        ended: JsonObject | None = section(old, "state").get("terminated")
        if ended is None:
            continue
        name = old.get("name", "")
        resumed = [
            item
            for item in statuses
            if item.get("name", "") == name and section(item, "state").get("terminated") is None
        ]
        found = next((item for item in containers if item.get("name") == name), None)
        restarted = not ephemeral and found is not None and _restarts(found, spec, ended.get("exitCode", 0))
        for _ in resumed if ephemeral else resumed[:1]:
            if not restarted:
                text = "may not be transitioned to non-terminated state"
                yield problems.forbidden(f"status.{kind}[{index}].state", text)


def _restarts_all(spec: JsonObject) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for group in ("initContainers", "containers")
        for container in items(spec, group)
        for rule in items(container, "restartPolicyRules")
    )


def _restarts(container: JsonObject, spec: JsonObject, code: int) -> bool:
    policy: str = container.get("restartPolicy") or ""
    if policy and any(_matches(rule, code) for rule in items(container, "restartPolicyRules")):
        return True
    return {"OnFailure": code != 0, "Never": False}.get(policy or spec.get("restartPolicy", ""), True)


def _matches(rule: JsonObject, code: int) -> bool:
    codes: JsonObject = section(rule, "exitCodes")
    listed = code in items(codes, "values")
    return rule.get("action") == "Restart" and {"In": listed, "NotIn": not listed}.get(
        codes.get("operator", ""), False
    )


def _claims(statuses: Sequence[JsonObject], spec: JsonObject) -> Iterator[FieldError]:
    known = {item.get("name", "") for item in items(spec, "resourceClaims")}
    seen: set[str] = set()
    for index, item in enumerate(statuses):
        path, name = f"status.resourceClaimStatuses[{index}]", item.get("name", "")
        if name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            yield problems.invalid(f"{path}.name", name, text)
        if name in seen:
            yield problems.duplicate(f"{path}.name", name)
        seen.add(name)
        if (claim := item.get("resourceClaimName")) is not None:
            yield from check.named(f"{path}.resourceClaimName", claim, names.dns1123_subdomain(claim))


def _extended_claim(claim: JsonObject | None, spec: JsonObject) -> Iterator[FieldError]:
    if claim is None:
        return
    path = "status.extendedResourceClaimStatus"
    containers: dict[str, JsonObject] = {
        item.get("name", ""): item
        for group in ("initContainers", "containers")
        for item in items(spec, group)
    }
    mappings: Sequence[JsonObject] = items(claim, "requestMappings")
    if not mappings:
        yield problems.required(f"{path}.requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(mappings):
        where = f"{path}.requestMappings[{index}]"
        key = tuple(item.get(name, "") for name in ("containerName", "resourceName", "requestName"))
        container = containers.get(key[0])
        if container is None:
            text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield problems.invalid(f"{where}.containerName", key[0], text)
        elif key[1] not in section(container, "resources", "requests"):
            text = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            yield problems.invalid(f"{where}.resourceName", key[1], text)
        yield from check.named(f"{path}.requestName", key[2], names.dns1123_label(key[2]))
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield problems.duplicate(f"{where}.{name}", value)
        seen.add(key)
    name = claim.get("resourceClaimName", "")
    if not name:
        yield problems.required(f"{path}.resourceClaimName")
    else:
        yield from check.named(f"{path}.resourceClaimName", name, names.dns1123_subdomain(name))


def _pod_addresses(status: JsonObject, before: JsonObject) -> list[FieldError]:
    path, given = "status.podIPs", items(status, "podIPs")
    errors = list(_addresses(given, items(before, "podIPs"), path))
    first: str = status.get("podIP", "")
    if bool(first) != bool(given):
        text = "podIP and podIPs must either both be set or both be unset"
        errors.append(invalid_struct(path, _shown(given), text))
    elif given and first != given[0].get("ip", ""):
        errors.append(problems.invalid(f"{path}[0].ip", given[0].get("ip", ""), "must be equal to `podIP`"))
    return errors


def _host_addresses(status: JsonObject, before: JsonObject) -> list[FieldError]:
    path, given = "status.hostIPs", items(status, "hostIPs")
    errors: list[FieldError] = []
    if given and given[0].get("ip", "") != status.get("hostIP", ""):
        errors.append(problems.invalid(f"{path}[0].ip", given[0].get("ip", ""), "must be equal to `hostIP`"))
    return errors + list(_addresses(given, items(before, "hostIPs"), path))


def _shown(given: Sequence[JsonObject]) -> list[JsonObject] | None:
    return [{"IP": item.get("ip", "")} for item in given] or None


def _addresses(given: Sequence[JsonObject], known: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    kept = {item.get("ip", "") for item in known}
    found = [item.get("ip", "") for item in given]
    for index, address in enumerate(found):
        if address not in kept:
            yield from ip_checks.address(f"{path}[{index}]", address)
    if len(found) < 2:
        return
    families = [ip_checks.family(item) for item in found]
    if None in families:
        index = families.index(None)
        text = f"failed to check for dual stack with error:invalid IP[{index}]: {found[index]}"
        yield problems.internal(path, text)
    if None in families or len(set(families)) < 2 or len(found) > 2:
        yield invalid_struct(path, _shown(given), "may specify no more than one IP for each IP family")


def _user(user: JsonObject | None, system: str, path: str) -> Iterator[FieldError]:
    if user is None:
        return
    if system == "windows":
        yield problems.forbidden(path, "cannot be set for a windows pod")
    if system != "linux":
        return
    if not 0 <= user.get("uid", 0) <= _MAX_USER:
        text = f"must be between 0 and {_MAX_USER}, inclusive"
        yield problems.invalid(f"{path}.uid", user.get("uid", 0), text)
    groups = [("gid", user.get("gid", 0))]
    groups += [
        (f"supplementalGroups[{index}]", group)
        for index, group in enumerate(items(user, "supplementalGroups"))
    ]
    for name, group in groups:
        if not 0 <= group <= _MAX_GROUP:
            text = f"must be between 0 and {_MAX_GROUP}, inclusive"
            yield problems.invalid(f"{path}.{name}", group, text)


def _allocated(
    item: JsonObject, containers: Sequence[JsonObject], status: JsonObject, path: str
) -> Iterator[FieldError]:
    container = next((found for found in containers if found.get("name") == item.get("name")), None)
    for index, allocated in enumerate(items(item, "allocatedResourcesStatus")):
        where, name = f"{path}[{index}]", allocated.get("name", "")
        if container is not None and not _is_allocated(name, container, status):
            text = "must match one of the container's resource requests"
            yield problems.invalid(
                f"{where}.name", name, _UNMATCHED_CLAIM if name.startswith(_CLAIM) else text
            )
        seen: set[str] = set()
        for position, resource in enumerate(items(allocated, "resources")):
            at = f"{where}.resources[{position}]"
            yield from check.one_of(f"{at}.health", resource.get("health", ""), _HEALTH)
            message: str | None = resource.get("message")
            if message == "":
                yield problems.required(f"{at}.message", "must be non-empty if specified")
            elif message is not None and len(message.encode()) > _MAX_HEALTH_MESSAGE:
                yield problems.too_long(f"{at}.message", _MAX_HEALTH_MESSAGE)
            if (key := resource.get("resourceID", "")) in seen:
                yield problems.duplicate(f"{at}.resourceID", key)
            seen.add(key)


def _is_allocated(name: str, container: JsonObject, status: JsonObject) -> bool:
    resources: JsonObject = section(container, "resources")
    requests: JsonObject = section(resources, "requests")
    if not name.startswith(_CLAIM):
        return name in requests
    for claim in items(resources, "claims"):
        request = f"/{claim['request']}" if claim.get("request") else ""
        if name == f"{_CLAIM}{claim.get('name', '')}{request}":
            return True
    extended: JsonObject = section(status, "extendedResourceClaimStatus")
    claimed, _, request = name.removeprefix(_CLAIM).partition("/")
    return (
        bool(request)
        and claimed == extended.get("resourceClaimName", "")
        and any(
            mapping.get("containerName") == container.get("name")
            and mapping.get("requestName") == request
            and int(check.quantity(requests.get(mapping.get("resourceName", ""), "0"))) != 0
            for mapping in items(extended, "requestMappings")
        )
    )
