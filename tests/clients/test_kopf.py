"""A kopf operator works against the embedded cluster: handlers, status, finalizer, events."""

import asyncio
import os
import sys
from pathlib import Path

from clients_peers import LENIENT, definition, peer

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Kind
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster, eventually

peer("kopf")
pytestmark = LENIENT

OPERATOR = """
import kopf

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "example.com/kopf"
    settings.scanning.disabled = False

@kopf.on.create("widgets")
def created(spec, body, **_):
    kopf.info(body, reason="Made", message="there it is")
    return {"made": spec["size"]}

@kopf.on.update("widgets", field="spec.size")
def resized(old, new, patch, **_):
    patch.status["size"] = new

@kopf.on.delete("widgets")
def deleted(name, namespace, logger, **_):
    logger.info(f"{name} is let go")
"""


async def test_a_kopf_operator_handles_create_update_and_delete(cluster: Cluster, tmp_path: Path) -> None:
    group = f"{cluster.namespace}.example"
    widgets = Kind(group=group, version="v1", kind="Widget", plural="widgets", namespaced=True, status=True)
    await cluster.client.create(definition(group), kind=CUSTOM_RESOURCE_DEFINITION)
    await _discovered(cluster, group)
    program = tmp_path / "operator.py"
    program.write_text(OPERATOR)
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kopf", "run", "--standalone", "-n", cluster.namespace, program),
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
            stdout=log,
            stderr=log,
        )
    try:
        thing = {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": cluster.namespace},
            "spec": {"size": 3},
        }
        await cluster.client.create(thing, kind=widgets)
        made = await cluster.eventually(
            widgets, "w", lambda item: item.get("status", {}).get("created") == {"made": 3}
        )
        assert made["metadata"]["finalizers"] == ["example.com/kopf"]
        await cluster.client.patch(widgets, {"spec": {"size": 7}}, name="w", namespace=cluster.namespace)
        await cluster.eventually(widgets, "w", lambda item: item["status"].get("size") == 7)
        await cluster.client.delete(widgets, "w", cluster.namespace)
        await cluster.eventually_gone(widgets, "w")
        assert b"w is let go" in (tmp_path / "log").read_bytes()

        async def reported() -> bool:
            return "Made" in {event.reason for event in await _events(cluster)}

        await eventually(reported)
    finally:
        process.terminate()
        await process.wait()
        await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, f"widgets.{group}")


async def _discovered(cluster: Cluster, group: str) -> None:
    """Wait until the kind is listed: kopf looks once, and a definition that is there by then is no news to it."""

    async def listed() -> bool:
        return group in {found.kind.group for found in await cluster.client.api_resources()}

    await eventually(listed)


async def _events(cluster: Cluster) -> list[core_v1.Event]:
    return await cluster.client.list(core_v1.Event, namespace=cluster.namespace)
