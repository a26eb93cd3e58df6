"""The folder for KUBEBUILDER_ASSETS: `kube-apiserver` and `etcd` that run kubewright, and `kubectl` if there is one."""

import hashlib
import os
import shlex
import shutil
import sys
from pathlib import Path

from kubewright.api import ConfigError
from kubewright.envtest import etcd
from kubewright.envtest.flags import KnownFlags, help_text

PROGRAMS = ("kube-apiserver", "etcd")
_START = "import gc; gc.disable(); from kubewright.envtest.kube_apiserver import run; run()"
_PURPOSE = "# Written by `kubewright envtest path`: a replacement of {name}."


def create_folder(cache: Path | None = None, kubernetes: str = "") -> Path:
    """Write the programs into the cache directory, if they are not there yet, and return their folder.

    There is a folder for each interpreter, installation and Kubernetes release, so that several can be used at once.
    `kubernetes` is the release to serve, such as `1.33.13`; by default the newest.
    """
    kubectl = shutil.which("kubectl")
    scripts = {name: _script(name, kubernetes) for name in PROGRAMS}
    key = hashlib.sha256("\n".join([*scripts.values(), kubectl or ""]).encode()).hexdigest()[:12]
    version = f"v{kubernetes}" if kubernetes else KnownFlags.load().version
    folder = (cache or _cache()) / "kubewright" / "envtest" / f"{version}-{key}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in scripts.items():
            _write(folder / name, text)
        if kubectl is not None:
            _link(folder / "kubectl", Path(kubectl).absolute())
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from None
    return folder


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _script(name: str, kubernetes: str) -> str:
    """Return a shell script: a path with spaces would not fit in a `#!` line, and the help needs no interpreter."""
    python, known = shlex.quote(sys.executable), KnownFlags.load()
    if name == "etcd":
        # -I and -S: nothing but the standard library, from a file.
        command = f"{python} -I -S {shlex.quote(str(Path(etcd.__file__).absolute()))}"
        text = etcd.help_text()
    else:
        command = f"{python} -P -c {shlex.quote(_START)}"
        if kubernetes:
            command += f" --kubernetes={kubernetes}"
        text = help_text(known)
    lines = [
        "#!/bin/sh",
        _PURPOSE.format(name=name),
        'if [ "$1" = --help ]; then',
        "cat <<'END_OF_HELP'",
        text + "END_OF_HELP",
        "exit 0",
        "fi",
        f'exec {command} "$@"',
    ]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    """Write a program in one step: another process may be starting it."""
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(path)


def _link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.symlink_to(target)
    new.replace(path)
