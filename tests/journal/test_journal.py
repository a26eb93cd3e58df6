"""The journal: what each reconcile was caused by, read, wrote and reported, within a limit of memory."""

import asyncio
import logging
import tracemalloc
from typing import Annotated

import msgspec

import kubewright as kw
from kubewright.api import Kind, ObjectKey, raw_object
from kubewright.api.builtin import core_v1
from kubewright.journal import (
    CachedRead,
    Collected,
    Journal,
    LoggedLine,
    ReconcileRecord,
    Redactor,
    collecting,
    current,
    record_of,
)
from kubewright.journal.records import documents_of
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually

CANARY = "canary-4711-secret"


class CrateSpec(kw.Model):
    books: int = 0
    password: Annotated[str, kw.Field(sensitive=True)] = ""


class CrateStatus(kw.Model):
    ready: int = 0


class Crate(kw.Resource[CrateSpec, CrateStatus], group="journal.kubewright.dev", version="v1"):
    """A crate."""


async def arrange(crate: Crate, ctx: kw.Context) -> None:
    ctx.log.info("arranging %d books", crate.spec.books)
    if crate.spec.books < 0:
        raise ValueError(f"no crate holds {crate.spec.books} books, {crate.spec.password}")
    await ctx.find(core_v1.ConfigMap, "absent")
    await ctx.apply(core_v1.ConfigMap(kw.Meta(crate.metadata.name), data={"books": str(crate.spec.books)}))
    await ctx.apply(
        core_v1.Secret(kw.Meta(crate.metadata.name), string_data={"password": crate.spec.password or "none"})
    )
    await ctx.patch_status(crate, CrateStatus(ready=crate.spec.books))
    if crate.status.ready != crate.spec.books:
        ctx.event("Arranged", f"{crate.spec.books} books")


def crates(name: str = "crates") -> kw.Operator:
    return kw.Operator(
        kw.Controller(Crate, arrange, owns=[core_v1.ConfigMap, core_v1.Secret], name=name), name=name
    )


def records(
    manager: Manager, kinds: list[type[kw.Resource[CrateSpec, CrateStatus]]] | None = None
) -> list[ReconcileRecord]:
    redactor = Redactor(kinds or [Crate])
    return [record_of(entry, redactor) for entry in manager.journal]


async def until_written(cluster: Cluster, manager: Manager, books: int) -> ReconcileRecord:
    """Wait for the reconcile that wrote this number of books; return its record."""

    def written() -> ReconcileRecord | None:
        for record in records(manager):
            if any(f'"{books}"' in str(change) for write in record.writes for change in write.changes):
                return record
        return None

    return await eventually(written)


async def test_a_record_has_cause_reads_writes_events_and_log(cluster: Cluster) -> None:
    async with cluster.running(crates()) as manager:
        crate = await cluster.create(Crate(kw.Meta("one"), spec=CrateSpec(books=3)))
        first = await until_written(cluster, manager, 3)
        await cluster.client.patch(crate, {"spec": {"books": 5}}, type="merge")
        second = await until_written(cluster, manager, 5)
    assert (first.controller, first.kind, first.name) == ("crates", "Crate", "one")
    assert (first.uid, first.generation) == (crate.metadata.uid, 1)
    assert [(cause.kind, cause.type) for cause in first.causes] == [("Crate", "create")]
    assert first.outcome == "success"
    assert first.duration > 0
    created = next(write for write in first.writes if write.resource == "configmaps")
    assert (created.verb, created.status, created.created, created.name) == ("apply", 201, True, "one")
    assert 'data.books: nothing -> "3"' in [str(change) for change in created.changes]
    absent = next(read for read in first.reads if read.name == "absent")
    assert (absent.verb, absent.source, absent.found) == ("get", "cache", [])
    assert [event.reason for event in first.events] == ["Arranged"]
    assert any(line.message == "arranging 3 books" for line in first.log)
    changed = [str(change) for cause in second.causes for change in cause.changes if cause.kind == "Crate"]
    assert "spec.books: 3 -> 5" in changed
    update = next(write for write in second.writes if write.resource == "configmaps")
    assert [str(change) for change in update.changes] == ['data.books: "3" -> "5"']
    status = next(write for write in second.writes if write.resource.startswith("crates/status"))
    assert [str(change) for change in status.changes] == ["status.ready: 3 -> 5"]
    assert len({record.id for record in records(manager)}) == len(records(manager))


async def test_a_reconcile_that_changes_nothing_counts_its_skipped_applies(cluster: Cluster) -> None:
    async with cluster.running(crates()) as manager:
        crate = await cluster.create(Crate(kw.Meta("idle"), spec=CrateSpec(books=1)))
        await until_written(cluster, manager, 1)
        for number in range(3):
            touched = await cluster.client.patch(
                crate, {"metadata": {"annotations": {"touched": str(number)}}}, type="merge"
            )
            version = touched.metadata.resource_version
            await eventually(
                lambda version=version: any(
                    cause.resource_version == version
                    for record in records(manager)
                    for cause in record.causes
                )
            )
        last = records(manager)[-1]
    assert last.writes == []
    assert last.skipped_applies >= 2


async def test_a_failed_reconcile_has_its_error_and_the_time_of_the_next_try(cluster: Cluster) -> None:
    async with cluster.running(crates()) as manager:
        await cluster.create(Crate(kw.Meta("bad"), spec=CrateSpec(books=-1, password=CANARY)))
        failed = await eventually(
            lambda: [record for record in records(manager) if record.outcome == "error"]
        )
    record = failed[0]
    assert record.error.startswith("ValueError: no crate holds -1 books")
    assert record.retry_at is not None
    assert record.retry_at > record.started_at
    assert any(line.level == "ERROR" for line in record.log)


