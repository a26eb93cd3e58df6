"""How soon `prove` finds each planted bug: runs and CPU seconds until the smallest case is found.

First the bugs that faults show, then those that specs show.

scripts/bench planted_bugs
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from kubewright.testing.proving import Effort, Prover, explore
from kubewright.testing.proving.timeline import describe

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "testing" / "proving"))

operators: Any = importlib.import_module("planted.operators")
spec_bugs: Any = importlib.import_module("planted.spec_bugs")
FAULTS = Effort(seeds=60, pairs=0, violations=1, only=frozenset({"faults"}))
SPECS = Effort(sequences=110, violations=1, only=frozenset({"specs"}))


def measure(name: str) -> dict[str, Any]:
    """Prove one operator and return what was found."""
    if name in spec_bugs.SPEC_BUGS:
        make, sample, effort = spec_bugs.SPEC_BUGS[name].make, spec_bugs.SAMPLE, SPECS
    else:
        make, sample, effort = operators.PLANTED[name][0], operators.SAMPLE, FAULTS
    began = time.process_time()
    report = explore(Prover(make, [sample]), effort)
    found = report.violations[0].found if report.violations else None
    return {
        "bug": name.replace("_", " "),
        "property": "not found" if found is None else found.property.title,
        "seed": None if found is None else found.case.seed,
        "faults": [] if found is None else [describe(fault) for fault in found.case.all_faults],
        "steps": 0 if found is None or found.case.sequence is None else len(found.case.sequence.steps),
        "runs": report.runs,
        "seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    rows = [measure(name) for name in (*operators.PLANTED, *spec_bugs.SPEC_BUGS)]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print("| bug | property | smallest case | runs | CPU seconds |")
    print("|---|---|---|---|---|")
    for row in rows:
        steps = f"{row['steps']} step{'s' * (row['steps'] > 1)}" if row["steps"] else "no fault"
        faults = "; ".join(row["faults"]) or steps
        print(
            f"| {row['bug']} | {row['property']} | seed {row['seed']}, {faults} | {row['runs']} | {row['seconds']} |"
        )


if __name__ == "__main__":
    main()
