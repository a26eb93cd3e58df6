"""`scripts/kubernetes` moves the project to a release, and the project names its release in one place."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kubewright.cli.doctor.cluster import NEWEST_SERVER, OLDEST_SERVER
from kubewright.devserver.data import BUNDLE, MINOR, RELEASE

ROOT = Path(__file__).parent.parent
BUNDLE_FILE = ROOT / "src/kubewright/devserver/data/bundle.json"
NEXT = f"1.{MINOR + 1}.0"


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the command, which runs as a script and not as part of the package."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("kubernetes_release")


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("go_sources")


def command(*arguments: str, path: str = os.defpath) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "tools/kubernetes_release.py"), *arguments]
    return subprocess.run(
        program, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


def test_source_code_names_the_release_in_the_bundle_only():
    named = re.compile(rf"\b1\.{MINOR}\.\d|\b0\.{MINOR}\.\d")
    files = [file for file in (ROOT / "src").rglob("*.py") if named.search(file.read_text())]
    assert files == []


def test_supported_servers_are_those_of_the_bundle():
    minors = [int(minor.split(".")[1]) for minor in BUNDLE.releases]
    assert (min(minors), MINOR) == (OLDEST_SERVER, NEWEST_SERVER)
    assert minors == list(range(OLDEST_SERVER, MINOR))


def test_texts_that_name_the_release_name_the_one_in_the_bundle(releases: ModuleType):
    for name, patterns in releases.MENTIONS.items():
        text = (ROOT / name).read_text()
        assert releases.mention(text, name, patterns, RELEASE) == text, name


def test_texts_name_the_new_release_after_a_move(releases: ModuleType):
    text = releases.mention(
        "on v1.2.3, like 1.2\n", "a.md", [r"v(\d+\.\d+\.\d+)", r"like (\d+\.\d+)"], "1.4.5"
    )
    assert text == "on v1.4.5, like 1.4\n"
    with pytest.raises(releases.StepError, match=r"a\.md has no text like"):
        releases.mention("on v1.2.3", "a.md", [r"like (\d+\.\d+)"], "1.4.5")


def test_steps_are_listed_in_order(releases: ModuleType):
    listed = command("--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [step.name for step in releases.STEPS]
    assert listed[0].startswith("version ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), f"name the release, e.g. scripts/kubernetes {RELEASE}"),
        (("1.37",), "'1.37' is not a release: expected MAJOR.MINOR.PATCH"),
        ((NEXT, "--only", "clients"), f"run `scripts/kubernetes {NEXT} --only version` first"),
        ((NEXT, "--from", "data"), f"run `scripts/kubernetes {NEXT} --only version` first"),
        (("--only", "everything"), "invalid choice: 'everything'"),
    ],
)
def test_mistakes_in_the_command_line_are_named(arguments: tuple[str, ...], message: str):
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_that_does_not_exist_stops_the_command_before_a_file_changes(tmp_path: Path):
    before = BUNDLE_FILE.read_bytes()
    program = tmp_path / "go"
    program.write_text('#!/bin/sh\necho \'{"Error": "k8s.io/kubernetes@v1: not found"}\'\nexit 1\n')
    program.chmod(0o755)
    done = command(NEXT, path=f"{tmp_path}{os.pathsep}{os.defpath}")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert (
        f"step version failed: Kubernetes {NEXT} is not available as Go modules: k8s.io/kubernetes@v1: not found"
        in line
    )
    assert BUNDLE_FILE.read_bytes() == before


def test_a_machine_without_go_is_named(tmp_path: Path):
    done = command(NEXT, path=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "there is no `go` on PATH" in line


def test_go_declarations_are_read(sources: ModuleType):
    file = sources.parse(
        """package v1

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Mode string

type Thing struct {
	meta.TypeMeta `json:""`
	// Replicas may be missing.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	hidden string `json:"-"`
}
"""
    )
    embedded, replicas = file.structs["Thing"]
    assert embedded.inline
    (older,) = sources.parse('type Old struct {\n\tRule `json:",inline"`\n}').structs["Old"]
    assert older.inline
    assert (replicas.name, replicas.go_type, replicas.options) == ("replicas", "*int32", ("omitempty",))
    assert replicas.tagged("protobuf") == "varint,1,opt,name=replicas"
    assert file.aliases == {"Mode": "string"}
    assert file.imports == {"meta": "k8s.io/apimachinery/pkg/apis/meta/v1"}
