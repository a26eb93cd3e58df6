"""Tests of LoadingDock and its controller."""

import kubewright as kw
from kubewright.testing import Cluster

from fleet import operator
from fleet.loading_dock import LoadingDock, LoadingDockSpec


async def test_reports_the_message_in_the_status(cluster: Cluster) -> None:
    asked = LoadingDockSpec(message="hello")
    async with cluster.running(operator):
        made = await cluster.create(LoadingDock(kw.Meta(cluster.namespace), spec=asked))
        seen = await cluster.eventually(LoadingDock, made.metadata.name, lambda it: it.status.conditions)
        assert [each.message for each in seen.status.conditions] == ["hello"]
        await cluster.client.delete(made)
