"""The commands in the README of each sample work as written."""

import asyncio
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import yaml
from acceptance_kubectl import Kubectl
from acceptance_samples import ROOT, Sample

from kubewright.testing import Cluster, eventually

OTHER_PORTS = [
    "--metrics-bind-address=0",
    "--health-probe-bind-address=0",
    "--webhook-bind-address=127.0.0.1:0",
]
WITHIN = 90.0


def commands(sample: Sample) -> list[str]:
    """List the lines of the README's first console."""
    found = re.search(
        r"^```console\n(.*?)^```", (sample.target / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1].splitlines()


class Reader:
    """A person who types one line after the other, and again when it was too early."""

    def __init__(self, kubectl: Kubectl, namespace: str, folder: Path) -> None:
        self._kubectl = [str(kubectl.program), f"--cache-dir={folder / 'kubectl'}"]
        self._namespace = namespace
        self._environment = dict(os.environ)
        self._folder = folder
        self.operator: asyncio.subprocess.Process | None = None

    def use(self, kubeconfig: Path) -> None:
        self._environment["KUBECONFIG"] = str(kubeconfig)

    async def type(self, line: str) -> None:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self._environment[name] = value.replace("$PWD", str(self._folder))
        elif line.startswith("kubewright run "):
            await self._run(shlex.split(line)[1:])
        else:
            await self._ask(shlex.split(line))

    async def _run(self, words: list[str]) -> None:
        """Start the operator in the reader's namespace, on ports that are free here."""
        with await asyncio.to_thread((self._folder / "operator.log").open, "wb") as log:
            self.operator = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from kubewright.cli import main; main()"),
                *(*words, *OTHER_PORTS, f"--namespace={self._namespace}"),
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    async def _ask(self, words: list[str]) -> None:
        assert words[0] == "kubectl", words
        said = ""

        async def succeeds() -> bool:
            nonlocal said
            code, said = await self._answer(words[1:])
            return code == 0

        try:
            await eventually(succeeds, timeout=WITHIN)
        except AssertionError:
            _, there = await self._answer(["get", "pods,events", "-o", "yaml"])
            raise AssertionError(f"{shlex.join(words)}: {said}\n{there}") from None

    async def _answer(self, words: list[str]) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(*self._kubectl, *words),
            cwd=ROOT,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            out, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.communicate()
            raise
        return process.returncode, out.decode()


async def test_the_commands_of_the_readme_work(
    sample: Sample, cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    document = yaml.safe_load(await asyncio.to_thread(cluster.kubeconfig.read_text))
    for context in document["contexts"]:
        context["context"]["namespace"] = cluster.namespace
    mine = tmp_path / "kubeconfig"
    await asyncio.to_thread(mine.write_text, yaml.safe_dump(document))
    reader = Reader(kubectl, cluster.namespace, tmp_path)
    reader.use(mine)
    try:
        for line in commands(sample):
            await reader.type(line)
    finally:
        assert reader.operator is not None
        reader.operator.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(reader.operator.wait(), 60) == 0
