"""What no single answer shows: racing writers, streams that flow, watches that end."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conformance_exchange import Step, Target
from conformance_hooks import RACERS, hook_server

from kubewright.testing import eventually

MERGE = {"Content-Type": "application/merge-patch+json"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WRITERS = RACERS


@pytest.fixture(scope="session")
def place(target: Target) -> str:
    """Make the namespace of these tests; give the path of its ConfigMaps."""
    send(target, "POST", "/api/v1/namespaces", {"metadata": {"name": "behaviour"}})
    return "/api/v1/namespaces/behaviour/configmaps"


def send(target: Target, method: str, path: str, body: Any = None, headers: Any = None) -> Any:
    return target.send(Step("", method, path, body, headers or {}), {}, lambda step: None)


def together(work: Callable[[int], int]) -> list[int]:
    """Do something several times at once; gives the statuses."""
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda number=number: found.append(work(number))) for number in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def test_racing_patches_are_all_applied(target: Target, place: str) -> None:
    send(target, "POST", place, {"metadata": {"name": "patched"}})
    patch = lambda number: send(target, "PATCH", f"{place}/patched", {"data": {f"k{number}": "v"}}, MERGE)  # noqa: E731
    assert together(lambda number: patch(number).status) == [200] * WRITERS
    assert len(send(target, "GET", f"{place}/patched").body["data"]) == WRITERS


def test_applies_that_race_to_create_an_object_all_take_effect(target: Target, place: str) -> None:
    hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}

    def apply(number: int) -> int:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "raced", "labels": {"race": "apply"}},
            "data": {f"k{number}": "v"},
        }
        path = f"{place}/raced?fieldManager=m{number}"
        return send(target, "PATCH", path, body, {"Content-Type": "application/apply-patch+yaml"}).status

    with hook_server() as values:
        found = [
            {
                "name": f"{path}.ex.io",
                "clientConfig": {"url": f"https://{values['hook']}/{path}", "caBundle": values["ca"]},
                "rules": [rule],
                "objectSelector": {"matchLabels": {"race": label}},
                "timeoutSeconds": 30,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            for path, label in (("meet", "apply"), ("deny", "probe"))
        ]
        send(target, "POST", hooks, {"metadata": {"name": "behaviour-races"}, "webhooks": found})
        probe = {"metadata": {"name": "probe", "labels": {"race": "probe"}}}
        asyncio.run(eventually(lambda: send(target, "POST", f"{place}?dryRun=All", probe).status == 400))
        try:
            assert together(apply) == [200] * (WRITERS - 1) + [201]
        finally:
            send(target, "DELETE", f"{hooks}/behaviour-races")
    assert len(send(target, "GET", f"{place}/raced").body["data"]) == WRITERS


def test_one_of_several_racing_puts_wins(target: Target, place: str) -> None:
    found = send(target, "POST", place, {"metadata": {"name": "put"}}).body

    def put(number: int) -> int:
        return send(target, "PUT", f"{place}/put", {**found, "data": {"k": str(number)}}).status

    assert together(put) == [200] + [409] * (WRITERS - 1)


@contextmanager
def watching(target: Target, path: str) -> Iterator[http.client.HTTPResponse]:
    connection = target.connect("")
    try:
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        assert response.status == 200
        yield response
    finally:
        connection.close()


def test_events_are_sent_at_once(target: Target, place: str) -> None:
    revision = send(target, "GET", place).body["metadata"]["resourceVersion"]
    with watching(target, f"{place}?watch=1&timeoutSeconds=300&resourceVersion={revision}") as response:
        assert response.getheader("Transfer-Encoding") == "chunked"
        for name in ("seen", "seen-too"):
            send(target, "POST", place, {"metadata": {"name": name}})
            event = json.loads(response.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)


def test_a_connection_is_usable_after_a_watch(target: Target, place: str) -> None:
    connection = target.connect("")
    try:
        connection.request("GET", f"{place}?watch=1&timeoutSeconds=1&resourceVersion=0")
        response = connection.getresponse()
        if target.skip is not None:
            target.skip(1)
        response.read()
        connection.request("GET", place)
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def test_a_changed_definition_ends_the_watches_on_its_objects(target: Target) -> None:
    column = {"name": "A", "type": "string", "jsonPath": ".a"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": "ended.behaviour.ex.io"},
        "spec": {
            "group": "behaviour.ex.io",
            "scope": "Cluster",
            "names": {"plural": "ended", "kind": "Ended"},
            "versions": [version],
        },
    }
    assert send(target, "POST", DEFINITIONS, definition).status == 201
    path = "/apis/behaviour.ex.io/v1/ended"
    asyncio.run(eventually(lambda: send(target, "GET", path).status == 200))
    try:
        with watching(target, f"{path}?watch=1&timeoutSeconds=300") as response:
            change = {"spec": {"versions": [{**version, "additionalPrinterColumns": [column]}]}}
            assert send(target, "PATCH", f"{DEFINITIONS}/ended.behaviour.ex.io", change, MERGE).status == 200
            assert response.read() == b""
    finally:
        send(target, "DELETE", f"{DEFINITIONS}/ended.behaviour.ex.io")


def test_head_requests_are_served_for_health_checks_and_refused_for_objects(target: Target) -> None:
    connection = target.connect("")
    try:
        for path, status in (
            ("/healthz", 200),
            ("/version", 405),
            ("/api", 405),
            ("/apis/apps/v1", 405),
            ("/api/v1/namespaces", 405),
            ("/api/v1/namespaces/default", 405),
        ):
            connection.request("HEAD", path)
            response = connection.getresponse()
            response.read()
            assert response.status == status, path
    finally:
        connection.close()


def test_a_watch_omits_objects_without_a_conversion_webhook(target: Target) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    hook = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
    definition = {
        "metadata": {"name": "unconverted.behaviour.ex.io"},
        "spec": {
            "group": "behaviour.ex.io",
            "scope": "Cluster",
            "names": {"plural": "unconverted", "kind": "Unconverted"},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema}
                for name in ("v1", "v2")
            ],
            "conversion": {"strategy": "Webhook", "webhook": hook},
        },
    }
    assert send(target, "POST", DEFINITIONS, definition).status == 201
    first, second = (f"/apis/behaviour.ex.io/{name}/unconverted" for name in ("v1", "v2"))
    for path in (first, second):
        asyncio.run(eventually(lambda path=path: send(target, "GET", path).status == 200))
    unconverted = {"apiVersion": "behaviour.ex.io/v1", "kind": "Unconverted", "metadata": {"name": "joe"}}
    try:
        with watching(target, f"{second}?watch=1&timeoutSeconds=300") as response:
            assert send(target, "POST", first, unconverted).status == 201
            # These events arrive before the watch ends because of the changed CRD.
            change = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            path = f"{DEFINITIONS}/unconverted.behaviour.ex.io"
            assert send(target, "PATCH", path, change, MERGE).status == 200
            assert response.read() == b""
    finally:
        send(target, "DELETE", f"{DEFINITIONS}/unconverted.behaviour.ex.io")


@pytest.mark.parametrize(
    ("path", "ends"),
    [
        ("/api/v1/namespaces/default", True),
        ("/api/v1/namespaces", True),
        ("/api/v1/namespaces?limit=1", True),
        ("/api/v1/namespaces/nope", True),
        ("/apis", True),
        ("/apis/apps/v1", True),
        ("/api/v1/namespaces/default?pretty=1", False),
        ("/api/v1/namespaces/nope?pretty=1", False),
        ("/version", False),
        ("/openapi/v3/api/v1", False),
        ("/openid/v1/jwks", False),
    ],
)
def test_json_ends_with_a_newline_unless_it_is_indented_or_a_document(
    target: Target, path: str, ends: bool
) -> None:
    connection = target.connect("")
    connection.request("GET", path, headers={"Accept": "application/json, */*"})
    body = connection.getresponse().read()
    connection.close()
    json.loads(body)
    assert body.endswith(b"\n") is ends
