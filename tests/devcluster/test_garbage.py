"""Deletion of dependents."""

import secrets

from devcluster_workloads import deployment, is_rolled_out, pods_of, sets_of, wait_for_events

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    Invalid,
    Kind,
    Meta,
    NotFound,
    OwnerReference,
    owner_reference,
)
from kubewright.api.builtin import admissionregistration_v1 as admission_v1
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.testing import Cluster, eventually

HOLD = "example.com/hold"
BLOCKING = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}


def note(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(name))


async def owned_note(cluster: Cluster, name: str, *owners: core_v1.ConfigMap) -> core_v1.ConfigMap:
    made = note(name)
    made.metadata.owner_references = [owner_reference(owner, controller=False) for owner in owners]
    return await cluster.create(made)


async def test_background_deletion_deletes_all_dependents(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made)
    await cluster.eventually_gone(apps_v1.Deployment, "web")

    async def empty() -> bool:
        return not await sets_of(cluster, "web") and not await pods_of(cluster, "web")

    await eventually(empty)


async def test_foreground_deletion_deletes_the_owner_last(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made, propagation="Foreground")
    await cluster.eventually_gone(apps_v1.Deployment, "web")
    assert await pods_of(cluster, "web") == []
    assert await sets_of(cluster, "web") == []


async def test_orphaning_leaves_the_dependents_without_an_owner(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made, propagation="Orphan")
    await cluster.eventually_gone(apps_v1.Deployment, "web")
    (left,) = await sets_of(cluster, "web")
    assert left.metadata.owner_references == []
    assert len(await pods_of(cluster, "web")) == 1


async def test_an_object_with_one_remaining_owner_is_kept(cluster: Cluster) -> None:
    first, second = await cluster.create(note("first")), await cluster.create(note("second"))
    await owned_note(cluster, "child", first, second)
    await cluster.client.delete(first)
    await cluster.eventually(
        core_v1.ConfigMap, "child", lambda found: len(found.metadata.owner_references) == 1
    )
    await cluster.client.delete(second)
    await cluster.eventually_gone(core_v1.ConfigMap, "child")


async def test_a_new_owner_of_the_same_name_does_not_count(cluster: Cluster) -> None:
    owner = await cluster.create(note("owner"))
    await owned_note(cluster, "child", owner)
    await cluster.client.delete(owner)
    await cluster.create(note("owner"))
    await cluster.eventually_gone(core_v1.ConfigMap, "child")


async def test_a_dependent_of_an_owner_that_never_existed_is_deleted(cluster: Cluster) -> None:
    owner = note("never")
    owner.metadata.uid = "0d9a5c4e-0000-4000-8000-000000000000"
    await owned_note(cluster, "child", owner)
    await cluster.eventually_gone(core_v1.ConfigMap, "child")


def reference(owner: core_v1.ConfigMap, *, name: str = "", block: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name=name or owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=block,
    )


async def dependent_note(
    cluster: Cluster, name: str, *owners: OwnerReference, finalizers: tuple[str, ...] = ()
) -> core_v1.ConfigMap:
    made = note(name)
    made.metadata.owner_references = list(owners)
    made.metadata.finalizers = list(finalizers)
    return await cluster.create(made)


def gadgets(group: str) -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


async def release(cluster: Cluster, name: str) -> None:
    await cluster.client.patch(await cluster.get(core_v1.ConfigMap, name), {"metadata": {"finalizers": None}})


async def test_owners_in_a_circle_are_all_deleted_in_the_foreground(cluster: Cluster) -> None:
    first = await cluster.create(note("first"))
    second = await dependent_note(cluster, "second", reference(first, block=True))
    third = await dependent_note(cluster, "third", reference(second, block=True))
    closing = {"metadata": {"ownerReferences": [{**BLOCKING, "name": "third", "uid": third.metadata.uid}]}}
    await cluster.client.patch(first, closing)
    await cluster.client.delete(first, propagation="Foreground")
    for name in ("first", "second", "third"):
        await cluster.eventually_gone(core_v1.ConfigMap, name)


async def test_a_dependent_that_names_its_owner_wrongly_is_deleted(cluster: Cluster) -> None:
    owner = await cluster.create(note("owner"))
    await dependent_note(cluster, "child", reference(owner, name="other"))
    await cluster.eventually_gone(core_v1.ConfigMap, "child")
    assert await cluster.get(core_v1.ConfigMap, "owner")


async def test_a_dependent_that_does_not_block_is_deleted_before_its_owner(cluster: Cluster) -> None:
    owner = await cluster.create(note("owner"))
    await dependent_note(cluster, "blocking", reference(owner, block=True), finalizers=(HOLD,))
    await dependent_note(cluster, "free", reference(owner))
    await cluster.client.delete(owner, propagation="Foreground")
    await cluster.eventually_gone(core_v1.ConfigMap, "free")
    assert (await cluster.get(core_v1.ConfigMap, "owner")).metadata.deletion_timestamp is not None
    await release(cluster, "blocking")
    await cluster.eventually_gone(core_v1.ConfigMap, "owner")


