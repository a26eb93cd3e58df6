"""When an API server asks the webhooks of `kinds`: it learns of each configuration, and of a converter, in its own time."""

import asyncio

import kubewright as kw
from kubewright.testing import DEFAULT_TIMEOUT, Cluster

from .kinds import Widget, WidgetSpec, WidgetV1Alpha1


async def validated(cluster: Cluster) -> None:
    """Wait until writes are validated."""
    wrong = Widget(kw.Meta("probe", namespace=cluster.namespace), spec=WidgetSpec(color="pink"))
    async with asyncio.timeout(DEFAULT_TIMEOUT):
        while True:
            try:
                await cluster.client.create(wrong, dry_run=True)
            except kw.errors.Invalid:
                return
            except kw.ApiError:
                # Who answered before is still asked, and is no more.
                pass
            await asyncio.sleep(0.01)


async def asked(cluster: Cluster) -> None:
    """Wait until writes are validated, defaulted, and converted."""
    await validated(cluster)
    plain = WidgetV1Alpha1(kw.Meta("probe", namespace=cluster.namespace), size=7)
    async with asyncio.timeout(DEFAULT_TIMEOUT):
        while True:
            try:
                made = await cluster.client.create(plain, dry_run=True)
            except kw.ApiError:
                pass
            else:
                if (made.size, made.color) == (7, "blue"):
                    return
            await asyncio.sleep(0.01)
