"""Calls of external systems: `ctx.record` records them, and a replay repeats their answers without calling."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import structs

import kubewright as kw
from kubewright.journal import CallRecord
from kubewright.manager import ManagerOptions
from kubewright.replay import RecordedReconcile, ReplayError, find_reconcile, replay
from kubewright.testing import Cluster, eventually

CANARY = "canary-0815-token"


class ParcelSpec(kw.Model):
    weight: int = 1


class ParcelStatus(kw.Model):
    place: str = ""
    stamps: int = 0


class Parcel(kw.Resource[ParcelSpec, ParcelStatus], group="calls.kubewright.dev", version="v1"):
    """A parcel."""


class Ticket(kw.Model):
    place: str
    code: Annotated[str, kw.Field(sensitive=True)] = ""


class AddressUnknown(Exception):
    """The post does not know an address."""


class Post:
    """Stands for an external system, and counts its calls."""

    def __init__(self, place: str = "hall 7") -> None:
        self.calls = 0
        self._place = place

    async def send(self, name: str, weight: int, token: Annotated[str, kw.Field(sensitive=True)]) -> Ticket:
        self.calls += 1
        if weight > 9:
            raise AddressUnknown(f"{name} is too heavy, {token}")
        return Ticket(place=self._place, code=CANARY)

    def count_stamps(self, weight: int) -> int:
        self.calls += 1
        return weight * 2

    async def open(self) -> object:
        return object()


def parcels(post: Post, *, heavier: int = 0, **more: Any) -> kw.Operator:
    async def reconcile(parcel: Parcel, ctx: kw.Context) -> None:
        weight = parcel.spec.weight + heavier
        ticket = await ctx.record(post.send, parcel.metadata.name, weight, token=CANARY)
        stamps = await ctx.record(post.count_stamps, weight)
        await ctx.patch_status(parcel, ParcelStatus(place=ticket.place, stamps=stamps))

    return kw.Operator(kw.Controller(Parcel, reconcile, name="parcels"), name="parcels", **more)


async def recorded(cluster: Cluster, path: Path, weight: int = 2, **more: Any) -> RecordedReconcile:
    """Record the reconcile of a parcel."""
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with cluster.running(parcels(Post(), **more), options=options):
        await cluster.create(Parcel(kw.Meta("book"), spec=ParcelSpec(weight=weight)))
        if weight < 10:
            await cluster.eventually(Parcel, "book", lambda parcel: parcel.status.stamps == 2 * weight)
        else:
            await eventually(lambda: '"type":"reconcile"' in path.read_text())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ids = [line["reconcile"]["id"] for line in lines if line["type"] == "reconcile"]
    return find_reconcile(path, ids[0])


async def test_a_replay_returns_recorded_answers_without_calling(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    found = await recorded(embedded_cluster, tmp_path / "record")
    sent, counted = found.record.calls
    assert (sent.function, counted.function) == ("Post.send", "Post.count_stamps")
    assert {k: sent.arguments[k] for k in ("name", "weight")} == {"name": "book", "weight": 2}
    assert sent.answer["place"] == "hall 7"
    assert counted.answer == 4
    post = Post("hall 8")
    replayed = await replay(parcels(post), found)
    assert replayed.differences == []
    assert post.calls == 0
    assert replayed.record.calls[0].answer["place"] == "hall 7"


async def test_sensitive_arguments_and_answers_are_not_recorded(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    found = await recorded(embedded_cluster, path)
    assert CANARY not in path.read_text()
    assert found.record.calls[0].answer["code"].startswith("(redacted ")
    assert found.unknown == [
        "the values of Secrets and sensitive fields: they are replaced by placeholders, and their changes are not compared"
    ]


async def test_a_failed_call_fails_again_with_the_same_class(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    found = await recorded(embedded_cluster, path, weight=10)
    assert found.record.outcome == "error"
    assert CANARY not in path.read_text()
    replayed = await replay(parcels(Post()), found)
    assert replayed.differences == []
    assert replayed.record.error.startswith("AddressUnknown: book is too heavy, (redacted ")


async def test_another_call_than_the_recorded_one_is_an_error(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    found = await recorded(embedded_cluster, tmp_path / "record")
    post = Post()
    replayed = await replay(parcels(post, heavier=1), found)
    assert post.calls == 0
    assert replayed.record.error.startswith("NotRecorded: the record has no answer of Post.send with ")
    assert '- send(name="book", weight=2, token="(redacted)")' in "\n".join(replayed.differences)


async def test_the_planning_lifespan_answers_what_is_not_recorded(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    found = await recorded(embedded_cluster, tmp_path / "record")
    post = Post("planned")

    @asynccontextmanager
    async def planning() -> AsyncGenerator[None, None]:
        yield

    replayed = await replay(parcels(post, heavier=1, planning=planning), found)
    assert post.calls == 2
    assert any("planned" in line for line in replayed.differences)


async def test_an_operator_with_a_lifespan_is_replayed_from_recorded_answers(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None, None]:
        entered.append("entered")
        yield

    found = await recorded(embedded_cluster, tmp_path / "record", lifespan=lifespan)
    assert entered == ["entered"]
    replayed = await replay(parcels(Post(), lifespan=lifespan), found)
    assert replayed.differences == []
    assert entered == ["entered"], "a replay does not connect to the external system"


async def test_calls_without_a_recorded_answer_are_named_before_a_replay(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    post = Post()

    async def reconcile(parcel: Parcel, ctx: kw.Context) -> None:
        await ctx.record(post.open)
        stamps = await ctx.run_sync(post.count_stamps, 3)
        await ctx.patch_status(parcel, ParcelStatus(stamps=stamps))

    operator = kw.Operator(kw.Controller(Parcel, reconcile, name="parcels"), name="parcels")
    path = tmp_path / "record"
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with embedded_cluster.running(operator, options=options):
        await embedded_cluster.create(Parcel(kw.Meta("book")))
        await embedded_cluster.eventually(Parcel, "book", lambda parcel: parcel.status.stamps == 6)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    first = next(line["reconcile"]["id"] for line in lines if line["type"] == "reconcile")
    found = find_reconcile(path, first)
    assert found.unknown[0].startswith("the result of Post.open: a object cannot be written as JSON")
    assert found.unknown[1] == "the result of Post.count_stamps: ctx.run_sync runs it again"
    replayed = await replay(operator, found)
    assert "NotRecorded: Post.open: the record has no answer" in replayed.record.error


async def test_an_operator_with_a_lifespan_and_no_recorded_call_is_refused(
    embedded_cluster: Cluster, tmp_path: Path
) -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None, None]:
        yield

    found = await recorded(embedded_cluster, tmp_path / "record")
    bare = RecordedReconcile(
        record=structs.replace(found.record, calls=[]), object=found.object, objects=found.objects, unknown=[]
    )
    with pytest.raises(ReplayError, match="or record the calls to the system with"):
        await replay(parcels(Post(), lifespan=lifespan), bare)


async def test_a_lambda_that_returns_a_coroutine_is_refused_with_the_right_form(
    embedded_cluster: Cluster,
) -> None:
    post, errors = Post(), list[str]()

    async def reconcile(parcel: Parcel, ctx: kw.Context) -> None:
        try:
            await ctx.record(lambda: post.send("a", 1, ""))
        except TypeError as error:
            errors.append(str(error))
        await ctx.patch_status(parcel, ParcelStatus(stamps=1))

    operator = kw.Operator(kw.Controller(Parcel, reconcile), name="parcels")
    async with embedded_cluster.running(operator):
        await embedded_cluster.create(Parcel(kw.Meta("book")))
        await embedded_cluster.eventually(Parcel, "book", lambda parcel: parcel.status.stamps == 1)
    assert "pass the coroutine function and its arguments, `ctx.record(client.get, key)`" in errors[0]


def test_a_call_is_shown_on_one_line() -> None:
    call = CallRecord(
        at=datetime(2026, 1, 2, tzinfo=UTC),
        function="Post.send",
        arguments={"name": "book"},
        answer={"place": 7},
    )
    assert str(call) == 'Post.send(name="book") -> {"place":7}'
