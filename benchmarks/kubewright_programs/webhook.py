"""Serve one validating and one defaulting webhook on kubewright, with certificates from a directory."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from kubewright_programs.coldcache import Sample

import kubewright as kw
from kubewright.certificates import FollowingContext
from kubewright.cli.loops import run_program
from kubewright.metrics import Registry
from kubewright.serving import BindAddress
from kubewright.webhook import Endpoints
from kubewright.webhook.certificates.sources import DirectorySource
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.reviewers import reviewers_for


@kw.admission.validating_webhook(Sample)
def sensible(sample: Sample) -> Iterator[kw.admission.Problem]:
    """Refuse negative numbers."""
    if sample.spec.replicas < 0:
        yield kw.admission.invalid("spec.replicas", sample.spec.replicas, "may not be negative")


@kw.admission.mutating_webhook(Sample)
def completed(sample: Sample) -> None:
    """Set a default for a missing setting."""
    sample.spec.settings.setdefault("tier", "standard")


async def serve(port: int, certificates: Path) -> None:
    """Serve until stopped."""
    metrics, context = Registry(), FollowingContext()
    source = DirectorySource(context, metrics, certificates)
    await source.prepare()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    reviewers = reviewers_for(Endpoints([sensible, completed]), metrics)
    async with WebhookServer(BindAddress("127.0.0.1", port), reviewers, context, metrics):
        await stop.wait()


if __name__ == "__main__":
    run_program(lambda: serve(int(sys.argv[1]), Path(sys.argv[2])))
