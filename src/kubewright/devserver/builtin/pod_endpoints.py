"""Subresources that Pods answer themselves: binding, eviction, and what only a kubelet could answer."""

import ipaddress
from collections.abc import Mapping

from kubewright.api import label_selector, problems
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.status import StatusError, success
from kubewright.devserver.strategy import Endpoint, Invocation, Outcome
from kubewright.http.server import Response

_KUBELET_PORT = 10250
# A budget does not guard what runs nothing.
_UNGUARDED = ("Pending", "Succeeded", "Failed")


async def bind(call: Invocation) -> Outcome:
    """Put a Pod on a node."""
    body = call.body or {}
    metadata: JsonObject = section(body, "metadata")
    # POST bindings names the Pod only in the body.
    name = call.name or metadata.get("name", "")
    if metadata.get("name", name) != name:
        raise StatusError.bad_request("name in URL does not match name in Binding object")
    node = section(body, "target").get("name", "")
    if not node:
        raise StatusError.unknown(str(problems.required("target.name")))
    await call.judge(body)

    def assign(pod: JsonObject) -> None:
        if trouble := _unbindable(pod):
            raise StatusError.conflict("", "pods/binding", name, trouble)
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
    return Outcome(success({}, 201), 201)


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


def _unbindable(pod: JsonObject) -> str:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node:
        return f"pod {name} is already assigned to node {problems.quoted(node)}"
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


async def evict(call: Invocation) -> Outcome:
    """Delete a Pod if its disruption budgets allow."""
    body = call.body or {}
    if section(body, "metadata").get("name", call.name) != call.name:
        raise StatusError.bad_request("name in URL does not match name in Eviction object")
    await call.judge(body)
    pod = call.api.get("", "pods", call.namespace, call.name)
    options: JsonObject = dict(section(body, "deleteOptions"))
    if call.options.dry_run:
        options["dryRun"] = ["All"]
    phase = section(pod, "status").get("phase")
    if phase not in _UNGUARDED and not pod["metadata"].get("deletionTimestamp"):
        await _spend_budget(call, pod, dry_run=bool(options.get("dryRun")))
    await call.api.delete("", "pods", call.namespace, call.name, options, user=call.user, admitted=True)
    return Outcome(success({}, 201), 201)


async def _spend_budget(call: Invocation, pod: JsonObject, *, dry_run: bool) -> None:
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
    if _harmless(pod, budget):
        return
    _refuse_disruption(budget)
    if dry_run:
        return

    def spend(found: JsonObject) -> None:
        status = found["status"]
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[call.name] = call.clock.stamp()
        if not status["disruptionsAllowed"]:
            _note_spent(status, call.clock.stamp())

    name = budget["metadata"]["name"]
    await call.api.update("policy", "poddisruptionbudgets", call.namespace, name, spend, subresource="status")


def _note_spent(status: JsonObject, moment: str) -> None:
    before = next(
        (item for item in items(status, "conditions") if item["type"] == "DisruptionAllowed"), JsonObject()
    )
    since = before.get("lastTransitionTime") if before.get("status") == "False" else None
    spent: JsonObject = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": since or moment,
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [item for item in items(status, "conditions") if item["type"] != "DisruptionAllowed"]
    status["conditions"] = [*others, spent]


def _harmless(pod: JsonObject, budget: JsonObject) -> bool:
    """Tell whether the Pod is not ready, so that losing it disrupts nothing."""
    conditions = {item["type"]: item.get("status") for item in items(pod["status"], "conditions")}
    if conditions.get("Ready") == "True":
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status: JsonObject = section(budget, "status")
    wanted = status.get("desiredHealthy", 0)
    return wanted > 0 and status.get("currentHealthy", 0) >= wanted


def _refuse_disruption(budget: JsonObject) -> None:
    name, status = budget["metadata"]["name"], section(budget, "status")
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.get("disruptionsAllowed", 0) > 0:
        return
    wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    text = f"The disruption budget {name} does not allow evicting pods currently"
    if healthy <= wanted:
        text = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    raise _too_many(text, 0)


def _too_many(cause: str, retry_after: int) -> StatusError:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", message, details)


async def read_log(call: Invocation) -> Response:
    """Answer with nothing for a Pod that no node runs yet; else a kubelet would be needed."""
    pod = call.api.get("", "pods", call.namespace, call.name)
    container = choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204, b"", "")
    kubelet = _kubelet(call, pod)
    url = f"https://{kubelet}/containerLogs/{call.namespace}/{call.name}/{container}"
    raise StatusError.unknown(f'Get "{url}": dial tcp {kubelet}: connect: connection refused')


async def stream(call: Invocation) -> Response:
    """Refuse to connect to a container: without a kubelet there is none."""
    pod = call.api.get("", "pods", call.namespace, call.name)
    if call.subresource != "portforward":
        choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    kubelet = _kubelet(call, pod)
    if not call.request.upgrade:
        raise StatusError.bad_request("Upgrade request required")
    raise StatusError.unknown(f"dial tcp {kubelet}: connect: connection refused")


async def proxy(call: Invocation) -> Response:
    """Refuse to pass a request on: nothing listens at a Pod's address."""
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


def choose_container(pod: JsonObject, wanted: str) -> str:
    """Name the container that a request means: the one it says, else the only one."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    known = [item.get("name", "") for group in groups for item in items(spec, group)]
    if wanted:
        if wanted not in known:
            raise StatusError.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    main: list[JsonObject] = items(spec, "containers")
    if len(main) != 1:
        listed = " ".join(known)
        raise StatusError.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{listed}]"
        )
    return str(main[0].get("name", ""))


def _kubelet(call: Invocation, pod: JsonObject) -> str:
    """Find where a Pod's kubelet should listen."""
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


ENDPOINTS: Mapping[str, Endpoint] = {
    "binding": bind,
    "eviction": evict,
    "log": read_log,
    "exec": stream,
    "attach": stream,
    "portforward": stream,
    "proxy": proxy,
}
