"""Aggregated ClusterRoles."""

from kubewright.api import Meta
from kubewright.api.builtin import meta_v1, rbac_v1
from kubewright.testing import Cluster


def role(name: str, label: str, resource: str) -> rbac_v1.ClusterRole:
    rule = rbac_v1.PolicyRule(api_groups=["example.com"], resources=[resource], verbs=["get"])
    return rbac_v1.ClusterRole(Meta(name, labels={label: "true"}), rules=[rule])


def resources_of(found: rbac_v1.ClusterRole) -> list[str]:
    return [name for rule in found.rules for name in rule.resources]


async def test_an_aggregated_role_has_the_rules_of_the_roles_it_selects(cluster: Cluster) -> None:
    label = f"example.com/{cluster.namespace}"
    chosen = meta_v1.LabelSelector(match_labels={label: "true"})
    whole = rbac_v1.ClusterRole(
        Meta(f"{cluster.namespace}-whole"),
        aggregation_rule=rbac_v1.AggregationRule(cluster_role_selectors=[chosen]),
    )
    made = [
        await cluster.create(whole),
        await cluster.create(role(f"{cluster.namespace}-a", label, "apples")),
        await cluster.create(role(f"{cluster.namespace}-b", label, "pears")),
        await cluster.create(role(f"{cluster.namespace}-c", "example.com/other", "stones")),
    ]
    name = whole.metadata.name
    await cluster.eventually(
        rbac_v1.ClusterRole, name, lambda found: resources_of(found) == ["apples", "pears"]
    )
    await cluster.client.delete(made[1])
    await cluster.eventually(rbac_v1.ClusterRole, name, lambda found: resources_of(found) == ["pears"])
    for item in (made[0], *made[2:]):
        await cluster.client.delete(item)


async def test_custom_resources_can_be_added_to_the_default_roles(cluster: Cluster) -> None:
    label = "rbac.authorization.k8s.io/aggregate-to-view"
    made = await cluster.create(role(f"{cluster.namespace}-view", label, cluster.namespace))
    await cluster.eventually(
        rbac_v1.ClusterRole, "view", lambda found: cluster.namespace in resources_of(found)
    )
    await cluster.client.delete(made)
    found = await cluster.eventually(
        rbac_v1.ClusterRole, "view", lambda found: cluster.namespace not in resources_of(found)
    )
    assert "pods" in resources_of(found)
