"""What clients do who mean no good, or do not know better: it costs them more than it costs us."""

import asyncio
import itertools
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from http_wire import HttpConnection, connected
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubewright.certificates import FollowingContext
from kubewright.http.server import HttpServer, Limits
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time
from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates.authority import begin, utc_now

from .serving import LARGEST, Paths, serving, talking

GET = b"GET /fine HTTP/1.1\r\nHost: t\r\n\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
MANY_FILES = 4096
# However slow this machine is at the moment, no client counts as stalled.
# No request and no response times out, so that only an eviction makes room.
PATIENT = Limits(receive_seconds=1e9, blocked_seconds=1e9)
CROWD = Limits(connections=4, eviction_seconds=600.0)


async def fine(server: HttpServer) -> None:
    """Make sure that others are still served, and nothing is held."""
    async with connected(server.port) as wire:
        assert (await wire.ask("GET", "/fine")).text == "/fine"
    await eventually(lambda: server.body_budget.available == server.limits.held, interval=0.001)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 5000,
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost : t\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\x00B: t\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://t/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    ],
)
async def test_malformed_requests_are_refused_and_the_connection_closed(garbage: bytes) -> None:
    async with talking() as (server, handler, wire):
        wire.writer.write(garbage)
        assert (await wire.head())[0] == 400
        assert (await wire.reader.read()).startswith(b"400 Bad Request")
        assert handler.asked == []
        await fine(server)


async def test_malformed_bytes_after_a_request_are_refused_after_its_response() -> None:
    async with talking() as (_, handler, wire):
        wire.writer.write(b"GET /later HTTP/1.1\r\nHost: t\r\n\r\nnonsense\r\n\r\n" + GET)
        await eventually(lambda: handler.asked, interval=0.001)
        handler.let.set()
        assert [(await wire.reply()).status for _ in range(2)] == [200, 400]
        assert await wire.ended()
        assert len(handler.asked) == 1


@given(data=st.lists(st.binary(max_size=200), max_size=5))
@settings(max_examples=50)
def test_no_bytes_crash_the_server(data: list[bytes]) -> None:
    async def attempt() -> None:
        async with talking() as (server, _, wire):
            for piece in data:
                wire.writer.write(piece)
            wire.writer.write_eof()
            await wire.reader.read()
            await fine(server)

    asyncio.run(attempt())


@pytest.mark.parametrize(
    "flood",
    [
        b"X: y\r\n",
        b"a:\r\n",
        b"X: " + b"y" * 5000 + b"\r\n",
        b"y" * 5000,
    ],
    ids=["small fields", "empty fields", "large fields", "one field without an end"],
)
async def test_endless_header_fields_are_refused(flood: bytes) -> None:
    async with talking(Limits(head=10_000)) as (server, _, wire):
        wire.writer.write(b"GET / HTTP/1.1\r\nHost: t\r\nX: ")
        await send_until_refused(wire, flood, 431)
        await fine(server)


async def test_a_pipeline_of_slow_requests_is_read_no_faster_than_it_is_answered() -> None:
    request = b"GET /later HTTP/1.1\r\nHost: t\r\nX: %b\r\n\r\n" % (b"x" * 1000)
    one_read, count = 256 * 1024 // len(request) + 1, 3000
    async with talking(Limits(pipelined=2)) as (_, handler, wire):
        handler.let.set()
        wire.writer.write(request * count)
        waiting = 0
        for _ in range(count):
            assert (await wire.reply()).status == 200
            waiting = max(waiting, handler.admitted - len(handler.asked))
        assert waiting <= one_read + 2


async def test_an_endless_request_target_is_refused() -> None:
    async with talking(Limits(head=10_000)) as (server, _, wire):
        wire.writer.write(b"GET /")
        await send_until_refused(wire, b"a" * 5000, 431)
        await fine(server)


