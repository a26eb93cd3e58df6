"""The kind Foo in its two versions, and the way between them."""

import json
from typing import Annotated

import kubewright as kw
from kubewright.api import from_wire, to_wire

IMAGE = "gcr.io/google_containers/echoserver:1.4"
KEPT = "example.com/v1beta1"
"""The annotation in which an old Foo carries what only the new version knows."""


class FooV1Alpha1(
    kw.Object,
    kind="Foo",
    group="example.com",
    version="v1alpha1",
    columns=[
        kw.Column("Test String", ".testString", type="string"),
        kw.Column("Test Num", ".testNum", type="integer"),
    ],
):
    """Foo runs a Pod of its own name."""

    test_string: Annotated[str | None, kw.Field(description="Any text.")] = None
    test_num: Annotated[int | None, kw.Field(int64=True, description="Any number.")] = None


class FooSpec(kw.Model):
    """The desired state."""

    test_string: Annotated[str | None, kw.Field(max_length=256, description="Any text.")] = None
    test_num: Annotated[int | None, kw.Field(int64=True, ge=0, description="Any number from 0.")] = None
    image: Annotated[str, kw.Field(min_length=1, description="Image that the Pod runs.")] = IMAGE


class FooStatus(kw.Model):
    """The observed state."""

    pod: Annotated[str, kw.Field(description="Name of the Pod that exists for this Foo.")] = ""


class Foo(
    kw.Resource[FooSpec, FooStatus],
    group="example.com",
    version="v1beta1",
    stored=True,
    columns=[
        kw.Column("Test String", ".spec.testString", type="string"),
        kw.Column("Test Num", ".spec.testNum", type="integer"),
    ],
):
    """Foo runs a Pod of its own name."""


class _Kept(kw.Model):
    image: str = IMAGE
    status: FooStatus = FooStatus()


def up(old: FooV1Alpha1) -> Foo:
    """Make the new version; what an old Foo carried for it comes back."""
    kept = from_wire(_Kept, json.loads(old.metadata.annotations.pop(KEPT, "{}")))
    spec = FooSpec(test_string=old.test_string, test_num=old.test_num, image=kept.image)
    return Foo(old.metadata, spec=spec, status=kept.status)


def down(new: Foo) -> FooV1Alpha1:
    """Make the old version; it carries along what it has no field for."""
    kept = _Kept(image=new.spec.image, status=new.status)
    if kept != _Kept():
        new.metadata.annotations[KEPT] = json.dumps(to_wire(kept), sort_keys=True)
    return FooV1Alpha1(new.metadata, test_string=new.spec.test_string, test_num=new.spec.test_num)


conversion = kw.Conversion(Foo, FooV1Alpha1, up=up, down=down)
