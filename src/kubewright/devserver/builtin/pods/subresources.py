"""Subresources of Pods: binding, eviction, ephemeral containers, resize, and what only a kubelet can serve."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import FieldError, label_selector, names, problems
from kubewright.devserver.builtin.pods.resources import (
    check_resized_pod,
    default_pod_resources,
    keep_pod_resources,
    qos_class,
)
from kubewright.devserver.builtin.pods.spec import check_pod_spec
from kubewright.devserver.builtin.rules import FieldRule, named, one_of, required, rules
from kubewright.devserver.builtin.writes import restore
from kubewright.devserver.objects import JsonObject, copy, items, section
from kubewright.devserver.objects.status import StatusError, success
from kubewright.devserver.strategy import (
    EndpointRequest,
    EndpointResult,
    PartialSubresource,
    SubresourceEndpoint,
)
from kubewright.http.server import Response

_KUBELET_PORT = 10250
# Pods in these phases run nothing, so no budget protects them.
_WITHOUT_BUDGET = ("Pending", "Succeeded", "Failed")
_EVICTED: JsonObject = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_GROUPS = ("containers", "initContainers")
_RESIZED = ("resources", "resizePolicy")
_MUTABLE = ("cpu", "memory")


_ANY_TARGET = rules(("{kind}.kind", one_of("Node", "<empty>")), ("name", required()))
_TARGET = rules(
    ("{kind}.kind", one_of("Node", "<empty>")),
    ("name", required()),
    ("{!kind}.name", named(names.dns1123_subdomain)),
    ("{kind=Node}.name", named(names.dns1123_subdomain)),
)


async def bind(call: EndpointRequest) -> EndpointResult:
    """Assign a Pod to a node."""
    return await _bind(call, _TARGET)


async def bind_to_any_name(call: EndpointRequest) -> EndpointResult:
    """Assign a Pod to a node, whose name can be any text."""
    return await _bind(call, _ANY_TARGET)


async def _bind(call: EndpointRequest, check_target: FieldRule) -> EndpointResult:
    body = call.body or {}
    metadata: JsonObject = section(body, "metadata")
    # A POST to bindings has the name of the Pod only in the body.
    name = call.name or metadata.get("name", "")
    if metadata.get("name", name) != name:
        raise StatusError.bad_request("name in URL does not match name in Binding object")
    target: JsonObject = section(body, "target")
    node = target.get("name", "")
    if errors := list(check_target("target", target)):
        texts = [str(error) for error in errors]
        raise StatusError.unknown(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    await call.run_validating_admission(body)
    if not name:
        raise StatusError.bad_request("Name parameter required.")

    def assign(pod: JsonObject) -> None:
        if reason := _binding_conflict(pod):
            raise StatusError.conflict("", "pods/binding", name, reason)
        _assign(pod, node, metadata, call.clock.stamp())

    await call.api.update(
        "",
        "pods",
        call.namespace,
        name,
        assign,
        subresource="binding",
        user=call.user,
        dry_run=call.options.dry_run,
        admitted=True,
    )
    return EndpointResult(success({}, 201), 201)


def _assign(pod: JsonObject, node: str, metadata: JsonObject, moment: str) -> None:
    pod["spec"]["nodeName"] = node
    for name in ("annotations", "labels"):
        if metadata.get(name):
            pod["metadata"].setdefault(name, {}).update(metadata[name])
    status: JsonObject = dict(section(pod, "status"))
    status.pop("nominatedNodeName", None)
    others = [item for item in items(status, "conditions") if item["type"] != "PodScheduled"]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": moment,
    }
    pod["status"] = {**status, "conditions": [*others, scheduled]}


def _binding_conflict(pod: JsonObject) -> str:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node:
        return f"pod {name} is already assigned to node {problems.quoted(node)}"
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


async def evict(call: EndpointRequest) -> EndpointResult:
    """Delete a Pod if its disruption budgets allow it."""
    body = call.body or {}
    if section(body, "metadata").get("name", call.name) != call.name:
        raise StatusError.bad_request("name in URL does not match name in Eviction object")
    await call.run_validating_admission(body)
    pod = call.api.get("", "pods", call.namespace, call.name)
    options: JsonObject = dict(section(body, "deleteOptions"))
    if call.options.dry_run:
        options["dryRun"] = ["All"]
    phase = section(pod, "status").get("phase")
    if phase not in _WITHOUT_BUDGET and not pod["metadata"].get("deletionTimestamp"):
        await _use_budget(call, pod, dry_run=bool(options.get("dryRun")))
    if not options.get("dryRun"):
        changed = await _mark_evicted(call, section(options, "preconditions"))
        if section(options, "preconditions").get("resourceVersion"):
            version = changed["metadata"]["resourceVersion"]
            options["preconditions"] = {**options["preconditions"], "resourceVersion": version}
    await call.api.delete("", "pods", call.namespace, call.name, options, user=call.user, admitted=True)
    return EndpointResult(success({}, 201), 201)


async def _mark_evicted(call: EndpointRequest, preconditions: JsonObject) -> JsonObject:
    """Set the condition DisruptionTarget, if the Pod meets the preconditions of the deletion."""

    def mark(pod: JsonObject) -> None:
        for title, field, hint in (
            ("UID", "uid", "The object might have been deleted and then recreated"),
            ("ResourceVersion", "resourceVersion", "The object might have been modified"),
        ):
            desired, found = preconditions.get(field), pod["metadata"].get(field)
            if desired and desired != found:
                reason = f"the {title} in the precondition ({desired}) does not match the {title} in record ({found}). {hint}"
                raise StatusError.conflict("", "Pod", call.name, reason)
        status: JsonObject = pod.setdefault("status", {})
        conditions: list[JsonObject] = items(status, "conditions")
        before = next((item for item in conditions if item["type"] == _EVICTED["type"]), None)
        since = before.get("lastTransitionTime") if before and before.get("status") == "True" else None
        evicted = {**_EVICTED, "lastProbeTime": None, "lastTransitionTime": since or call.clock.stamp()}
        if before is None:
            status["conditions"] = [*conditions, evicted]
        else:
            status["conditions"] = [evicted if item is before else item for item in conditions]

    return await call.api.update(
        "", "pods", call.namespace, call.name, mark, subresource="status", user=call.user, admitted=True
    )


async def _use_budget(call: EndpointRequest, pod: JsonObject, *, dry_run: bool) -> None:
    labels = section(pod["metadata"], "labels")
    budgets = [
        budget
        for budget in call.api.list("policy", "poddisruptionbudgets", call.namespace)
        if section(budget, "spec").get("selector") is not None
        and label_selector(budget["spec"]["selector"]).matches(labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise StatusError.unknown(text)
    budget = budgets[0]
    if _is_free(pod, budget):
        return
    _check_budget(budget)
    if dry_run:
        return

    def use(found: JsonObject) -> None:
        status = found["status"]
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[call.name] = call.clock.stamp()
        if not status["disruptionsAllowed"]:
            _set_budget_used(status, call.clock.stamp())

    name = budget["metadata"]["name"]
    await call.api.update("policy", "poddisruptionbudgets", call.namespace, name, use, subresource="status")


def _set_budget_used(status: JsonObject, moment: str) -> None:
    before = next(
        (item for item in items(status, "conditions") if item["type"] == "DisruptionAllowed"), JsonObject()
    )
    since = before.get("lastTransitionTime") if before.get("status") == "False" else None
    used: JsonObject = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": since or moment,
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [item for item in items(status, "conditions") if item["type"] != "DisruptionAllowed"]
    status["conditions"] = [*others, used]


def _is_free(pod: JsonObject, budget: JsonObject) -> bool:
    """Return True if the Pod is not ready and may be evicted without using the budget."""
    conditions = {item["type"]: item.get("status") for item in items(pod["status"], "conditions")}
    if conditions.get("Ready") == "True":
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status: JsonObject = section(budget, "status")
    desired = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def _check_budget(budget: JsonObject) -> None:
    name, status = budget["metadata"]["name"], section(budget, "status")
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.get("disruptionsAllowed", 0) > 0:
        return
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    text = f"The disruption budget {name} does not allow evicting pods currently"
    if healthy <= desired:
        text = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    raise _too_many(text, 0)


def _too_many(cause: str, retry_after: int) -> StatusError:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", message, details)


async def read_log(call: EndpointRequest) -> Response:
    """Return an empty log for a Pod without a node; for others there is no kubelet to ask."""
    pod = call.api.get("", "pods", call.namespace, call.name)
    container = choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204, b"", "")
    kubelet = _kubelet(call, pod)
    url = f"https://{kubelet}/containerLogs/{call.namespace}/{call.name}/{container}"
    raise StatusError.unknown(f'Get "{url}": dial tcp {kubelet}: connect: connection refused')


async def stream(call: EndpointRequest) -> Response:
    """Refuse to connect to a container, because there is no kubelet."""
    pod = call.api.get("", "pods", call.namespace, call.name)
    if call.subresource != "portforward":
        choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    kubelet = _kubelet(call, pod)
    if not call.request.upgrade:
        raise StatusError.bad_request("Upgrade request required")
    raise StatusError.unknown(f"dial tcp {kubelet}: connect: connection refused")


async def proxy(call: EndpointRequest) -> Response:
    """Refuse to proxy a request, because nothing listens at the address of a Pod."""
    pod = call.api.get("", "pods", call.namespace, call.name.split(":")[0])
    addresses: list[JsonObject] = [*items(section(pod, "status"), "podIPs"), {}]
    try:
        found = ipaddress.ip_address(addresses[0].get("ip", ""))
    except ValueError:
        raise StatusError.bad_request("address not allowed") from None
    if found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified:
        raise StatusError.bad_request("address not allowed")
    raise StatusError.unavailable(
        f"error trying to reach service: dial tcp {found}: connect: no route to host"
    )


def choose_container(pod: JsonObject, requested: str) -> str:
    """Return the name of the container of a request: the given one, else the only one."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    known = [item.get("name", "") for group in groups for item in items(spec, group)]
    if requested:
        if requested not in known:
            raise StatusError.bad_request(f"container {requested} is not valid for pod {name}")
        return requested
    main: list[JsonObject] = items(spec, "containers")
    if len(main) != 1:
        listed = " ".join(known)
        raise StatusError.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{listed}]"
        )
    return str(main[0].get("name", ""))


