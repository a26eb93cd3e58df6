"""Plays the kubectl stories on a real control plane and keeps what it printed: python tests/clients/record.py [STORY...]."""

import asyncio
import secrets
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from clients_kubectl import STORIES, Kubectl, Recording, find_kubectl, story

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client, load_config
from kubewright.testing import Cluster, EmbeddedEnvironment, Environment, RealEnvironment


async def record(names: list[str], environment: Environment, *, keep: bool) -> None:
    program = await asyncio.to_thread(find_kubectl)
    if program is None:
        raise SystemExit("no kubectl: run scripts/control-plane build")
    async with AsyncExitStack() as stack:
        kubeconfig = await environment.start(stack)
        config = await asyncio.to_thread(load_config, kubeconfig)
        client = await stack.enter_async_context(Client(config))
        for name in names:
            namespace = f"test-{secrets.token_hex(4)}"
            await client.create(core_v1.Namespace(Meta(namespace)))
            await Cluster(environment.name, client, config, kubeconfig, namespace).eventually(
                core_v1.ServiceAccount, "default"
            )
            with tempfile.TemporaryDirectory() as folder:
                kubectl = Kubectl(program, kubeconfig, namespace, Path(folder))
                steps = story(name)
                answers = [await step.play(kubectl) for step in steps]
            if keep:
                Recording(name).write(steps, answers)
            print(f"{name}: {len(steps)} commands")
            if not keep:
                for step, answer in zip(steps, answers, strict=True):
                    print(f"$ kubectl {step.command}   [{answer.status}]\n{answer.text}")
            await client.delete(core_v1.Namespace, namespace)


if __name__ == "__main__":
    show = "--show" in sys.argv
    chosen = [name for name in sys.argv[1:] if not name.startswith("--")] or STORIES
    embedded = "--embedded" in sys.argv
    asyncio.run(
        record(
            chosen, EmbeddedEnvironment() if embedded else RealEnvironment(), keep=not show and not embedded
        )
    )
