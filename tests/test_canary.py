"""Canary by label: two versions of an operator share the objects by a label, and an object moves with its label."""

import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import ConfigError, Meta, parse_labels
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.api.names import dns1123_subdomain
from kubewright.api.scoping import lease_name, normal_selector
from kubewright.controller import Context, Controller, Operator, Selector, owned
from kubewright.election import ElectionOptions
from kubewright.manager import Manager
from kubewright.shards import Shards
from kubewright.testing import Cluster, eventually

from .controller.running.conftest import cluster, known_types  # noqa: F401 (fixtures)
from .controller.running.kinds import Box
from .controller.running.operators import options, started
from .test_shards import QUICK

FINALIZER = "running.example.com/box"
CHILD_FINALIZER = "running.example.com/child"
SELECTORS = {"stable": "track!=canary", "canary": "track=canary"}


class Track:
    """One version of an operator: what it has reconciled and finalized."""

    def __init__(self, cluster: Cluster, name: str, **more: object) -> None:  # noqa: F811 (a fixture)
        self.name = name
        self.sizes: list[tuple[str, int]] = []
        self.finalized: list[str] = []
        children = owned(core_v1.ConfigMap, finalizer=CHILD_FINALIZER)
        operator = Operator(Controller(Box, self, owns=[children], finalizer=FINALIZER), name="boxes")
        chosen = options(
            selector=SELECTORS[name],
            namespaces=(cluster.namespace,),
            election=ElectionOptions(times=QUICK, identity=name),
            **more,
        )
        self.manager = Manager(operator, cluster.config, chosen)

    async def reconcile(self, box: Box, ctx: Context) -> None:
        await ctx.apply(
            core_v1.ConfigMap(Meta(box.metadata.name), data={"by": self.name, "size": str(box.spec.size)})
        )
        self.sizes.append((box.metadata.name, box.spec.size))

    async def finalize(self, box: Box, ctx: Context) -> None:
        self.finalized.append(box.metadata.name)

    @property
    def reconciled(self) -> set[str]:
        """Return the names of the reconciled boxes."""
        return {name for name, _ in self.sizes}


async def label(cluster: Cluster, name: str, track: str | None) -> None:  # noqa: F811 (a fixture)
    patch = {"metadata": {"labels": {"track": track}}}
    await cluster.client.patch(Box, patch, name=name, namespace=cluster.namespace, type="merge")


