"""What some operators never use: it brings libraries that are half of a start, so it waits until it is needed."""

import asyncio
from enum import StrEnum
from importlib import import_module
from typing import Any

from kubewright.controller.running import Tracer


class Part(StrEnum):
    """Such a part, by its module."""

    METRICS_PAGE = "kubewright.serving.metrics_page"
    OPENTELEMETRY = "opentelemetry.trace"
    SERVING_CERTIFICATES = "kubewright.serving.certificates"
    WEBHOOK_SERVER = "kubewright.webhook.server"

    async def load(self) -> Any:
        """Import it where the event loop does not wait for that."""
        return await asyncio.to_thread(import_module, self.value)


async def installed_tracer() -> Tracer | None:
    """Return OpenTelemetry's tracer; it makes nothing of spans until the program sets a provider."""
    try:
        return (await Part.OPENTELEMETRY.load()).get_tracer("kubewright")
    except ModuleNotFoundError:
        return None
