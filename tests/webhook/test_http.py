import asyncio
import contextvars
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.certificates import FollowingContext
from kubewright.serving import BindAddress, BindError
from kubewright.testing import eventually
from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates.authority import begin, utc_now
from kubewright.webhook.server import http
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.reviewers import LARGE

from .calling import asked, called, trust
from .kinds import Widget, WidgetSpec, WidgetV1Alpha1, colored, from_alpha, from_beta, sensible
from .reviews import admission_review, body, conversion_review

ALL = [sensible, colored, from_alpha, from_beta]
VALIDATE = "/validate-widgets-example-com-v1-widget"
MUTATE = "/mutate-widgets-example-com-v1-widget"


def widget(color: str = "red") -> Widget:
    return Widget(kw.Meta("w"), spec=WidgetSpec(color=color))


async def test_reviews_are_answered_on_their_paths() -> None:
    async with called(ALL) as server:
        for path in (VALIDATE, MUTATE):
            status, answer = await server.post(f"{path}?timeout=10s", body(admission_review(widget())))
            assert (status, json.loads(answer)["response"]["allowed"]) == (200, True)
        review = conversion_review("widgets.example.com/v1", WidgetV1Alpha1(kw.Meta("w")))
        status, answer = await server.post("/convert", body(review))
        assert (status, json.loads(answer)["response"]["result"]["status"]) == (200, "Success")


async def test_a_def_is_run_in_a_thread_and_an_async_def_on_the_event_loop() -> None:
    threads: dict[str, list[int]] = {"plain": [], "coroutine": [], "generator": []}

    @kw.admission.validating_webhook(Widget, path="/plain")
    def plain(widget: Widget) -> None:
        threads["plain"].append(threading.get_ident())

    @kw.admission.mutating_webhook(Widget, path="/coroutine")
    async def coroutine(widget: Widget) -> None:
        await asyncio.sleep(0)
        threads["coroutine"].append(threading.get_ident())
        widget.spec.color = "green"

    @kw.admission.validating_webhook(Widget, path="/generator")
    async def generator(widget: Widget) -> AsyncIterator[kw.admission.Problem]:
        threads["generator"].append(threading.get_ident())
        yield kw.admission.warning("first")
        await asyncio.sleep(0)
        yield kw.admission.denied("second")

    async with called([plain, coroutine, generator]) as server:
        for color in ("red", "x" * LARGE, *["red"] * 20):
            review = body(admission_review(widget(color)))
            assert (await server.post("/plain", review))[0] == 200
            _, answer = await server.post("/coroutine", review)
            assert json.loads(answer)["response"]["patchType"] == "JSONPatch"
            _, answer = await server.post("/generator", review)
            response = json.loads(answer)["response"]
            assert (response["allowed"], response["warnings"]) == (False, ["first"])
    here = threading.get_ident()
    assert here not in threads["plain"]
    assert set(threads["coroutine"]) == set(threads["generator"]) == {here}


async def test_a_context_variable_of_the_request_is_seen_in_the_thread() -> None:
    seen: list[str] = []
    variable = contextvars.ContextVar("variable", default="unset")

    @kw.admission.validating_webhook(Widget)
    def reads(widget: Widget) -> None:
        seen.append(variable.get())

    variable.set("set")
    async with called([reads]) as server:
        await server.post(VALIDATE, body(admission_review(widget())))
    assert seen == ["set"]


async def test_a_def_that_returns_a_coroutine_is_reported() -> None:
    async def later() -> None:
        pass

    odd: Any = kw.admission.validating_webhook(Widget, name="odd")(lambda widget: later())
    async with called([odd]) as server:
        _, answer = await server.post(VALIDATE, body(admission_review(widget())))
    assert "declare the function with `async def`" in json.loads(answer)["response"]["status"]["message"]


async def test_metrics_have_controller_runtimes_names() -> None:
    async with called(ALL) as server:
        await server.post(VALIDATE, body(admission_review(widget())))
        await server.post(VALIDATE, b"{}")
        assert server.samples("controller_runtime_webhook_requests_total") == {
            (VALIDATE, "200"): 1,
            (VALIDATE, "400"): 1,
        }
        assert server.samples("controller_runtime_webhook_requests_in_flight")[VALIDATE,] == 0
        assert server.samples("controller_runtime_webhook_latency_seconds")[VALIDATE, "+Inf"] == 2


