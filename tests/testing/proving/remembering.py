"""An operator that can keep state in a module global, for the tests of pruning."""

from typing import Any

import kubewright as kw
from kubewright.api.builtin import core_v1

SEEN: list[str] = []
NAMES = {"size": "size"}


class CrateSpec(kw.Model):
    size: int = 1


class CrateStatus(kw.Model):
    size: int = 0


class Crate(kw.Resource[CrateSpec, CrateStatus], group="orders.example.com", version="v1"):
    """Holds something."""


async def plain(crate: Crate, ctx: kw.Context) -> None:
    await ctx.apply(
        core_v1.ConfigMap(kw.Meta(crate.metadata.name), data={NAMES["size"]: str(crate.spec.size)})
    )
    await ctx.patch_status(crate, CrateStatus(size=crate.spec.size))


async def remembering(crate: Crate, ctx: kw.Context) -> None:
    SEEN.append(crate.metadata.name)
    await plain(crate, ctx)


def operator_of(reconcile: Any) -> kw.Operator:
    return kw.Operator(
        kw.Controller(Crate, reconcile, name="crates", owns=[core_v1.ConfigMap]), name="crates"
    )
