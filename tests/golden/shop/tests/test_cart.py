"""Tests of Cart and its controller."""

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster

from shop import operator
from shop.cart import Cart, CartSpec


async def test_updates_the_config_map(cluster: Cluster) -> None:
    asked = CartSpec(message="hello")
    async with cluster.running(operator):
        made = await cluster.create(Cart(kw.Meta("demo"), spec=asked))
        await cluster.eventually(core_v1.ConfigMap, "demo", lambda it: it.data == {"message": "hello"})
        await cluster.eventually(Cart, "demo", lambda it: it.status.conditions[:1])
        await cluster.client.patch(made, {"spec": {"message": "goodbye"}})
        await cluster.eventually(core_v1.ConfigMap, "demo", lambda it: it.data == {"message": "goodbye"})


async def test_recreates_a_deleted_config_map(cluster: Cluster) -> None:
    asked = CartSpec(message="hello")
    async with cluster.running(operator):
        await cluster.create(Cart(kw.Meta("demo"), spec=asked))
        first = await cluster.eventually(core_v1.ConfigMap, "demo")
        await cluster.client.delete(first)
        await cluster.eventually(core_v1.ConfigMap, "demo", lambda it: it.metadata.uid != first.metadata.uid)
