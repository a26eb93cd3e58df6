"""Foo, the baby operator grown up: a Pod for each Foo, made when it is not there."""

from foo.controller import operator
from foo.kinds import Foo, FooSpec, FooStatus, FooV1Alpha1

__all__ = ["Foo", "FooSpec", "FooStatus", "FooV1Alpha1", "operator"]
