"""The /metrics endpoint, in the text format of Prometheus."""

import asyncio
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubewright.http.server import PathEndpoint, Request, Response
from kubewright.metrics import Registry
from kubewright.serving.guard import Guard


class MetricsPage:
    """Serve /metrics; `guard` authenticates and authorizes clients, if given."""

    def __init__(self, registry: Registry, guard: Guard | None = None) -> None:
        self._registry = registry
        self._guard = guard
        self._process = ProcessCollector(registry=None)

    @property
    def routes(self) -> list[PathEndpoint]:
        """Return the paths to serve."""
        return [PathEndpoint("/metrics", self._serve)]

    async def _serve(self, request: Request) -> Response:
        if self._guard is not None:
            refusal = await self._guard.refusal(request)
            if refusal is not None:
                return refusal
        # Process metrics are read from /proc in a thread; the registry belongs to the event loop.
        of_process = await asyncio.to_thread(lambda: list(self._process.collect()))
        moment = CollectorRegistry(auto_describe=False)
        moment.register(_Moment([*_families(self._registry), *of_process]))
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(200, encoder(moment), content_type)


class _Moment(Collector):
    """Pass collected metrics to prometheus_client's encoders."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the collected metrics."""
        return self._metrics


def _families(registry: Registry) -> Iterable[Metric]:
    """Yield the registry's metrics as those of prometheus_client."""
    for family in registry.families():
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        metric = Metric(name, family.help, family.kind)
        for sample in family.samples:
            metric.add_sample(sample.name, sample.labels, sample.value)
        yield metric
