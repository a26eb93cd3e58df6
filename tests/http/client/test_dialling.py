"""A host with many addresses: the first that answers is taken, and none is left open."""

import asyncio
import socket
from typing import Any

import pytest

from kubewright.http.client.dial import SocketCounter, dial
from kubewright.testing.virtual_time import VirtualTimeLoop


class World(VirtualTimeLoop):
    """Addresses that answer after a while, refuse, or never do anything."""

    def __init__(self, answers: dict[str, float | OSError]) -> None:
        super().__init__()
        self._answers = answers
        self.tried: list[tuple[str, float]] = []

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        if not self._answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (address, port),
            )
            for address in self._answers
        ]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self.tried.append((address[0], round(self.time(), 2)))
        answer = self._answers[address[0]]
        if isinstance(answer, OSError):
            raise answer
        await asyncio.sleep(answer)


def dialled(answers: dict[str, float | OSError], host: str = "server.example") -> World:
    """Connect to a host with these addresses; see who was tried when."""
    world = World(answers)

    async def scenario() -> None:
        sockets = SocketCounter()
        try:
            (await dial(host, 443, sockets)).close()
        finally:
            await sockets.all_closed(1.0)
            assert sockets.open == 0

    with asyncio.Runner(loop_factory=lambda: world) as runner:
        runner.run(scenario())
    return world


def test_an_address_that_refuses_is_skipped_at_once() -> None:
    world = dialled({"::1": ConnectionRefusedError(), "10.0.0.1": 0.1})
    assert world.tried == [("::1", 0.0), ("10.0.0.1", 0.0)]


def test_the_next_address_is_tried_beside_a_slow_one() -> None:
    world = dialled({"::1": 60.0, "10.0.0.1": 0.1})
    assert world.tried == [("::1", 0.0), ("10.0.0.1", 0.25)]
    assert world.time() < 1


def test_address_families_alternate() -> None:
    answers: dict[str, float | OSError] = {
        address: ConnectionRefusedError() for address in ("::1", "::2", "10.0.0.1", "10.0.0.2")
    }
    answers["10.0.0.2"] = 0.0
    assert [address for address, _ in dialled(answers).tried] == ["::1", "10.0.0.1", "::2", "10.0.0.2"]


def test_the_first_refusal_is_raised_if_no_address_answers() -> None:
    with pytest.raises(OSError, match="first"):
        dialled({"::1": OSError("first"), "10.0.0.1": OSError("second")})


def test_a_name_without_addresses_is_an_os_error() -> None:
    with pytest.raises(OSError, match="not known"):
        dialled({})


def test_an_ip_address_needs_no_resolver() -> None:
    assert dialled({"10.0.0.1": 0.0}, "10.0.0.1").tried == [("10.0.0.1", 0.0)]
