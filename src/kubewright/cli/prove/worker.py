"""A process that runs cases: it reads requests from standard input and writes responses, one JSON object per line.

It is started with a fixed PYTHONHASHSEED, so that the order of sets is the same in each process. The output of the
operator goes to standard error. If a run takes too long, something blocks: the process ends and prints its stack.
"""

import faulthandler
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from kubewright.api import JsonObject, KubewrightError
from kubewright.cli.target import load_operator
from kubewright.testing.proving import FoundViolation, FreshModules, Prover
from kubewright.testing.proving.cases import from_json, to_json
from kubewright.testing.proving.decorator import invariants_of
from kubewright.testing.proving.properties import BY_ID
from kubewright.testing.simulation.invariants import Invariant

RUN_LIMIT = 300.0
"""Seconds of real time that one request may take. Code that blocks in C can only be stopped by ending the process."""


def main() -> None:
    """Serve requests until standard input ends."""
    responses = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin.buffer:
        request = cast("JsonObject", msgspec.json.decode(line))
        faulthandler.dump_traceback_later(request.get("limit", RUN_LIMIT), exit=True)
        try:
            if worker is None:
                worker = Worker(request)
            response = worker.respond(request)
        except KubewrightError as error:
            response = {"error": str(error)}
        faulthandler.cancel_dump_traceback_later()
        _write(responses, response)


def _write(out: BinaryIO, response: JsonObject) -> None:
    out.write(msgspec.json.encode(response) + b"\n")


class Worker:
    """Run the requests of one exploration."""

    def __init__(self, setup: JsonObject) -> None:
        target: str = setup["target"]
        self._prover = Prover(
            FreshModules(lambda: load_operator(target)),
            setup["samples"],
            invariants=load_invariants(setup["invariants"]),
            keeps=setup["keeps"],
        )

    def respond(self, request: JsonObject) -> JsonObject:
        """Carry out one request and return the response."""
        actions: dict[str, Callable[[JsonObject], JsonObject]] = {
            "open": self._open,
            "run": self._run,
            "shrink": self._shrink,
            "digest": lambda request: {"digest": self._prover.digest(from_json(request["case"]))},
        }
        return actions[request["do"]](request)

    def _open(self, request: JsonObject) -> JsonObject:
        seen, failure = self._prover.begin()
        return {
            "name": self._prover.name,
            "notes": self._prover.notes,
            "failure": None if failure is None else violation_to_json(failure),
            "points": [
                [point.number, point.request, point.writes, point.late, point.external]
                for point in seen.points
            ],
            "changes": [[number, text, changed] for number, (text, changed) in seen.changes.items()],
            "schemas": list(seen.schemas.items()),
            "webhooks": seen.webhooks,
            "external": seen.external,
            "shards": seen.shards,
            "earlyClaims": sorted(seen.early_claims),
            "reconciles": seen.reconciles,
            "requests": seen.requests,
            "seconds": seen.seconds,
        }

    def _run(self, request: JsonObject) -> JsonObject:
        result = self._prover.run(from_json(request["case"]))
        return {
            "failure": None if result.failure is None else violation_to_json(result.failure),
            "reconciles": result.reconciles,
            "requests": result.requests,
            "writes": result.writes,
            "seconds": result.seconds,
            "points": [point.options for point in result.points],
            "pruned": result.pruned,
            "notPruned": result.not_pruned,
            "specs": msgspec.to_builtins(result.specs),
            "earlyClaims": sorted(result.early_claims),
        }

    def _shrink(self, request: JsonObject) -> JsonObject:
        failure = self._prover.shrink(violation_from(request["failure"]))
        return {"failure": violation_to_json(failure), "timeline": self._prover.explain(failure)}


def violation_from(found: Any) -> FoundViolation:
    """Return the violation that `violation_to_json` encoded."""
    return FoundViolation(
        BY_ID[found["property"]],
        found["message"],
        from_json(found["case"]),
        found["advice"],
        found["about"],
    )


def violation_to_json(failure: FoundViolation) -> JsonObject:
    """Return a violation as JSON, for a request or a response."""
    return {
        "property": failure.property.id,
        "message": failure.message,
        "case": to_json(failure.case),
        "advice": failure.advice,
        "about": failure.about,
    }


def load_invariants(file: str) -> list[Invariant]:
    """Return the invariants of a Python file; none if no file is given."""
    if not file:
        return []
    path = Path(file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return invariants_of(module)


if __name__ == "__main__":
    main()
