"""Label selectors in their structured form (LabelSelector)."""

from collections.abc import Mapping
from typing import Any

from kubewright.api import Requirement, SelectorError, label_selector, parse_labels

Selecting = str | Mapping[str, Any]
_WORDS = {
    "in": "In",
    "=": "In",
    "==": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


def structured(selector: Selecting) -> dict[str, Any]:
    """Return a LabelSelector for `app=web,!canary`, or for one that is already structured."""
    if not isinstance(selector, str):
        label_selector(dict(selector))
        return dict(selector)
    chosen = parse_labels(selector)
    return {"matchExpressions": [_expression(requirement) for requirement in chosen.requirements]}


def _expression(requirement: Requirement) -> dict[str, Any]:
    word = _WORDS.get(requirement.operator)
    if word is None:
        raise SelectorError(f"{requirement}: webhooks cannot compare labels as numbers")
    expression: dict[str, Any] = {"key": requirement.key, "operator": word}
    return expression | ({"values": sorted(requirement.values)} if requirement.values else {})
