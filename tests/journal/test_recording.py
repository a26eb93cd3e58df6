"""The record of a run as a file: complete, bounded, readable after any crash, and never in the operator's way."""

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import kubewright as kw
from kubewright.api import ConfigError, ObjectKey, raw_object
from kubewright.journal import (
    CachedRead,
    Collected,
    DroppedLine,
    LoggedLine,
    ObjectLine,
    ReconcileLine,
    RecordFile,
    RecordFileError,
    Redactor,
    StartLine,
    UnreadableLine,
    read_lines,
)
from kubewright.manager import Manager, ManagerOptions
from kubewright.testing import Cluster, eventually

from .test_journal import CANARY, LAMP, Crate, CrateSpec, crates


class _Log:
    def __init__(self, number: int) -> None:
        self.fields = {"reconcileID": f"id-{number}"}


def reconcile(number: int, version: str = "1", size: int = 100) -> Collected:
    entry = Collected("lamps", LAMP, ObjectKey("default", "lamp"), (), _Log(number))
    body = b'{"metadata":{"name":"lamp","uid":"u","resourceVersion":"%s"},"data":"%s"}'
    entry.add(CachedRead(LAMP, entry.key, raw_object(body % (version.encode(), b"x" * size))))
    entry.add_work(LoggedLine(0.0, "INFO", "test", "said"))
    entry.finish("success", 0.1, None)
    return entry


@contextmanager
def opened(path: Path, **limits: int) -> Iterator[RecordFile]:
    file = RecordFile(path, operator="lamps", redactor=Redactor(), **limits)
    file.open()
    try:
        yield file
    finally:
        file.close()


def ids(path: Path) -> list[str]:
    return [line.reconcile.id for line in read_lines(path) if isinstance(line, ReconcileLine)]


