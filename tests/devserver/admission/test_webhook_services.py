"""Webhooks behind a Service are found by its endpoints, recognized by its name, and kept connected."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from devserver_http import Http

from kubewright.certificates import Authority

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"


class Webhook:
    """Allows everything, and counts requests and connections."""

    def __init__(self) -> None:
        self.requests = 0
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while head := await reader.readline():
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert head.startswith(b"POST /check?timeout=5s ")
            review = json.loads(await reader.readexactly(length))
            self.requests += 1
            answer = {"uid": review["request"]["uid"], "allowed": True, "warnings": ["seen"]}
            body = json.dumps(
                {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
            ).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()


@pytest.fixture
def authority() -> Authority:
    return Authority.create()


@pytest.fixture
async def webhook(authority: Authority, tmp_path: Path) -> AsyncIterator[tuple[Webhook, int]]:
    def context() -> ssl.SSLContext:
        pair = authority.serving("check", ["check.default.svc"])
        file = tmp_path / "serving.pem"
        file.write_bytes(pair.certificate + pair.key)
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(file)
        return found

    hook = Webhook()
    server = await asyncio.start_server(hook.serve, "127.0.0.1", 0, ssl=await asyncio.to_thread(context))
    async with server:
        yield hook, server.sockets[0].getsockname()[1]


def configuration(authority: Authority) -> dict[str, Any]:
    service = {"namespace": "default", "name": "check", "path": "/check"}
    bundle = base64.b64encode(authority.pair.certificate).decode()
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    hook = {
        "name": "check.ex.io",
        "clientConfig": {"service": service, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    return {"metadata": {"name": "check"}, "webhooks": [hook]}


async def test_a_service_without_endpoints_is_reported(http: Http, authority: Authority) -> None:
    ports = [{"name": "https", "port": 443}]
    await http.create(
        "/api/v1/namespaces/default/services", {"metadata": {"name": "check"}, "spec": {"ports": ports}}
    )
    await http.create(HOOKS, configuration(authority))
    reply = await http.request("POST", MAPS, {"metadata": {"name": "a"}})
    assert reply.status == 500
    assert 'no endpoints available for service "check"' in reply.json()["message"]


async def test_calls_go_to_an_endpoint_over_one_connection(
    http: Http, authority: Authority, webhook: tuple[Webhook, int]
) -> None:
    hook, port = webhook
    ports = [{"name": "https", "port": 443, "targetPort": port}]
    await http.create(
        "/api/v1/namespaces/default/services", {"metadata": {"name": "check"}, "spec": {"ports": ports}}
    )
    await http.create(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "check", "labels": {"kubernetes.io/service-name": "check"}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        },
    )
    await http.create(HOOKS, configuration(authority))
    for name in ("a", "b", "c"):
        reply = await http.request("POST", MAPS, {"metadata": {"name": name}})
        assert reply.status == 201, reply
        assert reply.headers["warning"] == '299 - "seen"'
    assert (hook.requests, hook.connections) == (3, 1)
