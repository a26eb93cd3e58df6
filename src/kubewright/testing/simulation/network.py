"""The network of a simulation: from each process to the API server, and from the API server to webhooks.

Every message takes some milliseconds of virtual time, drawn from the seed. These delays decide in which order the requests
of different workers and the events of different watches arrive. The requests of a replica are numbered, so that it can
crash at one of them: before the API server sees the request, or after it was carried out.

With a `MessageSchedule`, the messages of operators take no time, and the schedule decides in which order they arrive.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kubewright.devcluster.loopback import Handle, Pipe, client_response, read_request
from kubewright.devserver.faults import Moment, without_bookmarks
from kubewright.devserver.request.info import RequestInfo, request_info
from kubewright.http.client import (
    ClientResponse,
    ConnectionBroken,
    Fence,
    MalformedResponse,
    ReadTimeout,
    Unreachable,
)
from kubewright.http.server import Handler, Request, Response, Stream, Upgrade
from kubewright.http.server import ServerResponse as Served
from kubewright.testing.simulation.loop import SimulatedProcess, SimulationLoop, current_process
from kubewright.testing.simulation.schedule import MessageKind, MessageSchedule
from kubewright.testing.simulation.trace import Trace

PROCESS_HEADER = "x-simulated-process"
"""Header with the process that sends a request, for matchers."""
NUMBER_HEADER = "x-simulated-request"
"""Header with the number of a request, counted for each process."""
SECOND_SERVER = "x-simulated-second-server"
"""Marks the requests that a second API server responds to."""
CLUSTER = "cluster"
"""The writer name of the cluster's own controllers."""
WRITER: ContextVar[str] = ContextVar("kubewright_simulated_writer", default=CLUSTER)
"""The process whose request the API server is carrying out."""
_FIRST_PORT = 20000
_READS = frozenset({"get", "list", "watch"})
_REPORTS = frozenset({"events", "leases"})
"""Resources whose requests are delivered at once, because no check depends on their order."""
_NO_ROLE = b'\\" cannot '
"""Part of the message if RBAC denies a request; denials by a webhook or in a terminating namespace do not have it."""
_log = logging.getLogger("kubewright.testing")


@dataclass(eq=False)
class SimulatedConnection:
    """The connection of a replica or another program to the API server, and the faults injected into it now.

    It stays when a process of the replica ends: `requests` counts those of all its processes.
    """

    name: str
    latency: tuple[float, float] = (0.0, 0.0)
    crash_at: dict[int, Moment] = field(default_factory=dict[int, Moment])
    lose_at: set[int] = field(default_factory=set[int])
    """Numbers of requests that are carried out and whose response is lost."""
    refuse_at: set[int] = field(default_factory=set[int])
    """Numbers of calls to external systems that fail without an effect."""
    requests: int = 0
    second_server: float = 0.0
    """The share of requests that a second API server responds to."""
    drops_bookmarks: bool = False
    holds_events: bool = False
    held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    on_crash: Callable[[], None] = lambda: None
    on_pause: Callable[[float], None] = lambda _: None
    """Pauses the process for some seconds."""

    @property
    def takes_time(self) -> bool:
        """Return True if messages have a delay; those of the test have none."""
        return self.latency[1] > 0

    def release_events(self) -> None:
        """Deliver the events that were held back, in order."""
        self.holds_events = False
        held, self.held = self.held, []
        for deliver in held:
            deliver()


