"""What our functions make of quantities, strategic patches and defaults, beside what a server answers.

Run with `--server real` they are compared with Kubernetes itself, else with the embedded server.
"""

import copy
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from acceptance_waits import served

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    Kind,
    PatchError,
    Quantity,
    kind_of,
    strategic_patch,
)
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import ApiError, Client
from kubewright.devserver.wire import load_types
from kubewright.schema import apply_defaults, prune

pytestmark = pytest.mark.asyncio(loop_scope="session")

JsonObject = dict[str, Any]
TYPES = load_types()
SERVICES, DEPLOYMENTS = kind_of(core_v1.Service), kind_of(apps_v1.Deployment)

QUANTITIES = [
    "0", "1", "1000", "1024", "1500", "0.5", "1.5", ".5", "5.", "+3", "007", "1.0", "1.50", "0.001", "0.0001",
    "1n", "1u", "1m", "100m", "1000m", "1500m", "0.5m", "1k", "1000k", "1.5k", "1M", "1G", "1.25G", "1T", "1P", "1E",
    "1Ki", "1024Ki", "1.5Ki", "0.5Ki", "0.1Ki", "1Mi", "1.5Mi", "1025Mi", "1Gi", "1.5Gi", "0.3Gi", "1Ti", "1Pi", "1Ei",
    "1e3", "1E3", "1e0", "12e-3", "1.5e3", "100e-2", "1e-3", "1e1", "1e+3", "9223372036854775807",
    "9223372036854775808", "999999999999999999999", "1.0000000001", "1.23456789012345", "Gi", "e3",
]  # fmt: skip
NO_QUANTITIES = [
    "",
    "1i",
    "1 Gi",
    "1gi",
    "--1",
    "1e",
    "1Kii",
    "0x10",
    "1,5",
    "1.5.5",
    "1ee3",
    "∞",
]


def sized(namespace: str, quantities: list[str]) -> JsonObject:
    """Return an object that holds quantities, and that nothing is refused of but for them."""
    volumes = [
        {"name": f"v{number}", "emptyDir": {"sizeLimit": text}} for number, text in enumerate(quantities)
    ]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return {
        "metadata": {"name": "q", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


async def test_quantities_are_written_as_the_server_writes_them(client: Client, namespace: str) -> None:
    answer = await client.create(sized(namespace, QUANTITIES), kind=DEPLOYMENTS, dry_run=True)
    limits = [volume["emptyDir"]["sizeLimit"] for volume in answer["spec"]["template"]["spec"]["volumes"]]
    assert dict(zip(QUANTITIES, limits, strict=True)) == {text: str(Quantity(text)) for text in QUANTITIES}


@pytest.mark.parametrize("text", NO_QUANTITIES)
async def test_invalid_quantities_are_refused_as_by_the_server(
    client: Client, namespace: str, text: str
) -> None:
    with pytest.raises(ApiError, match=r"quantit"):
        await client.create(sized(namespace, [text]), kind=DEPLOYMENTS, dry_run=True)
    with pytest.raises(ValueError, match=r"quantit"):
        Quantity(text)


CONTAINERS = [
    {
        "name": "main",
        "image": "a:1",
        "args": ["x", "y"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [
            {"containerPort": 80, "name": "web"},
            {"containerPort": 53, "protocol": "UDP", "name": "dns"},
        ],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    },
    {"name": "side", "image": "b:1"},
]
POD_SPEC: JsonObject = {
    "containers": CONTAINERS,
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {"medium": "Memory"}}],
    "nodeSelector": {"disk": "ssd", "zone": "a"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
}
LIVE: dict[str, tuple[Kind, JsonObject]] = {
    "deployment": (
        DEPLOYMENTS,
        {
            "metadata": {
                "name": "web",
                "labels": {"app": "web", "tier": "front"},
                "finalizers": ["example.com/a", "example.com/b"],
            },
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"},
                },
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC},
            },
        },
    ),
    "service": (
        SERVICES,
        {
            "metadata": {"name": "web"},
            "spec": {
                "type": "ClusterIP",
                "selector": {"app": "web"},
                "ports": [
                    {"name": "http", "port": 80, "targetPort": 8080},
                    {"name": "dns", "port": 53, "protocol": "UDP"},
                ],
            },
        },
    ),
}


def in_pod(part: JsonObject) -> JsonObject:
    return {"spec": {"template": {"spec": part}}}


