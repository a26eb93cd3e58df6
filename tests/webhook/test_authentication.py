"""Tokens and the users that they belong to, as TokenReviews."""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import DeclarationError
from kubewright.webhook import BadReview, Endpoints, User, authenticates, read_token

from .calling import called
from .reviews import body

PATH = "/authenticate"


@authenticates
def known(token: str, audiences: Sequence[str]) -> User | None:
    if token == "break":
        raise KeyError(token)
    if token != "good" or (audiences and "here" not in audiences):
        return None
    return User("jane", groups=("people",), extra={"shoe": ("39",)})


def review(token: str, *audiences: str, version: str = "v1") -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return {"apiVersion": f"authentication.k8s.io/{version}", "kind": "TokenReview", "spec": spec}


def status(document: dict[str, Any]) -> dict[str, Any]:
    answer = json.loads(read_token(known, body(document)).run())
    assert (answer["kind"], answer["apiVersion"]) == ("TokenReview", document["apiVersion"])
    return answer["status"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_valid_token_has_a_user(version: str) -> None:
    found = status(review("good", version=version))
    assert found["authenticated"] is True
    assert found["user"]["username"] == "jane"
    assert (found["user"]["groups"], found["user"]["extra"]) == (["people"], {"shoe": ["39"]})


def test_a_token_is_valid_for_the_requested_audiences() -> None:
    assert status(review("good", "here"))["audiences"] == ["here"]
    assert status(review("good", "there")) == {"authenticated": False}


def test_an_unknown_token_is_not_authenticated() -> None:
    assert status(review("bad")) == {"authenticated": False}


def test_a_function_may_leave_the_audiences_out() -> None:
    plain = authenticates(lambda token: User(f"user of {token}"))
    assert json.loads(read_token(plain, body(review("x"))).run())["status"]["user"]["username"] == "user of x"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        body(review("")),
        body(review("x", version="v9")),
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        body(review("x") | {"spec": 3}),
    ],
)
def test_a_body_that_is_no_token_review_is_refused(data: bytes) -> None:
    with pytest.raises(BadReview):
        read_token(known, data)


async def test_token_reviews_are_served_and_the_log_never_shows_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    async with called([known]) as server:
        code, answer = await server.post(PATH, body(review("good")))
        assert (code, json.loads(answer)["status"]["authenticated"]) == (200, True)
        code, answer = await server.post(PATH, body(review("break")))
        assert code == 200
        assert json.loads(answer)["status"] == {
            "authenticated": False,
            "error": "the token could not be reviewed",
        }
        assert server.samples("controller_runtime_webhook_panics_total")[()] == 1
        code, answer = await server.post(PATH, b"{}")
        assert (code, json.loads(answer)["kind"]) == (400, "TokenReview")
        assert json.loads(answer)["status"]["authenticated"] is False
        assert (await server.post(PATH, b"x" * (1024 * 1024 + 1)))[0] == 413
    assert "A token could not be reviewed: KeyError" in caplog.text
    assert "break" not in caplog.text


async def test_an_async_function_is_awaited_on_the_event_loop() -> None:
    here = asyncio.get_running_loop()

    @authenticates
    async def awaited(token: str) -> User | None:
        assert asyncio.get_running_loop() is here
        await asyncio.sleep(0)
        if token == "break":
            raise KeyError(token)
        return User(token)

    async with called([awaited]) as server:
        _, answer = await server.post(PATH, body(review("jane")))
        assert json.loads(answer)["status"]["user"]["username"] == "jane"
        _, answer = await server.post(PATH, body(review("break")))
        assert json.loads(answer)["status"]["error"] == "the token could not be reviewed"


async def test_a_function_that_returns_no_user_authenticates_none() -> None:
    odd: Any = authenticates(lambda token: {"username": "system:admin"})  # type: ignore[arg-type, return-value]
    async with called([odd]) as server:
        _, answer = await server.post(PATH, body(review("x")))
        assert json.loads(answer)["status"]["authenticated"] is False


def test_declarations_that_cannot_work_are_refused() -> None:
    with pytest.raises(DeclarationError, match="must take the token"):
        authenticates(lambda: None)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="is taken"):
        Endpoints([known, authenticates(lambda token: None)])


def test_an_operator_may_consist_of_an_authentication_webhook() -> None:
    operator = kw.Operator(webhooks=[known])
    assert operator.name == "authentication"
    assert operator.webhooks
