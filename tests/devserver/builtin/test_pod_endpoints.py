"""Subresources of Pods and namespaces over HTTP, each in the words of the real server."""

from typing import Any

import pytest
from builtin_cases import Client, Embedded

PODS = "/api/v1/namespaces/refused/pods"


@pytest.fixture
def client(embedded: Embedded) -> Client:
    """Talk to the server on which the cases were played."""
    return embedded.client


def pod(name: str, **metadata: Any) -> Any:
    """Make a Pod."""
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


def binding(name: str) -> Any:
    """Make the binding of a Pod to a node."""
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}


@pytest.mark.parametrize("path", [f"{PODS}/NAME/binding", "/api/v1/namespaces/refused/bindings"])
def test_a_binding_puts_a_pod_on_a_node(client: Client, path: str) -> None:
    name = "bound" if "NAME" in path else "bound-by-kind"
    client.send("POST", PODS, pod(name))
    assert client.send("POST", path.replace("NAME", name), binding(name)).code == 201
    found = client.send("GET", f"{PODS}/{name}").body
    assert found["spec"]["nodeName"] == "n1"
    assert [(item["type"], item["status"]) for item in found["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]


def test_a_pod_is_bound_once(client: Client) -> None:
    client.send("POST", PODS, pod("twice-bound"))
    client.send("POST", f"{PODS}/twice-bound/binding", binding("twice-bound"))
    again = client.send("POST", f"{PODS}/twice-bound/binding", binding("twice-bound"))
    assert again.code == 409
    assert again.body["message"].endswith('pod twice-bound is already assigned to node "n1"')


def test_a_node_is_not_set_by_an_update(client: Client) -> None:
    client.send("POST", PODS, pod("unbound"))
    patch = {"spec": {"nodeName": "n1"}}
    answer = client.send("PATCH", f"{PODS}/unbound", patch, content="application/merge-patch+json")
    assert answer.code == 422


def test_a_budget_without_disruptions_left_keeps_its_pods(client: Client) -> None:
    budget = {"metadata": {"name": "strict"}, "spec": {"selector": {"matchLabels": {"kept": "yes"}}}}
    budgets = "/apis/policy/v1/namespaces/refused/poddisruptionbudgets"
    client.send("POST", budgets, budget)
    merge = "application/merge-patch+json"
    state = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "disruptionsAllowed": 0}
    state["expectedPods"] = 1
    client.send("PATCH", f"{budgets}/strict/status", {"status": state}, content=merge)
    client.send("POST", PODS, pod("kept", labels={"kept": "yes"}))
    ready = [{"type": "Ready", "status": "True"}]
    running = {"status": {"phase": "Running", "conditions": ready}}
    client.send("PATCH", f"{PODS}/kept/status", running, content=merge)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "kept"}}
    answer = client.send("POST", f"{PODS}/kept/eviction", eviction)
    assert answer.code == 429
    assert answer.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget strict needs 1 healthy pods and has 1 currently",
        }
    ]


def test_no_shell_in_a_pod_without_a_node(client: Client) -> None:
    client.send("POST", PODS, pod("homeless"))
    answer = client.send("GET", f"{PODS}/homeless/exec?command=ls")
    assert (answer.code, answer.body["message"]) == (400, "pod homeless does not have a host assigned")


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        (
            "log",
            500,
            'Get "https://127.0.0.1:19/containerLogs/refused/NAME/c": dial tcp 127.0.0.1:19: connect: connection refused',
        ),
        ("exec?command=ls", 400, "Upgrade request required"),
        ("portforward?ports=80", 400, "Upgrade request required"),
    ],
)
def test_a_kubelet_that_does_not_answer_is_told_of(
    client: Client, part: str, code: int, message: str
) -> None:
    endpoint = {"kubeletEndpoint": {"Port": 19}}
    status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoint}
    client.send("POST", "/api/v1/nodes", {"metadata": {"name": "deaf"}, "status": status})
    name = f"unheard-{part[:3]}"
    client.send("POST", PODS, pod(name))
    to_node = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "deaf"}}
    client.send("POST", f"{PODS}/{name}/binding", to_node)
    answer = client.send("GET", f"{PODS}/{name}/{part}")
    assert (answer.code, answer.body["message"]) == (code, message.replace("NAME", name))


def test_logs_of_a_pod_on_a_node_that_is_gone_are_not_found(client: Client) -> None:
    client.send("POST", PODS, pod("lost"))
    client.send("POST", f"{PODS}/lost/binding", binding("lost"))
    answer = client.send("GET", f"{PODS}/lost/log")
    assert (answer.code, answer.body["message"]) == (404, 'pods "n1" not found')


def test_logs_of_an_unknown_container_are_refused(client: Client) -> None:
    client.send("POST", PODS, pod("silent"))
    answer = client.send("GET", f"{PODS}/silent/log?container=other")
    assert (answer.code, answer.body["message"]) == (400, "container other is not valid for pod silent")


def test_finalizers_of_a_namespace_are_taken_only_by_finalize(client: Client) -> None:
    space = client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "finalized"}}).body
    emptied = {**space, "spec": {"finalizers": []}}
    kept = client.send("PUT", "/api/v1/namespaces/finalized", emptied).body
    assert kept["spec"] == {"finalizers": ["kubernetes"]}
    client.send("DELETE", "/api/v1/namespaces/finalized")
    fresh = client.send("GET", "/api/v1/namespaces/finalized").body
    assert client.send("PUT", "/api/v1/namespaces/finalized/finalize", {**fresh, "spec": {}}).code == 200
    assert client.send("GET", "/api/v1/namespaces/finalized").code == 404


def test_a_stale_finalize_is_a_conflict(client: Client) -> None:
    space = client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "stale"}}).body
    labelled = {"metadata": {"labels": {"a": "b"}}}
    client.send("PATCH", "/api/v1/namespaces/stale", labelled, content="application/merge-patch+json")
    assert client.send("PUT", "/api/v1/namespaces/stale/finalize", {**space, "spec": {}}).code == 409
