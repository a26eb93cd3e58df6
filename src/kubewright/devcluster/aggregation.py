"""The ClusterRole aggregation controller: copies the rules of the roles that an aggregation rule selects."""

from collections.abc import Iterable

from kubewright.api import Meta, label_selector, to_wire
from kubewright.api.builtin import rbac_v1
from kubewright.controller import Context, Controller, Index, Options, needs, watch

NAME = "clusterrole-aggregation-controller"
_ALL = "all"

aggregating: Index[rbac_v1.ClusterRole] = Index(
    rbac_v1.ClusterRole, lambda role: [_ALL] if role.aggregation_rule is not None else []
)


def rules_of(role: rbac_v1.ClusterRole, others: Iterable[rbac_v1.ClusterRole]) -> list[rbac_v1.PolicyRule]:
    """Return the rules of the roles that a role's selectors match, ordered by role name, without duplicates."""
    if role.aggregation_rule is None:
        return role.rules
    selectors = [label_selector(to_wire(item)) for item in role.aggregation_rule.cluster_role_selectors]
    found: list[rbac_v1.PolicyRule] = []
    for other in sorted(others, key=lambda item: item.metadata.name):
        chosen = any(selector.matches(other.metadata.labels) for selector in selectors)
        if chosen and other.metadata.name != role.metadata.name:
            found += [rule for rule in other.rules if rule not in found]
    return found


async def reconcile(role: rbac_v1.ClusterRole, ctx: Context) -> None:
    """Update the rules of an aggregated ClusterRole."""
    if role.aggregation_rule is None:
        return
    rules = rules_of(role, await ctx.list(rbac_v1.ClusterRole))
    if rules != role.rules:
        await ctx.apply(rbac_v1.ClusterRole(Meta(role.metadata.name), rules=rules), owned=False)


def controller() -> Controller[rbac_v1.ClusterRole]:
    """Declare the ClusterRole aggregation controller."""
    return Controller(
        rbac_v1.ClusterRole,
        reconcile,
        name=NAME,
        when=lambda change: change.new is not None and change.new.aggregation_rule is not None,
        needs=[needs(rbac_v1.ClusterRole, "create", "patch")],
        watches=[watch(rbac_v1.ClusterRole, via=aggregating, key=lambda _: _ALL)],
        options=Options(reporter=NAME),
    )
