"""An event loop for simulations: virtual time, processes that can crash or pause, threads that run inline.

Everything in a run is executed by this loop, in one thread: nothing waits for a socket, a thread or a clock. Callbacks run
in the order in which they were scheduled, timers in the order of their time, so a run depends only on its seed. Each
callback belongs to the process in whose context it was scheduled:

- the callbacks of a crashed process are dropped. Its coroutines are never resumed, so no `finally` in them runs, as with
  `kill -9`; they are not closed until the run has ended.
- the callbacks of a paused process are kept until it is resumed, as with SIGSTOP.

The clock moves when no callback is ready. If the clock stops moving while callbacks run, the run has a livelock and
fails; if no timer is left either, it has a deadlock and fails.
"""

import asyncio
import contextvars
import gc
import heapq
import logging
import socket
import sys
from asyncio.events import _set_running_loop  # pyright: ignore[reportPrivateUsage] (it is there for event loops)
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress
from types import AsyncGeneratorType
from typing import Any, NoReturn, TypeVar, TypeVarTuple, cast
from weakref import WeakSet

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

STEPS_PER_INSTANT = 200_000
"""Maximum number of callbacks within a millisecond; the start of a dev cluster needs about 20,000."""
_CLOSING_ATTEMPTS = 20
_RESOLUTION = 1e-9
_INSTANT = 1e-3
_TICK = 1e-6
_log = logging.getLogger("kubewright.testing")


class SimulationError(Exception):
    """The simulated program did something that is not supported, such as opening a socket."""


class Livelock(AssertionError):
    """The program ran endlessly while the clock did not advance."""


class Deadlock(AssertionError):
    """No callback is ready and no timer is set, so the run cannot continue."""


