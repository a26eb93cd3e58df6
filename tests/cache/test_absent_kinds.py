"""A kind that the server does not serve, and that no user of the cache requires."""

import asyncio
import itertools
from typing import Any

import pytest

from kubewright.api import ApiError, Forbidden, NotFound, ServiceUnavailable, Status
from kubewright.cache import Cache, CacheSyncTimeout, Informer, Selection, StoreChange
from kubewright.testing.virtual_time import virtual_time

from .test_informer import A, Running, Widget, initial


def refusal(cls: type[ApiError], code: int) -> ApiError:
    return cls(Status(status="Failure", code=code, reason=cls.__name__), verb="watch")


def missing() -> ApiError:
    return refusal(NotFound, 404)


def optional_informer(source: Any, make: Any, **options: Any) -> Informer[Widget]:
    return Cache(source, **options).informer(Selection(make.kind), Widget, optional=True)


@virtual_time
async def test_a_missing_kind_is_listed_with_backoff_and_found_within_13_s(source: Any, make: Any) -> None:
    source.script = [make.answer(error=missing()) for _ in range(20)]
    source.script.append(make.answer(*initial(make, make.object("a", 3)), hangs=True))
    informer = optional_informer(source, make)
    async with Running(informer):
        await informer.wait_synced(optional=True)
        assert informer.feed.absent
        assert informer.feed.complete
        assert not informer.synced
        assert informer.problems == []
        assert informer.list() == []
        await asyncio.sleep(600)
        assert not informer.feed.absent
        assert informer.get(A) is not None
    times = [call.at for call in source.calls]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert len(pauses) == 20
    assert pauses[0] >= 0.8
    assert min(pauses[5:]) >= 10
    assert max(pauses) <= 13


@virtual_time
async def test_objects_are_dropped_when_the_kind_is_refused_twice_in_a_row(source: Any, make: Any) -> None:
    changes: list[StoreChange] = []
    present = initial(make, make.object("a", 3))
    source.script = [
        make.answer(*present, delay=1, error=missing()),
        make.answer(*present, delay=1, error=missing()),
        make.answer(error=missing()),
        make.answer(*initial(make, make.object("a", 2), version=5), hangs=True),
    ]
    informer = optional_informer(source, make)
    async with Running(informer):
        informer.subscribe(changes.append)
        await asyncio.sleep(60)
    # One refusal may be a server that starts: the object is still held after the first.
    assert [(change.key, change.new is None) for change in changes] == [(A, False), (A, True), (A, False)]
    # A kind that comes back may begin at any version.
    assert changes[-1].new is not None
    assert changes[-1].new.meta.resource_version == "2"


@virtual_time
async def test_a_server_that_is_unavailable_does_not_hold_up_a_start_nor_make_reads_complete(
    source: Any, make: Any
) -> None:
    source.script = [make.answer(error=refusal(ServiceUnavailable, 503)) for _ in range(500)]
    informer = optional_informer(source, make)
    async with Running(informer):
        await informer.wait_synced(optional=True)
        await asyncio.sleep(300)
        assert not informer.feed.complete
        assert informer.problems == []


@virtual_time
async def test_a_missing_rule_on_an_optional_kind_is_a_problem(source: Any, make: Any) -> None:
    source.script = [make.answer(error=refusal(Forbidden, 403)) for _ in range(500)]
    informer = optional_informer(source, make, sync_timeout=30)
    async with Running(informer):
        with pytest.raises(CacheSyncTimeout):
            await informer.wait_synced(optional=True)
        assert len(informer.problems) == 1


@virtual_time
async def test_a_kind_that_another_user_requires_is_not_optional(source: Any, make: Any) -> None:
    source.script = [make.answer(error=missing()) for _ in range(50)]
    cache = Cache(source, sync_timeout=30)
    informer = cache.informer(Selection(make.kind), Widget, optional=True)
    cache.informer(Selection(make.kind), dict)
    async with Running(informer):
        with pytest.raises(CacheSyncTimeout):
            await informer.wait_synced()
        assert not informer.feed.absent
        assert len(cache.problems) == 1
