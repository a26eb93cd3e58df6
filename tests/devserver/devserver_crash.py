"""Kills an embedded server in the middle of writes, and knows what must still be there afterwards."""

import asyncio
import json
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kubewright.api import ConnectionFailed, Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client, config_from_kubeconfig

_PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from kubewright.devserver import Server

async def serve():
    async with Server(data=Path(sys.argv[1])) as server:
        print(json.dumps(server.kubeconfig()), flush=True)
        await asyncio.get_running_loop().create_future()

asyncio.run(serve())
"""
_NAMESPACE = "default"
_WRITERS = 8
_GONE = ""
"""What stands for an object that is not there."""


@dataclass
class WriteJournal:
    """What the server has acknowledged, and what it may or may not have done when it died."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    revisions: set[int] = field(default_factory=set)
    before: int = 0
    """The last revision acknowledged before the crash."""
    faults: list[str] = field(default_factory=list)

    def acknowledge(self, name: str, value: str, revision: str) -> None:
        """Take down an answer."""
        number = int(revision)
        if number in self.revisions or number <= self.before:
            self.faults.append(f"{name}: revision {number} was given before")
        self.revisions.add(number)
        self.acknowledged[name] = self.pending.pop(name, value)

    def compare(self, found: dict[str, str], revision: str) -> None:
        """Compare the journal with the state of a restarted server."""
        self.before = max(self.revisions, default=0)
        if int(revision) < self.before:
            self.faults.append(f"the server is at {revision}, but {self.before} was acknowledged")
        for name in {*self.acknowledged, *self.pending, *found}:
            has = found.get(name, _GONE)
            if has not in {self.acknowledged.get(name, _GONE), self.pending.get(name)}:
                self.faults.append(
                    f"{name}: {has!r} is there, {self.acknowledged.get(name)!r} was acknowledged"
                )
        self.acknowledged = dict(found)
        self.pending.clear()


async def crash(data: Path, rounds: int, seed: int) -> WriteJournal:
    """Start, write, kill, `rounds` times over one file; the journal has the faults."""
    chance, journal = random.Random(seed), WriteJournal()
    for _ in range(rounds):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROGRAM, data), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            config = config_from_kubeconfig(json.loads(await process.stdout.readline()))
            async with Client(config) as client:
                found = await client.list(core_v1.ConfigMap, namespace=_NAMESPACE)
                values = {item.metadata.name: item.data.get("value", _GONE) for item in found}
                journal.compare(values, found.resource_version)
                await _write_until_killed(client, process, journal, chance)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    return journal


async def _write_until_killed(
    client: Client, process: asyncio.subprocess.Process, journal: WriteJournal, chance: random.Random
) -> None:
    left = chance.randint(1, 150)
    dead = False

    async def writer(number: int) -> None:
        nonlocal left, dead
        while not dead:
            name = f"writer-{number}-{chance.randrange(6)}"
            value = "" if chance.random() < 0.2 else f"{chance.getrandbits(64):x}"
            try:
                await _write(client, journal, name, value)
            except ConnectionFailed:
                return
            left -= 1
            if left <= 0 and not dead:
                dead = True
                # Not process.kill(), which may reap the child before the event loop hears of its end.
                os.kill(process.pid, signal.SIGKILL)

    async with asyncio.TaskGroup() as group:
        for number in range(_WRITERS):
            group.create_task(writer(number))


async def _write(client: Client, journal: WriteJournal, name: str, value: str) -> None:
    there = journal.acknowledged.get(name, _GONE)
    journal.pending[name] = value
    if value == _GONE:
        if not there:
            del journal.pending[name]
            return
        await client.delete(core_v1.ConfigMap, name, _NAMESPACE)
        journal.acknowledged[name] = journal.pending.pop(name)
        return
    wanted = core_v1.ConfigMap(Meta(name, namespace=_NAMESPACE), data={"value": value})
    stored = await (client.replace(wanted) if there else client.create(wanted))
    journal.acknowledge(name, value, stored.metadata.resource_version)
