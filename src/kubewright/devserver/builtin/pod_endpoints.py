"""Subresources that Pods answer themselves: binding to a node, eviction."""

from datetime import UTC, datetime

from kubewright.api import label_selector
from kubewright.devserver.objects import Wire
from kubewright.devserver.status import StatusError, success
from kubewright.devserver.strategy import Invocation, Outcome

_DRAINABLE = ("Pending", "Succeeded", "Failed")


async def bind(call: Invocation) -> Outcome:
    """Put a Pod on a node."""
    body = call.body or {}
    node = (body.get("target") or {}).get("name", "")
    if not node:
        raise StatusError.bad_request("target.name is required")

    def assign(pod: Wire) -> None:
        taken = pod["spec"].get("nodeName")
        if taken:
            why = f"pod {call.name} is already assigned to node {taken!r}".replace("'", '"')
            raise StatusError.conflict("", "pods/binding", call.name, why)
        if pod["metadata"].get("deletionTimestamp"):
            raise StatusError.conflict(
                "",
                "pods/binding",
                call.name,
                f"pod {call.name} is being deleted, cannot be assigned to a host",
            )
        pod["spec"]["nodeName"] = node
        annotations = (body.get("metadata") or {}).get("annotations")
        if annotations:
            pod["metadata"].setdefault("annotations", {}).update(annotations)
        status: Wire = pod.setdefault("status", {})
        others = [item for item in status.get("conditions") or () if item["type"] != "PodScheduled"]
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": moment,
        }
        status["conditions"] = [*others, scheduled]

    await call.api.update(
        "",
        "pods",
        call.namespace,
        call.name,
        assign,
        subresource="binding",
        user=call.user,
        dry_run=call.options.dry_run,
    )
    return Outcome(success({}, 201), 201)


async def evict(call: Invocation) -> Outcome:
    """Delete a Pod if its disruption budgets allow."""
    pod = call.api.get("", "pods", call.namespace, call.name)
    options: Wire = (call.body or {}).get("deleteOptions") or {}
    phase = (pod.get("status") or {}).get("phase")
    if phase not in _DRAINABLE and not pod["metadata"].get("deletionTimestamp"):
        await _spend_budget(call, pod)
    await call.api.delete("", "pods", call.namespace, call.name, options, user=call.user)
    return Outcome(success({}, 201), 201)


async def _spend_budget(call: Invocation, pod: Wire) -> None:
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in call.api.list("policy", "poddisruptionbudgets", call.namespace)
        if (budget.get("spec") or {}).get("selector") is not None
        and label_selector(budget["spec"]["selector"]).matches(labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise StatusError.internal(message)
    budget = budgets[0]
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.get("disruptionsAllowed", 0) < 1:
        raise _too_many(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently",
            0,
        )

    def spend(found: Wire) -> None:
        found["status"]["disruptionsAllowed"] -= 1
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found["status"].setdefault("disruptedPods", {})[call.name] = moment

    await call.api.update("policy", "poddisruptionbudgets", call.namespace, name, spend, subresource="status")


def _too_many(cause: str, retry_after: int) -> StatusError:
    details: Wire = {
        "causes": [{"reason": "DisruptionBudget", "message": cause}],
        "retryAfterSeconds": retry_after,
    }
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", message, details)
