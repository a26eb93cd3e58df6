"""The process in which a cluster for tests runs: `python -m kubewright.testing NAME` prints its kubeconfig."""

import asyncio
import sys
from contextlib import AsyncExitStack

from kubewright.testing.environments import (
    EmbeddedEnvironment,
    Environment,
    ExistingEnvironment,
    RealEnvironment,
)

_ENVIRONMENTS: dict[str, type[Environment]] = {
    kind.name: kind for kind in (EmbeddedEnvironment, RealEnvironment, ExistingEnvironment)
}


async def serve(environment: Environment) -> None:
    """Run a cluster until standard input is closed, by its owner or because its owner has exited."""
    async with AsyncExitStack() as stack:
        print(await environment.start(stack), flush=True)
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        stack.callback(transport.close)
        await reader.read()


if __name__ == "__main__":
    asyncio.run(serve(_ENVIRONMENTS[sys.argv[1]]()))
