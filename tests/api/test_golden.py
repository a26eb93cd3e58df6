"""Our answers against those of Kubernetes' own code."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import (
    KubewrightError,
    Quantity,
    json_patch,
    merge_patch,
    parse_fields,
    parse_labels,
    strategic_patch,
)

GOLDEN = Path(__file__).parent / "golden"


class PodSchema:
    """The few facts about Pods that the recorded patches need."""

    FACTS = {
        "containers": ("merge", "name"),
        "env": ("merge", "name"),
        "volumes": ("merge", "name"),
        "finalizers": ("merge", ""),
    }

    def __init__(self, strategy: str = "", merge_key: str = "") -> None:
        self.strategy = frozenset({strategy})
        self.merge_key = merge_key

    def field(self, name: str) -> "PodSchema":
        return PodSchema(*self.FACTS.get(name, ("", "")))

    def item(self) -> "PodSchema":
        return PodSchema()


def quantity(text: str) -> str:
    read = Quantity(text)
    return f"{read} {read.format}"


def quantity_sum(left: str, right: str) -> str:
    a, b = Quantity(left), Quantity(right)
    return f"{(a > b) - (a < b)} {a + b}"


SUBJECTS = {
    "quantities": quantity,
    "quantity_sums": quantity_sum,
    "label_selectors": lambda text: str(parse_labels(text)),
    "field_selectors": lambda text: str(parse_fields(text)),
    "json_patches": json_patch,
    "merge_patches": merge_patch,
    "strategic_patches": lambda document, patch: strategic_patch(document, patch, PodSchema()),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_answers_what_kubernetes_answers(subject: str) -> None:
    cases: list[dict[str, Any]] = json.loads((GOLDEN / f"{subject}.json").read_text())["cases"]
    for case in cases:
        try:
            found = {"answer": SUBJECTS[subject](*case["given"])}
        except KubewrightError as error:
            found = {"error": str(error)}
        assert found == {key: value for key, value in case.items() if key != "given"}, case["given"]
