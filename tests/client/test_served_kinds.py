"""What a server serves, and kinds without a class, on a real API server or the embedded one (--server)."""

import pytest

from kubewright.api import GroupVersionKind, JsonObject, Kind, kind_of
from kubewright.api.builtin import core_v1
from kubewright.client import (
    Client,
    InvalidRequest,
    NotFound,
    UnsupportedMediaType,
    requests,
)
from kubewright.testing import eventually

from .objects import MAPS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_kind_without_a_class_is_a_dictionary(client: Client, namespace: str) -> None:
    wire = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "d", "namespace": namespace},
        "data": {"k": "v"},
    }
    created = await client.create(wire)
    assert created["metadata"]["uid"]
    assert (await client.get(MAPS, "d", namespace))["data"] == {"k": "v"}
    listed = await client.list(MAPS, namespace=namespace, fields="metadata.name=d")
    assert [(item["apiVersion"], item["kind"]) for item in listed] == [("v1", "ConfigMap")]
    created["data"]["k"] = "w"
    assert (await client.replace(created, kind=MAPS))["data"] == {"k": "w"}
    applied = await client.apply({**wire, "data": {"k": "x"}}, field_manager="other")
    assert applied["data"] == {"k": "x"}
    await client.delete(MAPS, "d", namespace)


async def test_a_dictionary_without_its_kind_is_refused(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="needs apiVersion and kind"):
        await client.create({"metadata": {"name": "x"}})


async def test_distinguishes_a_kind_that_is_not_served_from_a_missing_object(
    client: Client, namespace: str
) -> None:
    with pytest.raises(NotFound, match="is its CRD installed") as caught:
        await client.list(
            Kind(group="missing.example.com", version="v1", kind="No", plural="nos"), namespace=namespace
        )
    assert caught.value.kind_missing
    with pytest.raises(NotFound) as caught:
        await client.list(Kind(group="apps", version="v1", kind="No", plural="nos"), namespace=namespace)
    assert caught.value.kind_missing
    with pytest.raises(NotFound):
        await client.resolve(GroupVersionKind("apps", "v1", "Nothing"))


async def test_the_error_for_a_kind_that_is_not_served_names_the_kind(client: Client) -> None:
    unknown = {"apiVersion": "missing.example.com/v1", "kind": "No", "metadata": {"name": "a"}}
    with pytest.raises(NotFound) as caught:
        await client.create(unknown)
    said = "discover missing.example.com/v1, Kind=No: the server does not serve it"
    assert str(caught.value) == f"{said}; is its CRD installed?"
    with pytest.raises(NotFound, match="discover apps/v1, Kind=Nothing: the server does not serve it"):
        await client.apply({"apiVersion": "apps/v1", "kind": "Nothing", "metadata": {"name": "a"}})


async def test_a_strategic_patch_of_a_custom_resource_is_not_supported(
    client: Client, namespace: str
) -> None:
    group = f"{namespace}.example.com"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "foos",
                "singular": "foo",
                "kind": "Foo",
                "listKind": "FooList",
                "shortNames": ["fo"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    await client.create(crd)
    try:

        async def create() -> tuple[Kind, JsonObject]:
            kind = await client.resolve(GroupVersionKind(group, "v1", "Foo"))
            obj = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"x": 1}}
            return kind, await client.create(obj, kind=kind)

        kind, made = await eventually(create)
        assert made["kind"] == "Foo"
        assert (kind.plural, kind.namespaced, kind.status, tuple(kind.short_names)) == (
            "foos",
            True,
            True,
            ("fo",),
        )
        with pytest.raises(UnsupportedMediaType):
            await client.patch(kind, {"spec": {"x": 2}}, name="a", namespace=namespace, type="strategic")
        assert [item["metadata"]["name"] for item in await client.list(kind, namespace=namespace)] == ["a"]
    finally:
        await client.delete(
            Kind(group="apiextensions.k8s.io", version="v1", kind="CustomResourceDefinition",
                 plural="customresourcedefinitions", namespaced=False),
            f"foos.{group}",
        )  # fmt: skip


async def test_the_server_version_is_read(client: Client) -> None:
    version = await client.server_version()
    assert version.number >= (1, 31)
    assert version.git_version.startswith("v1.")


async def test_discovery_finds_what_is_served(client: Client) -> None:
    resources = await client.api_resources()
    pods = next(resource for resource in resources if resource.kind.resource == "pods")
    assert pods.kind.short_names == ("po",)
    assert {"get", "list", "watch", "create", "patch", "delete"} <= set(pods.verbs)
    assert {"status", "log", "eviction"} <= set(pods.subresources)
    deployments = await client.resolve(GroupVersionKind("apps", "v1", "Deployment"))
    assert (deployments.plural, deployments.namespaced, deployments.status) == ("deployments", True, True)
    assert [resource.kind for resource in await client.api_resources()] == [
        resource.kind for resource in resources
    ]


async def test_any_request_can_be_sent_raw(client: Client) -> None:
    answer = await client.raw(requests.get_path("/openapi/v3", accept="text/plain, */*"))
    assert answer.status == 200
    assert b"apis/apps/v1" in answer.body
    found = await client.send(requests.get(kind_of(core_v1.Namespace), "default"))
    assert found.meta.name == "default"
