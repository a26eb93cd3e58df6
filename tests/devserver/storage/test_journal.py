"""A data file keeps every acknowledged write, also when the process is killed."""

import json
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.api import ConfigError
from kubewright.devserver.storage import DataFile, ObjectStore

WRITER = """
import itertools, sys
from pathlib import Path
from kubewright.devserver.storage import DataFile, ObjectStore

store = ObjectStore(DataFile(Path(sys.argv[1])), lambda: 0.0)
pods = store.collection("pods")
for number in itertools.count():
    key = f"a/{number % 7}"
    data = b'{"metadata":{"labels":{"n":"%d"}}}' % number
    record = store.put(pods, key, pods.get(key), lambda revision: data, "shape", {})
    if number % 5 == 4:
        revision = store.delete(pods, record)
        print(key, revision, "deleted", flush=True)
    else:
        print(key, record.revision, data.decode(), flush=True)
"""


@pytest.fixture
def unblocked_event_loop() -> None:
    """Let these tests block: the journal writes before it returns, that is its promise."""
    return


def test_a_file_that_is_not_a_data_file_is_an_error_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a database, and long enough to be looked at as one")
    for place, why in (("notes", "file is not a database"), ("no/where", "No such file or directory")):
        with pytest.raises(ConfigError, match=f"cannot keep a cluster in .*{place}: {why}"):
            DataFile(tmp_path / place)
    assert (tmp_path / "notes").read_text().startswith("not a database")


def open_store(file: Path) -> ObjectStore:
    return ObjectStore(DataFile(file), lambda: 0.0)


def test_all_objects_exist_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    store = open_store(file)
    pods = store.collection("pods")
    kept = store.put(pods, "a/x", None, lambda _: b'{"metadata":{"labels":{"a":"b"}}}', "shape", {"a": "b"})
    gone = store.put(pods, "a/y", None, lambda _: b"{}", "shape", {})
    last = store.delete(pods, gone)
    store.close()
    again = open_store(file)
    (record,) = again.collection("pods").records()
    assert (record.key, record.revision, record.data, record.shape, record.labels) == (
        kept.key,
        kept.revision,
        kept.data,
        "shape",
        {"a": "b"},
    )
    assert again.revision == last
    assert again.collection("pods").floor == last
    again.close()


def test_the_file_is_private(tmp_path: Path) -> None:
    open_store(tmp_path / "data.db").close()
    assert stat.S_IMODE((tmp_path / "data.db").stat().st_mode) == 0o600


@pytest.mark.seeds(7)
def test_no_acknowledged_write_is_lost_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "data.db"
    chance = random.Random(seed)
    revision = 0
    for _ in range(3):
        expected, last = killed_writer(file, chance.randint(50, 400))
        store = open_store(file)
        found = {record.key: json.loads(record.data) for record in store.collection("pods").records()}
        acknowledged = {key: json.loads(text) for key, text in expected.items() if text != "deleted"}
        # One more write may have been committed and not yet acknowledged.
        assert store.revision - last in (0, 1, 2)
        differing = {key for key in found.keys() | acknowledged if found.get(key) != acknowledged.get(key)}
        assert len(differing) <= 1
        assert last > revision
        revision = store.revision
        store.close()


def killed_writer(file: Path, writes: int) -> tuple[dict[str, str], int]:
    """Run a writer, kill it in the middle, and give what it had acknowledged."""
    reported: dict[str, str] = {}
    last = 0
    if file.exists():
        store = open_store(file)
        reported = {record.key: record.data.decode() for record in store.collection("pods").records()}
        store.close()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            if not line.endswith("\n"):
                break
            key, revision, text = line.rstrip("\n").split(" ", 2)
            reported[key], last = text, int(revision)
            if number == writes:
                process.send_signal(signal.SIGKILL)
    return reported, last


def test_a_file_of_a_newer_kubernetes_or_another_format_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    DataFile(file, "1.36").close()
    DataFile(file, "1.37").close()
    with pytest.raises(ConfigError, match=r"holds a cluster of Kubernetes 1\.37, this server is 1\.36"):
        DataFile(file, "1.36")
    journal = DataFile(file, "1.37")
    journal.keep_setting("format", b"99")
    journal.close()
    with pytest.raises(ConfigError, match="has format 99, this version of kubewright reads format 1"):
        DataFile(file, "1.37")