class SimulatedProcess:
    """A process on a simulated machine: it can crash or pause, and has its own wall clock."""

    def __init__(self, loop: "SimulationLoop", name: str) -> None:
        self._loop = loop
        self.name = name
        self.clock_offset: float = 0.0
        """Seconds by which this machine's wall clock is ahead."""
        self.crashed: bool = False
        self.paused: bool = False
        self._aside: list[_Handle] = []
        self._kept: list[asyncio.Task[Any]] = []
        self._on_crash: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    def spawn(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Run a coroutine as part of this process."""
        return self._loop.create_task(work, context=self.context())

    def context(self) -> contextvars.Context:
        """Return a context whose callbacks belong to this process."""
        context = contextvars.copy_context()
        context.run(_PROCESS.set, self)
        return context

    def on_crash(self, notify: Callable[[], None]) -> None:
        """Call a function when this process crashes, for example to close its connections as the kernel does."""
        self._on_crash.append(notify)

    def crash(self) -> None:
        """End the process at once: none of its code runs any more, not even a `finally`."""
        if self.crashed:
            return
        self.crashed = True
        self._aside.clear()
        self._kept = self._loop.tasks_of(self)
        for notify in self._on_crash:
            notify()

    def pause(self) -> None:
        """Pause the process; other processes and the clock continue."""
        self.paused = True

    def resume(self) -> None:
        """Resume the process; callbacks that became due in the meantime run now."""
        self.paused = False
        handles, self._aside = self._aside, []
        self._loop.run_soon(handles)

    def set_aside(self, handle: "_Handle") -> None:
        """Keep a callback until the process is resumed."""
        self._aside.append(handle)

    def dispose(self) -> None:
        """Close the coroutines of a crashed process; call it only after the run."""
        kept, self._kept = self._kept, []
        _close(kept)


_PROCESS: contextvars.ContextVar[SimulatedProcess | None] = contextvars.ContextVar(
    "kubewright_simulated_process", default=None
)


def current_process() -> SimulatedProcess | None:
    """Return the simulated process that the caller belongs to; None for the test itself."""
    return _PROCESS.get()


class _Handle(asyncio.TimerHandle):
    """A callback, when it is due, and the process that it belongs to."""

    __slots__ = ("process",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: "SimulationLoop",
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.process: SimulatedProcess | None = _PROCESS.get() if context is None else context.get(_PROCESS)

    @property
    def callback(self) -> tuple[object, ...]:
        """What is called, with its arguments."""
        return self._callback, self._args

    def run(self) -> None:
        """Call it."""
        self._run()


class _Task(asyncio.Task[R]):
    """A task whose hash is its number, so that sets of tasks have the same order in each run."""

    def __init__(self, number: int, process: SimulatedProcess | None, *args: Any, **options: Any) -> None:
        self.number = number
        self.process = process
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self.number


class _Future(asyncio.Future[R]):
    """A future whose hash is its number."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimulationLoop(asyncio.AbstractEventLoop):
    """Run callbacks in order and move the clock; see the module."""

    def __init__(self, *, steps_per_instant: int = STEPS_PER_INSTANT) -> None:
        self._now = 0.0
        self._ready: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._numbers = 0
        self._steps_per_instant = self._steps_left = steps_per_instant
        self._instant = 0.0
        self._slept: float | None = None
        self._processes: list[SimulatedProcess] = []
        self._generators: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()
        self._running = False
        self._stopping = False
        self._closed = False
        self.steps: int = 0
        """The number of callbacks that have run."""
        self.explain: Callable[[], str] = lambda: ""
        """Returns a description of the last events, for error messages."""
        self.reseed: Callable[[str], None] = lambda part: None
        """Seeds the random numbers of a part of the run."""
        self.ticks: int = 0
        """The number of messages that a schedule delivered; they take no time, so this number gives them an order."""
        self.on_idle: Callable[[], bool] | None = None
        """Called before the clock moves: returns True if there may be something to run now."""
        self._failure: BaseException | None = None
        self.failures: list[dict[str, Any]] = []
        """Contexts that were passed to the exception handler: failures that no task awaited."""

    def process(self, name: str) -> SimulatedProcess:
        """Create a process."""
        made = SimulatedProcess(self, name)
        self._processes.append(made)
        return made

    def tasks_of(self, process: SimulatedProcess) -> list[asyncio.Task[Any]]:
        """Return the tasks of a process that have not ended."""
        return [task for task in self._tasks() if task.process is process]

    def timers_of(self, process: SimulatedProcess | None) -> list[tuple[float, tuple[object, ...]]]:
        """Return the timers of a process, with the time and the callback of each, the first due first."""
        return [
            (when, handle.callback)
            for when, _, handle in sorted(self._timers, key=lambda timer: timer[:2])
            if handle.process is process and not handle.cancelled()
        ]

    def _tasks(self) -> "list[_Task[Any]]":
        found = [task for task in asyncio.all_tasks(self) if isinstance(task, _Task)]
        return sorted(found, key=lambda task: task.number)

    def run_soon(self, handles: "Iterable[_Handle]") -> None:
        """Run callbacks that were kept while their process was paused."""
        self._ready.extend(handles)

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done, and return its result."""
        task = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(self._stop_after)
        self.run_forever()
        if not task.done():
            raise RuntimeError("the loop was stopped before its work was done")
        return task.result()

    def run_forever(self) -> None:
        """Run until stopped."""
        hooks = sys.get_asyncgen_hooks()
        self._running = True
        try:
            sys.set_asyncgen_hooks(firstiter=self._generators.add, finalizer=self._close_generator)
            _set_running_loop(self)
            while not self._stopping:
                self._run_instant()
        finally:
            self._stopping = self._running = False
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _run_instant(self) -> None:
        """Move the clock to the next timer, and run the callbacks that are due until none is left."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not ready:
            is_due = bool(timers) and timers[0][0] < self._now + _RESOLUTION
            if self.on_idle is not None and not is_due and self.on_idle():
                return
            if not timers:
                self._fail_deadlocked()
            # A delay that is too small to change the float must still advance the clock, so that `left > 0` becomes false.
            self._now = max(self._now + _RESOLUTION, timers[0][0])
            if self._now - self._instant > _INSTANT:
                self._instant, self._steps_left = self._now, self._steps_per_instant
        # Timers of one instant run together although sums of floats differ in the last digits.
        due = self._now + _RESOLUTION
        while timers and timers[0][0] < due:
            ready.append(heapq.heappop(timers)[2])
        while ready and not self._stopping:
            handle = ready.popleft()
            if handle.cancelled():
                continue
            process = handle.process
            if process is not None and (process.crashed or process.paused):
                if not process.crashed:
                    process.set_aside(handle)
                continue
            self.steps += 1
            self._steps_left -= 1
            if self._steps_left < 0:
                self._fail_livelocked()
            handle.run()
            if self._failure is not None:
                raise self._failure

    def _fail_livelocked(self) -> NoReturn:
        raise Livelock(
            f"{self._steps_per_instant} callbacks ran at {self._now:.3f} s and the clock did not move: "
            f"a task runs in a loop without waiting for anything\n{self.explain()}"
        )

    def _fail_deadlocked(self) -> NoReturn:
        raise Deadlock(
            f"deadlock at {self._now:.3f} s: no callback is ready and no timer is set\n{self.explain()}"
        )

    def abort(self, failure: BaseException) -> None:
        """End the run with a failure, after this callback."""
        if self._failure is None:
            self._failure = failure

    def stop(self) -> None:
        """Return from run_forever after this callback."""
        self._stopping = True

    def _stop_after(self, _: asyncio.Future[Any]) -> None:
        self.stop()

    def is_running(self) -> bool:
        """Return True while the loop runs."""
        return self._running

    def is_closed(self) -> bool:
        """Return True if the loop was closed."""
        return self._closed

    def close(self) -> None:
        """Drop all scheduled callbacks."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def dispose(self) -> None:
        """End the run, and close and remove the remaining tasks silently.

        Call it while the garbage collector is off, as it is during the run: all objects of the run are then in the
        young generations, so that reference cycles are collected without traversing all other objects.
        """
        rest = self._tasks()
        self.close()
        hook, level = sys.unraisablehook, logging.root.manager.disable
        sys.unraisablehook = lambda _: None
        logging.disable()
        try:
            for process in self._processes:
                process.crashed = True
                process.dispose()
            _close(rest)
            del rest
            # Closing a task does not reach a coroutine that an asynchronous generator waits for. Something may hold it
            # for longer than this, such as a log record with an error and its frames.
            for generator in list(self._generators):
                awaited = cast(AsyncGeneratorType[Any, Any], generator).ag_await
                if awaited is not None:
                    _close_coroutine(awaited)
            self._processes.clear()
            self.explain = lambda: ""
            gc.collect(1)
        finally:
            logging.disable(level)
            sys.unraisablehook = hook

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._closed:
            self.create_task(generator.aclose())

    # Callbacks and time

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._now

    def stamp(self) -> float:
        """Return the time plus a microsecond for each message that a schedule delivered."""
        return self._now + self.ticks * _TICK

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Run a callback after the callbacks that are already scheduled."""
        handle = _Handle(self._now, callback, args, self, context)
        if not self._closed:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback after some seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback at a time."""
        handle = _Handle(when, callback, args, self, context)
        if not self._closed:
            self._numbers += 1
            heapq.heappush(self._timers, (when, self._numbers, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: cancelled timers are skipped when they are due."""

    # Tasks and futures

    def create_task(self, coro: Any, **options: Any) -> Any:
        """Create a task that belongs to the process of its context."""
        self._numbers += 1
        context: contextvars.Context | None = options.get("context")
        process = context.get(_PROCESS) if context is not None else _PROCESS.get()
        options["name"] = options.get("name") or f"task-{self._numbers}"
        return cast(Any, _Task(self._numbers, process, coro, loop=self, **options))

    def create_future(self) -> asyncio.Future[Any]:
        """Create a future."""
        self._numbers += 1
        return _Future(self._numbers, self)

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: all remains of a run are discarded together."""

    # Threads

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], R], *args: *Ts) -> asyncio.Future[R]:
        """Run func on this loop, after the callbacks that are already scheduled."""
        future: asyncio.Future[R] = self.create_future()
        self.call_soon(self._run_inline, future, func, args)
        return future

    def _run_inline(
        self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        if future.cancelled():
            return
        failure: Exception | None = None
        result: Any = None
        with self._as_thread() as slept:
            try:
                result = func(*args)
            except Exception as error:
                failure = error
        # A function that does not sleep is done at once; otherwise it occupies its thread while it sleeps.
        self.call_later(slept[0], _finish, future, result, failure)

    @property
    def in_thread(self) -> bool:
        """Return True while a function runs that a real operator runs in a thread."""
        return self._slept is not None

    @contextmanager
    def _as_thread(self) -> Generator[list[float]]:
        slept = [0.0]
        self._slept = 0.0
        # A thread has no running loop.
        _set_running_loop(None)
        try:
            yield slept
        finally:
            _set_running_loop(self)
            slept[0], self._slept = self._slept, None

    def sleep_blocking(self, seconds: float) -> None:
        """Replace `time.sleep`: in a thread it takes virtual time; on the event loop it raises SimulationError."""
        if self._slept is None:
            raise SimulationError(
                f"time.sleep({seconds:g}) was called on the event loop: use asyncio.sleep, or ctx.run_sync"
            )
        self._slept += seconds

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there are no threads."""

    # There is no network and there are no other programs

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"resolve {host}")

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"connect to {host}:{port}")

    async def sock_connect(self, sock: Any, address: Any) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"connect to {address}")

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"listen on {host}:{port}")

    async def create_datagram_endpoint(self, protocol_factory: Any, *_: Any, **__: Any) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network("send datagrams")

    async def subprocess_exec(self, protocol_factory: Any, *args: Any, **_: Any) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"start the program {args[0] if args else ''}")

    async def subprocess_shell(self, protocol_factory: Any, cmd: Any, **_: Any) -> NoReturn:
        """Raise SimulationError."""
        _refuse_network(f"start the program {cmd}")

    # Errors

    def get_debug(self) -> bool:
        """Return False: debugging aids would change the order of a run."""
        return False

    def set_debug(self, enabled: bool) -> None:
        """Do nothing."""

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Log and keep a failure that no task awaited."""
        self.call_exception_handler(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Log and keep a failure that no task awaited."""
        if self._closed:
            return
        exception = context.get("exception")
        if exception is not None and not isinstance(exception, Exception):
            # For example a timeout of pytest, which must end the run and not just the current callback.
            self.abort(exception)
        self.failures.append(context)
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))


def _refuse_network(what: str) -> NoReturn:
    raise SimulationError(
        f"the operator tried to {what}: a simulation has no network and no other programs; use a simulated "
        "external system (kubewright.testing.External) in Operator(proving=...)"
    )


def refuse_connect(sock: socket.socket, address: Any) -> NoReturn:
    """Replace `socket.socket.connect`; close the socket, because callers close it only after an OSError."""
    sock.close()
    _refuse_network(f"connect to {address}")


def _finish(future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if future.cancelled():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)


def _close(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Close the coroutines of tasks that are never resumed."""
    for task in tasks:
        # They are pending on purpose: the interpreter must not report that.
        cast(Any, task)._log_destroy_pending = False
        _close_coroutine(task.get_coro())


def _close_coroutine(coroutine: Any) -> None:
    for _ in range(_CLOSING_ATTEMPTS):
        # A `finally` that awaits ignores the close, and may fail without its loop: both have no effect here.
        with suppress(BaseException):
            coroutine.close()
            break