async def test_bad_requests_get_a_review_with_the_reason() -> None:
    async with called(ALL) as server:
        for junk in (
            b"",
            b"{",
            b"[]",
            b'{"kind":"Pod","apiVersion":"v1"}',
            body({"kind": "AdmissionReview"}),
        ):
            status, answer = await server.post(VALIDATE, junk)
            response = json.loads(answer)["response"]
            assert (status, response["allowed"], response["status"]["code"]) == (400, False, 400)


async def test_other_requests_are_refused_by_http() -> None:
    async with called(ALL) as server:
        good = body(admission_review(widget()))
        for path, kind, status in ((("/nowhere"), "application/json", 404), (VALIDATE, "text/yaml", 415)):
            async with server.connect() as wire:
                assert (await wire.ask("POST", path, good, {"Content-Type": kind})).status == status
        async with server.connect() as wire:
            assert (await wire.ask("GET", VALIDATE)).status == 405
        assert server.samples("controller_runtime_webhook_requests_total") == {
            (VALIDATE, "415"): 1,
            (VALIDATE, "405"): 1,
        }


async def test_a_body_that_is_too_large_is_not_read() -> None:
    megabyte = b"x" * 1024 * 1024
    head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    async with called(ALL) as server:
        async with server.connect() as wire:
            wire.writer.write(f"{head}Content-Length: 10000000\r\n\r\n".encode())
            assert (await wire.head())[0] == 413
        async with server.connect() as wire:
            wire.writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(8):
                wire.writer.write(b"%x\r\n%b\r\n" % (len(megabyte), megabyte))
            assert (await wire.head())[0] == 413
        status, _ = await server.post(VALIDATE, body(admission_review(widget())))
        assert status == 200
        assert server.samples("controller_runtime_webhook_requests_total")[VALIDATE, "413"] == 2


async def test_a_client_without_tls_gets_no_response() -> None:
    async with called(ALL) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert not answer.startswith(b"HTTP")
        assert (await server.post(VALIDATE, body(admission_review(widget()))))[0] == 200


async def test_tls_1_2_is_the_minimum_version() -> None:
    async with called(ALL) as server:
        old = trust(server.bundle)
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=old)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        writer.close()
        assert reader is not None


def broken(widget: Widget) -> None:
    raise KeyError("secret-corner")


async def broken_async(widget: Widget) -> None:
    raise KeyError("secret-corner")