def _kubelet(call: EndpointRequest, pod: JsonObject) -> str:
    """Return the address at which the kubelet of a Pod's node should listen."""
    name = pod["spec"]["nodeName"]
    node = call.api.find("", "nodes", "", name)
    if node is None:
        # The real server reports the missing node as if it were a Pod.
        raise StatusError.not_found("", "pods", name)
    status = section(node, "status")
    addresses: list[JsonObject] = items(status, "addresses")
    if not addresses:
        raise StatusError.unknown("no preferred addresses found; known addresses: []")
    port = section(section(status, "daemonEndpoints"), "kubeletEndpoint").get("Port") or _KUBELET_PORT
    return f"{addresses[0].get('address', '')}:{port}"


ENDPOINTS: Mapping[str, SubresourceEndpoint] = {
    "binding": bind,
    "eviction": evict,
    "log": read_log,
    "exec": stream,
    "attach": stream,
    "portforward": stream,
    "proxy": proxy,
}


def _only_ephemeral(new: JsonObject, old: JsonObject) -> None:
    added = new["spec"].get("ephemeralContainers")
    new["spec"] = copy(old["spec"])
    if added:
        new["spec"]["ephemeralContainers"] = added
    else:
        new["spec"].pop("ephemeralContainers", None)
    restore(new, old, "status")


