"""Property tests for conversions: objects generated from a kind's types, converted there and back.

    def test_foos_survive_conversion() -> None:
        check_round_trips(conversion)

Needs Hypothesis, which the `testing` extra installs.
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
            types, infos = field_types(cls), field_info(cls)
            fields = {
                item.name: self.field(types[item.name], infos[item.name])
                for item in msgspec.structs.fields(cls)
            }
            made = st.builds(cls, **fields)
        return self._known[cls]

    def field(self, annotation: Any, info: Field) -> _Strategy:
        if get_origin(annotation) is Annotated:
            return self.field(get_args(annotation)[0], info)
        if info.enum:
            return st.sampled_from(list(info.enum))
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return st.sampled_from(arguments)
        if origin is list:
            return self._list(arguments[0], info)
        if origin is dict:
            return st.dictionaries(
                _LABEL,
                self.field(arguments[1], _inner(arguments[1])),
                min_size=info.min_properties or 0,
                max_size=_most(info.min_properties, info.max_properties),
            )
        if arguments:
            return st.one_of(*(self.field(part, info) for part in arguments))
        return self._plain(annotation, info)

    def _list(self, item: Any, info: Field) -> _Strategy:
        return st.lists(
            self.field(item, _inner(item)),
            min_size=info.min_items or 0,
            max_size=_most(info.min_items, info.max_items),
            unique_by=_identity(info),
        )

    def _plain(self, cls: Any, info: Field) -> _Strategy:
        if cls is int:
            return _integers(info)
        if cls is float:
            return _floats(info)
        if cls is str:
            return _texts(info)
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


def _identity(info: Field) -> Callable[[Any], Any] | None:
    """Return the keys that identify the elements of a list; None if duplicates are allowed."""
    if info.list_type == "map":
        return lambda value: tuple(repr(to_wire(value).get(key)) for key in info.list_keys)
    return repr if info.list_type == "set" or info.unique else None


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


def _integers(info: Field) -> _Strategy:
    reach = _INT64 if info.int64 else _INT32
    low = max(_least(info.ge, -reach), _least(info.gt, -reach - 1) + 1)
    high = min(_least(info.le, reach - 1), _least(info.lt, reach) - 1)
    step = int(info.multiple_of or 1)
    return st.integers(-(-low // step), high // step).map(lambda number: number * step)


def _least(bound: float | None, otherwise: int) -> int:
    return otherwise if bound is None else int(bound)


def _floats(info: Field) -> _Strategy:
    low, high = info.ge if info.ge is not None else info.gt, info.le if info.le is not None else info.lt
    return st.floats(
        low,
        high,
        allow_nan=False,
        allow_infinity=False,
        exclude_min=info.gt is not None,
        exclude_max=info.lt is not None,
    )


def _texts(info: Field) -> _Strategy:
    least, most = info.min_length or 0, info.max_length
    if info.format in _FORMATS:
        return _FORMATS[info.format]
    if info.pattern:
        # Where Python's `$` also stands before a last line's end, the server's stands at the very end.
        return st.from_regex(re.sub(r"(?<!\\)\$$", r"\\Z", info.pattern)).filter(
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
