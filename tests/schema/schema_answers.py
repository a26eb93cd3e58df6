"""Responses of a real API server, recorded by `record.py`."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubewright.api import FieldError

_FOLDER = Path(__file__).parent / "observed"


def answers(name: str) -> dict[str, Any]:
    return json.loads((_FOLDER / f"{name}.json").read_text())["answers"]


def causes(errors: Iterable[FieldError]) -> Counter[tuple[str, str, str]]:
    """Count errors, because the server reports the fields of an object in random order."""
    return _counted(error.cause() for error in errors)


def seen(answer: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    return _counted(answer.get("causes", ()))


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def _counted(listed: Iterable[dict[str, str]]) -> Counter[tuple[str, str, str]]:
    return Counter((cause["field"], _nameless(cause["message"]), cause["reason"]) for cause in listed)


def _nameless(message: str) -> str:
    """Remove the number of the type of `self`, which differs each time."""
    return re.sub(r"selfType\d+", "selfType", message)