def in_main(part: JsonObject) -> JsonObject:
    return in_pod({"containers": [{"name": "main", **part}]})


PATCHES: dict[str, tuple[str, JsonObject]] = {
    "an element by its key": ("deployment", in_main({"image": "a:2"})),
    "a new element": ("deployment", in_pod({"containers": [{"name": "third", "image": "c:1"}]})),
    "an element taken away": ("deployment", in_pod({"containers": [{"name": "side", "$patch": "delete"}]})),
    "a list replaced": (
        "deployment",
        in_pod({"containers": [{"$patch": "replace"}, {"name": "only", "image": "z"}]}),
    ),
    "an order": (
        "deployment",
        in_pod(
            {
                "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                "containers": [{"name": "main", "image": "a:3"}],
            }
        ),
    ),
    "texts that are one whole": ("deployment", in_main({"args": ["z"]})),
    "a variable changed and one added": (
        "deployment",
        in_main({"env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]}),
    ),
    "a variable taken away": ("deployment", in_main({"env": [{"name": "A", "$patch": "delete"}]})),
    "all variables taken away": ("deployment", in_main({"env": None})),
    "a variable that comes from elsewhere": (
        "deployment",
        in_main(
            {"env": [{"name": "A", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
        ),
    ),
    "ports by number": ("deployment", in_main({"ports": [{"containerPort": 80, "name": "www"}]})),
    "mounts by path": ("deployment", in_main({"volumeMounts": [{"mountPath": "/w", "name": "w"}]})),
    "a volume of another kind": (
        "deployment",
        in_pod({"volumes": [{"name": "w", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}),
    ),
    "a volume taken away": ("deployment", in_pod({"volumes": [{"name": "w", "$patch": "delete"}]})),
    "another strategy": (
        "deployment",
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    ),
    "a map's member taken away": ("deployment", in_pod({"nodeSelector": {"disk": None, "new": "x"}})),
    "a map replaced": ("deployment", in_pod({"nodeSelector": {"$patch": "replace", "only": "x"}})),
    "a map taken away": ("deployment", in_pod({"nodeSelector": {"$patch": "delete"}})),
    "a list without a key": ("deployment", in_pod({"tolerations": [{"key": "new", "operator": "Exists"}]})),
    "secrets by name": ("deployment", in_pod({"imagePullSecrets": [{"name": "three"}]})),
    "aliases by address": (
        "deployment",
        in_pod(
            {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}, {"ip": "10.0.0.2", "hostnames": ["c"]}]}
        ),
    ),
    "texts that are a set": ("deployment", {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}),
    "texts taken out of a set": (
        "deployment",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    ),
    "texts to take out that are no list": (
        "deployment",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "example.com/a"}},
    ),
    "labels": ("deployment", {"metadata": {"labels": {"tier": None, "new": "1"}}}),
    "a number to zero": ("deployment", {"spec": {"replicas": 0}}),
    "a number to its default": ("deployment", {"spec": {"replicas": None}}),
    "nothing": ("deployment", {}),
    "a port of a service": ("service", {"spec": {"ports": [{"port": 80, "targetPort": "named"}]}}),
    "another port of a service": ("service", {"spec": {"ports": [{"port": 81, "name": "more"}]}}),
    "a port of a service taken away": ("service", {"spec": {"ports": [{"port": 53, "$patch": "delete"}]}}),
    "a selector replaced": ("service", {"spec": {"selector": {"$patch": "replace", "x": "y"}}}),
}


def essence(obj: JsonObject) -> JsonObject:
    """Return what patches are about; the rest moves with every write."""
    meta = obj["metadata"]
    return {
        "labels": meta.get("labels", {}),
        "annotations": meta.get("annotations", {}),
        "finalizers": meta.get("finalizers", []),
        "spec": obj["spec"],
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def live(api_server: Any) -> AsyncIterator[dict[str, tuple[Kind, JsonObject]]]:
    name = f"answers-{secrets.token_hex(4)}"
    async with Client(api_server.config, field_manager="tests") as client:
        await client.create({"metadata": {"name": name}}, kind=kind_of(core_v1.Namespace))
        made: dict[str, tuple[Kind, JsonObject]] = {}
        for key, (kind, wire) in LIVE.items():
            placed = {**wire, "metadata": {**wire["metadata"], "namespace": name}}
            made[key] = kind, await client.create(placed, kind=kind)
        yield made
        await client.patch(
            DEPLOYMENTS, {"metadata": {"finalizers": None}}, name="web", namespace=name, type="merge"
        )


@pytest.mark.parametrize("case", PATCHES)
async def test_strategic_patches_merge_as_on_the_server(
    client: Client, live: dict[str, tuple[Kind, JsonObject]], case: str
) -> None:
    subject, patch = PATCHES[case]
    kind, made = live[subject]
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    before = await client.get(kind, name, namespace)
    patched = await client.patch(kind, patch, name=name, namespace=namespace, type="strategic", dry_run=True)
    ours = strategic_patch(before, patch, TYPES.patch_schema(kind.gvk))
    del ours["metadata"]["resourceVersion"]
    # What is left out of a merged object is for the server to complete, as it does for any that is sent to it.
    completed = await client.replace(ours, kind=kind, dry_run=True)
    assert essence(patched) == essence(completed)


@pytest.mark.parametrize(
    "patch",
    [
        in_pod({"containers": [{"image": "without a key"}]}),
        in_pod({"containers": [{"name": "main", "$patch": "explode"}]}),
        {"metadata": {"$deleteFromPrimitiveList": ["without a name"]}},
    ],
    ids=["no key", "no such directive", "no list named"],
)
async def test_an_invalid_patch_is_refused_as_by_the_server(
    client: Client, live: dict[str, tuple[Kind, JsonObject]], patch: JsonObject
) -> None:
    kind, before = live["deployment"]
    name, namespace = before["metadata"]["name"], before["metadata"]["namespace"]
    with pytest.raises(ApiError):
        await client.patch(kind, patch, name=name, namespace=namespace, type="strategic", dry_run=True)
    with pytest.raises(PatchError):
        strategic_patch(before, patch, TYPES.patch_schema(kind.gvk))


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "default": {},
            "properties": {
                "size": {"type": "integer", "default": 1},
                "on": {"type": "boolean", "default": False},
                "name": {"type": "string", "default": "x", "nullable": True},
                "bare": {"type": "string"},
                "nested": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "default": "deep"},
                        "b": {
                            "type": "object",
                            "default": {"c": 2},
                            "properties": {"c": {"type": "integer"}},
                        },
                    },
                },
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "port": {"type": "integer", "default": 80}},
                    },
                },
                "map": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"weight": {"type": "number", "default": 0.5}},
                    },
                },
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"seen": {"type": "string", "default": "yes"}},
                },
                "either": {"x-kubernetes-int-or-string": True, "default": "25%"},
            },
        }
    },
}
VALUES: dict[str, JsonObject] = {
    "nothing": {},
    "an empty object": {"spec": {}},
    "null where nothing else may be": {"spec": {"size": None, "on": None}},
    "null where it may be": {"spec": {"name": None}},
    "zeros": {"spec": {"size": 0, "on": False, "name": ""}},
    "a nested object": {"spec": {"nested": {}}},
    "a nested object that is given": {"spec": {"nested": {"b": {}}}},
    "elements": {"spec": {"list": [{"key": "a"}, {"key": "b", "port": 1}]}},
    "members": {"spec": {"map": {"a": {}, "b": {"weight": 2}}}},
    "unknown fields": {"spec": {"size": 2, "unknown": 1, "list": [{"key": "a", "more": 1}]}, "other": 1},
    "unknown fields that are kept": {"spec": {"open": {"any": {"thing": [1]}}}},
    "a number for either": {"spec": {"either": 3}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def widgets(api_server: Any) -> AsyncIterator[Kind]:
    group = f"answers-{secrets.token_hex(4)}.example.com"
    kind = Kind(group=group, version="v1", kind="Widget", plural="widgets", namespaced=False)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    wire = {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }
    async with Client(api_server.config, field_manager="tests") as client:
        await client.create(wire, kind=CUSTOM_RESOURCE_DEFINITION)
        await served(client, kind)
        yield kind
        await client.delete(CUSTOM_RESOURCE_DEFINITION, f"widgets.{group}")


@pytest.mark.parametrize("case", VALUES)
async def test_defaults_are_set_as_by_the_server(client: Client, widgets: Kind, case: str) -> None:
    sent = {**copy.deepcopy(VALUES[case]), "metadata": {"name": "a"}}
    answer = await client.create(sent, kind=widgets, dry_run=True)
    prune(SCHEMA, sent)
    apply_defaults(SCHEMA, sent)
    assert answer["spec"] == sent["spec"]
    assert "other" not in answer
