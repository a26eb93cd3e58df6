"""Our metrics in the text format of Prometheus."""

from collections.abc import Iterable

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubewright.metrics import Registry
from kubewright.serving.guard import Guard


class _RegistryCollector(Collector):
    """Show our metrics to prometheus_client, which knows the formats."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        """Yield the present samples."""
        for family in self._registry.families():
            name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
            metric = Metric(name, family.help, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


class MetricsPage:
    """The /metrics path; `guard` decides who may read it."""

    def __init__(self, registry: Registry, guard: Guard | None = None) -> None:
        self._guard = guard
        self._collectors = CollectorRegistry(auto_describe=False)
        self._collectors.register(_RegistryCollector(registry))
        ProcessCollector(registry=self._collectors)

    @property
    def routes(self) -> list[web.RouteDef]:
        """Return the paths to serve."""
        return [web.get("/metrics", self._serve)]

    async def _serve(self, request: web.Request) -> web.Response:
        if self._guard is not None:
            refusal = await self._guard.refusal(request)
            if refusal is not None:
                return refusal
        encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encoder(self._collectors), headers={"Content-Type": content_type})
