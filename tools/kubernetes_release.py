"""Move the project to a Kubernetes release, step by step; each step can be repeated.

The release is in `src/kubewright/devserver/data/bundle.json`. The first step writes it there, the others read it from
there, so that a step that is run alone works on the release that the project is on.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from go_sources import BUNDLE, MODULES, release, staging_version

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/api/golden"
# Go modules that use controller-runtime: what benchmarks compare with, and the operator that envtest's tests run.
GO_PROJECTS = (ROOT / "benchmarks/controller_runtime", ROOT / "tests/languages/go")
# controller-runtime 0.25 is made for Kubernetes 1.37, 0.26 for 1.38, and so on.
CONTROLLER_RUNTIME, CONTROLLER_RUNTIME_LAG = "sigs.k8s.io/controller-runtime", 12
# Where text or code that does not read bundle.json names the release: the group is replaced.
RELEASE, MINOR = r"(\d+\.\d+\.\d+)", r"(\d+\.\d+)"
MENTIONS = {
    "README.md": [rf"embedded server and on Kubernetes {RELEASE}"],
    "tests/compare/allowed.yaml": [rf"`v{RELEASE}\+kubewright`"],
    "docs/how-to/envtest-java.md": [rf"k8s/{RELEASE}-linux", rf"API_SERVER_VERSION={RELEASE} "],
    "docs/how-to/testing-matrix.md": [
        rf"\| Kubernetes, real control plane \| {RELEASE} \|",
        rf"\| Kubernetes, embedded server \| behaves like {MINOR}, or like",
        rf"for version in {MINOR} ",
    ],
    "src/kubewright/cli/doctor/cluster.py": [r"OLDEST_SERVER, NEWEST_SERVER = \d+, (\d+)\n"],
}
BY_HAND = """\
read the changes of the recorded responses (git diff --stat tests): each is work in src/kubewright/devserver
make the embedded server respond as recorded: CONTRIBUTING.md says how, and where the causes are
compare the feature gates that the release turns on with src/kubewright/devserver/builtin and .../admission
give new kinds and fields their rules in src/kubewright/devserver/builtin and cases in tests/devserver/builtin/cases
run scripts/test and scripts/test --server real, then .ci/run
measure again if the numbers in docs/performance.md are to be of this release
tools/packaging/go.mod follows helm, benchmarks/kube_rs/Cargo.toml follows kube-rs: update them when those do
docs/how-to/testing-matrix.md: test the earlier releases in the table
CHANGELOG.md: name the release under Unreleased
"""


class StepError(Exception):
    """A step failed; the text says why, in one line."""


@dataclass(frozen=True)
class Step:
    """One part of a move."""

    name: str
    title: str
    run: Callable[[str], None]


def run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Run a program; return what it printed if `quiet`, otherwise show it."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = shlex.join(word.removeprefix(f"{ROOT}/") for word in words)
        reason = f": {_last_line(done.stderr)}" if quiet else ""
        raise StepError(f"`{shown}` exited with {done.returncode}{reason}")
    return done.stdout or ""


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()


def python(*arguments: str) -> Callable[[str], None]:
    """Return a step that runs a Python program of the project."""
    return lambda _: _shown(sys.executable, *arguments)


def _shown(*command: str | Path) -> None:
    run(*command)


def set_version(version: str) -> None:
    """Download the modules of a release and of the earlier ones, then write the release to bundle.json and to the texts that name it."""
    download(version)
    bundle = json.loads(BUNDLE.read_text())
    previous, releases = bundle["kubernetes"], dict(bundle["releases"])
    if minor(previous) != minor(version):
        releases[minor(previous)] = previous
    releases.pop(minor(version), None)
    ordered = dict(sorted(releases.items(), key=lambda item: int(item[0].split(".")[1])))
    for earlier in ordered.values():
        download(earlier)
    BUNDLE.write_text(
        json.dumps({**bundle, "kubernetes": version, "releases": ordered}, indent=1) + "\n", encoding="utf-8"
    )
    for name, patterns in MENTIONS.items():
        file = ROOT / name
        file.write_text(mention(file.read_text(), name, patterns, version))


def download(version: str) -> None:
    """Download the modules that the generators read; raise StepError if the module proxy does not have them."""
    need_go()
    staging = staging_version(version)
    wanted = [f"k8s.io/kubernetes@v{version}", *(f"k8s.io/{module}@{staging}" for module in MODULES)]
    for module in wanted:
        print(f"  {module}", flush=True)
        # Outside of any module, so that no go.mod decides about versions.
        done = subprocess.run(
            ["go", "mod", "download", "-json", module],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reply = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            reason = " ".join(str(reply.get("Error") or _last_line(done.stderr)).split())
            raise StepError(f"Kubernetes {version} is not available as Go modules: {reason}")


def need_go() -> None:
    """Raise StepError if there is no Go."""
    if shutil.which("go") is None:
        raise StepError("there is no `go` on PATH, which reads the published modules of Kubernetes")


def mention(text: str, name: str, patterns: Sequence[str], version: str) -> str:
    """Replace the release, or its minor version, where a text names it."""
    for pattern in patterns:
        match = re.search(pattern, text)
        if match is None:
            raise StepError(
                f"{name} has no text like {pattern!r}: correct MENTIONS in tools/kubernetes_release.py"
            )
        parts = version.split(".")
        value = {2: version, 1: minor(version), 0: parts[1]}[match[1].count(".")]
        text = text[: match.start(1)] + value + text[match.end(1) :]
    return text


def minor(version: str) -> str:
    """Return the minor version of a release: `1.37` of `1.37.1`."""
    return version.rpartition(".")[0]


def record_golden(_: str) -> None:
    """Answer the cases of tests/api/golden with the Go code of the pinned modules."""
    need_go()
    for file in sorted(GOLDEN.glob("*.json")):
        with file.open() as cases:
            done = subprocess.run(
                ["go", "run", GOLDEN / "record.go", file.stem],
                cwd=ROOT / "tools/control_plane",
                stdin=cases,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
        if done.returncode:
            raise StepError(f"`go run record.go {file.stem}` exited with {done.returncode}")
        file.write_text(done.stdout)
        print(f"  {file.stem}: {len(json.loads(done.stdout)['cases'])} responses")


def update_go_projects(version: str) -> None:
    """Move the Go projects to the k8s.io modules of a release and the controller-runtime that fits, and compile them."""
    need_go()
    staging = staging_version(version)
    libraries = [f"k8s.io/{name}@{staging}" for name in ("api", "apimachinery", "client-go")]
    for project in GO_PROJECTS:
        runtime = controller_runtime(version, project)
        run("go", "get", *libraries, f"{CONTROLLER_RUNTIME}@{runtime}", cwd=project)
        run("go", "mod", "tidy", cwd=project)
        # Compiles tests too.
        run("go", "vet", "./...", cwd=project)
        print(f"  {project.relative_to(ROOT)}: controller-runtime {runtime}, k8s.io {staging}", flush=True)


def controller_runtime(version: str, project: Path) -> str:
    """Return the version of controller-runtime for a release: the present one if it fits, otherwise the newest."""
    wanted = f"v0.{int(version.split('.')[1]) - CONTROLLER_RUNTIME_LAG}."
    present = re.search(rf"{re.escape(CONTROLLER_RUNTIME)} (v\S+)", (project / "go.mod").read_text())
    if present and present[1].startswith(wanted):
        return present[1]
    known = run("go", "list", "-m", "-versions", CONTROLLER_RUNTIME, cwd=project, quiet=True).split()[1:]
    fitting = [text for text in known if text.startswith(wanted) and "-" not in text]
    if not fitting:
        raise StepError(f"{CONTROLLER_RUNTIME} has no release {wanted}x for Kubernetes {minor(version)} yet")
    return fitting[-1]


STEPS = (
    Step("version", "download the Go modules; write the release to bundle.json and to texts", set_version),
    Step(
        "data",
        "generate the embedded server's types, discovery, OpenAPI and feature gates, and those of earlier releases",
        python("tools/generate_devserver_data.py"),
    ),
    Step("kinds", "generate kubewright.api.builtin", python("tools/generate_builtin.py", "--refresh")),
    Step(
        "control-plane",
        "pin tools/control_plane/go.mod and build the binaries",
        python("tools/control_plane/binaries.py", "--pin"),
    ),
    Step(
        "flags",
        "generate the flags that kubewright envtest accepts",
        python("tools/generate_envtest_flags.py"),
    ),
    Step("bootstrap", "record the objects that a cluster starts with", python("tools/record_bootstrap.py")),
    Step("golden", "record tests/api/golden", record_golden),
    Step("schema", "record tests/schema", python("tests/schema/record.py")),
    Step("validation", "record tests/devserver/builtin", python("tests/devserver/builtin/record.py")),
    Step("decoding", "record tests/devserver/wire", python("tests/devserver/wire/record_corpus.py")),
    Step("ownership", "record tests/devserver/merge", python("tests/devserver/merge/record_corpus.py")),
    Step("conformance", "record tests/conformance", python("tests/conformance/record.py")),
    Step("clients", "record tests/clients", python("tests/clients/record.py")),
    Step("go", "update and compile the Go projects in benchmarks and tests", update_go_projects),
    Step("reference", "generate docs/reference", python("tools/generate_reference.py")),
    Step("differences", "generate docs/devserver-differences.md", python("tools/generate_differences.py")),
)


def chosen_steps(only: Sequence[str], start: str) -> list[Step]:
    """Return the steps to run, in order."""
    names = [step.name for step in STEPS]
    if start:
        return list(STEPS[names.index(start) :])
    return [step for step in STEPS if not only or step.name in only]


def check_version(version: str, steps: Sequence[Step]) -> str:
    """Return the release to work on; raise StepError if the steps cannot use the requested one."""
    present = release()
    if not version:
        if len(steps) == len(STEPS):
            raise StepError(f"name the release, e.g. scripts/kubernetes {present}")
        return present
    text = version.removeprefix("v")
    if not re.fullmatch(r"1\.\d+\.\d+", text):
        raise StepError(f"{version!r} is not a release: expected MAJOR.MINOR.PATCH, e.g. {present}")
    if text != present and steps[0].name != "version":
        raise StepError(f"the project is on {present}: run `scripts/kubernetes {text} --only version` first")
    return text


def places_left(previous: str) -> list[str]:
    """Return the lines of code and documentation that still name the release the project was on."""
    pattern = rf"\bv?1\.{previous.split('.')[1]}\b"
    paths = ["src", "docs", "tools", "benchmarks", "examples", "scripts", ".ci", "tests", "*.md", "*.toml"]
    left_out = ("*.sum", "*.json", "*.lock", "*.svg", "CHANGELOG.md", "tools/packaging", "docs/decisions")
    done = subprocess.run(
        ["git", "grep", "-nIoP", pattern, "--", *paths, *(f":!{path}" for path in left_out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted({line.rpartition(":")[0] for line in done.stdout.splitlines()})


def report(previous: str, version: str) -> None:
    """Print what the command does not do."""
    print(f"\nKubernetes {version}: all steps done. What remains by hand:")
    for item in BY_HAND.splitlines():
        print(f"  - {item}")
    if minor(previous) != minor(version):
        print(f"  - these places name {minor(previous)}; correct those that mean the present release:")
        for place in places_left(previous):
            print(f"      {place}")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(
        prog="scripts/kubernetes", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False
    )
    parser.add_argument("version", metavar="VERSION", nargs="?", default="", help="e.g. 1.37.1")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--only", action="append", default=[], choices=names, metavar="STEP", help="run this step; repeatable"
    )
    group.add_argument("--from", dest="start", default="", choices=names, metavar="STEP", help="start here")
    group.add_argument("--list", action="store_true", help="print the steps and exit")
    return parser.parse_args(arguments)


def main() -> int:
    """Run the command and return its exit code."""
    arguments = parse()
    if arguments.list:
        for step in STEPS:
            print(f"{step.name:14} {step.title}")
        return 0
    # The steps use the release in bundle.json, not binaries that were built elsewhere.
    for name in ("KUBEBUILDER_ASSETS", "KUBEWRIGHT_KUBERNETES"):
        os.environ.pop(name, None)
    steps, previous = chosen_steps(arguments.only, arguments.start), release()
    try:
        version = check_version(arguments.version, steps)
    except StepError as error:
        print(f"scripts/kubernetes: {error}", file=sys.stderr)
        return 2
    for number, step in enumerate(steps, 1):
        began = time.monotonic()
        print(f"[{number}/{len(steps)}] {step.name}: {step.title}", flush=True)
        try:
            step.run(version)
        except (StepError, OSError) as error:
            reason = str(error).rstrip(".")
            resume = f"scripts/kubernetes {version} --from {step.name}"
            print(
                f"scripts/kubernetes: step {step.name} failed: {reason}; to continue: {resume}",
                file=sys.stderr,
            )
            return 1
        except KeyboardInterrupt:
            return 130
        print(f"[{number}/{len(steps)}] {step.name}: done in {time.monotonic() - began:.0f} s", flush=True)
    if not arguments.only:
        report(previous, version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
