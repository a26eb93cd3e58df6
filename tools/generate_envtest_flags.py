"""Generate the flags that kubewright's stand-ins for kube-apiserver and etcd accept, from the real binaries' help.

    tools/generate_envtest_flags.py            write src/kubewright/envtest/flags.json
    tools/generate_envtest_flags.py --check    fail when the committed file is not what the binaries give

The binaries are those of `scripts/control-plane build`. Names and types are taken over; description texts are not.
Without the binaries the check does nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from kubewright.testing.controlplane import find_binaries

FLAGS = Path(__file__).parents[1] / "src" / "kubewright" / "envtest" / "flags.json"
# `      --name type   description`: a flag without a type is a boolean; `[=x]` follows a type whose value is optional.
_PFLAG = re.compile(
    r"^ +(?:-(?P<short>\w), )?--(?P<name>[\w-]+)(?: (?P<type>[^\s\[]+)(?P<optional>\[=)?)?(?:  |$)"
)
_GO_FLAG = re.compile(r"^  --(?P<name>[\w-]+)(?: '(?P<default>[^']*)')?")
_PLUGINS = re.compile(r"Comma-delimited list of admission plugins: ([\w, ]+)\.")
# etcd's help gives these without a default.
_ETCD_BOOLEANS = {
    "memory-mlock",
    "enable-grpc-gateway",
    "experimental-memory-mlock",
    "experimental-stop-grpc-service-on-defrag",
}


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _api_server(program: Path) -> dict[str, Any]:
    text = _output(program, "--help")
    flags: dict[str, str] = {}
    short: dict[str, str] = {}
    for line in text.splitlines():
        if found := _PFLAG.match(line):
            kind = found["type"] or "bool"
            flags[found["name"]] = "bool" if found["optional"] else kind
            if found["short"]:
                short[found["short"]] = found["name"]
    plugins = _PLUGINS.search(text)
    assert plugins is not None
    version = _output(program, "--version").split()[-1]
    return {
        "version": version,
        "flags": dict(sorted(flags.items())),
        "short": short,
        "admission_plugins": plugins[1].split(", "),
    }


def _etcd(program: Path) -> dict[str, Any]:
    flags: dict[str, str] = {"config-file": "string", "help": "bool", "version": "bool"}
    for line in _output(program, "--help").splitlines():
        if found := _GO_FLAG.match(line):
            name = found["name"]
            boolean = found["default"] in ("true", "false") or name in _ETCD_BOOLEANS
            flags[name] = "bool" if boolean else "string"
    version = _output(program, "--version").splitlines()[0].split()[-1]
    return {"version": version, "flags": dict(sorted(flags.items()))}


def main() -> int:
    """Write the file, or compare it."""
    folder = find_binaries()
    if folder is None:
        print("generate_envtest_flags: no binaries, nothing to compare: run `scripts/control-plane build`")
        return 0 if "--check" in sys.argv else 1
    found = {"kube-apiserver": _api_server(folder / "kube-apiserver"), "etcd": _etcd(folder / "etcd")}
    text = json.dumps(found, indent=1) + "\n"
    if "--check" not in sys.argv:
        FLAGS.write_text(text)
        return 0
    if FLAGS.read_text() != text:
        print(f"{FLAGS} is not what the binaries in {folder} give: run tools/generate_envtest_flags.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
