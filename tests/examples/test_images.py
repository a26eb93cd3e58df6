"""The images of the examples: what goes into them is there, pinned, and starts; who runs it is not root."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted(ROOT.glob("examples/**/Dockerfile"))


@dataclass(frozen=True)
class Image:
    """What a Dockerfile says, stage by stage."""

    instructions: list[tuple[str, str]]

    @classmethod
    def read(cls, file: Path) -> "Image":
        text = re.sub(r"\\\n", " ", file.read_text())
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        return cls([(word, rest) for word, _, rest in (line.partition(" ") for line in lines)])

    def all(self, word: str) -> list[str]:
        return [rest for found, rest in self.instructions if found == word]

    def copies(self) -> list[tuple[list[str], str]]:
        """List what is copied from the checkout, and where to."""
        words = [shlex.split(rest) for rest in self.all("COPY") if "--from=" not in rest]
        return [(sources, target) for *sources, target in words]


@pytest.fixture(params=DOCKERFILES, ids=lambda file: file.parent.relative_to(ROOT / "examples").as_posix())
def image(request: pytest.FixtureRequest) -> Image:
    return Image.read(request.param)


def test_every_example_has_a_dockerfile() -> None:
    examples = {file.parent.name for file in ROOT.glob("examples/*/controller.py")}
    assert examples == {file.parent.name for file in ROOT.glob("examples/*/Dockerfile")}


def test_runs_as_an_unprivileged_user_with_the_locked_packages(image: Image) -> None:
    assert image.all("USER") == ["65532:65532"]
    installs = [command for command in image.all("RUN") if " install " in command]
    assert installs
    assert all("--require-hashes" in command for command in installs)
    for sources, _ in image.copies():
        for source in sources:
            if source.endswith(".txt"):
                assert "--hash=sha256:" in (ROOT / source).read_text()


def test_modules_are_compiled_with_hash_based_invalidation(image: Image, tmp_path: Path) -> None:
    (command,) = (run for run in image.all("RUN") if run.endswith(" /venv/lib /app"))
    words = shlex.split(command.removesuffix(" /venv/lib /app"))
    source = tmp_path / "module.py"
    source.write_text("")
    # Nothing may lead the compiled file elsewhere.
    subprocess.run([sys.executable, *words[1:], tmp_path], env={}, check=True)
    (compiled,) = tmp_path.glob("__pycache__/*.pyc")
    assert compiled.read_bytes()[4:8] == bytes([1, 0, 0, 0]), (
        "PEP 552: by hash, never compared with the source"
    )


def test_a_copied_image_starts(image: Image, tmp_path: Path) -> None:
    for sources, target in image.copies():
        for source in sources:
            if not source.endswith(".txt"):
                ignored = shutil.ignore_patterns("test_*.py", "__pycache__")
                shutil.copytree(ROOT / source, tmp_path / target.lstrip("/"), ignore=ignored)
    (workdir,), (entry,) = image.all("WORKDIR"), image.all("ENTRYPOINT")
    # Rendering loads all that running does, and ends.
    words = ["manifests" if word == "run" else word for word in json.loads(entry)[1:]]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULSAR_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path / workdir.lstrip("/"),
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    # The consumer reports its missing environment variables, so it runs.
    assert done.returncode == 0 or "missing in the environment" in done.stderr, done.stderr
