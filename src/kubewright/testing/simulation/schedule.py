"""Control the order in which messages arrive: a run follows the default order except in some chosen steps.

Without a schedule, each message has a random delay from the seed. With a schedule, messages between operators and the API
server wait in channels: one for each watch, one for each request and its response. A channel delivers in order. Whenever
nothing else can run, one channel delivers its first message; this takes no time. The clock moves when all channels are
empty, so messages are faster than every timer.

A step at which there is more than one possibility is a choice point. The default is the message that was sent first.
A `Deviation` takes another possibility at one choice point:

- a message of another channel. The channels before it are held back: they deliver again when nothing else is in transit,
  in their old order, or when a later deviation takes one of them.
- an offer: a step that the scenario would otherwise take when the operator has settled, such as the next change.
- a crash of the operator, which is possible whenever the next message is a write or the response to a write.

Each order of deliveries can be reached with enough deviations: at every choice point, every channel can be taken.
The same deviations give the same run, bit for bit.
"""

import contextvars
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from kubewright.testing.simulation.loop import SimulatedProcess, SimulationError, SimulationLoop

MessageKind = Literal["request", "response", "event"]


class Deviation(msgspec.Struct, frozen=True, gc=False):
    """A choice other than the default at a choice point; choice points are numbered from 0."""

    point: int
    choice: int
    """The number of the possibility: messages in the default order, then offers, then the crash; 0 is the default."""


class ChoicePoint(msgspec.Struct, frozen=True, gc=False):
    """A step of a run at which there was more than one possibility."""

    options: int
    """How many possibilities there were; the first is the default."""
    state: bytes = b""
    """The hash of the state at this point; empty if it was not taken."""


class Message(msgspec.Struct, frozen=True, eq=False):
    """A message in transit."""

    number: int
    channel: str
    kind: MessageKind
    subject: str
    content: bytes
    writes: bool
    """Whether it is a write, or the response to one."""
    urgent: bool
    """Whether it is delivered at once, without a choice."""
    client: SimulatedProcess | None
    deliver: Callable[..., object]
    args: tuple[Any, ...]
    context: contextvars.Context


class TakenDeviation(msgspec.Struct, frozen=True):
    """The effect of a deviation: its time, what was delivered, and before which messages of the default order."""

    time: float
    kind: Literal["message", "offer", "crash"]
    chosen: str
    overtaken: tuple[str, ...]


class ScheduleMismatch(SimulationError):
    """A deviation names a possibility that does not exist in this run: the operator or its samples have changed."""


