"""All built-in kinds that have something particular to them, by group and kind."""

from collections.abc import Mapping

from kubewright.devserver.builtin import (
    autoscaling,
    certificates,
    cluster,
    configuration,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    pods,
    policies,
    rbac,
    registrations,
    services,
    storage,
    workloads,
)
from kubewright.devserver.strategy import Strategy

_MODULES = (
    autoscaling,
    certificates,
    cluster,
    configuration,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    pods,
    policies,
    rbac,
    registrations,
    services,
    storage,
    workloads,
)
_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    key: strategy for module in _MODULES for key, strategy in module.STRATEGIES.items()
}
_PLAIN = Strategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Give what is particular to a kind; a plain strategy where nothing is."""
    return _STRATEGIES.get((group, kind), _PLAIN)
