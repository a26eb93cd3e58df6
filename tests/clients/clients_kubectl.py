"""Plays stories of kubectl commands and makes what they print comparable between two servers."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubewright.devserver.data import RELEASE
from kubewright.testing import eventually, find_binaries
from kubewright.testing.controlplane import KUBERNETES
from kubewright.testing.releases import minor_of

HERE = Path(__file__).parent
STORIES = sorted(path.stem for path in (HERE / "kubectl").glob("*.yaml"))


def find_kubectl() -> Path | None:
    """Find kubectl beside the control plane's programs, else on PATH if it is of the project's Kubernetes version.

    Other versions print other messages and lack options.
    """
    folder = find_binaries()
    if folder and os.access(folder / "kubectl", os.X_OK):
        return folder / "kubectl"
    found = shutil.which("kubectl")
    return Path(found) if found and _minor_version(found) == minor_of(RELEASE) else None


def _minor_version(kubectl: str) -> tuple[int, int] | None:
    """Return the minor version of a kubectl, or None if it does not print one."""
    printed = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, check=False)
    found = re.search(r"Client Version: (v\d+\.\d+\.\d+)", printed.stdout)
    return minor_of(found[1]) if found else None


@dataclass(frozen=True)
class Printed:
    """What a command came to."""

    status: int
    text: str


@dataclass(frozen=True)
class Kubectl:
    """Run kubectl in one namespace; standard error follows standard output."""

    program: Path
    kubeconfig: Path
    namespace: str
    folder: Path

    async def __call__(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Printed:
        process = await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env=self.environment(env),
        )
        out, err = await process.communicate(stdin.encode())
        return Printed(process.returncode or 0, out.decode() + err.decode())

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return kubectl's environment variables, with its own kubeconfig, home and cache."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder),
            "KUBECONFIG": str(self._own_kubeconfig()),
            "KUBECACHEDIR": str(self.folder / "cache"),
            **(more or {}),
        }

    def _own_kubeconfig(self) -> Path:
        path = self.folder / "kubeconfig"
        if not path.exists():
            config = yaml.safe_load(self.kubeconfig.read_text())
            for context in config["contexts"]:
                context["context"]["namespace"] = self.namespace
            path.touch(mode=0o600)
            path.write_text(json.dumps(config))
        return path


@dataclass(frozen=True)
class Step:
    """One command of a story: what is typed, and what to wait for in its answer before it counts."""

    command: str
    stdin: str = ""
    until: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""
    """Why what is printed differs; then only the exit status is compared."""

    @classmethod
    def of(cls, entry: Any) -> "Step":
        return cls(entry) if isinstance(entry, str) else cls(**entry)

    async def play(self, kubectl: Kubectl, wanted: str | None = None) -> Printed:
        """Run it, again and again where it waits for something: what it says, or better all that is wanted.

        A table has many rows that controllers fill in their own time, and `until` names only some of them.
        """
        words = shlex.split(self.command.replace("NAMESPACE", kubectl.namespace))
        stdin = self.stdin.replace("NAMESPACE", kubectl.namespace)
        last = Printed(0, "")

        async def done() -> bool:
            nonlocal last
            printed = await kubectl(*words, stdin=stdin, env=self.env)
            last = Printed(printed.status, normal(printed.text, kubectl.namespace))
            if not self.until:
                return True
            return last.text == wanted if wanted is not None else bool(re.search(self.until, last.text))

        # The caller compares what is printed last, and shows the difference.
        with suppress(AssertionError):
            await eventually(done)
        return last


def story(name: str) -> list[Step]:
    """Read a story."""
    return [Step.of(entry) for entry in yaml.safe_load((HERE / "kubectl" / f"{name}.yaml").read_text())]


_SUBSTITUTES: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"https://127\.0\.0\.1:\d+", "https://SERVER"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} UTC", "TIME"),
    (r'(resourceVersion"?: ?)"?\d+"?', r"\1RV"),
    (r"(Resource Version:\s+)\d+", r"\1RV"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\bkube-api-access-[b-z2-9]{5}\b", "kube-api-access-NAME"),
    (r"443:3\d{4}/TCP", "443:PORT/TCP"),
    (r"Waiting for \w+ .*\n", ""),
    (r"(?m)^[EWI]\d{4} \d\d:\d\d:\d\d.*\n", ""),
    # The real server walks properties in no order.
    (r"(?m)(^\* .*\n?){2,}", lambda found: "\n".join(sorted(found[0].splitlines())) + "\n"),
    (r"\b(10|192\.168|172\.1[678])(\.\d+){2,3}\b", "IP"),
    (r"\bpod-template-hash=[0-9a-z]+", "pod-template-hash=HASH"),
    (r'(pod-template-hash: )"?[0-9a-z]+"?', r"\1HASH"),
    (r"\b(web|hello|tree|api)-[0-9a-z]{8,10}-[0-9a-z]{5}\b", r"\1-HASH-POD"),
    (r"\b(web|hello|tree|api)-[0-9a-z]{8,10}\b", r"\1-HASH"),
    (r"\b(batch|count|agent|now|every|hello)-[b-z2-9]{5}\b", r"\1-POD"),
    (r"controller-revision-hash=[0-9a-z-]+", "controller-revision-hash=HASH"),
    (r"controller-uid=\S+", "controller-uid=UID"),
    (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"<(invalid|unknown)>|\b(\d+[smhd]){1,2}\b", "AGE"),
]


def normal(text: str, namespace: str) -> str:
    """Take out what differs from run to run: names given by chance, ages, the width of columns, events."""
    text = text.replace(namespace, "NAMESPACE")
    for pattern, substitute in _SUBSTITUTES:
        text = re.sub(pattern, substitute, text)
    lines: list[str] = []
    in_events = False
    for line in text.splitlines():
        # Events come when controllers and kubelets get to them: stories ask for them by name.
        in_events = line.startswith("Events:") or (in_events and line.startswith((" ", "\t")))
        if not in_events:
            lines.append(re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip())
    return "\n".join(lines).rstrip("\n")


@dataclass(frozen=True)
class Recording:
    """What a real cluster printed for each command of a story."""

    name: str

    @property
    def path(self) -> Path:
        return HERE / "recorded" / f"{self.name}.json"

    def read(self) -> list[dict[str, Any]]:
        return json.loads(self.path.read_text())["commands"]

    def write(self, steps: list[Step], answers: list[Printed]) -> None:
        kept = [
            {
                "command": step.command,
                "status": answer.status,
                "text": [] if step.differs else answer.text.splitlines(),
            }
            for step, answer in zip(steps, answers, strict=True)
        ]
        text = json.dumps(kept, indent=1, ensure_ascii=False)
        self.path.write_text(f'{{"kubernetes": "{KUBERNETES}", "commands": {text}}}\n')
