"""Volumes as directories."""

import os
from pathlib import Path

import pytest

from kubewright.api.builtin import core_v1
from kubewright.processpods.environment import ContainerConfigError
from kubewright.processpods.volumes import File, Sandbox, VolumeContent, termination_message


def container(*mounts: core_v1.VolumeMount) -> core_v1.Container:
    return core_v1.Container(name="main", image="i", volume_mounts=list(mounts))


def test_mounts_are_at_their_path_below_the_containers_directory(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "pod")
    sandbox.fill("conf", VolumeContent({"a/b.txt": File(b"one", 0o640)}))
    sandbox.fill("work", VolumeContent())
    mounts = [
        core_v1.VolumeMount(name="conf", mount_path="/etc/conf"),
        core_v1.VolumeMount(name="conf", mount_path="/b.txt", sub_path="a/b.txt"),
        core_v1.VolumeMount(name="work", mount_path="/work"),
    ]
    root = sandbox.mount(container(*mounts))
    assert (root / "etc/conf/a/b.txt").read_bytes() == b"one"
    assert (root / "b.txt").stat().st_mode & 0o777 == 0o640
    (root / "work/mine").write_text("kept")
    sandbox.fill("conf", VolumeContent({"a/b.txt": File(b"two", 0o640)}))
    sandbox.fill("work", VolumeContent())
    assert sandbox.mount(container(*mounts)) == root
    assert (root / "b.txt").read_bytes() == b"two"
    assert (root / "work/mine").read_text() == "kept"


def test_a_host_path_is_linked_and_never_removed(tmp_path: Path) -> None:
    outside, persistent = tmp_path / "outside", tmp_path / "claims" / "one"
    outside.mkdir()
    (outside / "file").write_text("mine")
    sandbox = Sandbox(tmp_path / "pod")
    sandbox.fill("host", VolumeContent(link=outside))
    sandbox.fill("claim", VolumeContent(link=persistent, persistent=True))
    root = sandbox.mount(container(core_v1.VolumeMount(name="host", mount_path="/host")))
    assert (root / "host/file").read_text() == "mine"
    sandbox.remove()
    assert (outside / "file").exists()
    assert persistent.is_dir()
    assert not sandbox.root.exists()


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
def test_no_file_is_written_outside_its_volume(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContainerConfigError, match="outside of its volume"):
        Sandbox(tmp_path / "pod").fill("conf", VolumeContent({name: File(b"", 0o600)}))


def test_a_mount_inside_a_host_path_leaves_it_unchanged(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    sandbox = Sandbox(tmp_path / "pod")
    sandbox.fill("host", VolumeContent(link=outside))
    sandbox.fill("conf", VolumeContent({"a.txt": File(b"one", 0o640)}))
    root = sandbox.mount(
        container(
            core_v1.VolumeMount(name="host", mount_path="/data"),
            core_v1.VolumeMount(name="conf", mount_path="/data/inner"),
            core_v1.VolumeMount(name="conf", mount_path="/data/other"),
        )
    )
    assert (root / "data/inner/a.txt").read_bytes() == (root / "data/other/a.txt").read_bytes() == b"one"
    sandbox.remove()
    assert [item.name for item in outside.iterdir()] == ["inner"]
    assert not (outside / "inner").is_symlink()


def test_a_termination_message_is_read_only_from_a_regular_file(tmp_path: Path) -> None:
    sandbox, item = Sandbox(tmp_path / "pod"), container()
    file = sandbox.termination_message(item)
    file.write_text("it was the disk")
    assert termination_message(file) == "it was the disk"
    file.unlink()
    os.mkfifo(file)
    assert termination_message(file) == ""
    assert termination_message(sandbox.termination_message(item)) == ""
    assert sandbox.termination_message(item).is_file()


def test_a_termination_message_path_never_empties_a_host_file(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/mine").write_text("kept")
    sandbox = Sandbox(tmp_path / "pod")
    sandbox.fill("host", VolumeContent(link=tmp_path / "outside"))
    item = container(core_v1.VolumeMount(name="host", mount_path="/data"))
    item.termination_message_path = "/data/mine"
    sandbox.mount(item)
    assert termination_message(sandbox.termination_message(item)) == ""
    assert (tmp_path / "outside/mine").read_text() == "kept"
