"""A canary in every secret place, and every output searched for it: nothing may show it."""

import base64
import logging
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import Kind, KubewrightError, Meta
from kubewright.api.builtin import core_v1
from kubewright.client import (
    Client,
    ClusterConfig,
    ExecPlugin,
    OidcProvider,
    config_from_kubeconfig,
    load_config,
)

from .conftest import Exchange, Handler, Serve

pytestmark = pytest.mark.usefixtures("transport")

CANARY = "canaryBird42"
ENCODED = base64.b64encode(CANARY.encode()).decode()
SECRETS = Kind(group="", version="v1", kind="Secret", plural="secrets")


def outputs(error: BaseException, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> str:
    """Collect what a user could get to see: the error with all its causes, the logs, the two streams."""
    said = traceback.format_exception(error)
    cause: BaseException | None = error
    while cause is not None:
        said += [str(cause), repr(cause), repr(cause.args)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    streams = capfd.readouterr()
    records = [repr(record.__dict__) for record in caplog.records]
    return "\n".join([*said, caplog.text, *records, streams.out, streams.err])


async def quoting(exchange: Exchange) -> None:
    """Refuse a Secret as servers do, quoting what it held."""
    message = f'Secret "s" is invalid: data[p]: Invalid value: "{CANARY}" ({ENCODED}): no'
    cause = {"reason": "FieldValueInvalid", "field": "data[p]", "message": f'Invalid value: "{CANARY}": no'}
    status = {"kind": "Status", "message": message, "reason": "Invalid", "code": 422}
    exchange.answer({**status, "details": {"name": "s", "kind": "Secret", "causes": [cause]}}, 422)


async def refusing(exchange: Exchange) -> None:
    exchange.refuse(401, "Unauthorized", "Unauthorized")


async def breaking(exchange: Exchange) -> None:
    exchange.abort()


async def garbage(exchange: Exchange) -> None:
    exchange.answer(f'{{"kind": "Secret", "data": {{"p": "{CANARY}"'.encode())


async def wrong_type(exchange: Exchange) -> None:
    exchange.answer({"kind": "Secret", "metadata": {"name": "s"}, "data": [CANARY]})


Action = Callable[[Client], Awaitable[Any]]
SECRET = core_v1.Secret(Meta("s", namespace="default"), string_data={"p": CANARY})
WIRE = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "default"},
    "data": {"p": ENCODED},
}
ACTIONS: dict[str, Action] = {
    "create": lambda client: client.create(SECRET),
    "create by kind": lambda client: client.create(WIRE, kind=SECRETS),
    "apply": lambda client: client.apply(SECRET, field_manager="me"),
    "patch": lambda client: client.patch(
        SECRET, [{"op": "add", "path": "/data/p", "value": ENCODED}], type="json"
    ),
    "get": lambda client: client.get(core_v1.Secret, "s", "default"),
    "token": lambda client: client.token_request("s", "default"),
}


HANDLERS: tuple[Handler, ...] = (quoting, refusing, breaking, garbage, wrong_type)
# A request without data is not quoted, and a dictionary may have any shape.
NEVER = {("get", quoting), ("token", quoting), ("create by kind", wrong_type)}
CASES = [(action, handler) for action in ACTIONS for handler in HANDLERS if (action, handler) not in NEVER]


@pytest.mark.parametrize(("name", "handler"), CASES)
async def test_no_failure_shows_a_secret_or_a_token(
    serve: Serve,
    name: str,
    handler: Handler,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = await serve(handler)
    config = ClusterConfig(server.url, token=CANARY, password=CANARY)
    with caplog.at_level(logging.DEBUG):
        async with Client(config) as client:
            with pytest.raises(KubewrightError) as caught:
                await ACTIONS[name](client)
    said = outputs(caught.value, caplog, capfd)
    assert CANARY not in said
    assert ENCODED not in said


CONFIGS: dict[str, Callable[[str], ClusterConfig]] = {
    "proxy": lambda url: ClusterConfig("https://k.example.com", insecure=True, proxy_url=f"http://u:{CANARY}@{url[7:]}"),
    "gone proxy": lambda url: ClusterConfig("https://k.example.com", proxy_url=f"http://u:{CANARY}@127.0.0.1:1"),
    "basic": lambda url: ClusterConfig(url, username="u", password=CANARY),
    "strange token": lambda url: ClusterConfig(url, token=f"{CANARY}\n"),
    "key": lambda url: ClusterConfig("https://127.0.0.1:1", insecure=True, client_cert_data=b"x", client_key_data=CANARY.encode()),
    "plugin": lambda url: ClusterConfig(url, exec=ExecPlugin("sh", ("-c", f"echo {CANARY}"), interactive_mode="Never")),
    "plugin's environment": lambda url: ClusterConfig(url, exec=ExecPlugin("/none", env=(("K", CANARY),), interactive_mode="Never")),
    "oidc": lambda url: ClusterConfig(url, oidc=OidcProvider(url, "c", client_secret=CANARY, refresh_token=CANARY)),
}  # fmt: skip


@pytest.mark.parametrize("configure", CONFIGS.values(), ids=CONFIGS.keys())
async def test_no_way_to_authenticate_shows_its_secret(
    serve: Serve,
    configure: Callable[[str], ClusterConfig],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = await serve(refusing)
    config = configure(server.url)
    with caplog.at_level(logging.DEBUG):
        async with Client(config) as client:
            with pytest.raises(KubewrightError) as caught:
                await client.get(core_v1.Secret, "s", "default")
    assert CANARY not in outputs(caught.value, caplog, capfd)
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    "text", [f"token: {CANARY}\n\t", f"users: {CANARY}", f"{CANARY}", f"a: [{CANARY}", f"x: *{CANARY}"]
)
def test_a_broken_kubeconfig_is_not_quoted(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubewrightError) as caught:
        load_config(tmp_path / "config")
    assert CANARY not in outputs(caught.value, caplog, capfd).replace(text, "")


def test_a_document_of_the_wrong_shape_is_not_quoted(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KubewrightError) as caught:
        config_from_kubeconfig({"users": [{"name": "u", "user": {"token": [CANARY]}}]})
    said = str(caught.value) + repr(caught.value.args) + caplog.text + capfd.readouterr().err
    assert CANARY not in said
