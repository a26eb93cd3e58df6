"""Where the certificate comes from: what is mounted is followed, what is broken or lost does not end a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from kubewright.certificates import FollowingContext
from kubewright.metrics import Registry
from kubewright.testing import eventually
from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates import sources
from kubewright.webhook.certificates.authority import CertificateBundle, begin, utc_now
from kubewright.webhook.certificates.sources import CertificateSource, DirectorySource, OwnSource
from kubewright.webhook.certificates.stores import MemoryStore

HOSTS = ["127.0.0.1"]
OFTEN = Lifetimes(poll=timedelta(seconds=0.01), trust=timedelta(0), follow=timedelta(0))


class SharedStore(MemoryStore):
    """What others may change."""

    shared = True

    def lose(self) -> None:
        self._bundle = None


def lay(folder: Path, bundle: CertificateBundle) -> None:
    """Write as cert-manager's volumes look."""
    for name, content in (
        ("ca.crt", bundle.ca_bundle),
        ("tls.key", bundle.key),
        ("tls.crt", bundle.certificate),
    ):
        (folder / name).write_bytes(content)


def count(metrics: Registry, name: str) -> float:
    return sum(
        sample.value for family in metrics.families() if family.name == name for sample in family.samples
    )


@asynccontextmanager
async def followed(source: CertificateSource) -> AsyncIterator[asyncio.Queue[bytes]]:
    """Follow a source, and give what is announced."""
    announced: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        following = group.create_task(source.follow(announced.put))
        yield announced
        following.cancel()


async def test_an_invalid_key_pair_keeps_the_old_one_until_a_valid_one_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sources, "DIRECTORY_POLL", 0.01)
    old, new = (begin(HOSTS, Lifetimes(), utc_now()) for _ in range(2))
    metrics = Registry()
    source = DirectorySource(FollowingContext(), metrics, tmp_path)
    assert source.problem() == "there is no certificate yet"
    lay(tmp_path, old)
    assert await source.prepare() == old.ca_bundle
    async with followed(source) as announced:
        assert await announced.get() == old.ca_bundle
        (tmp_path / "tls.crt").write_bytes(new.certificate)  # its key is still the old one
        await eventually(lambda: source.last_error)
        assert source.problem() is None
        assert "the old one stays" in caplog.text
        (tmp_path / "tls.crt").unlink()
        await eventually(lambda: "tls.crt" in source.last_error)
        lay(tmp_path, new)
        assert await announced.get() == new.ca_bundle
        await eventually(lambda: not source.last_error)
    assert count(metrics, "certwatcher_read_certificate_errors_total") >= 2
    assert count(metrics, "certwatcher_read_certificate_total") >= 4


async def test_a_directory_without_a_key_pair_is_named(tmp_path: Path) -> None:
    source = DirectorySource(FollowingContext(), Registry(), tmp_path)
    with pytest.raises(sources.CertificateStoreError, match=f"{tmp_path}.*tls.crt"):
        await source.prepare()


async def test_an_expired_certificate_is_not_used(tmp_path: Path) -> None:
    lay(tmp_path, begin(HOSTS, Lifetimes(), utc_now() - timedelta(days=100)))
    source = DirectorySource(FollowingContext(), Registry(), tmp_path)
    await source.prepare()
    assert source.problem() == "the serving certificate has expired"


async def test_a_new_authority_is_announced_beside_the_one_whose_secret_was_deleted() -> None:
    store = SharedStore()
    source = OwnSource(FollowingContext(), Registry(), store, HOSTS, OFTEN)
    first = await source.prepare()
    async with followed(source) as announced:
        assert await announced.get() == first
        store.lose()
        async with asyncio.timeout(60):
            while (both := await announced.get()) == first:
                pass
    assert both.startswith(first)
