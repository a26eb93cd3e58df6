"""Property tests for conversions: objects generated from a kind's types, converted there and back.

    def test_foos_survive_conversion() -> None:
        check_round_trips(conversion)

Needs Hypothesis, which the `testing` extra brings.
"""

import enum
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin
from uuid import UUID

import hypothesis
import msgspec
from hypothesis import strategies as st

from kubewright.api import (
    Duration,
    Field,
    Meta,
    MicroTime,
    Object,
    Quantity,
    field_info,
    field_types,
    from_wire,
    kind_of,
    parse,
    to_wire,
)
from kubewright.webhook import Conversion, review_conversion, versions_of

T = TypeVar("T", bound=Object)
_Strategy = st.SearchStrategy[Any]

_INT32, _INT64 = 2**31, 2**63
_MOST = 3
"""Maximum elements of a list or map without a declared maximum: few enough to read a failure."""
_LABEL = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)


def objects(cls: type[T]) -> st.SearchStrategy[T]:
    """Return a strategy for objects of a kind that match the types and bounds of its fields."""
    return cast("st.SearchStrategy[T]", _Maker().struct(cls)).map(lambda made: from_wire(cls, to_wire(made)))


def check_round_trips(
    conversion: Conversion[Any, Any], *, from_hub: bool = True, examples: int = 100
) -> None:
    """Fail if an object changes when it is converted to the other version and back.

    Every object of the spoke must survive in the hub. With `from_hub=False` the reverse is not checked: for a hub
    with data that the spoke cannot represent, even in annotations.
    """
    _check(conversion, conversion.spoke, conversion.hub, examples)
    if from_hub:
        _check(conversion, conversion.hub, conversion.spoke, examples)


def _check(conversion: Conversion[Any, Any], cls: type[Object], through: type[Object], examples: int) -> None:
    versions = versions_of([conversion])

    def convert(wire: Any, version: str) -> Any:
        request = {"uid": "round-trip", "desiredAPIVersion": version, "objects": [wire]}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
        response = parse(review_conversion(versions, msgspec.json.encode(review)).body)["response"]
        assert response["result"]["status"] == "Success", response["result"]["message"]
        return response["convertedObjects"][0]

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],  # timing depends on the machine
    )
    @hypothesis.given(objects(cls))
    def survives(before: Any) -> None:
        there = convert(to_wire(before), kind_of(through).api_version)
        after = from_wire(cls, convert(there, kind_of(cls).api_version))
        assert after == before, (
            f"{cls.__name__} came back changed from {through.__name__}, where it was {there}"
        )

    survives()


class _Maker:
    """Strategies by type; classes are made once, so that kinds may hold themselves."""

    def __init__(self) -> None:
        self._known: dict[type, _Strategy] = {Meta: _metadata()}

    def struct(self, cls: type[msgspec.Struct]) -> _Strategy:
        if cls not in self._known:
            self._known[cls] = st.deferred(lambda: made)
            types, said = field_types(cls), field_info(cls)
            fields = {
                item.name: self.field(types[item.name], said[item.name])
                for item in msgspec.structs.fields(cls)
            }
            made = st.builds(cls, **fields)
        return self._known[cls]

    def field(self, annotation: Any, said: Field) -> _Strategy:
        if get_origin(annotation) is Annotated:
            return self.field(get_args(annotation)[0], said)
        if said.enum:
            return st.sampled_from(list(said.enum))
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return st.sampled_from(arguments)
        if origin is list:
            return self._list(arguments[0], said)
        if origin is dict:
            return st.dictionaries(
                _LABEL,
                self.field(arguments[1], _inner(arguments[1])),
                min_size=said.min_properties or 0,
                max_size=_most(said.min_properties, said.max_properties),
            )
        if arguments:
            return st.one_of(*(self.field(part, said) for part in arguments))
        return self._plain(annotation, said)

    def _list(self, item: Any, said: Field) -> _Strategy:
        return st.lists(
            self.field(item, _inner(item)),
            min_size=said.min_items or 0,
            max_size=_most(said.min_items, said.max_items),
            unique_by=_identity(said),
        )

    def _plain(self, cls: Any, said: Field) -> _Strategy:
        if cls is int:
            return _integers(said)
        if cls is float:
            return _floats(said)
        if cls is str:
            return _texts(said)
        if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
            return self.struct(cls)
        if isinstance(cls, type) and issubclass(cls, enum.Enum):
            return st.sampled_from(cls)
        found = _PLAIN.get(cls)
        if found is None:
            raise TypeError(
                f"{cls!r}: no objects can be made of this type: give check_round_trips a kind without it"
            )
        return found


