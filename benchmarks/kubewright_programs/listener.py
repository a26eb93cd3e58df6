"""An operator that only listens to Echoes, so that what a change costs the runtime itself can be seen."""

from echo import Echo

import kubewright as kw


@kw.controller(Echo, concurrency=16)
async def listener(found: Echo, ctx: kw.Context) -> None:
    """Do nothing."""
