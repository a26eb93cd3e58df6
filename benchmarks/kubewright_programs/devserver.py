"""Run the embedded server as a process of its own, or say how long it takes in a warm interpreter."""

import asyncio
import json
import sys
import time
from pathlib import Path

from kubewright.devserver import Server


async def serve(kubeconfig: Path, data: Path | None, port: int) -> None:
    async with Server(data=data, port=port) as server:
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(server.kubeconfig()))
        print("ready", flush=True)
        await asyncio.get_running_loop().create_future()


async def warm(times: int) -> list[float]:
    """Start and stop servers in this process and give how long each start took."""
    found: list[float] = []
    for _ in range(times + 1):
        started = time.perf_counter()
        async with Server():
            found.append(time.perf_counter() - started)
    return found[1:]


if __name__ == "__main__":
    if sys.argv[1] == "--warm":
        print(json.dumps(asyncio.run(warm(int(sys.argv[2])))))
    else:
        journal = Path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else None
        asyncio.run(serve(Path(sys.argv[1]), journal, int(sys.argv[3]) if len(sys.argv) > 3 else 0))
