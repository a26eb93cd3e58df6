"""An environment with the packages of an operator's image, and nothing else: what is installed decides what is imported."""

import argparse
import asyncio
import hashlib
import os
import sys
from pathlib import Path

from support.programs import BENCHMARKS, Noting, built_folder

LOCK = BENCHMARKS.parent / "requirements" / "runtime.txt"
SOURCE = BENCHMARKS.parent / "src"
RUN = ("-c", "from kubewright.cli import main; main()")
"""Arguments of a Python that lead to the command line of kubewright."""


def add_python_option(parser: argparse.ArgumentParser) -> None:
    """Add an option for further interpreters, which `interpreters` reads."""
    parser.add_argument(
        "--python", type=Path, nargs="*", default=[], help="further interpreters to run kubewright on"
    )


async def interpreters(bench: Noting, chosen: list[Path]) -> dict[str, Path]:
    """Return the environments of the chosen interpreters by the names of their contenders."""
    return {
        f"kubewright-{Path(os.path.realpath(interpreter)).name}": await image_python(bench, interpreter)
        for interpreter in chosen
    }


async def image_python(bench: Noting, interpreter: Path) -> Path:
    """Return the Python of such an environment, created once; with a note, the given one where that cannot be done."""
    key = hashlib.sha256(f"{interpreter} {SOURCE}".encode() + LOCK.read_bytes()).hexdigest()[:12]
    folder = built_folder() / f"image-{key}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    bench.progress(f"installing the packages of an image for {interpreter}")
    uv = Path(sys.executable).with_name("uv")
    for command in (
        [interpreter, "-m", "venv", "--clear", "--without-pip", folder],
        [uv, "pip", "install", "--quiet", "--python", python, "--requirements", LOCK],
    ):
        process = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.DEVNULL)
        if await process.wait():
            bench.note(f"{interpreter}: started with all installed packages, {command[0]} failed")
            return interpreter
    [libraries] = folder.glob("lib/python*/site-packages")
    (libraries / "kubewright.pth").write_text(f"{SOURCE}\n")
    complete.touch()
    return python
