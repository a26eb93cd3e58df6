"""Webhooks that another program such as OLM registers: served with its certificate, and not changed."""

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import kubewright as kw
from kubewright.manager import ManagerOptions
from kubewright.manager.servers import serve_webhooks
from kubewright.metrics import Registry
from kubewright.serving import BindAddress, BindError, Checks
from kubewright.webhook import Endpoints, Lifetimes, WebhookOptions
from kubewright.webhook.certificates.authority import begin, utc_now
from kubewright.webhook.server import HostOptions, WebhookHost

from .kinds import sensible


class NoCluster:
    """A client that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"unexpected call of {name}")


def host(cert_dir: Path | None) -> WebhookHost:
    chosen, address = WebhookOptions(cert_dir=cert_dir), BindAddress("127.0.0.1", 0)
    options = HostOptions(address=address, namespace="x", reach="given", webhooks=chosen)
    return WebhookHost("boxes", Endpoints([sensible]), cast("Any", NoCluster()), options, Registry())


async def test_given_webhooks_are_served_without_requests_to_the_api_server(
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


async def test_a_port_in_use_is_named_with_the_option(tmp_path: Path) -> None:
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    (tmp_path / "tls.crt").write_bytes(bundle.certificate)
    (tmp_path / "tls.key").write_bytes(bundle.key)
    client = cast("Any", SimpleNamespace(config=SimpleNamespace(namespace="x")))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ManagerOptions(
            webhooks=WebhookOptions(bind_address=address, reach="given", cert_dir=tmp_path)
        )
        operator = kw.Operator(webhooks=[sensible], name="boxes")
        with pytest.raises(ExceptionGroup) as caught:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                await serve_webhooks(stack, group, client, operator, options, Registry(), Checks("readyz"))
    assert caught.group_contains(BindError, match=f"{address}: .*--webhook-bind-address, 0 is off")


def test_serving_given_webhooks_needs_a_certificate() -> None:
    with pytest.raises(kw.errors.ConfigError, match="--webhook-cert-dir"):
        host(None)
