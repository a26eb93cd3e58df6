"""The server as a whole: starting, stopping, keeping its data, letting people in."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from devserver_http import MERGE, Http
from http_wire import HttpConnection

from kubewright.devserver import Server

P = "/api/v1/namespaces/default/configmaps"


async def test_servers_run_side_by_side() -> None:
    async with Server() as first, Server() as second:
        assert first.url != second.url
        async with Http(first) as one, Http(second) as two:
            await one.create(P, {"metadata": {"name": "only-here"}})
            assert (await two.request("GET", f"{P}/only-here")).status == 404


async def test_a_port_in_use_is_reported() -> None:
    async with Server() as server:
        with pytest.raises(OSError, match="Address already in use"):
            async with Server(port=server.port):
                pass


async def test_a_fresh_server_has_its_first_objects(http: Http) -> None:
    namespaces = await http.get("/api/v1/namespaces")
    assert [item["metadata"]["name"] for item in namespaces["items"]] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    service = await http.get("/api/v1/namespaces/default/services/kubernetes")
    assert service["spec"]["clusterIP"] == "10.0.0.1"
    assert (await http.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin"))["rules"]


async def test_the_service_of_the_server_leads_to_it(server: Server, http: Http) -> None:
    endpoints = await http.get("/api/v1/namespaces/default/endpoints/kubernetes")
    ports = [{"name": "https", "port": server.port, "protocol": "TCP"}]
    assert endpoints["subsets"] == [{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}]
    found = await http.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    assert (found["endpoints"][0]["addresses"], found["ports"]) == (["127.0.0.1"], ports)
    name = "extension-apiserver-authentication"
    published = await http.get(f"/api/v1/namespaces/kube-system/configmaps/{name}")
    assert published["data"] == {"client-ca-file": server.ca_pem.decode()}


async def test_a_dry_run_does_not_check_the_range_of_node_ports(http: Http) -> None:
    path = "/api/v1/namespaces/default/services"
    body = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}}
    assert (await http.request("POST", path, body)).status == 422
    assert (await http.request("POST", f"{path}?dryRun=All", body)).status == 201


async def test_bearer_tokens_authenticate_users(server: Server, http: Http) -> None:
    token = server.add_user("jane", ["people"])
    context = ssl.create_default_context(cadata=server.ca_pem.decode())
    wire = HttpConnection(*await asyncio.open_connection("127.0.0.1", server.port, ssl=context))
    wire.send("GET", P, headers={"Authorization": f"Bearer {token}"})
    assert (await wire.reply()).status == 403
    wire.send("GET", P, headers={"Authorization": "Bearer nonsense"})
    assert (await wire.reply()).status == 401
    wire.send("GET", P)
    assert (await wire.reply()).status == 401
    await wire.close()


async def test_discovery_is_not_sent_twice(http: Http) -> None:
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    first = await http.request("GET", "/apis", headers=accept)
    assert first.headers["content-type"] == accept["Accept"]
    tag = first.headers["etag"]
    assert (await http.request("GET", "/apis", headers={**accept, "If-None-Match": tag})).status == 304


async def test_documents_are_indented_on_request(http: Http) -> None:
    reader = {"User-Agent": "curl/8"}
    for path, headers in (("/version", {}), ("/", {}), ("/api", reader), ("/apis/apps/v1", reader)):
        assert (await http.request("GET", path, headers=headers)).body.startswith(b'{\n  "'), path
    assert (await http.request("GET", "/api")).body.startswith(b'{"kind":')


async def test_openapi_documents_are_immutable_by_their_hash(http: Http) -> None:
    index = (await http.request("GET", "/openapi/v3")).json()
    url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
    reply = await http.request("GET", url)
    assert "immutable" in reply.headers["cache-control"]
    assert "io.k8s.api.apps.v1.Deployment" in reply.json()["components"]["schemas"]


class TestData:
    """A server with a data file."""

    @pytest.fixture
    def unblocked_event_loop(self) -> None:
        """Let these tests block: writes reach the file before they are acknowledged."""
        return

    async def test_a_cluster_survives_a_restart(self, tmp_path: Path) -> None:
        file = tmp_path / "cluster.db"
        async with Server(data=file) as server, Http(server) as http:
            await http.create(P, {"metadata": {"name": "kept", "labels": {"a": "b"}}})
            authority, port = server.ca_pem, server.port
            revision = int((await http.get(P))["metadata"]["resourceVersion"])
        async with Server(data=file, port=port) as server, Http(server) as http:
            assert server.ca_pem == authority
            found = await http.get(f"{P}?labelSelector=a%3Db")
            assert [item["metadata"]["name"] for item in found["items"]] == ["kept"]
            assert int(found["metadata"]["resourceVersion"]) >= revision
            changed = (await http.request("PATCH", f"{P}/kept", {"data": {"a": "1"}}, MERGE)).json()
            assert int(changed["metadata"]["resourceVersion"]) > revision

    async def test_a_watch_resumes_after_a_restart_or_expires(self, tmp_path: Path) -> None:
        file = tmp_path / "cluster.db"
        async with Server(data=file) as server, Http(server) as http:
            created = await http.create(P, {"metadata": {"name": "a"}})
            old = int(created["metadata"]["resourceVersion"]) - 1
            await http.request("PATCH", f"{P}/a", {"data": {"a": "1"}}, MERGE)
            newest = (await http.get(P))["metadata"]["resourceVersion"]
        async with Server(data=file) as server, Http(server) as http:
            wire = await http.open()
            wire.send("GET", f"{P}?watch=1&timeoutSeconds=1&resourceVersion={newest}")
            await wire.head()
            await http.request("PATCH", f"{P}/a", {"data": {"a": "2"}}, MERGE)
            assert [event["type"] async for event in wire.events()] == ["MODIFIED"]
            wire.send("GET", f"{P}?watch=1&timeoutSeconds=1&resourceVersion={old}")
            await wire.head()
            assert [event["object"]["code"] async for event in wire.events()] == [410]

    async def test_custom_resources_are_served_again(self, tmp_path: Path) -> None:
        file = tmp_path / "cluster.db"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.io"},
            "spec": {
                "group": "ex.io",
                "scope": "Cluster",
                "names": {"plural": "foos", "kind": "Foo"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                ],
            },
        }
        async with Server(data=file) as server, Http(server) as http:
            await http.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
            foo = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "x"}, "any": 1}
            await http.create("/apis/ex.io/v1/foos", foo)
        async with Server(data=file) as server, Http(server) as http:
            assert (await http.get("/apis/ex.io/v1/foos/x"))["any"] == 1

    async def test_the_service_of_the_server_follows_its_port(self, tmp_path: Path) -> None:
        path, file = "/api/v1/namespaces/default", tmp_path / "cluster.db"
        async with Server(data=file) as server, Http(server) as http:
            first = await http.get(f"{path}/services/kubernetes")
            port = server.port
        with socket.create_server(("127.0.0.1", port)):
            async with Server(data=file) as server, Http(server) as http:
                service = await http.get(f"{path}/services/kubernetes")
                endpoints = await http.get(f"{path}/endpoints/kubernetes")
        assert server.port != port
        assert service["spec"]["ports"][0]["targetPort"] == server.port
        assert endpoints["subsets"][0]["ports"][0]["port"] == server.port
        assert service["metadata"]["uid"] == first["metadata"]["uid"]
