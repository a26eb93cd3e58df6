"""PodDisruptionBudgets and Leases."""

from collections.abc import Iterator

from kubewright.api import FieldError, names
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, cell, printed
from kubewright.devserver.builtin.rules import at_least, one_of, rules, validated
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Strategy


def _one_bound(path: str, spec: JsonObject | None) -> Iterator[FieldError]:
    found = spec or {}
    if found.get("minAvailable") is not None and found.get("maxUnavailable") is not None:
        shown = check.struct(found, "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy", None)
        yield check.invalid_struct(path, shown, "minAvailable and maxUnavailable cannot be both set")


_BUDGET = rules(
    ("spec", _one_bound),
    ("spec.minAvailable", check.count_or_percent, check.at_most_all),
    ("spec.maxUnavailable", check.count_or_percent, check.at_most_all),
    ("spec.selector", check.label_selector),
    ("spec.unhealthyPodEvictionPolicy?", one_of("AlwaysAllow", "IfHealthyBudget")),
)
_BUDGET_STATUS = rules(
    ("status.conditions", lambda path, value: check.check_conditions(value or (), path)),
    *(
        (f"status.{name}", check.not_negative)
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    ),
)
_LEASE = rules(
    ("spec.leaseDurationSeconds?", at_least(1, "must be greater than 0")),
    ("spec.leaseTransitions", check.not_negative),
)


def _drop_coordination(lease: JsonObject) -> None:
    """Remove the fields of coordinated leader election, whose feature gate is off."""
    for name in ("strategy", "preferredHolder"):
        section(lease, "spec").pop(name, None)


STRATEGIES = {
    ("policy", "PodDisruptionBudget"): Strategy(
        validate_status_update=_BUDGET_STATUS.validate_update,
        **validated(_BUDGET),
        # The real server does not check the names of budgets; the storage needs names that fit into a path.
        name_check=names.path_segment,
        has_generation=True,
        allow_unconditional_update=False,
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Min Available", lambda budget: str(section(budget, "spec").get("minAvailable", "N/A"))),
            cell("Max Unavailable", lambda budget: str(section(budget, "spec").get("maxUnavailable", "N/A"))),
            cell("Allowed Disruptions", "status.disruptionsAllowed", 0, "integer"),
            AGE,
        ),
    ),
    ("coordination.k8s.io", "Lease"): Strategy(
        prepare_create=_drop_coordination,
        prepare_update=lambda new, old: _drop_coordination(new),
        **validated(_LEASE),
        allow_unconditional_update=False,
        allow_create_on_update=True,
        **printed(NAME, cell("Holder", "spec.holderIdentity"), AGE),
    ),
}
