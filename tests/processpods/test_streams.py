"""Which process listens on a Pod's port."""

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from kubewright.processpods.reaper import MARK
from kubewright.processpods.streams import port_belongs_to_pod

ADDRESS = "127.130.7.7"
_PROGRAM = """
import socket, sys
listening = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@contextmanager
def listening(address: str, mark: str) -> Generator[int, None, None]:
    """Run a program with a mark that listens; yield its port."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, MARK: mark},
        text=True,
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", ADDRESS])
def test_a_listener_of_the_pod_belongs_to_it(address: str) -> None:
    with listening(address, "cluster/uid/main") as port:
        assert port_belongs_to_pod(ADDRESS, port, "cluster/uid/")


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_listener_of_another_program_does_not_belong_to_the_pod(address: str) -> None:
    with listening(address, "cluster/another/main") as port:
        assert not port_belongs_to_pod(ADDRESS, port, "cluster/uid/")


def test_a_port_without_a_listener_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        assert port_belongs_to_pod(ADDRESS, elsewhere.getsockname()[1], "cluster/uid/")