class SimulatedNetwork:
    """Connect the processes of one simulation."""

    def __init__(self, loop: SimulationLoop, seed: int, trace: Trace) -> None:
        self.loop = loop
        self.trace = trace
        self._chance = random.Random(f"network {seed}")
        self._listeners: dict[int, tuple[SimulatedProcess | None, Handler]] = {}
        self._next_port = _FIRST_PORT
        self.unreachable: set[str] = set()
        """Names of processes whose servers cannot be reached."""
        self.on_request: list[Callable[[str, RequestInfo], None]] = []
        """Called with the process and its request, before each request is sent."""
        self.on_forbidden: Callable[[str, str], None] = lambda process, why: None
        """Called if RBAC denies the request of a process."""
        self.schedule: MessageSchedule | None = None
        """Decides in which order messages of operators arrive, instead of delays."""
        self.pauses: dict[str, tuple[Moment, float]] = {}
        """Requests, as described by `described`, at which the sending replica is paused once: when, and for how long."""

    def delay(self, latency: tuple[float, float]) -> float:
        """Return a random delay for a message."""
        return self._chance.uniform(*latency) if latency[1] else 0.0

    async def travel(
        self,
        process: SimulatedProcess,
        latency: tuple[float, float],
        channel: str,
        kind: MessageKind,
        subject: str,
        further: float = 0.0,
    ) -> None:
        """Wait until a message of a process to an external system, or back, has arrived."""
        if self.schedule is None:
            await asyncio.sleep(further + self.delay(latency))
            return
        await asyncio.sleep(further)
        arrived: asyncio.Future[None] = self.loop.create_future()
        self.schedule.send(
            channel,
            kind,
            subject,
            lambda: arrived.done() or arrived.set_result(None),
            client=process,
            writes=True,
        )
        await arrived

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self._chance.random() < share

    async def pause_before(self, connection: SimulatedConnection, request: str) -> float:
        """Pause the caller's process if that is planned for this request; return for how long to pause it afterwards."""
        when, seconds = self.pauses.pop(request, ("before", 0.0))
        if not seconds or when == "after":
            return seconds
        connection.on_pause(seconds)
        # The next lines run when the process is resumed.
        await asyncio.sleep(0)
        return 0.0

    def record(self, process: str, what: Any, subject: str, data: bytes = b"") -> None:
        """Add to the trace."""
        self.trace.add(self.loop.stamp(), process, what, subject, data)

    def listen(self, host: str, port: int, handler: Handler) -> tuple[int, Callable[[], None]]:
        """Serve a handler on an address; return the port (a free one if it is 0), and a function that closes it."""
        if not port:
            self._next_port += 1
            port = self._next_port
        if port in self._listeners:
            raise OSError(98, "Address already in use")
        process = current_process()
        self._listeners[port] = process, handler

        def close() -> None:
            self._listeners.pop(port, None)

        if process is not None:
            process.on_crash(close)
        return port, close

    def listens(self, host: str, port: int) -> bool:
        """Return True if a server listens on the address and can be reached."""
        return self.listener(port) is not None

    def listener(self, port: int) -> tuple[SimulatedProcess | None, Handler] | None:
        """Return the server that listens on a port, if it can be reached."""
        found = self._listeners.get(port)
        if found is None or (found[0] is not None and found[0].name in self.unreachable):
            return None
        return found

    def connect(self, host: str, port: int) -> "WebhookExchange":
        """Return a connection to the server that listens on a port."""
        return WebhookExchange(self, port)


Carry = Callable[..., object]
"""Calls a function with its arguments when a message has arrived."""


class _Call:
    """One request in progress; the client awaits the future with its response."""

    def __init__(self, network: SimulatedNetwork, server: Context, request: Request) -> None:
        self.network = network
        self.server = server
        self.request = request
        self.response: asyncio.Future[Response | Stream] = network.loop.create_future()

    async def wait(self, seconds: float) -> Response | Stream:
        """Return the response, or raise the exception that the client gets instead."""
        try:
            async with asyncio.timeout(seconds):
                return await self.response
        except TimeoutError:
            raise ReadTimeout from None

    def send(self, handle: Handle, carry: Carry, done: Callable[[Served | Exception], None]) -> None:
        """Send the request to a server, which handles it in its own process."""
        carry(self._arrive, handle, done, context=self.server)

    def _arrive(self, handle: Handle, done: Callable[[Served | Exception], None]) -> None:
        try:
            served = handle(self.request)
        except ConnectionError as error:
            done(error)
            return
        if isinstance(served, Coroutine):
            self.network.loop.create_task(self._finish(served, done))
        else:
            done(served)

    async def _finish(
        self, pending: Coroutine[Any, Any, Served], done: Callable[[Served | Exception], None]
    ) -> None:
        try:
            served = await pending
        except (ConnectionError, TimeoutError) as error:
            done(error)
        except Exception as error:
            _log.exception("Request %s %s failed", self.request.method, self.request.path)
            done(error)
        else:
            done(served)

    def reply(self, served: Served | Exception, carry: Carry) -> None:
        """Send the response to the client."""
        carry(self._arrive_back, served, context=self.server)

    def break_off(self) -> None:
        """Break the client's connection, because the server has ended."""
        if not self.response.done():
            self.response.set_exception(ConnectionBroken(begun=False))

    def _arrive_back(self, served: Served | Exception) -> None:
        if self.response.done():
            return
        if isinstance(served, Response | Stream):
            self.response.set_result(served)
        elif isinstance(served, Upgrade):
            self.response.set_exception(MalformedResponse("expected a response, got a switch of protocols"))
        else:
            self.response.set_exception(ConnectionBroken(begun=False))


