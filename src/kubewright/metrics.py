"""Counters, gauges and histograms of one running operator, kept without any exposition library."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

MetricKind = Literal["counter", "gauge", "histogram"]


class Sample(msgspec.Struct, frozen=True):
    """One line of the exposition: its full name, its labels, its value."""

    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True):
    """All samples of one declared metric at one time."""

    name: str
    help: str
    kind: MetricKind
    label_names: tuple[str, ...]
    samples: list[Sample]


class Counter:
    """A counter, which only increases."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def inc(self, n: float = 1) -> None:
        """Add n, which must not be negative."""
        if n < 0:
            raise ValueError(f"a counter cannot go down by {-n}")
        self.value += n

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield (name suffix, extra labels, value)."""
        yield "", {}, self.value


class Gauge:
    """A gauge: a value that goes up and down, or functions that return it."""

    __slots__ = ("_combine", "_reads", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._reads: list[Callable[[], float]] = []
        self._combine: Callable[[Iterable[float]], float] = sum

    @property
    def value(self) -> float:
        """Return the current value."""
        return self._combine([read() for read in self._reads]) if self._reads else self._value

    def set(self, value: float) -> None:
        """Set the value."""
        self._value = value

    def inc(self, n: float = 1) -> None:
        """Add n."""
        self._value += n

    def dec(self, n: float = 1) -> None:
        """Subtract n."""
        self._value -= n

    def add_function(
        self, read: Callable[[], float], combine: Callable[[Iterable[float]], float] = sum
    ) -> Callable[[], bool]:
        """Call this function at each collection, instead of updating the value with a timer.

        The values of several functions are combined. The returned function removes this one, and returns True if
        others are left.
        """
        self._reads.append(read)
        self._combine = combine

        def remove() -> bool:
            self._reads = [one for one in self._reads if one is not read]
            return bool(self._reads)

        return remove

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield (name suffix, extra labels, value)."""
        yield "", {}, self.value


class Histogram:
    """A histogram: counts observations by upper bound."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * len(bounds)
        self.sum: float = 0.0

    @property
    def count(self) -> int:
        """Return how many values were observed."""
        return sum(self._counts)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.sum += value
        self._counts[bisect_left(self._bounds, value)] += 1

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield (name suffix, extra labels, value): cumulative buckets, then sum and count."""
        total = 0
        for bound, count in zip(self._bounds, self._counts, strict=True):
            total += count
            yield "_bucket", {"le": _bound_text(bound)}, total
        yield "_sum", {}, self.sum
        yield "_count", {}, total


Child = TypeVar("Child", Counter, Gauge, Histogram)


class Instrument(Generic[Child]):
    """A metric with labels: one child for each combination of label values."""

    def __init__(
        self, name: str, text: str, kind: MetricKind, label_names: tuple[str, ...], make: Callable[[], Child]
    ) -> None:
        self.name = name
        self.help = text
        self.kind: MetricKind = kind
        self.label_names = label_names
        self._make = make
        self._children: dict[tuple[str, ...], Child] = {}

    def labels(self, **values: str) -> Child:
        """Return the child with these label values, created on first use."""
        key = self._key(values)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._make()
        return child

    def remove(self, **values: str) -> None:
        """Remove the child with these label values."""
        self._children.pop(self._key(values), None)

    def family(self) -> Family:
        """Return the current samples of all children."""
        samples = [
            Sample(self.name + suffix, {**dict(zip(self.label_names, key, strict=True)), **extra}, value)
            for key, child in list(self._children.items())
            for suffix, extra, value in child.samples()
        ]
        return Family(self.name, self.help, self.kind, self.label_names, samples)

    def _key(self, values: dict[str, str]) -> tuple[str, ...]:
        if len(values) != len(self.label_names):
            raise ValueError(f"{self.name} has the labels {self.label_names}, not {tuple(values)}")
        try:
            return tuple(values[label] for label in self.label_names)
        except KeyError:
            raise ValueError(f"{self.name} has the labels {self.label_names}, not {tuple(values)}") from None


class Registry:
    """The metrics of one manager; declaring a name again returns the same instrument."""

    def __init__(self) -> None:
        self._instruments: dict[str, Instrument[Any]] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Instrument[Counter]:  # noqa: A002 (Prometheus' word)
        """Declare a counter."""
        return cast("Instrument[Counter]", self._declare(name, help, "counter", labels, Counter))

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Instrument[Gauge]:  # noqa: A002 (Prometheus' word)
        """Declare a gauge."""
        return cast("Instrument[Gauge]", self._declare(name, help, "gauge", labels, Gauge))

    def histogram(
        self,
        name: str,
        help: str,  # noqa: A002 (Prometheus' word)
        labels: Sequence[str] = (),
        buckets: Iterable[float] = DEFAULT_BUCKETS,
    ) -> Instrument[Histogram]:
        """Declare a histogram with these upper bounds; infinity is added."""
        bounds = (*sorted(bound for bound in buckets if bound != inf), inf)

        def make() -> Histogram:
            return Histogram(bounds)

        return cast("Instrument[Histogram]", self._declare(name, help, "histogram", labels, make))

    def families(self) -> Iterator[Family]:
        """Yield every metric with its current samples, in the order of declaration."""
        for instrument in list(self._instruments.values()):
            yield instrument.family()

    def _declare(
        self, name: str, text: str, kind: MetricKind, labels: Sequence[str], make: Callable[[], Any]
    ) -> Instrument[Any]:
        known = self._instruments.get(name)
        if known is None:
            known = self._instruments[name] = Instrument(name, text, kind, tuple(labels), make)
        elif (known.kind, known.label_names) != (kind, tuple(labels)):
            raise ValueError(
                f"{name} is already declared as a {known.kind} with the labels {known.label_names}, "
                f"not a {kind} with {tuple(labels)}"
            )
        return known


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return `count` upper bounds, each `factor` times the one before."""
    return tuple(start * factor**power for power in range(count))


def _bound_text(bound: float) -> str:
    return "+Inf" if bound == inf else repr(bound)
