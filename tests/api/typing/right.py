"""What an author writes; strict type checkers accept it."""

from datetime import datetime
from typing import Annotated, Any, assert_type

from kubewright import api as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.client import Client
from kubewright.controller import Context, Owned, Watch, owned, watch


class ShellSpec(kw.Model):
    size: Annotated[int, kw.Field(ge=0, description="Number of shell pods.")]
    image: str = "busybox"
    ports: list[int] = []
    limits: dict[str, kw.Quantity] = {}
    extra: Annotated[Any, kw.Field(preserve_unknown_fields=True)] = None


class ShellStatus(kw.Model, rules=[kw.Rule("self.ready >= 0")]):
    ready: int = 0
    healthy: Annotated[bool | None, kw.Field(name="Healthy")] = None
    conditions: list[kw.Condition] = []


class MyOwnShell(
    kw.Resource[ShellSpec, ShellStatus],
    group="my-first-operator.jgato.io",
    version="v1alpha1",
    short_names=["mos"],
    columns=[kw.Column("Ready", ".status.ready", type="integer")],
    scale=kw.Scale(spec=".spec.size", status=".status.ready"),
):
    """Pods to open a shell in."""


class FooV1Alpha1(kw.Object, kind="Foo", group="example.com", version="v1alpha1", scope="Cluster"):
    test_string: str = ""
    test_num: int = 0


shell = MyOwnShell(kw.Meta("demo", labels={"a": "b"}), spec=ShellSpec(size=3))
assert_type(shell.spec, ShellSpec)
assert_type(shell.status, ShellStatus)
assert_type(shell.status.ready, int)
assert_type(shell.metadata.creation_timestamp, datetime | None)
assert_type(shell.key, kw.ObjectKey)
shell.status = ShellStatus(ready=2, healthy=True)
shell.metadata.finalizers.append("example.com/f")

foo = FooV1Alpha1(kw.Meta("foo"), test_num=3)
assert_type(foo.test_num, int)
assert_type(kw.decode(MyOwnShell, b"{}"), MyOwnShell)

deployment = apps_v1.Deployment(
    kw.Meta("demo"),
    spec=apps_v1.DeploymentSpec(
        replicas=shell.spec.size,
        selector=meta_v1.LabelSelector(match_labels={"a": "b"}),
        template=core_v1.PodTemplateSpec(
            metadata=kw.Meta(labels={"a": "b"}),
            spec=core_v1.PodSpec(containers=[core_v1.Container(name="shell", image=shell.spec.image)]),
        ),
    ),
)
assert_type(deployment.status.ready_replicas, int)
assert_type(deployment.spec.replicas, int | None)
assert_type(deployment.spec.template.spec.containers[0].ports, list[core_v1.ContainerPort])

assert_type(watch(core_v1.Secret, map=lambda secret: [secret.key]), Watch[core_v1.Secret])
assert_type(watch(core_v1.Secret, map=lambda it: [it.key], metadata_only=True), Watch[kw.Object])
assert_type(owned(core_v1.Secret, metadata_only=True), Owned[kw.Object])


class Sized(kw.Object, group="example.com", version="v1"):
    """A kind whose status may be missing."""

    size: int = 0
    status: ShellStatus | None = None


async def write_statuses(ctx: Context, sized: Sized, document: dict[str, Any]) -> None:
    assert_type(await ctx.patch_status(shell), MyOwnShell)
    assert_type(await ctx.patch_status(shell, ShellStatus(ready=1)), MyOwnShell)
    assert_type(await ctx.patch_status(shell, {"ready": 1}), MyOwnShell)
    assert_type(await ctx.patch_status(sized, ShellStatus(ready=1)), Sized)
    assert_type(await ctx.patch_status(deployment, apps_v1.DeploymentStatus(replicas=1)), apps_v1.Deployment)
    assert_type(await ctx.patch_status(document, {"ready": 1}), dict[str, Any])
    assert_type(await ctx.patch_status(document, ShellStatus(ready=1)), dict[str, Any])


async def request(ctx: Context) -> None:
    assert_type(ctx.client, Client)
    assert_type(await ctx.client.get(MyOwnShell, "demo", "default"), MyOwnShell)
