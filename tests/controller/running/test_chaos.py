"""Trouble of all kinds at once, drawn by lot: in the end the world is as it should be, and then it is quiet."""

import asyncio
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from kubewright.api import Meta, NotFound
from kubewright.controller import Context, Controller, owned
from kubewright.devserver import Server
from kubewright.testing.virtual_time import virtual_time

from .cluster import Cluster
from .kinds import Box, BoxStatus, Paper
from .test_faults import eventually, ours, stage

OWN = "running.example.com/own"
CHILD = "running.example.com/child"
NAMES = [f"box-{number}" for number in range(6)]


class Boxes:
    """Each box has a paper that says its size, and an account outside that must not outlive it."""

    def __init__(self) -> None:
        self.accounts: dict[str, str] = {}

    async def reconcile(self, box: Box, ctx: Context) -> None:
        self.accounts[box.metadata.uid] = box.metadata.name
        paper = await ctx.apply(Paper(Meta(box.metadata.name), text=f"size {box.spec.size}"))
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size, note=paper.text))

    async def finalize(self, box: Box, ctx: Context) -> None:
        self.accounts.pop(box.metadata.uid, None)


class Trouble:
    """Draws what happens next."""

    def __init__(self, seed: int, server: Server, cluster: Cluster) -> None:
        self._chance = random.Random(seed)
        self._server = server
        self._cluster = cluster

    async def happen(self) -> None:
        """Let something go wrong for a while, and somebody change the world meanwhile."""
        chance, faults = self._chance, self._server.faults
        verbs: tuple[str, ...] = chance.choice([(), ("patch",), ("watch", "list"), ("get",), ("delete",)])
        meant = ours(verbs=verbs) if verbs else ours()
        with ExitStack() as trouble:
            match chance.randrange(7):
                case 0:
                    trouble.enter_context(faults.add(match=meant, fail=429, retry_after=chance.randint(1, 9)))
                case 1:
                    trouble.enter_context(faults.add(match=meant, fail=chance.choice([500, 503])))
                case 2:
                    when = chance.choice(["before", "after"])
                    trouble.enter_context(faults.add(match=meant, fail="reset", when=when))
                case 3:
                    trouble.enter_context(faults.add(match=meant, delay=chance.uniform(0.1, 40)))
                case 4:
                    trouble.enter_context(faults.freeze(ours()))
                case _:
                    pass
            for _ in range(chance.randint(1, 4)):
                if chance.random() < 0.4:
                    faults.cut_watches(ours(), how=chance.choice(["end", "reset", "expire"]))
                await self._change(chance.choice(NAMES))
                await asyncio.sleep(chance.choice([0.0, 0.01, 1.0, 45.0]))

    async def _change(self, name: str) -> None:
        chance, cluster = self._chance, self._cluster
        changes: list[Callable[[], Any]] = [
            lambda: cluster.create(Box(Meta(name))),
            lambda: self._patched(Box, name, {"spec": {"size": chance.randint(0, 9)}}),
            lambda: self._patched(Paper, name, {"text": "scribbled", "number": 7}),
            lambda: self._deleted(Box, name),
            lambda: self._deleted(Paper, name),
        ]
        box = await cluster.find(Box, name)
        await (changes[0] if box is None else chance.choice(changes[1:]))()

    async def _patched(self, kind: type[Any], name: str, patch: dict[str, Any]) -> None:
        try:
            await self._cluster.merge(kind(Meta(name, namespace=self._cluster.namespace)), patch)
        except NotFound:
            pass

    async def _deleted(self, kind: type[Any], name: str) -> None:
        try:
            await self._cluster.client.delete(kind, name, self._cluster.namespace)
        except NotFound:
            pass


async def as_it_should_be(cluster: Cluster, boxes: Boxes) -> bool:
    there = await cluster.client.list(Box, namespace=cluster.namespace)
    papers = {
        paper.metadata.name: paper
        for paper in await cluster.client.list(Paper, namespace=cluster.namespace)
        if paper.metadata.deletion_timestamp is None
    }
    return boxes.accounts == {box.metadata.uid: box.metadata.name for box in there} and all(
        box.metadata.deletion_timestamp is None
        and box.status.ready == box.spec.size
        and box.metadata.name in papers
        and papers[box.metadata.name].text == f"size {box.spec.size}"
        and papers[box.metadata.name].metadata.owner_references[0].uid == box.metadata.uid
        for box in there
    )


@virtual_time
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_goes_wrong_the_world_is_right_in_the_end_and_then_quiet(seed: int) -> None:
    boxes = Boxes()
    declared = Controller(Box, boxes, finalizer=OWN, owns=[owned(Paper, finalizer=CHILD)], concurrency=2)
    async with stage() as (server, cluster):
        await cluster.install(Paper)
        async with cluster.running(declared) as manager:
            trouble = Trouble(seed, server, cluster)
            for _ in range(8):
                await trouble.happen()
            # Nobody collects garbage here: papers of boxes that are gone, or were replaced, are the test's to remove.
            await eventually(lambda: collected(cluster))
            await eventually(lambda: as_it_should_be(cluster, boxes), seconds=4000)
            assert manager.readiness.failures() == {}
            await asyncio.sleep(1100)
            with server.faults.add(match=ours(verbs=("get", "list", "create", "patch", "delete"))) as asked:
                await asyncio.sleep(1200)
            assert asked.hits == 0


async def collected(cluster: Cluster) -> bool:
    """Do as the garbage collector does, until nothing is left to do."""
    uids = {box.metadata.uid for box in await cluster.client.list(Box, namespace=cluster.namespace)}
    orphans = [
        paper
        for paper in await cluster.client.list(Paper, namespace=cluster.namespace)
        if paper.metadata.owner_references and paper.metadata.owner_references[0].uid not in uids
    ]
    for paper in orphans:
        await cluster.client.delete(paper)
    return not orphans
