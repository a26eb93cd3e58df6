"""Modules that some operators never use, imported on demand because their libraries are half of the start time."""

import asyncio
from enum import StrEnum
from importlib import import_module
from typing import Any

from kubewright.controller.running import Tracer


class OptionalModule(StrEnum):
    """A module that is imported on demand."""

    JOURNAL_PAGE = "kubewright.serving.journal_page"
    METRICS_PAGE = "kubewright.serving.metrics_page"
    OPENTELEMETRY = "opentelemetry.trace"
    RECORD_FILE = "kubewright.journal.recording"
    SERVING_CERTIFICATES = "kubewright.serving.certificates"
    SERVICE_CERTIFICATES = "kubewright.webhook.certificates.sources"
    WEBHOOK_SERVER = "kubewright.webhook.server"

    async def load(self) -> Any:
        """Import it in a thread, so that the event loop is not blocked."""
        return await asyncio.to_thread(import_module, self.value)


async def installed_tracer() -> Tracer | None:
    """Return OpenTelemetry's tracer; spans are dropped until the program sets a provider."""
    try:
        return (await OptionalModule.OPENTELEMETRY.load()).get_tracer("kubewright")
    except ModuleNotFoundError:
        return None
