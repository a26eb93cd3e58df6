"""Build the programs of a Kubernetes control plane from Go modules into the user's cache folder."""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from progress import Progress, say

HERE = Path(__file__).resolve().parent

# In the order in which they are needed: most tests need the first three only.
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
# The release of the project, and the release that is used for each earlier minor version: the newest of those tried
# that the module proxy has whole, staging modules and checksums included.
BUNDLE = HERE.parents[1] / "src/kubewright/devserver/data/bundle.json"
GO = "1.26.0"


class BuildError(Exception):
    """The build cannot go on; the text says why and what to do."""


def pinned_version() -> str:
    """Return the tag of the project's release, whose modules are pinned with hashes in go.mod beside this file."""
    return f"v{json.loads(_read(BUNDLE))['kubernetes']}"


def supported_releases() -> dict[str, str]:
    """Return the release that is used for each minor version."""
    pinned = pinned_version().removeprefix("v")
    return json.loads(_read(BUNDLE))["releases"] | {pinned.rpartition(".")[0]: pinned}


def resolve(version: str) -> str:
    """Turn `1.33`, `1.33.2` or `v1.33.2` into a supported version's tag; nothing means the project's release."""
    releases = supported_releases()
    text = version.removeprefix("v") or pinned_version().removeprefix("v")
    text = releases.get(text, text)
    if not re.fullmatch(r"\d+\.\d+\.\d+", text) or text.rpartition(".")[0] not in releases:
        raise BuildError(f"Kubernetes {version!r} is not one of {', '.join(releases)} or a release of them")
    return f"v{text}"


def supported_range() -> str:
    """Return the first and last minor version that is supported, for help texts."""
    minors = sorted(supported_releases(), key=lambda minor: int(minor.split(".")[1]))
    return f"{minors[0]} to {minors[-1]}"


def cache_folder() -> Path:
    """Return the folder that contains one folder for each version."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubewright" / "control-plane"


def provide(version: str) -> Path:
    """Return the folder to use, built if need be: KUBEBUILDER_ASSETS unless a version is given."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets or version:
        return build(resolve(version))
    needed = ("etcd", "kube-apiserver", "kubectl")
    if missing := [name for name in needed if not os.access(Path(assets) / name, os.X_OK)]:
        raise BuildError(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}; unset it to build them")
    return Path(assets)


def build(version: str) -> Path:
    """Build what is missing or out of date of one version, and return the folder of the binaries."""
    folder = cache_folder() / version
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        module = HERE if version == pinned_version() else _generated_module(version)
        want = _fingerprint(module, version)
        record = folder / "build.json"
        have: dict[str, str] = json.loads(_read(record)) if record.exists() else {}
        missing = [name for name in PROGRAMS if have.get(name) != want or not (folder / name).exists()]
        if missing:
            _need_go()
        for number, name in enumerate(PROGRAMS, 1):
            if name in missing:
                _build_program(name, module, folder, version, f"[{number}/{len(PROGRAMS)}] {name} {version}")
                have[name] = want
                _write(record, json.dumps(have, indent=2))
    return folder


def _build_program(name: str, module: Path, folder: Path, version: str, title: str) -> None:
    temporary = folder / f".{name}.new"
    try:
        _run_go(["build", *_flags(version), "-o", str(temporary), PROGRAMS[name]], module, title)
        temporary.replace(folder / name)
    finally:
        temporary.unlink(missing_ok=True)


def _flags(version: str) -> list[str]:
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    # Without these the server calls itself v0.0.0-master, and kubectl complains of the skew.
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    link = " ".join(["-s", "-w", *(f"-X {package}.{key}={value}" for key, value in facts.items())])
    return ["-trimpath", "-mod=readonly", "-ldflags", link]


def _generated_module(version: str) -> Path:
    """Write, once, a module like the committed one for another version, from that version's own go.mod."""
    module = cache_folder() / "modules" / version
    if (module / "go.sum").exists():
        return module
    module.mkdir(parents=True, exist_ok=True)
    write_module(module, version)
    return module