def _check_ephemeral(new: JsonObject, old: JsonObject) -> list[FieldError]:
    path = "spec.ephemeralContainers"
    errors = check_pod_spec(new["spec"], "spec", new)
    after = {item.get("name"): item for item in items(new["spec"], "ephemeralContainers")}
    for item in items(old["spec"], "ephemeralContainers"):
        name = problems.quoted(item.get("name", ""))
        if item.get("name") not in after:
            text = f"existing ephemeral containers {name} may not be removed\n"
            errors.append(problems.forbidden(path, text))
        elif after[item.get("name")] != item:
            text = f"existing ephemeral containers {name} may not be changed\n"
            errors.append(problems.forbidden(path, text))
    return errors


def _only_resources(new: JsonObject, old: JsonObject) -> None:
    desired = {group: {item.get("name"): item for item in items(new["spec"], group)} for group in _GROUPS}
    pod_level = new["spec"].get("resources")
    given = {group: items(new["spec"], group) for group in _GROUPS}
    new["spec"] = copy(old["spec"])
    restore(new["spec"], {} if pod_level is None else {"resources": pod_level}, "resources")
    for group in _GROUPS:
        if _names(given[group]) != _names(items(new["spec"], group)):
            # Validation refuses other containers, so they are kept until then.
            new["spec"][group] = given[group]
            continue
        for item in items(new["spec"], group):
            found = desired[group].get(item.get("name"))
            for name in _RESIZED if found is not None else ():
                restore(item, found or {}, name)
    keep_pod_resources(new["spec"], old["spec"])
    default_pod_resources(new["spec"])
    restore(new, old, "status")


