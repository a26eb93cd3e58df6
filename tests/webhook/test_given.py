"""Webhooks that somebody else registers, as OLM does: served with that one's certificate, and left alone."""

import asyncio
import ssl
from pathlib import Path
from typing import Any, cast

import pytest

import kubewright as kw
from kubewright.metrics import Registry
from kubewright.serving import Address
from kubewright.webhook import Endpoints, Lifetimes, WebhookOptions
from kubewright.webhook.server import HostOptions, WebhookHost
from kubewright.webhook.server.authority import begin, utc_now

from .kinds import sensible


class NoCluster:
    """A client that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody may {name}")


def host(cert_dir: Path | None) -> WebhookHost:
    chosen, address = WebhookOptions(cert_dir=cert_dir), Address("127.0.0.1", 0)
    options = HostOptions(address=address, namespace="x", reach="given", webhooks=chosen)
    return WebhookHost("boxes", Endpoints([sensible]), cast("Any", NoCluster()), options, Registry())


async def test_they_are_served_without_a_word_to_the_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubewright.webhook.server.hosting.SERVICE_DRAIN", 0.0)
    bundle = await asyncio.to_thread(begin, ["localhost"], Lifetimes(), utc_now())
    (tmp_path / "tls.key").write_bytes(bundle.key)
    (tmp_path / "tls.crt").write_bytes(bundle.certificate)
    served = host(tmp_path)
    async with asyncio.TaskGroup() as group, served.serving(group):
        assert served.problem() is None
        address = ("127.0.0.1", served.port)
        assert "CERTIFICATE" in await asyncio.to_thread(ssl.get_server_certificate, address)


def test_a_certificate_is_needed_for_it() -> None:
    with pytest.raises(kw.ConfigError, match="--webhook-cert-dir"):
        host(None)
