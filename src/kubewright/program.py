"""Run an operator from a Python program: `python -m`, a FastAPI application, a thread."""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from kubewright.controller import Operator
from kubewright.packaging import check_env


async def run(
    operator: Operator,
    *,
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    namespaces: Sequence[str] = (),
    selector: str = "",
    leader_elect: bool = False,
    metrics_bind_address: str = "0",
    health_probe_bind_address: str = "0",
    webhook_bind_address: str = ":9443",
) -> None:
    """Run the operator until the task is cancelled: `asyncio.run(kw.run(operator))`.

    The options mean the same as those of `kubewright run`, except that metrics and probes are off unless they get an
    address: the surrounding program may serve its own. Signals and logging are left to that program. `kubewright.manager`
    has every option.
    """
    check_env(operator.env, os.environ)
    # Declaring an operator must not load what runs one; reading modules and files must not block the event loop.
    asyncio: Any = import_module("asyncio")
    manager: Any = await asyncio.to_thread(import_module, "kubewright.manager")
    client: Any = await asyncio.to_thread(import_module, "kubewright.client")
    options = manager.ManagerOptions(
        namespaces=namespaces,
        selector=selector,
        election=manager.ElectionOptions() if leader_elect else None,
        webhooks=manager.WebhookOptions(bind_address=webhook_bind_address),
        metrics_bind_address=metrics_bind_address,
        health_probe_bind_address=health_probe_bind_address,
    )
    path = None if kubeconfig is None else Path(kubeconfig)
    config = await asyncio.to_thread(client.load_config, path, context)
    await manager.Manager(operator, config, options).run()