async def test_the_copy_of_a_manifest_in_an_annotation_is_redacted_with_its_sensitive_fields(
    cluster: Cluster,
) -> None:
    async with cluster.running(crates()) as manager:
        copied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"spec":{{"password":"{CANARY}"}}}}'}
        spec = CrateSpec(books=4, password=CANARY)
        await cluster.create(Crate(kw.Meta("copied", annotations=copied), spec=spec))
        await until_written(cluster, manager, 4)
        text = msgspec.json.encode(records(manager)).decode()
        documents = [
            document for entry in manager.journal for document in documents_of(entry, manager.redactor)
        ]
    assert CANARY not in text
    assert CANARY not in msgspec.json.encode(documents).decode()
    assert any(document["kind"] == "Secret" for document in documents)
    sent = next(one for one in documents if one["kind"] == "Crate")["spec"]["password"]
    stored = next(one for one in documents if one["kind"] == "Secret" and one.get("data"))["data"]["password"]
    assert sent == stored, "equal values have equal placeholders, also if one is base64"


async def test_secrets_and_sensitive_fields_are_in_no_record(cluster: Cluster) -> None:
    async with cluster.running(crates()) as manager:
        crate = await cluster.create(Crate(kw.Meta("safe"), spec=CrateSpec(books=2, password=CANARY)))
        await until_written(cluster, manager, 2)
        await cluster.client.patch(
            crate, {"spec": {"books": -2, "password": f"{CANARY}-changed"}}, type="merge"
        )
        await eventually(lambda: any(record.error for record in records(manager)))
        text = msgspec.json.encode(records(manager)).decode()
        failed = next(record for record in records(manager) if record.error)
    assert CANARY not in text
    assert "Y2FuYXJ5LTQ3MTEt" not in text  # as base64
    assert "(redacted " in text
    changed = [change.path for cause in failed.causes for change in cause.changes]
    assert "spec.password" in changed, "a change of a sensitive value is seen, its values are not"


LAMP = Kind(group="example.com", version="v1", kind="Lamp", plural="lamps")


class _Log:
    fields = {"reconcileID": "one"}


def finished(name: str, size: int = 1000, *, outcome: str = "success", line: str = "said") -> Collected:
    entry = Collected("lamps", LAMP, ObjectKey("default", name), (), _Log())
    body = b'{"metadata":{"name":"%s"},"data":"%s"}' % (name.encode(), b"x" * size)
    entry.add(CachedRead(LAMP, entry.key, raw_object(body)))
    if line:
        entry.add_work(LoggedLine(0.0, "INFO", "test", line))
    entry.finish(outcome, 0.1, None)
    return entry


def test_the_journal_drops_the_oldest_above_its_limit() -> None:
    journal = Journal(limit=10_000)
    for number in range(100):
        journal.add(finished(f"lamp-{number}"))
        assert journal.size <= 10_000
    assert [entry.key.name for entry in journal][-1] == "lamp-99"
    assert len(journal) + journal.dropped == 100
    assert journal.size == sum(entry.size for entry in journal)


def test_idle_reconciles_of_one_object_do_not_displace_others() -> None:
    journal = Journal(limit=100_000)
    journal.add(finished("worked"))
    for _ in range(1000):
        journal.add(finished("idle", line=""))
    assert [entry.key.name for entry in journal] == ["worked", "idle"]
    assert [entry.repeated for entry in journal] == [0, 999]
    journal.add(finished("idle"))
    journal.add(finished("idle", line=""))
    assert [entry.repeated for entry in journal] == [0, 999, 0, 0]
    assert journal.dropped == 0


def test_a_reconcile_larger_than_the_limit_is_dropped_at_once() -> None:
    journal = Journal(limit=5_000)
    journal.add(finished("small"))
    journal.add(finished("large", size=10_000))
    assert (len(journal), journal.size, journal.dropped) == (0, 0, 2)


async def test_work_of_a_task_after_its_reconcile_is_not_recorded() -> None:
    entry = finished("ended")
    steps = len(entry.steps)
    with collecting(entry):
        late = asyncio.create_task(asyncio.sleep(0))
        found = current()
        assert found is entry
        found.add(LoggedLine(0.0, "INFO", "test", "too late"))
        await late
    assert len(entry.steps) == steps
    assert current() is None


async def test_the_handlers_of_the_log_are_as_before_when_the_operator_has_stopped(cluster: Cluster) -> None:
    before = list(logging.getLogger().handlers)
    async with cluster.running(crates("one")), cluster.running(crates("two")):
        assert len(logging.getLogger().handlers) == len(before) + 1
    assert logging.getLogger().handlers == before


def test_an_hour_of_churn_stays_within_the_limit() -> None:
    """Reconcile ten of 1,000 objects in each second of an hour: 36,000 reconciles, half of them idle."""
    limit = 512 * 1024
    journal = Journal(limit)
    kind = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps", builtin=True)
    log = logging.getLogger("churn")
    samples: list[int] = []
    tracemalloc.start()
    try:
        for number in range(36_000):
            key = ObjectKey("default", f"object-{number * 7 % 1000}")
            entry = Collected("churn", kind, key, (), log)
            if number % 2:
                # Each message is a text of its own, as the bytes of objects are.
                entry.add_work(LoggedLine(0.0, "INFO", "churn", f"{number:06}" * (number % 200)))
            entry.finish("success", 0.001, None)
            journal.add(entry)
            if number % 1_000 == 999:
                assert journal.size <= limit
                assert journal.size == sum(each.size for each in journal)
                samples.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert journal.dropped > 10_000
    full = samples[len(samples) // 2 :]
    assert max(full) < 1.1 * min(full), "memory grows although the journal is full"
    assert max(full) < 3 * limit
