"""OpenID Connect tokens are refreshed before they expire, and kept."""

import asyncio
import base64
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml

from kubewright.client import Client, ClusterConfig, CredentialError, OidcProvider, load_config, requests

from .conftest import Exchange, Loopback, Serve


def token(seconds: float, name: str = "x") -> str:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': int(time.time() + seconds), 'sub': name})}.sig"


class Provider:
    """A small identity provider that rotates its refresh tokens, with a server that takes its tokens beside it."""

    def __init__(self, *, basic: bool = True) -> None:
        self.basic = basic
        self.refresh_token = "refresh-0"
        self.issued: list[str] = []
        self.server: Loopback

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.target == "/.well-known/openid-configuration":
            exchange.answer({"token_endpoint": f"{self.server.url}/token"})
        elif exchange.target == "/token":
            self._token(exchange)
        elif exchange.headers.get("authorization") in [f"Bearer {issued}" for issued in self.issued]:
            exchange.answer({"major": "1", "minor": "36"})
        else:
            exchange.refuse(401, "Unauthorized")

    def _token(self, exchange: Exchange) -> None:
        form = {key: values[0] for key, values in parse_qs(exchange.body.decode()).items()}
        pair = f"Basic {base64.b64encode(b'kubewright:sesame').decode()}"
        known = (
            exchange.headers.get("authorization") == pair
            if self.basic
            else form.get("client_secret") == "sesame"
        )
        if not known or form.get("refresh_token") != self.refresh_token:
            exchange.answer({"error": "invalid_grant"}, 400)
            return
        self.issued.append(token(3600, str(len(self.issued))))
        self.refresh_token = f"refresh-{len(self.issued)}"
        exchange.answer({"id_token": self.issued[-1], "refresh_token": self.refresh_token})


@pytest.fixture(params=[True, False], ids=["secret in the header", "secret in the form"])
async def provider(request: pytest.FixtureRequest, serve: Serve) -> Provider:
    made = Provider(basic=request.param)
    made.server = await serve(made)
    return made


def configured(provider: Provider, **options: str) -> ClusterConfig:
    given = {"refresh_token": "refresh-0", **options}
    oidc = OidcProvider(provider.server.url, "kubewright", client_secret="sesame", **given)  # pyright: ignore[reportArgumentType]
    return ClusterConfig(provider.server.url, oidc=oidc)


async def test_an_expired_token_is_refreshed(provider: Provider) -> None:
    async with Client(configured(provider, id_token=token(-1))) as client:
        await client.server_version()
        await client.server_version()
    assert len(provider.issued) == 1


async def test_a_valid_token_is_used_unchanged(provider: Provider) -> None:
    mine = token(3600, "mine")
    provider.issued.append(mine)
    async with Client(configured(provider, id_token=mine)) as client:
        await client.server_version()
    assert provider.issued == [mine]


async def test_a_fresh_token_that_is_refused_is_refreshed(provider: Provider) -> None:
    async with Client(configured(provider, id_token=token(3600, "withdrawn"))) as client:
        await client.server_version()
    assert len(provider.issued) == 1


async def test_a_refused_refresh_suggests_a_new_login(provider: Provider) -> None:
    async with Client(configured(provider, refresh_token="canary-refresh")) as client:
        with pytest.raises(
            CredentialError, match=r"refused to refresh the token \(HTTP 400\): log in again"
        ) as caught:
            await client.server_version()
    assert "canary" not in str(caught.value)


async def test_an_expired_token_without_a_refresh_token_requires_a_new_login(provider: Provider) -> None:
    async with Client(configured(provider, id_token=token(-1), refresh_token="")) as client:
        with pytest.raises(CredentialError, match="no refresh token: log in again"):
            await client.server_version()


async def test_rotated_tokens_are_kept_in_the_kubeconfig(provider: Provider, tmp_path: Path) -> None:
    settings = {
        "idp-issuer-url": provider.server.url,
        "client-id": "kubewright",
        "client-secret": "sesame",
        "refresh-token": "refresh-0",
    }
    file = tmp_path / "config"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": provider.server.url}}],
                "users": [{"name": "a", "user": {"auth-provider": {"name": "oidc", "config": settings}}}],
            }
        )
    )
    file.chmod(0o600)
    for _ in range(2):
        async with Client(await asyncio.to_thread(load_config, file)) as client:
            await client.server_version()
    kept = yaml.safe_load(file.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert kept["refresh-token"] == "refresh-1"
    assert kept["id-token"] == provider.issued[0]
    assert len(provider.issued) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["config"]


async def test_tokens_that_cannot_be_stored_are_still_used(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    config = configured(provider, kubeconfig="/does/not/exist/config", user="a")
    with caplog.at_level(logging.WARNING):
        async with Client(config) as client:
            await client.server_version()
    assert "could not be kept" in caplog.text


@pytest.mark.parametrize(
    "meanwhile",
    [
        "",
        "[]",
        "users: 1",
        "users: [{name: a}]",
        "users: [{name: a, user: {token: t}}]",
        "users: [1, {name: b}]",
    ],
)
async def test_a_kubeconfig_rewritten_meanwhile_is_not_overwritten(
    provider: Provider, tmp_path: Path, meanwhile: str
) -> None:
    file = tmp_path / "config"
    file.write_text(meanwhile)
    async with Client(configured(provider, kubeconfig=str(file), user="a")) as client:
        await client.server_version()
    assert file.read_text() == meanwhile


STRANGE: list[tuple[str, Callable[[Exchange], None], str]] = [
    (
        "HTML",
        lambda exchange: exchange.answer(b"<html>", headers={"Content-Type": "text/html"}),
        "does not describe",
    ),
    (
        "an error",
        lambda exchange: exchange.answer({}, 500),
        r"does not describe an identity provider \(HTTP 500\)",
    ),
    ("nothing", lambda exchange: exchange.abort(), "cannot be reached"),
]


@pytest.mark.parametrize(
    ("answer", "message"), [case[1:] for case in STRANGE], ids=[case[0] for case in STRANGE]
)
async def test_an_invalid_issuer_is_named(
    serve: Serve, answer: Callable[[Exchange], None], message: str
) -> None:
    async def handler(exchange: Exchange) -> None:
        answer(exchange)

    server = await serve(handler)
    oidc = OidcProvider(server.url, "kubewright", refresh_token="r")
    async with Client(ClusterConfig(server.url, oidc=oidc)) as client:
        with pytest.raises(CredentialError, match=message):
            await client.raw(requests.get_path("/version"))