class ApiExchange:
    """Send requests to the API server of the simulation."""

    def __init__(
        self,
        network: SimulatedNetwork,
        endpoint: SimulatedConnection,
        process: SimulatedProcess | None,
        server: SimulatedProcess,
        handle: Handle,
    ) -> None:
        self._network = network
        self._endpoint = endpoint
        self._process = process
        self._server = server
        self._handle = handle
        self._streams: dict[_Delivery, None] = {}
        if process is not None:
            process.on_crash(self._cut)

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole response."""
        _, served = await self._exchange(head, body, timeout, fence)
        if not isinstance(served, Response):
            raise MalformedResponse("expected a whole response, got a stream")
        return client_response(served, served.body)

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Pipe]:
        """Return the head of a response, and its body to be read."""
        subject, served = await self._exchange(head, body, timeout, None)
        if isinstance(served, Response):
            return client_response(served, b""), Pipe(served.body, ended=True)
        delivery = _Delivery(self._network, self._endpoint, self._process, subject)
        delivery.pipe.task = self._server.spawn(delivery.run(served))
        self._streams[delivery] = None
        delivery.pipe.task.add_done_callback(lambda task: self._ended(delivery, task))
        return client_response(served, b""), delivery.pipe

    async def close(self) -> None:
        """End all streams."""
        self._cut()

    def _cut(self) -> None:
        for delivery in self._streams:
            if delivery.pipe.task is not None:
                delivery.pipe.task.cancel()

    def _ended(self, delivery: "_Delivery", task: asyncio.Task[None]) -> None:
        self._streams.pop(delivery)
        if task.cancelled():
            delivery.end(broken=True)

    async def _exchange(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None
    ) -> tuple[str, Response | Stream]:
        network, endpoint = self._network, self._endpoint
        request = read_request(head, body)
        info = request_info(request)
        paused = 0.0
        if network.pauses and self._process is not None:
            paused = await network.pause_before(endpoint, described(info))
        if fence is not None:
            fence()
        endpoint.requests += 1
        number = endpoint.requests
        target = request.path if not request.query else f"{request.path}?{_query(request)}"
        subject = f"{number} {info.verb} {target}"
        request.headers = {
            **request.headers,
            PROCESS_HEADER: endpoint.name,
            NUMBER_HEADER: str(number),
        }
        if endpoint.second_server and network.chance(endpoint.second_server):
            request.headers = {**request.headers, SECOND_SERVER: "true"}
        crash = endpoint.crash_at.pop(number, None)
        network.record(endpoint.name, "request", subject, body)
        for notify in network.on_request:
            notify(endpoint.name, info)
        if crash == "before":
            await self._crash()
        context = self._server.context()
        context.run(WRITER.set, endpoint.name)
        call = _Call(network, context, request)
        writes = info.verb not in _READS

        def carry(kind: MessageKind, content: bytes) -> Carry:
            """Return a function that delivers a message of this request."""
            schedule = network.schedule
            if schedule is None or not endpoint.takes_time:
                return partial(network.loop.call_later, network.delay(endpoint.latency))
            return partial(
                schedule.send,
                f"request {number}",
                kind,
                subject.partition(" ")[2],
                client=self._process,
                content=content,
                writes=writes,
                urgent=info.resource in _REPORTS,
            )

        def done(served: Served | Exception) -> None:
            if crash == "after":
                self._crash_now()
                return
            if paused:
                endpoint.on_pause(paused)
            if number in endpoint.lose_at:
                endpoint.lose_at.discard(number)
                network.record(
                    endpoint.name, "lost", f"{number} {subject.partition(' ')[2]}: the response is lost"
                )
                call.reply(ConnectionResetError(), carry("response", b"lost"))
                return
            if isinstance(served, Response):
                network.record(endpoint.name, "response", f"{number} {served.status}", served.body)
                if served.status == 403 and _NO_ROLE in served.body:
                    network.on_forbidden(endpoint.name, f"{subject}: {served.body.decode()}")
            elif isinstance(served, Stream):
                network.record(endpoint.name, "response", f"{number} {served.status}")
            else:
                network.record(endpoint.name, "lost", f"{number} the connection broke")
            content = served.body if isinstance(served, Response) else type(served).__name__.encode()
            call.reply(served, carry("response", content))

        call.send(self._handle, carry("request", body), done)
        return subject, await call.wait(timeout)

    async def _crash(self) -> None:
        self._crash_now()
        await asyncio.get_running_loop().create_future()

    def _crash_now(self) -> None:
        if self._process is not None and not self._process.crashed:
            self._process.crash()
            self._endpoint.on_crash()


class _Delivery:
    """Deliver the events of one watch to the client, in order, each with a delay."""

    def __init__(
        self,
        network: SimulatedNetwork,
        endpoint: SimulatedConnection,
        client: SimulatedProcess | None,
        subject: str,
    ) -> None:
        self._network = network
        self._endpoint = endpoint
        self._client = client
        self._subject = subject
        self._last = 0.0
        self._context: Context | None = None
        self.pipe = Pipe()

    async def run(self, stream: Stream) -> None:
        """Send the data that the server writes until the stream ends."""
        try:
            await stream.run(self)
        except ConnectionError:
            self.end(broken=True)
        except Exception:
            _log.exception("Stream failed")
            self.end(broken=True)
        else:
            self.end(broken=False)

    async def write(self, data: bytes) -> None:
        """Send some data."""
        if self._endpoint.drops_bookmarks:
            data = without_bookmarks(data)
        if data:
            self._later(lambda: self._deliver(data), data)

    def end(self, *, broken: bool) -> None:
        """End the stream after the data that was sent; a broken stream ends at once."""
        if broken:
            self._network.record(self._endpoint.name, "lost", f"{self._subject}: the watch broke")
            self.pipe.end(broken=True)
        else:
            self._later(self._finish, b"")

    def _later(self, deliver: Callable[[], None], data: bytes) -> None:
        network = self._network
        if network.schedule is not None and self._endpoint.takes_time:
            subject = self._subject.partition(" ")[2]
            network.schedule.send(
                f"watch {self._subject}",
                "event",
                subject,
                self._arrive,
                deliver,
                client=self._client,
                content=data,
            )
            return
        self._last = max(self._last, network.loop.time() + network.delay(self._endpoint.latency))
        network.loop.call_at(self._last, self._arrive, deliver)

    def _arrive(self, deliver: Callable[[], None]) -> None:
        if self._endpoint.holds_events:
            self._endpoint.held.append(deliver)
        else:
            deliver()

    def _deliver(self, data: bytes) -> None:
        self._network.record(self._endpoint.name, "event", self._subject, data)
        self.pipe.put(data)

    def _finish(self) -> None:
        self._network.record(self._endpoint.name, "event", f"{self._subject}: the watch ended")
        self.pipe.end(broken=False)


class WebhookExchange:
    """Send requests to a server of one of the processes."""

    def __init__(self, network: SimulatedNetwork, port: int) -> None:
        self._network = network
        self._port = port

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole response."""
        served = await self._exchange(head, body, timeout)
        return client_response(served, served.body)

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Pipe]:
        """Return the head of a response, and its body to be read."""
        served = await self._exchange(head, body, timeout)
        return client_response(served, b""), Pipe(served.body, ended=True)

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def _exchange(self, head: bytes, body: bytes, timeout: float) -> Response:
        network = self._network
        found = network.listener(self._port)
        if found is None:
            raise Unreachable(ConnectionRefusedError(111, "Connection refused"), proxy=False)
        process, handler = found
        request = read_request(head, body)
        name = process.name if process is not None else "test"
        network.record(name, "request", f"webhook {request.path}", body)
        context = process.context() if process is not None else Context()
        call = _Call(network, context, request)
        if process is not None:
            process.on_crash(call.break_off)
        at_once = partial(network.loop.call_later, 0.0)
        call.send(
            lambda request: _handled(handler, request), at_once, lambda served: call.reply(served, at_once)
        )
        served = await call.wait(timeout)
        if not isinstance(served, Response):
            raise MalformedResponse("expected a whole response, got a stream")
        network.record(name, "response", f"webhook {request.path} {served.status}", served.body)
        return served


def described(info: RequestInfo) -> str:
    """Return a description of a request, such as `create configmaps prove/photos`, that is the same in each run."""
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    name = f"{info.namespace}/{info.name}" if info.namespace else info.name
    return f"{info.verb} {resource or info.path} {name}".rstrip()


def _handled(handler: Handler, request: Request) -> Served | Coroutine[Any, Any, Served]:
    admitted = handler.admit(request)
    return handler.handle(request) if isinstance(admitted, int) else admitted


def _query(request: Request) -> str:
    return "&".join(f"{name}={value}" for name, values in request.query.items() for value in values)