def write_module(module: Path, version: str) -> None:
    """Write go.mod and go.sum for a version of Kubernetes, from that version's own go.mod."""
    _need_go()
    say(f"resolving the modules of Kubernetes {version}")
    result = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"],
        cwd=module,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise BuildError(f"Kubernetes {version} could not be downloaded:\n{result.stdout}{result.stderr}")
    upstream = _read(Path(json.loads(result.stdout)["GoMod"]))
    _write(module / "go.mod", module_file(version, upstream))
    try:
        _run_go(["mod", "tidy"], module, f"modules of {version}")
    except BaseException:
        # Its presence marks the module as complete.
        (module / "go.sum").unlink(missing_ok=True)
        raise


def module_file(version: str, upstream: str) -> str:
    """Compose our go.mod for a version of Kubernetes whose own go.mod is `upstream`."""
    # Kubernetes publishes each of its staging modules as v0 of the same release.
    staging = re.findall(r"^\s*(k8s\.io/[\w-]+) => \./staging/", upstream, re.MULTILINE)
    published = f"v0.{version.removeprefix('v1.')}"
    etcd = _required(upstream, "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/client/v3")
    # The programs keep the runtime's behaviour of the Go they were released with.
    default = re.search(r"^godebug default=go([\d.]+)", upstream, re.MULTILINE) or re.search(
        r"^go (\d+\.\d+)", upstream, re.MULTILINE
    )
    if not staging or default is None:
        raise BuildError(f"the go.mod of Kubernetes {version} is not as expected")
    parts = ["module kubewright/control-plane", f"go {GO}"]
    if not GO.startswith(f"{default[1]}."):
        parts.append(f"godebug default=go{default[1]}")
    parts += [
        _block("tool", sorted(PROGRAMS.values())),
        _block("require", [f"go.etcd.io/etcd/server/v3 {etcd}", f"k8s.io/kubernetes {version}"]),
        _block("replace", [f"{name} => {name} {published}" for name in staging]),
    ]
    return "\n\n".join(parts) + "\n"


def _block(directive: str, lines: list[str]) -> str:
    return "\n".join([f"{directive} (", *(f"\t{line}" for line in lines), ")"])


def _required(text: str, *modules: str) -> str:
    for module in modules:
        if match := re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE):
            return match[1]
    raise BuildError(f"no version of {modules[0]} in go.mod")


def _fingerprint(module: Path, version: str) -> str:
    digest = hashlib.sha256()
    for part in (_read(module / "go.mod"), _read(module / "go.sum"), *_flags(version)):
        digest.update(part.encode())
    return digest.hexdigest()[:16]


def _need_go() -> None:
    if shutil.which("go") is None:
        raise BuildError(
            f"Building the control plane needs Go {GO} or newer, and there is no `go` on PATH. "
            "Install it, or point KUBEBUILDER_ASSETS at a folder with etcd, kube-apiserver and kubectl."
        )


def _environment() -> dict[str, str]:
    # No cgo: neither a C compiler is needed nor does the result depend on the machine's libc.
    return os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}


def _run_go(arguments: list[str], module: Path, title: str) -> None:
    process = subprocess.Popen(
        ["go", *arguments],
        cwd=module,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process, Progress(title) as progress:
        lines: list[str] = []
        for line in process.stdout or ():
            if line.startswith("go: downloading"):
                progress.downloads += 1
            else:
                lines.append(line)
        if process.wait() != 0:
            raise BuildError(f"`go {arguments[0]}` failed for {title}:\n{''.join(lines[-30:])}")


@contextlib.contextmanager
def _alone(folder: Path) -> Generator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of this version is at work; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/control-plane build", description=__doc__)
    parser.add_argument(
        "--kubernetes",
        metavar="VERSION",
        default="",
        help=f"{supported_range()}, or a release of them; by default {pinned_version()}",
    )
    parser.add_argument(
        "--pin", action="store_true", help="write go.mod and go.sum for the release in bundle.json first"
    )
    arguments = parser.parse_args()
    try:
        if arguments.pin:
            write_module(HERE, pinned_version())
        print(provide(arguments.kubernetes))
    except (BuildError, OSError) as error:
        say(f"control-plane: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