@pytest.mark.parametrize("tail", [b"0\r\n", b"1;x="], ids=["trailers", "extension"])
async def test_chunk_extensions_and_trailers_are_bounded(tail: bytes) -> None:
    async with talking(Limits(head=10_000)) as (server, _, wire):
        wire.writer.write(CHUNKED + tail)
        await send_until_refused(wire, b"x" * 5000 if tail.endswith(b"=") else b"X: y\r\n" * 500, 431)
        await fine(server)


async def test_a_body_in_single_bytes_is_one_body() -> None:
    async with talking() as (server, _, wire):
        wire.writer.write(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
        assert (await wire.reply()).body == b"x" * 50_000
        await fine(server)


async def test_a_body_that_grows_too_large_is_refused_and_not_kept() -> None:
    async with talking() as (server, handler, wire):
        wire.writer.write(CHUNKED)
        await send_until_refused(wire, b"2710\r\n" + b"x" * 10_000 + b"\r\n", 413)
        assert handler.asked == []
        await fine(server)


async def test_a_body_that_is_announced_too_large_is_not_waited_for() -> None:
    async with talking() as (server, _, wire):
        wire.writer.write(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % (LARGEST + 1))
        reply = await wire.reply()
        assert (reply.status, reply.headers["connection"]) == (413, "close")
        wire.writer.write(b"x" * (LARGEST + 1))
        assert await wire.ended()
        await fine(server)


async def test_the_body_for_an_unknown_path_is_not_read() -> None:
    async with talking() as (server, handler, wire):
        wire.writer.write(b"POST /missing HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n")
        assert (await wire.reply()).status == 404
        assert handler.asked == []
        await fine(server)


async def test_clients_that_keep_sending_after_a_refusal_are_disconnected() -> None:
    async with talking(Limits(discarded=50_000)) as (server, _, wire):
        wire.writer.write(b"POST /missing HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000\r\n\r\n")
        assert (await wire.reply()).status == 404
        wire.writer.write(b"x" * 60_000)
        assert await wire.ended()
        await fine(server)


async def test_malformed_bytes_in_a_refused_body_close_the_connection() -> None:
    async with talking() as (server, _, wire):
        wire.writer.write(CHUNKED.replace(b"/echo", b"/missing"))
        assert (await wire.reply()).status == 404
        wire.writer.write(b"zz\r\n")
        assert await wire.ended()
        await fine(server)


@virtual_time
async def test_clients_that_stay_after_a_refusal_are_disconnected() -> None:
    async with talking() as (server, _, wire):
        wire.writer.write(b"POST /missing HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n")
        assert (await wire.reply()).status == 404
        begun = asyncio.get_running_loop().time()
        assert await wire.ended()
        assert asyncio.get_running_loop().time() - begun == pytest.approx(5, abs=1)
        await fine(server)


async def test_bodies_of_all_connections_together_are_bounded() -> None:
    async with talking(Limits(held=150_000)) as (server, handler, wire):
        wire.send("POST", "/later", b"x" * 90_000)
        await eventually(lambda: handler.asked, interval=0.001)
        async with connected(server.port) as other:
            other.send("POST", "/echo", b"x" * 90_000)
            assert (await other.reply()).status == 503
        handler.let.set()
        assert (await wire.reply()).status == 200
        await fine(server)


@virtual_time
async def test_a_slow_request_times_out() -> None:
    for slow in (b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nx"):
        async with talking() as (server, handler, wire):
            loop = asyncio.get_running_loop()
            begun = loop.time()
            wire.writer.write(slow[:-1])

            async def drip_a_letter(wire: HttpConnection = wire) -> None:
                while True:
                    await asyncio.sleep(4)
                    wire.writer.write(b"s")

            async with asyncio.TaskGroup() as group:
                dripping = group.create_task(drip_a_letter())
                assert (await wire.reply()).status == 408
                dripping.cancel()
            assert 30 <= loop.time() - begun <= 36
            assert await wire.ended()
            assert handler.asked == []
            await fine(server)


@virtual_time
async def test_silent_connections_are_closed() -> None:
    async with talking() as (server, _, wire), connected(server.port) as unused:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        assert (await wire.ask("GET", "/")).status == 200
        unused.writer.write(b"\r\n\r\n")
        assert await unused.ended()
        assert 30 <= loop.time() - begun <= 36
        assert await wire.ended()
        assert 90 <= loop.time() - begun <= 96


@virtual_time
async def test_a_slow_response_is_not_cut_off() -> None:
    async with talking() as (_, handler, wire):
        wire.send("GET", "/later")
        await asyncio.sleep(300)
        handler.let.set()
        assert (await wire.reply()).status == 200


@virtual_time
async def test_clients_that_do_not_read_are_disconnected() -> None:
    async with talking() as (server, _, wire):
        for _ in range(200):
            wire.send("GET", "/large")
        await eventually(
            lambda: server.connections and next(iter(server.connections)).blocked_since is not None,
            interval=0.001,
        )
        await asyncio.sleep(36)
        assert not server.connections
        await fine(server)


async def test_new_connections_evict_the_longest_idle_ones() -> None:
    async with (
        serving(Limits(connections=3)) as (server, handler),
        connected(server.port) as busy,
        connected(server.port) as silent,
        connected(server.port) as recent,
    ):
        busy.send("GET", "/later")
        await eventually(lambda: handler.asked, interval=0.001)
        assert (await silent.ask("GET", "/")).status == 200
        assert (await recent.ask("GET", "/")).status == 200
        async with connected(server.port) as newcomer:
            assert (await newcomer.ask("GET", "/new")).text == "/new"
            assert await silent.ended()
            assert (await recent.ask("GET", "/still")).text == "/still"
            handler.let.set()
            assert (await busy.reply()).status == 200


async def test_connections_without_a_request_are_evicted_first() -> None:
    async with (
        serving(Limits(connections=2, eviction_seconds=0.01)) as (server, _),
        connected(server.port) as known,
    ):
        assert (await known.ask("GET", "/")).status == 200
        async with connected(server.port) as unused:
            await eventually(lambda: len(server.connections) == 2, interval=0.001)
            async with connected(server.port) as newcomer:
                assert (await newcomer.ask("GET", "/new")).text == "/new"
                assert await unused.ended()
                assert (await known.ask("GET", "/still")).text == "/still"


async def drip(wire: HttpConnection) -> None:
    """Send a request one byte a second, without an end, on one connection after the other."""
    for byte in itertools.chain(b"GET / HTTP/1.1\r\nHost: t\r\nX: ", itertools.repeat(0x61)):
        wire.writer.write(bytes([byte]))
        await asyncio.sleep(1.0)


@pytest.mark.usefixtures("many_files")
@virtual_time
async def test_probes_are_answered_while_300_clients_send_a_byte_a_second() -> None:
    async with serving(PATIENT) as (server, _), asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(server.port)) for _ in range(300)]
        dripping = [group.create_task(drip(wire)) for wire in slow]
        await asyncio.sleep(5.0)
        for _ in range(14):
            async with asyncio.timeout(30.0), connected(server.port) as probe:
                assert (await probe.ask("GET", "/healthz")).status == 200
            await asyncio.sleep(1.0)
        for task in dripping:
            task.cancel()


