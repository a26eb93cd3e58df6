"""What an author gets wrong; each marked line is an error to a strict type checker, no other is."""

from kubewright import api as kw
from kubewright.api.builtin import core_v1
from kubewright.controller import watch


class Spec(kw.Model):
    size: int


class Status(kw.Model):
    ready: int = 0


class Thing(kw.Resource[Spec, Status], group="example.com", version="v1"): ...


class Bad(kw.Resource[Spec, Status], grup="example.com", version="v1"): ...  # error


class Far(kw.Object, group="example.com", version="v1", scope="Global"): ...  # error


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
