"""Certificates kept in a file: for its owner only, whole or not at all, one writer wins."""

from pathlib import Path

import pytest

from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates.authority import begin, utc_now
from kubewright.webhook.certificates.stores import FileStore


async def test_stored_certificates_are_found_again_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    store = FileStore(path)
    assert await store.load() is None
    assert await store.save(bundle)
    assert await FileStore(path).load() == bundle
    assert path.stat().st_mode & 0o077 == 0
    assert [found.name for found in path.parent.iterdir()] == ["state.json"]


async def test_the_second_replica_uses_the_certificates_of_the_first(tmp_path: Path) -> None:
    one, two = FileStore(tmp_path / "state.json"), FileStore(tmp_path / "state.json")
    assert (await one.load(), await two.load()) == (None, None)
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    assert await one.save(bundle)
    assert not await two.save(begin(["127.0.0.1"], Lifetimes(), utc_now()))
    assert await two.load() == bundle


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"ca.crt": 1}', b'{"ca.crt":"?","ca.key":""}']
)
async def test_a_damaged_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    store = FileStore(path)
    assert await store.load() is None
    assert await store.save(begin(["127.0.0.1"], Lifetimes(), utc_now()))


@pytest.mark.parametrize("address", ["folder", "file/state.json"])
async def test_certificates_last_for_the_run_if_they_cannot_be_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    store = FileStore(tmp_path / address)
    assert await store.load() is None
    for _ in range(2):
        bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
        assert await store.save(bundle)
        assert await store.load() == bundle
    assert caplog.text.count(f"are not persisted: cannot write {tmp_path / address}: ") == 1
    assert sorted(found.name for found in tmp_path.rglob("*")) == ["file", "folder"]