@pytest.mark.parametrize("silent", [0, 1, 3])
@virtual_time
async def test_a_slow_request_makes_room_for_a_new_client_whatever_else_is_connected(silent: int) -> None:
    """Clients that send slowly after their first response, or never send, do not block others."""
    async with (
        serving(replace(PATIENT, connections=8)) as (server, _),
        asyncio.TaskGroup() as group,
        AsyncExitStack() as stack,
    ):
        used = [await stack.enter_async_context(connected(server.port)) for _ in range(8 - silent)]
        for wire in used:
            assert (await wire.ask("GET", "/")).status == 200
        dripping = [group.create_task(drip(wire)) for wire in used]
        for _ in range(silent):
            await stack.enter_async_context(connected(server.port))
        await asyncio.sleep(3.0)
        for _ in range(20):
            # Each newcomer stays silent; none of them may hold up the next client for its time.
            async with asyncio.timeout(30.0), connected(server.port) as probe:
                assert (await probe.ask("GET", "/healthz")).status == 200
            await stack.enter_async_context(connected(server.port))
        for task in dripping:
            task.cancel()


@virtual_time
async def test_an_evicted_slow_request_gets_the_reason() -> None:
    async with talking(replace(PATIENT, connections=1)) as (server, _, wire):
        wire.writer.write(b"GET / HTTP/1.1\r\nHo")
        async with asyncio.timeout(30.0), connected(server.port) as newcomer:
            assert (await newcomer.ask("GET", "/new")).text == "/new"
        assert (await wire.reply()).status == 408
        assert await wire.ended()


