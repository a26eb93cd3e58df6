"""The benchmarked operator on kopf, as its documentation writes one; 16 at once, like the others."""

import asyncio
import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import yaml

GROUP, VERSION, PLURAL = "bench.kubewright.dev", "v1", "echos"


class Cluster:
    """A session to the API server: kopf has no client of its own."""

    def __init__(self) -> None:
        document = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            tls.load_cert_chain(pair.name)
        self.server = cluster["server"]
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0))

    async def keep(self, namespace: str, body: dict[str, Any]) -> None:
        """Create the ConfigMap; one that is there is made so."""
        maps = f"{self.server}/api/v1/namespaces/{namespace}/configmaps"
        async with self.session.post(maps, json=body) as response:
            if response.status != 409:
                response.raise_for_status()
                return
        headers = {"Content-Type": "application/merge-patch+json"}
        target = f"{maps}/{body['metadata']['name']}"
        async with self.session.patch(target, json=body, headers=headers) as response:
            response.raise_for_status()


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    # A limit on kopf's own workers would hold each for seconds after its object is done.
    memo.at_once = asyncio.Semaphore(16)
    settings.posting.enabled = False
    memo.cluster = Cluster()


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    await memo.cluster.session.close()


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL, field="spec")
async def echo(
    spec: kopf.Spec, name: str, namespace: str, memo: kopf.Memo, patch: kopf.Patch, **_: Any
) -> None:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"bench": "echo"}},
        "data": {"message": spec["message"]},
    }
    kopf.adopt(body)
    async with memo.at_once:
        await memo.cluster.keep(namespace, body)
    patch.status["echoed"] = spec["message"]
