"""What an author gets wrong: strict type checkers report each marked line and no other.

`error except mypy`: mypy does not check class keywords if the metaclass has its own `__new__`.
"""

from kubewright import api as kw
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, watch


class Spec(kw.Model):
    size: int


class Status(kw.Model):
    ready: int = 0


class Thing(kw.Resource[Spec, Status], group="example.com", version="v1"): ...


class Bad(kw.Resource[Spec, Status], grup="example.com", version="v1"): ...  # error except mypy


class Far(kw.Object, group="example.com", version="v1", scope="Global"): ...  # error except mypy


thing = Thing(kw.Meta("a"), Spec(size=1))  # error
thing = Thing(kw.Meta("a"))  # error
thing = Thing(kw.Meta("a"), spec=Spec())  # error
thing = Thing(kw.Meta("a"), spec=Spec(size="1"))  # error
thing = Thing(kw.Meta("a"), spec=Spec(size=1), status=Spec(size=1))  # error
thing.spec.sise = 3  # error
print(thing.status.redy)  # error
core_v1.Container(image="x")  # error
core_v1.Pod(kw.Meta("a"))  # error
core_v1.Container(name="x", resources=None)  # error
kw.Meta("a", "namespace")  # error
watch(core_v1.Secret, map=lambda it: [kw.ObjectKey("", str(it.data))], metadata_only=True)  # error


class OtherStatus(kw.Model):
    ready: int = 0


class LargerStatus(kw.Model):
    ready: int = 0
    total: int = 0


class NoStatus(kw.Object, group="example.com", version="v1"):
    size: int = 0


async def write_statuses(ctx: Context, pod: core_v1.Pod, plain: NoStatus) -> None:
    await ctx.patch_status(thing, OtherStatus())  # error
    await ctx.patch_status(thing, LargerStatus())  # error
    await ctx.patch_status(thing, kw.Model())  # error
    await ctx.patch_status(thing, thing)  # error
    await ctx.patch_status(thing, 3)  # error
    await ctx.patch_status(pod, Status())  # error
    await ctx.patch_status(plain, Status())  # error
    await ctx.patch_status(plain)  # error
    await ctx.client.gett(Thing, "a")  # error
