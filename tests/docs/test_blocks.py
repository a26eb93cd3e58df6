"""Every block of the documentation is run, page by page, from top to bottom; or says itself why not.

Python is executed in one module for each page; a test in it is run on the cluster. A block with a title is a file.
Consoles are typed: what a page shows of a command's output must come out of it, line by line in that order. `...`
stands for anything, `default/` for the test's namespace; what follows `(Pdb) ` is typed into the debugger. A plan
of the code (a block without a language) names files and what is in them: both must be there. Help is compared with
its generator. A block that needs more than a machine with Python follows a line `<!-- not run: reason -->`.
"""

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import types
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.testing import Cluster

ROOT = Path(__file__).parents[2]
# Decisions have fragments that readers do not type; the reference is generated and has its own test.
NOT_TYPED = ("decisions", "reference")
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if path.parent.name not in NOT_TYPED
)
LINKING = sorted(
    path.relative_to(ROOT)
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "docs" / "decisions").glob("*.md"),
    ]
)
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)]*)?\)")
GENERATORS = ("generate_cli_reference.py", "generate_reference.py", "generate_guides.py")
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<unrun>\S[^\n]+) -->\n)?```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
KUBECONFIG = re.compile(r"export KUBECONFIG=(\S+)")
INSTRUCTION = re.compile(r"(FROM|RUN|COPY|WORKDIR|USER|ENTRYPOINT) \S")
# What stays up: the page goes on while it runs.
LASTING = "run"
READY = "Starting workers"
PROMPT = "(Pdb) "
# Commands that show what an operator does meanwhile.
LOOKED_AT_AGAIN = (("kubewright", "why"), ("kubewright", "replay"))
PLANNED = re.compile(r"(?P<names>[A-Z]\w+(?:\.\w+)?|[a-z_]+)[^\n]*?\s{2,}(?P<file>[a-z_/]+\.py)")
# Where there is no kubectl, what kubewright does as well.
THIN = ("get", "apply", "delete")
OFF = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    text: str
    line: int
    unrun: bool


def blocks(path: Path) -> Iterator[Block]:
    text = path.read_text()
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        unrun = found["unrun"] is not None
        yield Block(found["language"], found["title"] or "", found["text"], line, unrun)


class Page:
    """A reader who types everything that a page shows."""

    def __init__(self, path: Path, folder: Path, kubeconfig: Path, namespace: str, stack: ExitStack) -> None:
        self._path = path
        self._namespace = namespace
        self._folder = folder
        self._stack = stack
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "XDG_RUNTIME_DIR": str(folder.parent / "runtime"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self.module = types.ModuleType(f"page_{path.stem.replace('-', '_')}")

    def follow(self, block: Block) -> None:
        if block.unrun:
            return
        match block.language:
            case "python":
                self._python(block)
            case "yaml":
                assert list(yaml.safe_load_all(block.text))
                self._write(block)
            case "json":
                assert json.loads(block.text)
                self._write(block)
            case "toml":
                assert tomllib.loads(block.text)
                self._write(block)
            case "dockerfile":
                for line in block.text.splitlines():
                    assert INSTRUCTION.match(line), f"{self._path}: not an instruction: {line!r}"
                self._write(block)
            case "console":
                self._console(block)
            case "" if ".py" in block.text:
                self._look_up(block)
            case "" if self._path.stem == "architecture":
                for line in block.text.splitlines():
                    # Indented lines continue the text of the one before, or name a module of the same row.
                    name = line.removeprefix("  | ").partition(" ")[0]
                    assert not name or find_spec(f"kubewright.{name}"), f"{self._path}: there is no {line!r}"
            case _:
                raise AssertionError(f"{self._path}:{block.line}: is neither run nor says why not")

    def _look_up(self, block: Block) -> None:
        """Find each name of a plan in the file beside it."""
        for match in PLANNED.finditer(block.text):
            source = (ROOT / "src" / "kubewright" / match["file"]).read_text()
            for name in match["names"].split("."):
                assert re.search(rf"\b{name}\b", source), f"{self._path}: {match['file']} has no {name}"

    def _python(self, block: Block) -> None:
        if block.title.startswith("examples/"):
            assert block.text in (ROOT / block.title).read_text(), (
                f"{self._path}:{block.line}: {block.title} has changed"
            )
            return
        self._write(block)
        if "/" in block.title or block.title.startswith("test_"):
            return
        # The code of a page is where the page is: a failure names its line.
        source = "\n" * (block.line - 1) + block.text
        sys.modules[self.module.__name__] = self.module
        exec(compile(source, str(self._path), "exec", dont_inherit=True), vars(self.module))  # noqa: S102 (what readers do)

    def _write(self, block: Block) -> None:
        if block.title:
            path = self._folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)

    def _console(self, block: Block) -> None:
        parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert len(parts) > 1, (
            f"{self._path}:{block.line}: no command: write `$ command`, or `<!-- not run: reason -->` above the block"
        )
        for part in parts[1:]:
            typed, _, shown = part.partition("\n")
            where, command = f"{self._path}:{block.line}: {typed}", shlex.split(typed, comments=True)
            lines = [line for line in map(_plain, shown.splitlines()) if line]
            debugged = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
            patterns = [self._pattern(line) for line in lines if not line.startswith(PROMPT)]
            output = self._type(command, where, debugged)
            limit = time.monotonic() + 60.0
            while missing := _first_missing(patterns, output):
                # The operator works on: a reader looks again.
                if tuple(command[:2]) not in LOOKED_AT_AGAIN or time.monotonic() > limit:
                    raise AssertionError(f"{where} did not print {missing!r}, or not there:\n{output}")
                output = self._type(command, where, debugged)

    def _pattern(self, line: str) -> str:
        parts = line.replace("default/", f"{self._namespace}/").split("...")
        return ".*".join(map(re.escape, parts))

    def _type(self, command: list[str], where: str, debugged: Sequence[str] = ()) -> str:
        if command[0] == "cd":
            self._folder = self._folder / command[1]
            return ""
        if command[0] == "kubectl" and shutil.which("kubectl") is None:
            assert command[1] in THIN, f"{where}: there is no kubectl, and kubewright has no such command"
            command = ["kubewright", *command[1:]]
        assert command[0] in ("kubewright", "kubectl", "python"), f"{where}: {command[0]} is not run"
        if command[:2] == ["kubewright", LASTING]:
            return self._leave_running(command)
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            input="".join(f"{line}\n" for line in debugged),
            capture_output=True,
            text=True,
            check=False,
        )
        # A plan exits with 3 if something would change, a comparison with 1 if something differs.
        accepted = (
            (0, 3) if command[:2] == ["kubewright", "plan"] else (0, 1) if "--diff" in command else (0,)
        )
        assert done.returncode in accepted, (
            f"{where} failed with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
        return done.stdout + done.stderr

    def _leave_running(self, command: list[str]) -> str:
        process = self._stack.enter_context(
            subprocess.Popen(
                [*command, *OFF],
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        self._stack.callback(process.terminate)
        assert process.stderr is not None
        output = ""
        for line in process.stderr:
            output += line
            if found := KUBECONFIG.search(line):
                self._environment["KUBECONFIG"] = found[1]
            if READY in line:
                return output
        raise AssertionError(f"{shlex.join(command)} ended:\n{output}")


def _first_missing(patterns: Sequence[str], output: str) -> str:
    """Return the first pattern that no line after those of the others has; empty if there is none."""
    printed = iter(map(_plain, output.splitlines()))
    # Searching the rest of what is left keeps the order.
    return next(
        (pattern for pattern in patterns if not any(re.search(pattern, line) for line in printed)), ""
    )


def _plain(line: str) -> str:
    """Columns may be wider or narrower from one run to the next."""
    return " ".join(line.split())


def cases_in(module: types.ModuleType) -> Iterator[Any]:
    for name, value in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(value):
            yield value


@pytest.mark.parametrize("path", [path for path in PAGES if any(blocks(ROOT / path))], ids=str)
async def test_code_blocks_of_the_pages_work(
    path: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = cluster.namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    with ExitStack() as stack:
        page = Page(path, folder, kubeconfig, cluster.namespace, stack)
        stack.callback(sys.modules.pop, page.module.__name__, None)
        for block in blocks(ROOT / path):
            await asyncio.to_thread(page.follow, block)
        for test in cases_in(page.module):
            if inspect.iscoroutinefunction(test):
                await (test(cluster) if inspect.signature(test).parameters else test())
            else:
                # It brings a loop and a cluster of its own; a simulation is run with its first seed.
                seeds = [0] if "seed" in inspect.signature(test).parameters else []
                await asyncio.to_thread(test, *seeds)


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_pages_are_up_to_date(name: str) -> None:
    generator = [sys.executable, str(ROOT / "tools" / name), "--check"]
    done = subprocess.run(generator, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_a_page_is_complete_when_read_as_a_file(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert "--8<--" not in text, f"{path} includes another file"
    assert not re.search(r"^::: ", text, re.MULTILINE), f"{path} is filled in by a plugin"


@pytest.mark.parametrize("path", LINKING, ids=str)
def test_relative_links_lead_to_files(path: Path) -> None:
    """MkDocs checks the links between the pages of the site; these files are read in the repository."""
    for target in RELATIVE_LINK.findall((ROOT / path).read_text()):
        assert ((ROOT / path).parent / target).exists(), f"{path}: {target} does not exist"


def test_the_page_on_debugging_shows_the_launch_json_of_new_projects() -> None:
    shown = [it.text for it in blocks(ROOT / "docs/how-to/debugging.md") if it.title == ".vscode/launch.json"]
    assert shown == [(ROOT / "tests/golden/shop/.vscode/launch.json").read_text()]


def test_the_landing_page_shows_the_operator_of_the_readme() -> None:
    readme, index = (next(blocks(ROOT / page)).text for page in ("README.md", "docs/index.md"))
    assert index == readme


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*/README.md")), ids=lambda it: it.parent.name
)
def test_a_samples_commands_are_run_by_its_own_tests(path: Path) -> None:
    """The first console by tests/acceptance/test_readmes.py, plans by tests/cli/plan/test_samples.py."""
    first, *others = list(blocks(path))
    assert first.language == "console"
    for block in others:
        assert block.language == "console", f"{path}:{block.line}"
        assert all(line.startswith("kubewright plan ") for line in block.text.splitlines()), block