async def test_an_owner_is_deleted_once_its_dependent_no_longer_blocks(cluster: Cluster) -> None:
    owner = await cluster.create(note("owner"))
    await dependent_note(cluster, "child", reference(owner, block=True), finalizers=(HOLD,))
    await cluster.client.delete(owner, propagation="Foreground")
    child = await cluster.eventually(
        core_v1.ConfigMap, "child", lambda found: found.metadata.deletion_timestamp is not None
    )
    await cluster.client.patch(child, {"metadata": {"ownerReferences": None}})
    await cluster.eventually_gone(core_v1.ConfigMap, "owner")
    await release(cluster, "child")


async def test_a_dependent_with_another_owner_does_not_hold_up_the_deleted_one(cluster: Cluster) -> None:
    owner, other = await cluster.create(note("owner")), await cluster.create(note("other"))
    await dependent_note(cluster, "child", reference(owner, block=True), reference(other, block=True))
    await cluster.client.delete(owner, propagation="Foreground")
    await cluster.eventually_gone(core_v1.ConfigMap, "owner")
    child = await cluster.get(core_v1.ConfigMap, "child")
    assert [item.name for item in child.metadata.owner_references] == ["other"]


async def test_an_owner_in_another_namespace_is_reported_and_does_not_count(cluster: Cluster) -> None:
    elsewhere = f"elsewhere-{secrets.token_hex(3)}"
    await cluster.client.create(core_v1.Namespace(Meta(elsewhere)))
    owner = await cluster.client.create(core_v1.ConfigMap(Meta("owner", namespace=elsewhere)))
    child = await dependent_note(cluster, "child", reference(owner))
    await cluster.eventually_gone(core_v1.ConfigMap, "child")
    identity = f"[v1/ConfigMap, namespace: {cluster.namespace}, name: owner, uid: {owner.metadata.uid}]"
    message = f'ownerRef {identity} does not exist in namespace "{cluster.namespace}"'
    await wait_for_events(cluster, ("ConfigMap", "OwnerRefInvalidNamespace", message))
    assert child.metadata.owner_references[0].uid == owner.metadata.uid
    await cluster.client.delete(core_v1.Namespace, elsewhere)


async def test_a_dependent_of_an_unknown_kind_is_kept_until_the_kind_is_served(cluster: Cluster) -> None:
    group, kind = f"{secrets.token_hex(3)}.example.com", "Gadget"
    owner = OwnerReference(
        api_version=f"{group}/v1", kind=kind, name="missing", uid="4a0c5d8e-0000-4000-8000-1"
    )
    absent = OwnerReference(
        api_version="v1", kind="ConfigMap", name="absent", uid="4a0c5d8e-0000-4000-8000-2"
    )
    await dependent_note(cluster, "child", absent, owner)
    # The garbage collector has seen the child once it has deleted the one that was created after it.
    await dependent_note(cluster, "marker", absent)
    await cluster.eventually_gone(core_v1.ConfigMap, "marker")
    child = await cluster.get(core_v1.ConfigMap, "child")
    assert len(child.metadata.owner_references) == 2
    await cluster.client.apply(gadgets(group), field_manager="tests", kind=CUSTOM_RESOURCE_DEFINITION)
    await cluster.eventually_gone(core_v1.ConfigMap, "child", timeout=180)
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, f"gadgets.{group}")


async def test_a_definition_is_deleted_although_a_policy_denies_the_deletion_of_its_objects(
    cluster: Cluster,
) -> None:
    group = f"{secrets.token_hex(3)}.example.com"
    await cluster.client.apply(gadgets(group), field_manager="tests", kind=CUSTOM_RESOURCE_DEFINITION)
    kind = Kind(group=group, version="v1", kind="Gadget", plural="gadgets")

    async def is_served() -> bool:
        try:
            return await cluster.client.list(kind, namespace=cluster.namespace) == []
        except NotFound:
            return False

    await eventually(is_served)
    await cluster.client.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "Gadget",
            "metadata": {"name": "one", "namespace": cluster.namespace},
        },
        kind=kind,
    )
    rule = admission_v1.NamedRuleWithOperations(
        api_groups=[group], api_versions=["*"], resources=["*"], operations=["DELETE"]
    )
    policy = admission_v1.ValidatingAdmissionPolicy(
        Meta(group),
        spec=admission_v1.ValidatingAdmissionPolicySpec(
            match_constraints=admission_v1.MatchResources(resource_rules=[rule]),
            validations=[admission_v1.Validation(expression="false", message="kept")],
        ),
    )
    binding = admission_v1.ValidatingAdmissionPolicyBinding(
        Meta(group),
        spec=admission_v1.ValidatingAdmissionPolicyBindingSpec(
            policy_name=group, validation_actions=["Deny"]
        ),
    )
    await cluster.client.create(policy)
    await cluster.client.create(binding)

    async def is_denied() -> bool:
        try:
            await cluster.client.delete(kind, "one", cluster.namespace, dry_run=True)
        except Invalid:
            return True
        return False

    await eventually(is_denied)
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, f"gadgets.{group}")
    await cluster.eventually_gone(CUSTOM_RESOURCE_DEFINITION, f"gadgets.{group}")
    await cluster.client.delete(binding)
    await cluster.client.delete(policy)
