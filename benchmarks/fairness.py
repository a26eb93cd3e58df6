"""How long a change in a quiet namespace waits while a busy namespace has thousands of objects queued.

One operator on the embedded server, one worker, a reconciler that waits for two milliseconds as for an external system;
the same flood with `fair_by="namespace"` and without. The latency is the time from the request that creates an object
of the quiet namespace to the start of its reconcile, while the queue of the busy one is worked off.
"""

import argparse
import asyncio
import statistics
import time
from functools import partial

from harness import OURS, Bench, alternate_async

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.testing import embedded

PROBES = 5
WORK = 0.002
AT_ONCE = 32


class TicketSpec(kw.Model):
    """Work to do."""

    number: int = 0


class TicketStatus(kw.Model):
    """Nothing is reported."""


class Ticket(kw.Resource[TicketSpec, TicketStatus], group="bench.kubewright.dev", version="v1"):
    """One piece of work of a tenant."""


async def latency(flood: int, options: kw.Options) -> float:
    """Return the median latency in the quiet namespace, in milliseconds."""
    opened = asyncio.Event()
    created: dict[str, float] = {}
    latencies: asyncio.Queue[float] = asyncio.Queue()

    async def reconcile(ticket: Ticket, ctx: kw.Context) -> None:
        if ticket.metadata.namespace == "quiet":
            latencies.put_nowait(time.perf_counter() - created[ticket.metadata.name])
            return
        await opened.wait()
        await asyncio.sleep(WORK)

    operator = kw.Operator(kw.Controller(Ticket, reconcile, options=options), name="tickets")
    async with embedded() as cluster, cluster.running(operator, everywhere=True) as manager:
        for name in ("busy", "quiet"):
            await cluster.client.create(core_v1.Namespace(kw.Meta(name)))
        limit = asyncio.Semaphore(AT_ONCE)

        async def create(number: int) -> None:
            async with limit:
                await cluster.client.create(
                    Ticket(kw.Meta(f"t{number}", namespace="busy"), spec=TicketSpec())
                )

        async with asyncio.TaskGroup() as group:
            for number in range(flood):
                group.create_task(create(number))
        while manager.statistics().controllers[0].queue.ready < flood - 1:
            await asyncio.sleep(0.05)
        opened.set()
        for number in range(PROBES):
            name = f"t{number}"
            created[name] = time.perf_counter()
            await cluster.client.create(Ticket(kw.Meta(name, namespace="quiet"), spec=TicketSpec()))
        found = [await latencies.get() for _ in range(PROBES)]
        return statistics.median(found) * 1000


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--flood", type=int, default=10_000, help="objects of the busy namespace (default 10000)"
    )
    bench = Bench("fairness", "a quiet namespace beside a busy one", parser=parser, rounds=3)
    flood: int = bench.options.flood
    bench.progress(f"{bench.rounds} runs, with and without fairness")
    runs = await alternate_async(
        bench.rounds,
        {
            OURS: partial(latency, flood, kw.Options(fair_by="namespace")),
            "in order": partial(latency, flood, kw.Options()),
        },
        warming={"in order": partial(latency, 100, kw.Options())},
    )
    bench.row(f"a change beside {flood:,} queued objects", "latency", "ms", runs, goal="<= 50 ms")
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
