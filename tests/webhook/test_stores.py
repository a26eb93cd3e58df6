"""Certificates kept in a file: for its owner only, whole or not at all, one writer wins."""

from pathlib import Path

import pytest

from kubewright.webhook import Lifetimes
from kubewright.webhook.server.authority import begin, utc_now
from kubewright.webhook.server.stores import FileStore


async def test_what_is_kept_is_found_again_and_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    store = FileStore(path)
    assert await store.load() is None
    assert await store.save(bundle)
    assert await FileStore(path).load() == bundle
    assert path.stat().st_mode & 0o077 == 0
    assert [found.name for found in path.parent.iterdir()] == ["state.json"]


async def test_who_comes_second_takes_up_what_the_first_has_kept(tmp_path: Path) -> None:
    one, two = FileStore(tmp_path / "state.json"), FileStore(tmp_path / "state.json")
    assert (await one.load(), await two.load()) == (None, None)
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    assert await one.save(bundle)
    assert not await two.save(begin(["127.0.0.1"], Lifetimes(), utc_now()))
    assert await two.load() == bundle


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"ca.crt": 1}', b'{"ca.crt":"?","ca.key":""}']
)
async def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    store = FileStore(path)
    assert await store.load() is None
    assert await store.save(begin(["127.0.0.1"], Lifetimes(), utc_now()))


@pytest.mark.parametrize("address", ["folder", "file/state.json"])
async def test_where_nothing_can_be_kept_they_last_for_the_run_and_the_place_is_named(
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