async def test_a_run_is_recorded_without_secrets(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with cluster.running(crates(), options=options) as manager:
        await cluster.create(Crate(kw.Meta("one"), spec=CrateSpec(books=3, password=CANARY)))
        await cluster.eventually(Crate, "one", lambda crate: crate.status.ready == 3)
        await eventually(lambda: any(entry.outcome for entry in manager.journal))
        kept = {entry.id for entry in manager.journal}
    lines = list(read_lines(path))
    assert isinstance(lines[0], StartLine)
    assert lines[0].operator == "crates"
    assert kept <= set(ids(path))
    objects = [line for line in lines if isinstance(line, ObjectLine)]
    versions = [(line.uid, line.resource_version) for line in objects]
    assert len(versions) == len(set(versions)), "the content of a version is written once"
    assert {line.object["kind"] for line in objects} >= {"Crate", "ConfigMap", "Secret"}
    assert CANARY not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0, "objects of the cluster are private"


async def test_a_record_that_cannot_be_written_is_an_error_at_the_start(
    cluster: Cluster, tmp_path: Path
) -> None:
    options = ManagerOptions(
        metrics_bind_address="0", health_probe_bind_address="0", record=tmp_path / "missing" / "record"
    )
    with pytest.raises(
        ConfigError, match=r"cannot write the record .*: No such file or directory; choose another"
    ):
        await Manager(crates(), cluster.config, options).run()


def test_a_second_run_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "record"
    for number in range(2):
        with opened(path) as file:
            file.add(reconcile(number))
    assert ids(path) == ["id-0", "id-1"]
    assert sum(isinstance(line, StartLine) for line in read_lines(path)) == 2
    assert sum(isinstance(line, ObjectLine) for line in read_lines(path)) == 2, (
        "each run can be read by itself"
    )


def test_the_file_and_its_predecessor_stay_within_the_limit(tmp_path: Path) -> None:
    path, limit = tmp_path / "record", 200_000
    with opened(path, limit=limit, queue_limit=10**9) as file:
        for number in range(200):
            file.add(reconcile(number, version=str(number), size=3000))
    predecessor = tmp_path / "record.1"
    assert path.stat().st_size + predecessor.stat().st_size <= limit
    both = [*ids(predecessor), *ids(path)]
    assert both == [f"id-{number}" for number in range(200 - len(both), 200)], "the latest, without a gap"
    for each in (path, predecessor):
        known = {line.resource_version for line in read_lines(each) if isinstance(line, ObjectLine)}
        used = {
            found.resource_version
            for line in read_lines(each)
            if isinstance(line, ReconcileLine)
            for read in line.reconcile.reads
            for found in read.found
        }
        assert used <= known


def test_a_slow_disk_drops_and_counts_what_does_not_fit_in_the_queue(tmp_path: Path) -> None:
    path = tmp_path / "record"
    one = reconcile(0).size
    with opened(path, queue_limit=one // 2) as file:
        for number in range(5):
            file.add(reconcile(number))
        assert file.dropped == 5
    assert ids(path) == []
    with opened(path, queue_limit=one // 2) as file:
        file.add(reconcile(1))
    assert file.dropped == 1


def test_a_full_disk_is_reported_once_and_does_not_stop_the_operator(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "full"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"), opened(path):
        pass
    path.unlink()
    file = RecordFile(path, operator="lamps", redactor=Redactor())
    file.open()
    path.unlink()
    path.mkdir()  # the next file cannot be opened
    small = RecordFile(path / "record", operator="lamps", redactor=Redactor(), limit=2)
    small.open()
    (path / "record.1").mkdir()  # the rotation fails
    for number in range(3):
        small.add(reconcile(number))
    small.close()
    file.close()
    assert small.dropped == 3
    assert sum("Cannot write the record" in record.message for record in caplog.records) == 1


def test_dropped_records_are_noted_at_their_place(tmp_path: Path) -> None:
    path = tmp_path / "record"
    large = reconcile(1, size=50_000)
    with opened(path, queue_limit=20_000) as file:
        file.add(large)
        file.add(reconcile(2))
    lines = [line for line in read_lines(path) if isinstance(line, DroppedLine | ReconcileLine)]
    assert lines[0] == DroppedLine(reconciles=1, reason="slow")
    assert ids(path) == ["id-2"]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_file_that_was_cut_can_be_read_and_continued(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "record"
    with opened(path) as file:
        for number in range(3):
            file.add(reconcile(number))
    path.write_bytes(path.read_bytes()[:-cut])
    assert ids(path) == ["id-0", "id-1"] + (["id-2"] if cut == 1 else [])
    with opened(path) as file:
        file.add(reconcile(3))
    assert ids(path)[-1] == "id-3"


def test_a_damaged_line_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with opened(path) as file:
        for number in range(3):
            file.add(reconcile(number, version=str(number)))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"broken\n', *lines[4:]]))
    found = list(read_lines(path))
    assert [line.number for line in found if isinstance(line, UnreadableLine)] == [4]
    assert len(found) == len(lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"data"', b'"data'),  # a quote is missing
        (b"xxxx", b"xx\xffx"),
        (b"xxxx", b"xx\x00x"),
        (b'"object":{', b'"object":['),
        (b'"uid":"u",', b""),
        (b"}}\n", b"\n"),
        (b"}}\n", b"}}}\n"),
    ],
)
def test_a_damaged_object_is_reported_even_if_objects_are_skipped(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    path = tmp_path / "record"
    with opened(path) as file:
        file.add(reconcile(1, version="1"))
        file.add(reconcile(2, version="2"))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[1].startswith(b'{"type":"object"')
    lines[1] = lines[1].replace(old, new, 1)
    path.write_bytes(b"".join(lines))
    for objects in (True, False):
        found = list(read_lines(path, objects=objects))
        assert [line.number for line in found if isinstance(line, UnreadableLine)] == [2]
        assert sum(isinstance(line, ObjectLine) for line in found) == int(objects)


def test_each_file_has_the_objects_of_its_reconciles_after_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with opened(path, limit=4000, queue_limit=10**9) as file:
        for number in range(6):
            file.add(reconcile(number, version="1", size=500))
    for each in (path, tmp_path / "record.1"):
        kinds = [type(line) for line in read_lines(each)]
        assert kinds[:3] == [StartLine, ObjectLine, ReconcileLine]
        assert kinds.count(ObjectLine) == 1


@pytest.mark.parametrize(
    "content", ["hello\n", '{"type":"object"', json.dumps({"type": "start", "format": 9})]
)
async def test_a_file_that_is_not_a_record_is_not_appended_to(
    cluster: Cluster, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "notes"
    path.write_text(content)
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    with pytest.raises(ConfigError, match=r"notes .*; choose another file with --record$"):
        await Manager(crates(), cluster.config, options).run()
    assert path.read_text() == content


def test_an_empty_file_is_taken_for_a_record(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.touch()
    with opened(path) as file:
        file.add(reconcile(1))
    assert ids(path) == ["id-1"]


START = {"type": "start", "format": 1, "operator": "a", "at": "2026-01-01T00:00:00Z"}


def test_a_file_of_another_format_or_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("hello\n")
    with pytest.raises(RecordFileError, match="is not a record of `kubewright run --record`"):
        list(read_lines(path))
    path.write_text('{"type":"dropped","reconciles":1,"reason":"slow"}\n')
    with pytest.raises(RecordFileError, match="does not begin with the start of a record"):
        list(read_lines(path))
    path.write_text("")
    with pytest.raises(RecordFileError, match="is empty: it has no record"):
        list(read_lines(path))
    path.write_text('{"type":"start","for')
    with pytest.raises(RecordFileError, match="or was cut in its first line"):
        list(read_lines(path))
    for number in (0, 99):
        path.write_text(json.dumps({**START, "format": number}) + "\n")
        with pytest.raises(RecordFileError, match=f"has format {number}, and this kubewright reads format 1"):
            list(read_lines(path))


def test_a_file_of_two_gigabytes_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "record", 2 * 1024**3
    with opened(path) as file:
        file.add(reconcile(1, version="1"))
    end = path.read_bytes().splitlines(keepends=True)[-1]
    with path.open("r+b") as damaged:  # sparse: it takes no place on the disk
        damaged.seek(size)
        damaged.write(b"\n" + end)
    read: list[int] = []
    tracemalloc.start()
    try:
        reconciles = [
            line
            for line in read_lines(path, objects=False, progress=read.append)
            if isinstance(line, ReconcileLine)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(reconciles) == 2
    assert sum(read) == path.stat().st_size
    assert peak < 128 * 1024**2


def test_a_large_file_that_is_no_record_is_refused_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.seek(2 * 1024**3)
        file.write(b"end")
    read: list[int] = []
    with pytest.raises(RecordFileError, match="is not a record of"):
        list(read_lines(path, progress=read.append))
    assert sum(read) < 4 * 1024**2
