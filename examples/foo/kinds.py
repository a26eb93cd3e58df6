"""The kind Foo."""

from typing import Annotated

import kubewright as kw

COLUMNS = [
    kw.Column("Test String", ".testString", type="string"),
    kw.Column("Test Num", ".testNum", type="integer"),
]


class FooV1Alpha1(kw.Object, kind="Foo", group="example.com", version="v1alpha1", columns=COLUMNS):
    """Foo asks for a Pod of its own name."""

    test_string: Annotated[str | None, kw.Field(description="Any text.")] = None
    test_num: Annotated[int | None, kw.Field(int64=True, description="Any number.")] = None