@pytest.mark.parametrize("function", [broken, broken_async])
async def test_an_exception_is_a_denial_and_a_log_line_without_a_traceback_in_the_answer(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with called([kw.admission.validating_webhook(Widget, name="broken")(function)]) as server:
        with caplog.at_level(logging.ERROR, "kubewright.webhook"):
            status, answer = await server.post(VALIDATE, body(admission_review(widget())))
        response = json.loads(answer)["response"]
        assert (status, response["uid"], response["allowed"]) == (200, "u-1", False)
        assert response["status"]["code"] == 500
        assert response["status"]["message"] == (
            "broken.widgets.widgets.example.com failed: KeyError: 'secret-corner'"
        )
        assert b"Traceback" not in answer
        (record,) = caplog.records
        assert record.exc_info is not None
        assert record.__dict__["fields"]["requestID"] == "u-1"
        assert server.samples("controller_runtime_webhook_panics_total") == {(): 1}


async def test_an_exception_is_a_failure_where_failures_are_ignored() -> None:
    @kw.admission.validating_webhook(Widget, failure_policy="Ignore")
    def broken(widget: Widget) -> None:
        raise KeyError("x")

    async with called([broken]) as server:
        status, answer = await server.post(VALIDATE, body(admission_review(widget())))
        assert status == 500
        assert b"Traceback" not in answer


async def test_the_api_servers_timeout_is_honoured_for_slow_functions_from_the_first_request() -> None:
    held = threading.Event()

    @kw.admission.validating_webhook(Widget)
    def slow(widget: Widget) -> None:
        held.wait(60)

    async with called([slow]) as server:
        good = body(admission_review(widget()))
        status, answer = await server.post(f"{VALIDATE}?timeout=200ms", good)
        assert (status, answer) == (504, b"the webhook did not respond in time\n")
        held.set()


async def test_an_async_function_that_takes_too_long_is_cancelled() -> None:
    cancelled = asyncio.Event()

    @kw.admission.validating_webhook(Widget)
    async def slow(widget: Widget) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async with called([slow]) as server:
        status, answer = await server.post(f"{VALIDATE}?timeout=200ms", body(admission_review(widget())))
        assert (status, answer) == (504, b"the webhook did not respond in time\n")
        assert cancelled.is_set()


async def test_blocking_functions_leave_threads_for_the_rest_of_the_process() -> None:
    held, crowd = threading.Event(), http.THREADS - 1

    @kw.admission.validating_webhook(Widget)
    def waits(widget: Widget) -> None:
        held.wait(60)

    good = body(admission_review(widget()))
    async with called([waits]) as server, AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        wires = [await stack.enter_async_context(server.connect()) for _ in range(crowd)]
        replies = [group.create_task(asked(wire, VALIDATE, good)) for wire in wires]
        await eventually(
            lambda: server.samples("controller_runtime_webhook_requests_in_flight")[VALIDATE,] >= crowd
        )
        await asyncio.to_thread(held.set)
        assert [(await reply).status for reply in replies] == [200] * crowd


async def test_requests_in_flight_end_before_the_server_does() -> None:
    entered, held = threading.Event(), threading.Event()

    @kw.admission.validating_webhook(Widget)
    def slow(widget: Widget) -> None:
        entered.set()
        held.wait(5)

    async with called([slow]) as server, asyncio.TaskGroup() as group:
        late = group.create_task(server.post(VALIDATE, body(admission_review(widget()))))
        await asyncio.to_thread(entered.wait, 5)
        closing = group.create_task(server.server.__aexit__(None, None, None))
        await asyncio.sleep(0)
        held.set()
        assert (await late)[0] == 200
        await closing


async def test_a_draining_webhook_server_closes_its_connections() -> None:
    async with called([sensible]) as server:
        server.server.drain()
        reply = await asked(server.wire, VALIDATE, body(admission_review(widget())))
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert await server.wire.ended()


async def test_a_caller_that_hangs_up_is_not_answered() -> None:
    entered, held = threading.Event(), threading.Event()

    @kw.admission.validating_webhook(Widget)
    def slow(widget: Widget) -> None:
        entered.set()
        held.wait(5)

    good, headers = body(admission_review(widget())), {"Content-Type": "application/json"}
    async with called([slow]) as server:
        async with server.connect() as wire:
            wire.send("POST", VALIDATE, good, headers)
            await asyncio.to_thread(entered.wait, 5)
            assert server.samples("controller_runtime_webhook_requests_in_flight")[VALIDATE,] == 1
        await eventually(
            lambda: not server.samples("controller_runtime_webhook_requests_in_flight")[VALIDATE,]
        )
        held.set()


async def test_new_connections_get_a_new_certificate_and_old_ones_continue() -> None:
    async with called([sensible]) as server:
        good = body(admission_review(widget()))
        assert (await server.post(VALIDATE, good))[0] == 200
        fresh = begin(["127.0.0.1"], Lifetimes(), utc_now())
        await asyncio.to_thread(server.context.load, fresh.certificate, fresh.key)
        assert (await server.post(VALIDATE, good))[0] == 200
        async with server.connect(fresh) as connection:
            assert (await asked(connection, VALIDATE, good)).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            async with server.connect():
                pass


async def test_clients_can_be_asked_for_a_certificate(tmp_path: Path) -> None:
    authority = begin(["client"], Lifetimes(), utc_now())
    client_ca = tmp_path / "client-ca.crt"
    await asyncio.to_thread(client_ca.write_bytes, authority.ca_bundle)
    async with called([sensible], FollowingContext(client_ca)) as server:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await server.post(VALIDATE, body(admission_review(widget())))


async def test_an_address_in_use_is_named() -> None:
    async with called([sensible]) as server:
        taken = BindAddress("127.0.0.1", server.server.port)
        with pytest.raises(BindError, match=f"cannot listen on 127.0.0.1:{taken.port}"):
            async with WebhookServer(taken, {}, server.context, server.metrics):
                pass
