"""The HTTPS server that API servers ask."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from kubewright.api import DurationError, parse_duration
from kubewright.metrics import Registry
from kubewright.serving import Address, BindError
from kubewright.webhook import BadReview
from kubewright.webhook.server.answers import Answer, Answerer
from kubewright.webhook.server.context import FollowingContext

LONGEST_TIMEOUT = 30.0
# Longer than the 90 s after which Go's client drops an idle connection, so that a request never meets a closing one.
KEEP_ALIVE = 120.0
SHUTDOWN_TIMEOUT = 30.0
SLOW = 0.025
"""Seconds after which a function is run in a thread for a while, so that others need not wait for it."""
QUICK_AGAIN = 8
"""Quick runs in a row after which it is trusted with the event loop again: one hiccup is no habit."""

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JSON = "application/json"
_log = logging.getLogger("kubewright.webhook")


@dataclass(slots=True)
class _Route:
    answerer: Answerer
    observe: Callable[[float], None]
    in_flight: Any
    doubts: int = 0
    """Quick runs to go until the function is run on the event loop."""

    def answer(self, body: bytes) -> Answer:
        """Answer, and mind how long that took."""
        begun = time.monotonic()
        try:
            return self.answerer.answer(body)
        finally:
            slow = time.monotonic() - begun > SLOW
            self.doubts = QUICK_AGAIN if slow else max(self.doubts - 1, 0)


class WebhookServer:
    """Serve reviews on one address, from `async with` to its end."""

    def __init__(
        self, address: Address, answerers: dict[str, Answerer], context: FollowingContext, metrics: Registry
    ) -> None:
        self._address = address
        self._context = context
        self._runner: web.ServerRunner | None = None
        self._draining = False
        self.port: int = address.port
        latency = metrics.histogram(
            "controller_runtime_webhook_latency_seconds", "Time a review took", ("webhook",), _BUCKETS
        )
        in_flight = metrics.gauge(
            "controller_runtime_webhook_requests_in_flight", "Reviews being answered", ("webhook",)
        )
        self._requests = metrics.counter(
            "controller_runtime_webhook_requests_total", "Reviews answered, by HTTP code", ("webhook", "code")
        )
        self._routes = {
            path: _Route(answerer, latency.labels(webhook=path).observe, in_flight.labels(webhook=path))
            for path, answerer in answerers.items()
        }

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, request_factory=self._request, access_log=None)
        self._runner = web.ServerRunner(
            server, handle_signals=False, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=SHUTDOWN_TIMEOUT
        )
        await self._runner.setup()
        host, port = self._address
        site = web.TCPSite(self._runner, host or None, port, ssl_context=self._context)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise BindError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def drain(self) -> None:
        """Ask callers to open no more requests on the connections they hold."""
        self._draining = True

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        route = self._routes.get(message.path.partition("?")[0])
        largest = route.answerer.largest_body if route is not None else 1
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=largest)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        route = self._routes.get(request.path)
        if route is None:
            return web.Response(status=404, text="404 page not found\n")
        begun = asyncio.get_running_loop().time()
        route.in_flight.inc()
        code = 500
        try:
            answer = await self._answer(route, request, begun)
            code = answer.status
            response = web.Response(
                body=answer.body, status=code, headers={"Content-Type": answer.content_type}
            )
            if self._draining or code == 413:
                response.force_close()
            return response
        finally:
            route.in_flight.dec()
            route.observe(asyncio.get_running_loop().time() - begun)
            self._requests.labels(webhook=request.path, code=str(code)).inc()

    async def _answer(self, route: _Route, request: web.BaseRequest, begun: float) -> Answer:
        try:
            _check_head(request, route.answerer)
            async with asyncio.timeout_at(begun + _patience(request)):
                body = await request.read()
                return await asyncio.to_thread(route.answer, body) if route.doubts else route.answer(body)
        except BadReview as error:
            return Answer(route.answerer.refusal(str(error)), 400)
        except _Refused as error:
            return error.answer
        except web.HTTPRequestEntityTooLarge:
            return _too_large(route.answerer)
        except TimeoutError:
            _log.error("A webhook did not answer in time", extra={"fields": {"webhook": request.path}})
            return Answer(b"the webhook did not answer in time\n", 504, "text/plain")


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.answer = Answer(f"{text}\n".encode(), status, "text/plain")


def _check_head(request: web.BaseRequest, answerer: Answerer) -> None:
    if request.method != "POST":
        raise _Refused(405, "use POST")
    if request.content_type != _JSON:
        raise _Refused(415, f"contentType={request.content_type}, expected {_JSON}")
    if (request.content_length or 0) > answerer.largest_body:
        raise _Refused(413, f"the body is larger than {answerer.largest_body} bytes")


def _too_large(answerer: Answerer) -> Answer:
    return _Refused(413, f"the body is larger than {answerer.largest_body} bytes").answer


def _patience(request: web.BaseRequest) -> float:
    """Return the seconds that the API server waits, as it says in `?timeout=`."""
    try:
        told = parse_duration(request.query["timeout"]).total_seconds()
    except (KeyError, DurationError):
        return LONGEST_TIMEOUT
    return min(told, LONGEST_TIMEOUT) if told > 0 else LONGEST_TIMEOUT
