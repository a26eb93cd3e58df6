"""When an API server asks the webhooks of `kinds`: it learns of each configuration, and of a converter, in its own time."""

import kubewright as kw
from kubewright.testing import Cluster, eventually

from .kinds import Widget, WidgetSpec, WidgetV1Alpha1


async def validated(cluster: Cluster) -> None:
    """Wait until writes are validated."""
    wrong = Widget(kw.Meta("probe", namespace=cluster.namespace), spec=WidgetSpec(color="pink"))

    async def denied() -> bool:
        try:
            await cluster.client.create(wrong, dry_run=True)
        except kw.errors.Invalid:
            return True
        return False

    # Before, the server may still call a webhook of an earlier test, which no longer answers.
    await eventually(denied, ignore=kw.ApiError)


async def asked(cluster: Cluster) -> None:
    """Wait until writes are validated, defaulted, and converted."""
    await validated(cluster)
    plain = WidgetV1Alpha1(kw.Meta("probe", namespace=cluster.namespace), size=7)

    async def defaulted() -> bool:
        made = await cluster.client.create(plain, dry_run=True)
        return (made.size, made.color) == (7, "blue")

    await eventually(defaulted, ignore=kw.ApiError)
