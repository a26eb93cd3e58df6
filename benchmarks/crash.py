"""Kill the embedded server a hundred times in the middle of writes to one file: nothing acknowledged may be lost."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "devserver"))

from devserver_crash import crash
from harness import machine


async def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench crash", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")
    parser.add_argument("--rounds", type=int, default=100, help="how often to kill it (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins (default 1)")
    options = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        journal = await crash(Path(folder) / "cluster.db", options.rounds, options.seed)
    result = {
        "bench": "crash",
        "machine": machine(),
        "kills": options.rounds,
        "acknowledged": len(journal.revisions),
        "faults": journal.faults,
        "seconds": round(time.perf_counter() - started, 1),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"crash: {options.rounds} kills, {len(journal.revisions)} acknowledged writes, {len(journal.faults)} lost or doubled"
        )
        print(*journal.faults, sep="\n")
    return 1 if journal.faults else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