def _identity(said: Field) -> Callable[[Any], Any] | None:
    """Return the keys that identify the elements of a list; None if duplicates are allowed."""
    if said.list_type == "map":
        return lambda value: tuple(repr(to_wire(value).get(key)) for key in said.list_keys)
    return repr if said.list_type == "set" or said.unique else None


def _inner(annotation: Any) -> Field:
    """Return the `Field` of the elements of a list or map."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Field)), Field())


def _metadata() -> _Strategy:
    word = st.sampled_from(["a", "b-1"])
    labels = st.dictionaries(word, word, max_size=2)
    return st.builds(Meta, word, namespace=word, labels=labels, annotations=labels)


def _most(least: int | None, most: int | None) -> int:
    return min(most, (least or 0) + _MOST) if most is not None else (least or 0) + _MOST


def _integers(said: Field) -> _Strategy:
    reach = _INT64 if said.int64 else _INT32
    low = max(_least(said.ge, -reach), _least(said.gt, -reach - 1) + 1)
    high = min(_least(said.le, reach - 1), _least(said.lt, reach) - 1)
    step = int(said.multiple_of or 1)
    return st.integers(-(-low // step), high // step).map(lambda number: number * step)


def _least(bound: float | None, otherwise: int) -> int:
    return otherwise if bound is None else int(bound)


def _floats(said: Field) -> _Strategy:
    low, high = said.ge if said.ge is not None else said.gt, said.le if said.le is not None else said.lt
    return st.floats(
        low,
        high,
        allow_nan=False,
        allow_infinity=False,
        exclude_min=said.gt is not None,
        exclude_max=said.lt is not None,
    )


def _texts(said: Field) -> _Strategy:
    least, most = said.min_length or 0, said.max_length
    if said.format in _FORMATS:
        return _FORMATS[said.format]
    if said.pattern:
        # Where Python's `$` also stands before a last line's end, the server's stands at the very end.
        return st.from_regex(re.sub(r"(?<!\\)\$$", r"\\Z", said.pattern)).filter(
            lambda text: least <= len(text) and (most is None or len(text) <= most)
        )
    return st.text(min_size=least, max_size=_most(least, most) if most is None else min(most, least + 20))


_SECONDS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001 (the zone is put in below)
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
_WIRE: _Strategy = st.recursive(
    st.booleans() | st.integers(-_INT32, _INT32) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_LABEL, inner, max_size=2),
    max_leaves=4,
)
_FORMATS: dict[str, _Strategy] = {
    "date-time": _SECONDS.map(lambda moment: moment.isoformat().replace("+00:00", "Z")),
    "uuid": st.uuids().map(str),
}
_PLAIN: dict[Any, _Strategy] = {
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    type(None): st.none(),
    Any: _WIRE,
    object: _WIRE,
    datetime: _SECONDS,
    date: st.dates(),
    UUID: st.uuids(),
    Quantity: st.integers(0, 10**6).flatmap(
        lambda number: st.sampled_from(["", "m", "k", "Ki", "M", "Gi"]).map(
            lambda suffix: Quantity(f"{number}{suffix}")
        )
    ),
    Duration: st.integers(0, 10**9).map(lambda count: Duration.from_wire(f"{count}ms")),
    MicroTime: st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001 (as above)
        lambda moment: MicroTime.from_wire(f"{moment.replace(microsecond=0).isoformat()}.000000Z")
    ),
    timedelta: st.timedeltas(timedelta(0), timedelta(days=1)),
}