def _names(containers: Sequence[JsonObject]) -> list[str]:
    return [item.get("name", "") for item in containers]


def _reordered(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    for group in _GROUPS:
        after, before = (_names(items(pod["spec"], group)) for pod in (new, old))
        if len(after) != len(before):
            text = f"{group} may not be added or removed on resize"
            yield problems.forbidden(f"spec.{group}", text)
            continue
        for index, (name, was) in enumerate(zip(after, before, strict=True)):
            if name != was:
                text = f"{group} may not be renamed or reordered on resize"
                yield problems.forbidden(f"spec.{group}[{index}].name", text)


def _check_resize(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = check_pod_spec(new["spec"], "spec", new)
    if qos_class(new) != qos_class(old):
        text = "Pod QOS Class may not change as a result of resizing"
        errors.append(problems.invalid("spec", qos_class(old), text))
    errors += check_resized_pod(new["spec"], old["spec"])
    if others := list(_reordered(new, old)):
        return errors + others
    errors += _removed(new, old)
    if _fixed_resources(new) != _fixed_resources(old):
        errors.append(problems.forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _resources(container: JsonObject, kind: str) -> JsonObject:
    return section(section(container, "resources"), kind)


def _removed(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Report requests and limits that a resize would remove."""
    return [
        problems.forbidden(f"spec.{group}[{index}].resources.{kind}", f"resource {kind} cannot be removed")
        for group in _GROUPS
        for index, (after, before) in enumerate(
            zip(items(new["spec"], group), items(old["spec"], group), strict=True)
        )
        for kind in ("requests", "limits")
        if any(name in _MUTABLE and name not in _resources(after, kind) for name in _resources(before, kind))
    ]


def _fixed_resources(pod: JsonObject) -> list[JsonObject]:
    return [
        {
            "policy": container.get("resizePolicy"),
            **{
                f"{kind} {name}": value
                for kind in ("requests", "limits")
                for name, value in _resources(container, kind).items()
                if name not in _MUTABLE
            },
        }
        for group in _GROUPS
        for container in items(pod["spec"], group)
    ]


PARTS: Mapping[str, PartialSubresource] = {
    "binding": PartialSubresource(counts=False),
    "ephemeralcontainers": PartialSubresource(_only_ephemeral, _check_ephemeral),
    "resize": PartialSubresource(_only_resources, _check_resize),
}