@virtual_time
async def test_a_client_that_does_not_read_is_evicted() -> None:
    async with talking(replace(PATIENT, connections=1)) as (server, _, wire):
        for _ in range(200):
            wire.send("GET", "/large")
        async with asyncio.timeout(30.0), connected(server.port) as newcomer:
            assert (await newcomer.ask("GET", "/new")).text == "/new"


async def test_new_connections_wait_if_all_others_are_busy() -> None:
    async with talking(Limits(connections=1)) as (server, handler, wire):
        wire.send("GET", "/later")
        await eventually(lambda: handler.asked, interval=0.001)
        async with connected(server.port) as newcomer:
            newcomer.send("GET", "/new")
            await eventually(lambda: server.at_capacity, interval=0.001)
            handler.let.set()
            assert (await wire.reply()).headers["connection"] == "close"
            assert (await newcomer.reply()).text == "/new"


@pytest.fixture(scope="module")
def secured() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and of its clients."""
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    context = FollowingContext()
    context.load(bundle.certificate, bundle.key)
    return context, ssl.create_default_context(cadata=bundle.ca_bundle.decode())


Secured = tuple[ssl.SSLContext, ssl.SSLContext]


async def test_connections_without_a_tls_handshake_do_not_block_others(secured: Secured) -> None:
    context, trust = secured
    async with HttpServer(Paths(), "127.0.0.1", 0, tls=context) as server, AsyncExitStack() as silent:
        for _ in range(100):
            await silent.enter_async_context(connected(server.port))
        for garbage in (GET, b"\x16\x03\x01\xff\xff" + b"\x00" * 5000, b"\x00" * 50):
            async with connected(server.port) as plain:
                plain.writer.write(garbage)
                plain.writer.write_eof()
                assert not (await plain.reader.read()).startswith(b"HTTP")
        async with connected(server.port, trust) as wire:
            assert (await wire.ask("GET", "/fine")).text == "/fine"


async def test_unfinished_handshakes_count_as_connections_and_are_evicted_first(secured: Secured) -> None:
    context, trust = secured
    limits = Limits(connections=4, eviction_seconds=0.01)
    async with (
        HttpServer(Paths(), "127.0.0.1", 0, tls=context, limits=limits) as server,
        AsyncExitStack() as stack,
    ):
        user = await stack.enter_async_context(connected(server.port, trust))
        assert (await user.ask("GET", "/fine")).text == "/fine"
        silent = [await stack.enter_async_context(connected(server.port)) for _ in range(10)]
        for wire in silent[:7]:
            assert await wire.ended()
        async with connected(server.port, trust) as newcomer:
            assert (await newcomer.ask("GET", "/new")).text == "/new"
        assert await silent[7].ended()


async def test_connections_beyond_the_limit_wait_and_are_all_answered(secured: Secured) -> None:
    context, trust = secured
    answers: list[int] = []

    async def ask(port: int) -> None:
        async with connected(port, trust) as wire:
            answers.append((await wire.ask("GET", "/fine")).status)
            # It keeps the connection as long as it may, as an API server does.
            await wire.reader.read()

    async with (
        asyncio.TaskGroup() as group,
        HttpServer(Paths(), "127.0.0.1", 0, tls=context, limits=CROWD) as server,
    ):
        for _ in range(40):
            group.create_task(ask(server.port))

        def all_answered() -> bool:
            assert len(server.connections) <= 4
            return len(answers) == 40

        await eventually(all_answered, interval=0.001)
    assert set(answers) == {200}


async def test_waiting_connections_cost_nothing(secured: Secured) -> None:
    context, trust = secured
    handler, limits = Paths(), Limits(connections=1)
    async with (
        HttpServer(handler, "127.0.0.1", 0, tls=context, limits=limits) as server,
        connected(server.port, trust) as user,
        AsyncExitStack() as stack,
    ):
        user.send("GET", "/later")
        await eventually(lambda: handler.asked, interval=0.001)
        for _ in range(20):
            await stack.enter_async_context(connected(server.port))
        await eventually(lambda: server.at_capacity, interval=0.001)
        assert len(asyncio.all_tasks()) < 10
        handler.let.set()
        assert (await user.reply()).headers["connection"] == "close"


def test_handshakes_are_counted_on_the_loop_of_the_command_line_too(secured: Secured) -> None:
    uvloop = pytest.importorskip("uvloop")
    uvloop.run(test_unfinished_handshakes_count_as_connections_and_are_evicted_first(secured))


async def test_a_handshake_that_takes_too_long_times_out(secured: Secured) -> None:
    limits = Limits(receive_seconds=0.05)
    async with (
        HttpServer(Paths(), "127.0.0.1", 0, tls=secured[0], limits=limits) as server,
        connected(server.port) as silent,
    ):
        assert await silent.ended()


async def test_a_handshake_under_way_does_not_hold_up_a_stop(secured: Secured) -> None:
    async with AsyncExitStack() as stack:
        async with HttpServer(Paths(), "127.0.0.1", 0, tls=secured[0], grace=600) as server:
            silent = await stack.enter_async_context(connected(server.port))
            async with connected(server.port, secured[1]) as wire:
                assert (await wire.ask("GET", "/fine")).text == "/fine"
        assert await silent.ended()


async def test_a_request_right_behind_the_handshake_is_answered(secured: Secured) -> None:
    context, trust = secured
    async with HttpServer(Paths(), "127.0.0.1", 0, tls=context) as server:

        def ask() -> bytes:
            # One segment with the end of the handshake and the request: TLS in memory, sent at once.
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            talk = trust.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                while True:
                    try:
                        talk.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        raw.sendall(outgoing.read())
                        incoming.write(raw.recv(65536))
                talk.write(GET)
                raw.sendall(outgoing.read())
                while True:
                    try:
                        return talk.read()
                    except ssl.SSLWantReadError:
                        incoming.write(raw.recv(65536))

        assert (await asyncio.to_thread(ask)).startswith(b"HTTP/1.1 200")


@pytest.fixture
def many_files() -> Iterator[None]:
    """Allow as many open files as a thousand connections have ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < MANY_FILES:
        pytest.skip(f"only {hard} files may be open at once")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY_FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_clients_get_no_more_connections_than_allowed() -> None:
    async with serving(Limits(connections=100, eviction_seconds=0.01)) as (server, _):
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(1000)]
        async with connected(server.port) as wire:
            assert (await wire.ask("GET", "/fine")).text == "/fine"
            assert len(server.connections) <= 100
        for _, writer in silent:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in silent), return_exceptions=True)


async def send_until_refused(wire: HttpConnection, piece: bytes, status: int) -> None:
    """Send and send until the server answers, which it does long before a megabyte."""
    reading = asyncio.ensure_future(wire.head())
    try:
        for _ in range(1_000_000 // len(piece)):
            if reading.done():
                break
            wire.writer.write(piece)
            await wire.writer.drain()
            await asyncio.sleep(0)
        assert (await reading)[0] == status
    finally:
        reading.cancel()
