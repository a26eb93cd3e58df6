"""The commands that show the live page, as programs."""

import asyncio
import contextlib
import re
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from page_client import browser

from kubewright.cli.app import main
from kubewright.testing import eventually

OPERATOR = '''
import kubewright as kw
from kubewright.api.builtin import core_v1

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Boot(kw.Resource[Spec, Status], group="ui.example.com", version="v1"):
    """A boot."""

@kw.controller(Boot, owns=[core_v1.ConfigMap])
async def boots(boot: Boot, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(boot.metadata.name), data={"size": str(boot.spec.size)}))

operator = kw.Operator(boots, name="boots")
'''
SAMPLE = "apiVersion: ui.example.com/v1\nkind: Boot\nmetadata: {name: left}\nspec: {size: 42}\n"


class Program:
    """A running command, whose output is read."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen = ""

    async def prints(self, pattern: str) -> str:
        """Wait for a text and return its first group, or all of it."""
        stream = self._process.stdout
        assert stream is not None
        while not (found := re.search(pattern, self._seen)):
            line = await stream.readline()
            assert line, f"{pattern} was not printed:\n{self._seen}"
            self._seen += line.decode()
        self._seen = self._seen[found.end() :]
        return found[found.lastindex or 0]


@contextlib.asynccontextmanager
async def kubewright(*arguments: str, cwd: Path | None = None) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
    )
    try:
        yield Program(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        assert await process.wait() == 0


async def test_a_dev_cluster_is_shown_with_the_samples_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "boots"\n[tool.kubewright]\n')
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "left.yaml").write_text(SAMPLE)
    command = ("dev", "--ui", f"--kubeconfig={tmp_path / 'kubeconfig'}")
    async with kubewright(*command, cwd=tmp_path) as program:
        link = await program.prints(r"live page: (\S+)")
        async with browser(link) as page, page.following() as view:
            await view.has("Namespace", "default")
            assert view.hello["writable"] is True
            assert view.hello["source"]["type"] == "dev"
            assert view.hello["samples"] is True
            assert await page.get("/api/samples") == {"samples": [{"title": "left.yaml", "manifest": SAMPLE}]}
            made = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n"
            assert await page.act(action="apply", manifest=made) == "configmap/made created"
            await view.has("ConfigMap", "made", lambda it: it["namespace"] == "default")


async def test_an_operator_on_a_dev_cluster_is_shown_through_its_restarts(tmp_path: Path) -> None:
    path = tmp_path / "boots.py"
    path.write_text(OPERATOR)
    async with kubewright("run", str(path), "--dev", "--reload", "--ui") as program:
        link = await program.prints(r"live page: (\S+)")
        await program.prints("Starting workers")
        async with browser(link) as page, page.following() as view:
            await eventually(lambda: [each["name"] for each in view.operators] == ["boots"])
            assert await page.act(action="apply", manifest=SAMPLE) == "boot.ui.example.com/left created"
            await eventually(lambda: any(each["writes"] for each in view.reconciles.values()))
            before = set(view.reconciles)
            path.write_text(OPERATOR.replace("data={", "data={'new': '', "))
            await program.prints("boots.py changed: restarting")
            await program.prints("Starting workers")
            await eventually(
                lambda: any(each["writes"] for key, each in view.reconciles.items() if key not in before)
            )
            await eventually(lambda: view.problems == [])
            assert before <= set(view.reconciles)
            assert view.hellos == 1, "the page stayed connected"


async def test_an_operator_is_shown_by_the_process_that_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "boots.py"
    path.write_text(OPERATOR)
    async with kubewright("run", str(path), "--dev", "--ui") as program:
        link = await program.prints(r"live page: (\S+)")
        async with browser(link) as page, page.following() as view:
            await eventually(lambda: [each["name"] for each in view.operators] == ["boots"])
            assert view.hello["title"] == "boots"


async def test_the_demo_shows_its_five_operators() -> None:
    demo = Path(__file__).parents[2] / "examples" / "demo.py"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(demo), "--ui"), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    try:
        link = await Program(process).prints(r"live page: (\S+)")
        async with browser(link) as page, page.following() as view:
            names = {"foo", "mycustomresource", "myownshell", "pulsarconsumer", "vmgroup"}
            await eventually(lambda: names <= {each["name"].partition(" ")[0] for each in view.operators})
            assert view.hello["writable"] is True
            samples = (await page.get("/api/samples"))["samples"]
            assert "foo: foo.yaml" in {each["title"] for each in samples}
            await eventually(
                lambda: names <= {each["operator"].partition(" ")[0] for each in view.reconciles.values()}
            )
    finally:
        process.terminate()
        assert await process.wait() in (0, 130)


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r"
    record.write_text('{"type":"start","format":1,"operator":"o","at":"2026-01-31T12:00:00Z"}\n')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["ui", "--record", str(record), "--port", str(port)])
        assert ended.value.code == 1
    expected = f"Error: cannot listen on 127.0.0.1:{port}: address already in use; choose another with --port, 0 is any free port\n"
    assert capsys.readouterr().err == expected


def test_a_record_and_a_cluster_cannot_both_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ui", "--record", str(tmp_path / "r"), "--context", "x"])
    assert ended.value.code == 2
    assert "--record cannot be combined with" in capsys.readouterr().err