async def test_an_object_moves_to_the_operator_that_selects_its_label(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    stable, canary = Track(cluster, "stable"), Track(cluster, "canary")
    async with started(stable.manager), started(canary.manager):
        await cluster.create(Box(Meta("old")))
        await cluster.create(Box(Meta("new", labels={"track": "canary"})))
        await eventually(lambda: stable.reconciled == {"old"} and canary.reconciled == {"new"})

        await label(cluster, "old", "canary")
        moved = await cluster.eventually(core_v1.ConfigMap, "old", lambda found: found.data["by"] == "canary")
        assert moved.metadata.finalizers == [CHILD_FINALIZER]
        await cluster.client.patch(await cluster.get(Box, "old"), {"spec": {"size": 9}})
        await eventually(lambda: ("old", 9) in canary.sizes)
        assert ("old", 9) not in stable.sizes

        # A child is seen by the operator of its owner, and by no other.
        await cluster.client.patch(moved, {"data": {"size": "0"}}, type="merge")
        await cluster.eventually(core_v1.ConfigMap, "old", lambda found: found.data["size"] == "9")
        assert (stable.finalized, canary.finalized) == ([], [])
        found = await cluster.get(Box, "old")
        assert found.metadata.finalizers == [FINALIZER]

        await label(cluster, "old", None)
        await cluster.eventually(core_v1.ConfigMap, "old", lambda found: found.data["by"] == "stable")
        await cluster.client.delete(Box, "old", cluster.namespace)
        await eventually(lambda: stable.finalized == ["old"])
        assert canary.finalized == []


async def test_each_selector_has_a_lease_of_its_own(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    async with AsyncExitStack() as stack:
        for name in SELECTORS:
            track = Track(cluster, name)
            await stack.enter_async_context(started(track.manager))
            await track.manager.ready.wait()
        found = await cluster.client.list(coordination_v1.Lease, namespace=cluster.namespace)
        holders = {lease.metadata.name: lease.spec.holder_identity for lease in found if lease.spec}
        assert holders == {lease_name("boxes", text): name for name, text in SELECTORS.items()}


async def test_a_child_keeps_its_finalizer_while_its_owner_is_not_selected(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    """The controller's own selector leaves the owner out: it is not gone."""
    await cluster.install(Box)
    async with started((track := Track(cluster, "stable")).manager):
        await cluster.create(Box(Meta("box")))
        await cluster.eventually(core_v1.ConfigMap, "box")
        await eventually(lambda: "box" in track.reconciled)
    await label(cluster, "box", "canary")
    seen: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.name)

    children = owned(core_v1.ConfigMap, finalizer=CHILD_FINALIZER)
    selecting = Controller(Box, reconcile, owns=[children], selector=Selector(labels="track!=canary"))
    async with cluster.running(Operator(selecting, name="other"), options=options(), as_admin=True):
        child = await cluster.get(core_v1.ConfigMap, "box")
        await cluster.client.patch(child, {"data": {"size": "0"}}, type="merge")
        await cluster.create(Box(Meta("last")))
        await eventually(lambda: "last" in seen)
        assert (await cluster.get(core_v1.ConfigMap, "box")).metadata.finalizers == [CHILD_FINALIZER]
        # Once the owner is gone, its children are freed.
        patch = {"metadata": {"finalizers": None}}
        await cluster.client.patch(Box, patch, name="box", namespace=cluster.namespace, type="merge")
        await cluster.client.delete(Box, "box", cluster.namespace)
        await cluster.client.patch(child, {"data": {"size": "1"}}, type="merge")
        await cluster.eventually(core_v1.ConfigMap, "box", lambda found: not found.metadata.finalizers)


@pytest.mark.parametrize("shards", [None, Shards(3)])
async def test_a_selector_that_matches_nothing_is_one_warning(
    cluster: Cluster,  # noqa: F811 (a fixture)
    caplog: pytest.LogCaptureFixture,
    shards: Shards | None,
) -> None:
    await cluster.install(Box)
    await cluster.create(Box(Meta("box")))
    track = Track(cluster, "canary", shards=shards)
    async with started(track.manager):
        await track.manager.ready.wait()
        await label(cluster, "box", "canary")
        await eventually(lambda: track.reconciled == {"box"})
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "No object of Box matches the selector track=canary now: nothing is reconciled until one does"
    ]


async def test_a_shard_without_objects_is_no_warning_if_another_has_some(
    cluster: Cluster,  # noqa: F811 (a fixture)
    caplog: pytest.LogCaptureFixture,
) -> None:
    await cluster.install(Box)
    await cluster.create(Box(Meta("box", labels={"track": "canary"})))
    track = Track(cluster, "canary", shards=Shards(16))
    async with started(track.manager):
        await eventually(lambda: track.reconciled == {"box"})
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []


async def test_an_invalid_selector_is_refused(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    operator = Track(cluster, "stable").manager.operator
    with pytest.raises(ConfigError, match=r"selector 'track in \(': "):
        Manager(operator, cluster.config, options(selector="track in ("))


KEYS = st.sampled_from(["track", "team", "example.com/team", "a.b"])
VALUES = st.sampled_from(["a", "b", "canary", "1.2"])
TERMS = st.one_of(
    st.builds("{}={}".format, KEYS, VALUES),
    st.builds("{}!={}".format, KEYS, VALUES),
    st.builds("{} in ({},{})".format, KEYS, VALUES, VALUES),
    st.builds("{} notin ({},{})".format, KEYS, VALUES, VALUES),
    KEYS,
    st.builds("!{}".format, KEYS),
)


@given(st.lists(TERMS, min_size=1, max_size=4), st.integers(1, 253))
def test_the_name_of_a_lease_follows_from_the_requirements_of_its_selector(
    terms: Sequence[str], length: int
) -> None:
    operator = "x" * length
    name = lease_name(operator, ",".join(terms))
    assert dns1123_subdomain(name) == []
    assert name != operator
    other = [term.replace("=", "==") if "!" not in term else term for term in reversed(terms)]
    assert lease_name(operator, " , ".join(other)) == name
    assert parse_labels(normal_selector(",".join(terms)))


@given(
    st.lists(TERMS, min_size=1, max_size=3),
    st.lists(TERMS, min_size=1, max_size=3),
    st.dictionaries(KEYS, VALUES),
)
def test_selectors_with_the_same_lease_select_the_same_objects(
    one: Sequence[str], other: Sequence[str], labels: dict[str, str]
) -> None:
    first, second = ",".join(one), ",".join(other)
    assert parse_labels(normal_selector(first)).matches(labels) == parse_labels(first).matches(labels)
    if lease_name("boxes", first) == lease_name("boxes", second):
        assert parse_labels(first).matches(labels) == parse_labels(second).matches(labels)


def test_the_name_of_a_lease_shows_its_selector() -> None:
    assert lease_name("photos", "") == "photos"
    assert re.fullmatch("photos-track-canary-[0-9a-f]{8}", lease_name("photos", "track=canary"))
    assert re.fullmatch("photos-track-not-canary-[0-9a-f]{8}", lease_name("photos", "track!=canary"))
