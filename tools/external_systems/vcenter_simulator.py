"""Build govmomi's vCenter simulator from Go modules into the user's cache folder."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from cache import Unavailable, cache_folder, locked, say

MODULE = Path(__file__).resolve().parent / "vcenter"
FLAGS = ["-trimpath", "-mod=readonly", "-ldflags=-s -w"]


def cached() -> Path | None:
    """Return the program, or None unless it was built from the committed sources."""
    program = _program()
    return program if os.access(program, os.X_OK) else None


def provide() -> Path:
    """Return the program; build it if it is missing."""
    with locked(cache_folder("vcenter-simulator")):
        if (found := cached()) is not None:
            return found
        if shutil.which("go") is None:
            raise Unavailable(
                "the vCenter simulator is built by Go 1.26 or newer, and there is no go on PATH"
            )
        program = _program()
        program.parent.mkdir(parents=True, exist_ok=True)
        temporary = program.with_name(".new")
        say("building the vCenter simulator ...")
        # No cgo: neither a C compiler is needed nor does the result depend on the machine's libc.
        built = subprocess.run(
            ["go", "build", *FLAGS, "-o", str(temporary), "."],
            cwd=MODULE,
            env=os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode != 0:
            raise Unavailable(f"the vCenter simulator could not be built:\n{built.stderr[-3000:]}")
        temporary.replace(program)
        return program


def _program() -> Path:
    digest = hashlib.sha256("".join(FLAGS).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / name).read_bytes())
    return cache_folder("vcenter-simulator") / digest.hexdigest()[:16] / "vcenter-simulator"
