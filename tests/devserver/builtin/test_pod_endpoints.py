"""Subresources of Pods and namespaces over HTTP, each in the words of the real server."""

from typing import Any

import pytest
from builtin_cases import Client, Embedded, cases

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
def test_a_binding_assigns_a_pod_to_a_node(client: Client, path: str) -> None:
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
def test_reports_a_kubelet_that_does_not_answer(client: Client, part: str, code: int, message: str) -> None:
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


STRATEGIC = "application/strategic-merge-patch+json"


def ephemeral(name: str, **more: str) -> Any:
    """Make a patch that adds an ephemeral container, as kubectl debug does."""
    return {"spec": {"ephemeralContainers": [{"name": name, "image": "busybox", **more}]}}


def test_an_ephemeral_container_is_added_to_a_pod_that_exists(client: Client) -> None:
    client.send("POST", PODS, pod("debugged"))
    answer = client.send("PATCH", f"{PODS}/debugged/ephemeralcontainers", ephemeral("e"), content=STRATEGIC)
    assert answer.code == 200
    added = answer.body["spec"]["ephemeralContainers"][0]
    assert (added["name"], added["imagePullPolicy"], answer.body["metadata"]["generation"]) == (
        "e",
        "Always",
        2,
    )


def test_an_ephemeral_container_stays(client: Client) -> None:
    client.send("POST", PODS, pod("haunted"))
    part = f"{PODS}/haunted/ephemeralcontainers"
    found = client.send("PATCH", part, ephemeral("e"), content=STRATEGIC).body
    found["spec"]["ephemeralContainers"] = []
    answer = client.send("PUT", part, found)
    assert answer.code == 422
    assert answer.body["message"] == (
        'Pod "haunted" is invalid: spec.ephemeralContainers: Forbidden: '
        'existing ephemeral containers "e" may not be removed\n'
    )


@pytest.mark.parametrize(
    ("name", "target", "error"),
    [
        ("c", "", 'spec.ephemeralContainers[0].name: Duplicate value: "c"'),
        ("e", "missing", 'spec.ephemeralContainers[0].targetContainerName: Not found: "missing"'),
    ],
)
def test_an_ephemeral_container_fits_its_pod(client: Client, name: str, target: str, error: str) -> None:
    pod_name = f"unfit-{name}"
    client.send("POST", PODS, pod(pod_name))
    more = {"targetContainerName": target} if target else {}
    part = f"{PODS}/{pod_name}/ephemeralcontainers"
    answer = client.send("PATCH", part, ephemeral(name, **more), content=STRATEGIC)
    assert (answer.code, answer.body["message"]) == (422, f'Pod "{pod_name}" is invalid: {error}')


def resources(**requests: str | None) -> Any:
    """Make a patch of what a container asks for."""
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}


def sized_pod(name: str) -> Any:
    """Make a Pod that asks for some processor time."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return made


def test_a_pod_is_resized_by_its_own_subresource_only(client: Client) -> None:
    client.send("POST", PODS, sized_pod("sized"))
    assert client.send("PATCH", f"{PODS}/sized", resources(cpu="200m"), content=STRATEGIC).code == 422
    answer = client.send("PATCH", f"{PODS}/sized/resize", resources(cpu="200m"), content=STRATEGIC)
    assert answer.code == 200
    assert answer.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "200m"}}


def test_a_resize_keeps_the_qos_class(client: Client) -> None:
    client.send("POST", PODS, pod("modest"))
    answer = client.send("PATCH", f"{PODS}/modest/resize", resources(cpu="200m"), content=STRATEGIC)
    text = 'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    assert (answer.code, answer.body["message"]) == (422, f'Pod "modest" is invalid: {text}')


def test_a_resize_changes_only_cpu_and_memory(client: Client) -> None:
    client.send("POST", PODS, sized_pod("stored"))
    patch = resources(**{"ephemeral-storage": "1Gi"})
    answer = client.send("PATCH", f"{PODS}/stored/resize", patch, content=STRATEGIC)
    text = "spec: Forbidden: only cpu and memory resources are mutable"
    assert (answer.code, answer.body["message"]) == (422, f'Pod "stored" is invalid: {text}')


def test_a_resize_removes_no_requests_and_limits(client: Client) -> None:
    client.send("POST", PODS, sized_pod("robbed"))
    answer = client.send("PATCH", f"{PODS}/robbed/resize", resources(cpu=None), content=STRATEGIC)
    texts = [
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
    ]
    assert (answer.code, answer.body["message"]) == (422, f'Pod "robbed" is invalid: [{", ".join(texts)}]')


def test_a_certificate_is_approved_by_its_own_subresource_only(client: Client) -> None:
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    asked = next(case for case in cases("accepted") if case["kind"] == "CertificateSigningRequest")
    made = client.send("POST", requests, {**asked, "metadata": {"name": "asked"}}).body
    assert made["spec"]["username"] == "recorder"
    approved = {"type": "Approved", "status": "True", "reason": "Trusted", "message": "m"}
    made["status"] = {"conditions": [approved]}
    assert "conditions" not in client.send("PUT", f"{requests}/asked", made).body["status"]
    made["metadata"].pop("resourceVersion")
    answer = client.send("PUT", f"{requests}/asked/approval", made)
    assert answer.code == 200
    (condition,) = answer.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "Trusted")
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"]
