"""What is particular to the built-in kinds: defaults, checks, columns, special subresources."""

from collections.abc import Mapping

from kubewright.devserver.builtin import configuration, jobs, pods, services, workloads
from kubewright.devserver.strategy import Strategy

__all__ = ["strategy_for"]

_MODULES = (configuration, jobs, pods, services, workloads)
_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    key: strategy for module in _MODULES for key, strategy in module.STRATEGIES.items()
}
_PLAIN = Strategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Give what is particular to a kind; a plain strategy where nothing is."""
    return _STRATEGIES.get((group, kind), _PLAIN)
