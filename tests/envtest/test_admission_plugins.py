"""Admission plugins that are off by default, on both pairs of programs."""

from collections.abc import AsyncIterator

import pytest
from programs import SECONDS, TestPlane

import kubewright as kw
from kubewright.api import Forbidden, OwnerReference
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.client import Client
from kubewright.testing import eventually

GROUP = "rbac.authorization.k8s.io"
PLUGINS = (
    "AlwaysPullImages,DenyServiceExternalIPs,NamespaceAutoProvision,OwnerReferencesPermissionEnforcement"
)


@pytest.fixture
async def admin(either_plane: TestPlane) -> AsyncIterator[Client]:
    """Run a server with the plugins; return the client of an administrator."""
    config = either_plane.config("admin", "system:masters")
    async with either_plane.running(f"--enable-admission-plugins={PLUGINS}"), Client(config) as client:
        # The real server creates its first namespaces after it reports that it is healthy.
        await eventually(lambda: client.get(core_v1.Namespace, "default"), timeout=SECONDS)
        yield client


def config_map(name: str, *owners: OwnerReference, namespace: str = "default") -> core_v1.ConfigMap:
    return core_v1.ConfigMap(metadata=kw.Meta(name=name, namespace=namespace, owner_references=list(owners)))


async def bind(admin: Client, user: str, *rules: rbac_v1.PolicyRule) -> None:
    await admin.create(rbac_v1.ClusterRole(metadata=kw.Meta(name=user), rules=list(rules)))
    binding = rbac_v1.ClusterRoleBinding(
        metadata=kw.Meta(name=user),
        role_ref=rbac_v1.RoleRef(api_group=GROUP, kind="ClusterRole", name=user),
        subjects=[rbac_v1.Subject(kind="User", name=user, api_group=GROUP)],
    )
    await admin.create(binding)


async def until_allowed(client: Client, obj: core_v1.ConfigMap) -> core_v1.ConfigMap:
    """Create an object as soon as the real server has seen the binding."""

    async def create() -> core_v1.ConfigMap | None:
        try:
            return await client.create(obj)
        except Forbidden as error:
            if "cannot create" not in str(error):
                raise
            return None

    return await eventually(create, timeout=SECONDS)


async def test_pods_always_pull_their_images(admin: Client) -> None:
    container = core_v1.Container(name="a", image="a:1", image_pull_policy="IfNotPresent")
    pod = core_v1.Pod(
        metadata=kw.Meta(name="p", namespace="default"), spec=core_v1.PodSpec(containers=[container])
    )
    made = await admin.create(pod)
    assert [item.image_pull_policy for item in made.spec.containers] == ["Always"]


async def test_the_namespace_of_a_new_object_is_created(admin: Client) -> None:
    await admin.create(config_map("one", namespace="new"))
    assert (await admin.get(core_v1.Namespace, "new")).status.phase == "Active"


async def test_external_ips_of_services_are_denied(admin: Client) -> None:
    service = core_v1.Service(
        metadata=kw.Meta(name="s", namespace="default"),
        spec=core_v1.ServiceSpec(ports=[core_v1.ServicePort(port=80)], external_ips=["1.2.3.4"]),
    )
    with pytest.raises(
        Forbidden, match='services "s" is forbidden: Use of external IPs is denied by admission control'
    ):
        await admin.create(service)


async def test_an_owner_blocks_only_with_the_permission_to_finalize_it(
    admin: Client, either_plane: TestPlane
) -> None:
    owner = await admin.create(config_map("owner"))
    blocking = OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name="owner",
        uid=owner.metadata.uid,
        block_owner_deletion=True,
    )
    create = rbac_v1.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["create"])
    finalize = rbac_v1.PolicyRule(api_groups=[""], resources=["configmaps/finalizers"], verbs=["update"])
    await bind(admin, "ann", create)
    await bind(admin, "bob", create, finalize)
    async with Client(either_plane.config("ann")) as ann, Client(either_plane.config("bob")) as bob:
        text = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
        with pytest.raises(Forbidden, match=f'configmaps "child" is forbidden: {text}'):
            await until_allowed(ann, config_map("child", blocking))
        await until_allowed(bob, config_map("child", blocking))


async def test_owners_change_only_with_the_permission_to_delete(
    admin: Client, either_plane: TestPlane
) -> None:
    owner = await admin.create(config_map("owner"))
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    await bind(
        admin,
        "ann",
        rbac_v1.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["create", "update"]),
    )
    async with Client(either_plane.config("ann")) as ann:
        child = await until_allowed(ann, config_map("child"))
        child.metadata.owner_references = [reference]
        with pytest.raises(Forbidden, match="cannot set an ownerRef on a resource you can't delete: , <nil>"):
            await ann.replace(child)
