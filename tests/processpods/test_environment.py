"""Commands and variables of containers."""

import sys
from pathlib import Path

import pytest

from kubewright.api.builtin import core_v1
from kubewright.processpods.environment import at_own_address, command_of, expanded, folder_of, runs_here


def container(image: str = "registry.example:5000/a/shell:1", **fields: object) -> core_v1.Container:
    made = core_v1.Container(name="main", image=image)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_container_runs_here_if_its_command_exists() -> None:
    assert runs_here(container(command=[sys.executable]), {})
    assert not runs_here(container(command=["no-such-program"]), {})
    assert not runs_here(container(), {})


def test_a_command_can_be_given_for_an_image_with_or_without_tag() -> None:
    item = container(command=["/app"], args=["--name=$(NAME)"])
    for image in ("registry.example:5000/a/shell:1", "registry.example:5000/a/shell"):
        assert command_of(item, {image: ["python", "app.py"]}, {"NAME": "joe"}) == [
            "python",
            "app.py",
            "--name=joe",
        ]
    assert command_of(item, {}, {}) == ["/app", "--name=$(NAME)"]


def test_references_are_expanded_and_unknown_ones_stay() -> None:
    assert expanded("$(A) $$(A) $(B) $$ $A", {"A": "1"}) == "1 $(A) $(B) $ $A"


def test_the_working_directory_exists_here_or_below_the_mounts(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    assert folder_of(container(working_dir=str(here)), tmp_path) == here
    assert folder_of(container(working_dir="/no/such"), tmp_path) == tmp_path / "no/such"
    assert folder_of(container(), tmp_path) == Path.cwd()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8081", "127.130.0.1:8081"),
        ("--metrics-bind-address=:8443", "--metrics-bind-address=127.130.0.1:8443"),
        ("--listen=0.0.0.0:80", "--listen=127.130.0.1:80"),
        ("[::]:80", "127.130.0.1:80"),
        ("tcp://0.0.0.0:80", "tcp://127.130.0.1:80"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("--metrics-bind-address=0", "--metrics-bind-address=0"),
        ("image:8080", "image:8080"),
        (":0", ":0"),
        ("--display=:1", "--display=:1"),
        ("0.0.0.0:53", "127.130.0.1:53"),
        ("12:30", "12:30"),
        (":name", ":name"),
    ],
)
def test_an_all_interfaces_address_becomes_the_pods_address(text: str, expected: str) -> None:
    assert at_own_address(text, "127.130.0.1") == expected
