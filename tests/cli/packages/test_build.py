"""`kubewright build`, with programs on PATH that write down how they were called."""

import stat
import sys
from pathlib import Path

import pytest

from kubewright.cli.app import main

RECORDER = """#!{python}
import pathlib, sys
if sys.argv[1:] != ["version"]:
    with open({record!r}, "a") as record:
        print(*([pathlib.Path(sys.argv[0]).name] + sys.argv[1:]), file=record)
sys.exit({silent} if sys.argv[1:] == ["version"] else {code})
"""


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["build", *arguments])
    return int(ended.value.code or 0)


class Machine:
    """A machine on which only the given programs are installed."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.record = folder / "record"
        self.record.touch()

    def install(self, name: str, code: int = 0, *, silent: bool = False) -> None:
        path = self.programs / name
        path.write_text(
            RECORDER.format(python=sys.executable, record=str(self.record), code=code, silent=int(silent))
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def called(self) -> list[str]:
        return self.record.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    with pytest.raises(SystemExit):
        main(["init", "toyshop"])
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.chdir(tmp_path / "toyshop")
    return made


def test_build_reports_a_missing_image_builder(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code() == 1
    assert capsys.readouterr().err == (
        "Error: none of docker, podman, buildah found on PATH: install one to build images\n"
    )


@pytest.mark.parametrize("builder", ["docker", "podman", "buildah"])
def test_the_installed_image_builder_is_used(machine: Machine, builder: str, tmp_path: Path) -> None:
    machine.install(builder)
    assert exit_code() == 0
    assert machine.called() == [f"{builder} build --file Dockerfile --tag toyshop:0.1.0 ."]


def test_an_image_builder_without_its_daemon_is_skipped(machine: Machine) -> None:
    machine.install("docker", code=1, silent=True)
    machine.install("buildah")
    assert exit_code() == 0
    assert machine.called() == ["buildah build --file Dockerfile --tag toyshop:0.1.0 ."]


def test_the_only_image_builder_reports_its_own_error(machine: Machine) -> None:
    machine.install("docker", code=1, silent=True)
    assert exit_code() == 1
    assert machine.called() == ["docker build --file Dockerfile --tag toyshop:0.1.0 ."]


def test_an_image_is_built_for_a_platform_and_pushed(machine: Machine) -> None:
    machine.install("podman")
    machine.install("buildah")
    assert (
        exit_code(
            "--image", "registry.example/a:2", "--push", "--platform", "linux/arm64", "--build-arg", "A=b"
        )
        == 0
    )
    assert machine.called() == [
        "podman build --file Dockerfile --tag registry.example/a:2 --platform linux/arm64 --build-arg A=b .",
        "podman push registry.example/a:2",
    ]


def test_an_image_is_loaded_into_kind(machine: Machine) -> None:
    machine.install("docker")
    machine.install("kind")
    assert exit_code("--load", "kind", "--cluster", "dev") == 0
    assert machine.called()[1] == "kind load docker-image toyshop:0.1.0 --name dev"


@pytest.mark.parametrize("builder", ["podman", "buildah"])
def test_other_builders_load_images_into_kind_as_an_archive(
    machine: Machine, builder: str, tmp_path: Path
) -> None:
    machine.install(builder)
    machine.install("kind")
    assert exit_code("--load", "kind") == 0
    assert len(machine.called()) == 3
    assert machine.called()[1].endswith("image.tar:toyshop:0.1.0")
    assert machine.called()[2].startswith("kind load image-archive ")
    assert not list((tmp_path / "toyshop").glob(".*.tar"))


def test_build_stops_without_kind(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.install("docker")
    assert exit_code("--load", "kind") == 1
    assert "kind not found on PATH" in capsys.readouterr().err
    assert machine.called() == []


def test_a_failed_build_is_one_line_after_the_output_of_the_builder(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install("docker", code=3)
    assert exit_code("--push") == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "Error: cannot build toyshop:0.1.0 (docker exited with 3; see its output above)"
    )
    assert len(machine.called()) == 1


def test_a_dockerfile_changed_by_hand_is_used_as_it_is(machine: Machine, tmp_path: Path) -> None:
    machine.install("docker")
    (tmp_path / "toyshop" / "Dockerfile").write_text("FROM mine\n")
    assert exit_code() == 0
    assert (tmp_path / "toyshop" / "Dockerfile").read_text() == "FROM mine\n"


def test_a_missing_dockerfile_is_an_error(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toyshop" / "Dockerfile").unlink()
    assert exit_code() == 1
    assert "not found" in capsys.readouterr().err
