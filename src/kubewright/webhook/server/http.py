"""The HTTPS server that API servers call."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kubewright.api import DurationError, parse_duration
from kubewright.certificates import FollowingContext
from kubewright.http.server import JSON, Handler, Limits, Request, Response, text
from kubewright.metrics import Registry
from kubewright.serving import BindAddress, BoundHttpServer
from kubewright.webhook import BadReview
from kubewright.webhook.server.reviewers import Reviewer

LONGEST_TIMEOUT = 30.0
# Longer than the 90 s after which Go's client closes an idle connection, so that a request never uses a closing one.
LIMITS = Limits(idle_seconds=120.0, receive_seconds=LONGEST_TIMEOUT)
SHUTDOWN_TIMEOUT = 30.0
THREADS = 32
"""Functions that may block at once. They have their own threads: the loop's resolve names and load certificates."""

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_log = logging.getLogger("kubewright.webhook")


@dataclass(frozen=True, slots=True)
class _Route:
    reviewer: Reviewer
    observe: Callable[[float], None]
    in_flight: Any


class _Reviews(Handler):
    """Respond to reviews by path, and count them."""

    def __init__(self, reviewers: dict[str, Reviewer], metrics: Registry) -> None:
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
            path: _Route(reviewer, latency.labels(webhook=path).observe, in_flight.labels(webhook=path))
            for path, reviewer in reviewers.items()
        }
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webhook")

    def close(self) -> None:
        """Do not wait for running functions; their threads end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def admit(self, request: Request) -> int | Response:
        """Accept reviews for the paths of webhooks."""
        route = self._routes.get(request.path)
        if route is None:
            return text(404, "404 page not found\n")
        if request.method != "POST":
            return self._refusal(route, request, text(405, "use POST\n"))
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != JSON:
            return self._refusal(route, request, text(415, f"contentType={media}, expected {JSON}\n"))
        return route.reviewer.largest_body

    def too_large(self, request: Request, largest: int) -> Response:
        """Reject a body, and count it."""
        return self._refusal(self._routes[request.path], request, super().too_large(request, largest))

    def handle(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Respond to a review within the time that the API server waits."""
        return self._review(self._routes[request.path], request)

    async def _review(self, route: _Route, request: Request) -> Response:
        begun, code = asyncio.get_running_loop().time(), 500
        route.in_flight.inc()
        try:
            async with asyncio.timeout_at(begun + _time_limit(request)):
                response = await route.reviewer.review(request.body, self._threads)
            code = response.status
            return response
        except BadReview as error:
            code = 400
            return Response(code, route.reviewer.refusal(str(error)))
        except TimeoutError:
            code = 504
            _log.error("A webhook did not respond in time", extra={"fields": {"webhook": request.path}})
            return text(code, "the webhook did not respond in time\n")
        finally:
            route.in_flight.dec()
            self._count(route, request, code, begun)

    def _refusal(self, route: _Route, request: Request, response: Response) -> Response:
        self._count(route, request, response.status, asyncio.get_running_loop().time())
        return response

    def _count(self, route: _Route, request: Request, code: int, begun: float) -> None:
        route.observe(asyncio.get_running_loop().time() - begun)
        self._requests.labels(webhook=request.path, code=str(code)).inc()


class WebhookServer(BoundHttpServer):
    """Serve reviews on one address, from `async with` to its end."""

    def __init__(
        self,
        address: BindAddress,
        reviewers: dict[str, Reviewer],
        context: FollowingContext,
        metrics: Registry,
    ) -> None:
        self._reviews = _Reviews(reviewers, metrics)
        super().__init__(address, self._reviews, tls=context, limits=LIMITS, grace=SHUTDOWN_TIMEOUT)

    async def __aexit__(self, *failure: object) -> None:
        try:
            await super().__aexit__(*failure)
        finally:
            self._reviews.close()


def _time_limit(request: Request) -> float:
    """Return the seconds that the API server waits, from `?timeout=`."""
    try:
        seconds = parse_duration(request.one("timeout")).total_seconds()
    except DurationError:
        return LONGEST_TIMEOUT
    return min(seconds, LONGEST_TIMEOUT) if seconds > 0 else LONGEST_TIMEOUT
