"""One evaluation of an expression, and the closures it runs through."""

from collections.abc import Callable
from typing import Any

from kubewright.schema.cel.errors import CostExceeded

LIST_COST, MAP_COST = 10, 30


class Frame:
    """One evaluation: its variables and what it has cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables: dict[str, Any] = variables
        self.limit: int = limit
        self.cost: int = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raise where it is too much."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Step = Callable[[Frame], Any]
"""Evaluates a part of an expression in a frame."""