class MessageSchedule:
    """Decide which message is delivered next; see the module."""

    def __init__(self, loop: SimulationLoop, deviations: Sequence[Deviation]) -> None:
        self._loop = loop
        self._deviations: Mapping[int, int] = {each.point: each.choice for each in deviations}
        self._last_deviation = max(self._deviations, default=-1)
        self._transit: list[Message] = []
        self._held: dict[str, None] = {}
        self._sent = 0
        self._offers: dict[str, Callable[[], None]] = {}
        self.exploring: bool = False
        """Whether steps are choice points now; otherwise the default is chosen."""
        self.points: list[ChoicePoint] = []
        """The choice points so far."""
        self.taken: list[TakenDeviation] = []
        """The deviations so far."""
        self.crash: Callable[[], None] | None = None
        """Ends the operator, if crashes are among the possibilities."""
        self.state: Callable[[Sequence[Message], Sequence[str]], bytes] | None = None
        """Returns the hash of the state at a choice point after the last deviation, with the messages in transit and the
        channels that are held back; it may raise to end the run."""
        loop.on_idle = self._step

    def send(
        self,
        channel: str,
        kind: MessageKind,
        subject: str,
        deliver: Callable[..., object],
        *args: Any,
        client: SimulatedProcess | None,
        context: contextvars.Context | None = None,
        content: bytes = b"",
        writes: bool = False,
        urgent: bool = False,
    ) -> None:
        """Put a message into its channel."""
        self._sent += 1
        context = contextvars.copy_context() if context is None else context
        self._transit.append(
            Message(
                self._sent, channel, kind, subject, content, writes, urgent, client, deliver, args, context
            )
        )

    def offer(self, text: str, take: Callable[[], None]) -> None:
        """Offer a step that the scenario would otherwise take later."""
        self._offers[text] = take

    @property
    def offers(self) -> list[str]:
        """The steps that the scenario offers now."""
        return list(self._offers)

    def withdraw_offers(self) -> None:
        """Remove all offers: the scenario continues."""
        self._offers.clear()

    def _step(self) -> bool:
        """Deliver one message, or carry out a deviation; return False if nothing is in transit."""
        heads = self._heads()
        if not heads:
            self._held.clear()
            return False
        self._loop.ticks += 1
        # Random numbers depend on the number of the step, so two runs that reach the same state continue in the same way.
        self._loop.reseed(f"step {self._loop.ticks}")
        choice = 0
        if self.exploring and not heads[0].urgent:
            offers = list(self._offers)
            first = heads[0]
            crashes = self.crash is not None and first.writes
            count = len(heads) + len(offers) + crashes
            if count > 1:
                choice = self._choose(count)
            if choice >= len(heads):
                rest = offers[choice - len(heads) :]
                self._offered(rest[0], first) if rest else self._end_operator(first)
                return True
            if choice:
                self._note("message", describe(heads[choice]), heads[:choice])
        self._deliver(heads, choice)
        return True

    def _choose(self, options: int) -> int:
        number = len(self.points)
        state = b""
        if number > self._last_deviation and self.state is not None:
            state = self.state(self._transit, list(self._held))
        self.points.append(ChoicePoint(options, state))
        choice = self._deviations.get(number, 0)
        if choice >= options:
            raise ScheduleMismatch(
                f"choice {choice} of choice point {number} does not exist, there are {options} possibilities: "
                "the operator or its samples changed since the case was found"
            )
        return choice

    def _offered(self, chosen: str, first: Message) -> None:
        """Take an offered step of the scenario."""
        self._note("offer", chosen, (first,))
        take = self._offers[chosen]
        self._offers.clear()
        take()

    def _end_operator(self, first: Message) -> None:
        """Crash the operator: its request never arrives, or it never sees the response."""
        assert self.crash is not None
        self._note("crash", "crash", (first,))
        if first.kind == "request":
            self._remove(first)
        self.crash()

    def _note(
        self, kind: Literal["message", "offer", "crash"], chosen: str, overtaken: Sequence[Message]
    ) -> None:
        late = tuple(describe(each) for each in overtaken if each.channel not in self._held)
        self.taken.append(TakenDeviation(self._loop.stamp(), kind, chosen, late))

    def _heads(self) -> list[Message]:
        """Return the first message of each channel in the default order."""
        self._transit = [
            each
            for each in self._transit
            if each.kind == "request" or each.client is None or not each.client.crashed
        ]
        first: dict[str, Message] = {}
        for each in self._transit:
            first.setdefault(each.channel, each)
        held = self._held
        return sorted(first.values(), key=lambda each: (not each.urgent, each.channel in held, each.number))

    def _deliver(self, heads: Sequence[Message], place: int) -> None:
        chosen = heads[place]
        if chosen.channel not in self._held:
            for each in heads[:place]:
                self._held[each.channel] = None
        elif place:
            del self._held[chosen.channel]
        else:
            # Only held-back channels have messages: all of them deliver again.
            self._held.clear()
        self._remove(chosen)
        self._loop.call_soon(chosen.deliver, *chosen.args, context=chosen.context)

    def _remove(self, message: Message) -> None:
        self._transit = [each for each in self._transit if each is not message]


class _EventMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _EventObject(msgspec.Struct):
    kind: str = ""
    metadata: _EventMeta = msgspec.field(default_factory=_EventMeta)


class _WatchEvent(msgspec.Struct):
    type: str
    object: _EventObject


_event_decoder = msgspec.json.Decoder(_WatchEvent)


def describe(message: Message) -> str:
    """Return a short description of a message."""
    match message.kind:
        case "request":
            return f"the request `{message.subject}`"
        case "response":
            return f"the response to `{message.subject}`"
        case "event":
            found: list[str] = []
            for line in message.content.splitlines():
                event = _event_decoder.decode(line)
                meta = event.object.metadata
                place = (
                    f" {meta.namespace}/{meta.name}"
                    if meta.namespace
                    else f" {meta.name}"
                    if meta.name
                    else ""
                )
                found.append(f"{event.type} {event.object.kind}{place}")
            return f"the event {', '.join(found)}" if found else f"the end of the watch `{message.subject}`"
