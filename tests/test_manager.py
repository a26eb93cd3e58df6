import asyncio
import dataclasses
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from acceptance_waits import may
from http_wire import connected, without_verification

from kubewright.api import Meta, NotFound
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.cache import CacheSyncTimeout
from kubewright.client import ClusterConfig, Impersonation
from kubewright.controller import Context, Controller, Operator, needs, rules_for
from kubewright.manager import Manager
from kubewright.serving import BindError
from kubewright.testing import Cluster, eventually

from .controller.running.conftest import cluster, known_types  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxStatus, Paper
from .controller.running.operators import OPTIONS, events, options, running, settled, started


async def nothing(box: Box, ctx: Context) -> None:
    pass


def as_user(config: ClusterConfig, name: str) -> ClusterConfig:
    return dataclasses.replace(config, impersonate=Impersonation(user=name))


async def asked(port: int, path: str) -> tuple[int, str]:
    async with connected(port) as wire:
        reply = await wire.ask("GET", path)
        return reply.status, reply.text


async def test_probes_and_metrics_are_served(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    serving = options(
        metrics_bind_address="127.0.0.1:0", health_probe_bind_address="127.0.0.1:0", watchdog=True
    )
    async with running(cluster, Controller(Box, nothing), options=serving) as manager:
        assert await asked(manager.probe_port, "/healthz") == (200, "ok")
        assert await asked(manager.probe_port, "/readyz") == (200, "ok")
        await cluster.create(Box(Meta("a")))
        await settled(manager)
        status, text = await asked(manager.metrics_port, "/metrics")
        assert status == 200
        for line in (
            'controller_runtime_reconcile_total{controller="box",result="success"} 1.0',
            'controller_runtime_max_concurrent_reconciles{controller="box"} 1.0',
            'workqueue_depth{controller="box",name="box",priority="0"} 0.0',
            'leader_election_master_status{name="box"} 0.0',
        ):
            assert line in text
        assert "rest_client_requests_total{" in text
        assert "kubewright_event_loop_blocked_total" in text


async def test_a_missing_kind_is_named_by_the_readiness_probe_and_waited_for(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    serving = options(health_probe_bind_address="127.0.0.1:0", namespaces=(cluster.namespace,))
    if await served(cluster):
        pytest.skip("other tests have installed the kind on this server")
    manager = Manager(Operator(Controller(Box, nothing)), cluster.config, serving)
    async with started(manager):

        async def named() -> bool:
            if not manager.probe_port:
                return False
            status, text = await asked(manager.probe_port, "/readyz")
            return status == 500 and "is its CRD installed?" in text

        await eventually(named)
        await cluster.install(Box)
        await eventually(manager.ready.wait)
        assert await asked(manager.probe_port, "/readyz") == (200, "ok")


async def served(cluster: Cluster) -> bool:  # noqa: F811 (a fixture's value)
    try:
        await cluster.client.list(Box, namespace=cluster.namespace)
    except NotFound:
        return False
    return True


async def test_a_denied_watch_fails_readiness_and_the_start_and_names_the_rule(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    unprivileged = as_user(cluster.config, "unprivileged")
    timeout, reason = 1.0, ""
    while "missing rule" not in reason:
        # A busy server may not have answered the first list within this time.
        timeout *= 2
        serving = options(
            health_probe_bind_address="127.0.0.1:0",
            cache_sync_timeout=timeout,
            namespaces=(cluster.namespace,),
        )
        manager = Manager(Operator(Controller(Box, nothing)), unprivileged, serving)
        with pytest.raises(CacheSyncTimeout) as raised:
            await manager.run()
        assert timeout < 100, raised.value
        [reason] = manager.readiness.failures().values()
    assert re.search(r'resources: \["boxes"\], verbs: \["(list|watch)"\]', str(raised.value))


async def test_an_operator_runs_with_no_more_than_its_own_rules(
    cluster: Cluster,  # noqa: F811 (a fixture)
    caplog: pytest.LogCaptureFixture,
) -> None:
    await cluster.install(Box, Paper)

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None:
            settings = await ctx.find(core_v1.ConfigMap, "settings")
            await ctx.apply(Paper(Meta(box.metadata.name), text="x" if settings is None else "y"))
            await ctx.patch_status(box, BoxStatus(ready=1))
            ctx.event("Done", "all of it")

        async def finalize(self, box: Box, ctx: Context) -> None:
            ctx.event("Gone", "all of it")

    boxes = Controller(
        Box, Boxes(), finalizer="example.com/x", owns=[Paper], needs=[needs(core_v1.ConfigMap, "get")]
    )
    name = f"operator-{cluster.namespace}"
    rules = [
        rbac_v1.PolicyRule(
            api_groups=list(rule.api_groups), resources=list(rule.resources), verbs=list(rule.verbs)
        )
        for rule in rules_for(Operator(boxes))
    ]
    await cluster.client.create(rbac_v1.ClusterRole(Meta(name), rules=rules))
    await cluster.client.create(
        rbac_v1.ClusterRoleBinding(
            Meta(name),
            role_ref=rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[rbac_v1.Subject(kind="User", name=name, api_group="rbac.authorization.k8s.io")],
        )
    )
    await may(cluster.client, name, "watch", "boxes", group="running.example.com")
    admin, cluster.config = cluster.config, as_user(cluster.config, name)
    async with running(cluster, boxes) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.status.ready == 1)
        await cluster.eventually(Paper, "a", lambda found: found.text == "x")
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")
        for reason in ("Done", "Gone"):
            await eventually(lambda reason=reason: events(cluster, reason))
        assert manager.statistics().controllers[0].outcomes["error"] == 0
    cluster.config = admin
    assert "forbidden" not in caplog.text.lower()


async def test_operators_watch_the_given_namespaces_only(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    other = f"{cluster.namespace}-other"
    await cluster.client.create(core_v1.Namespace(Meta(other)))
    seen: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.namespace)
        assert {found.metadata.namespace for found in await ctx.list(Box, all_namespaces=True)} <= {
            cluster.namespace
        }

    async with running(cluster, Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a", namespace=other)))
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(seen))
        await settled(manager)
    assert seen == [cluster.namespace]


async def test_reconciles_in_flight_may_end_before_the_stop(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    story: list[str] = []
    begun = asyncio.Event()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        story.append("open")
        yield
        story.append("close")

    async def reconcile(box: Box, ctx: Context) -> None:
        begun.set()
        await eventually(lambda: not manager.ready.is_set(), interval=0)
        # Its threads are its own until it has ended.
        story.append(await ctx.run_sync(lambda: "reconciled"))

    async with running(cluster, Controller(Box, reconcile), lifespan=lifespan) as manager:
        await cluster.create(Box(Meta("a")))
        await begun.wait()
    assert story == ["open", "reconciled", "close"]


async def test_reconciles_that_do_not_end_in_time_are_cancelled(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    story: list[str] = []
    begun = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            story.append("cancelled")
            raise

    async with running(cluster, Controller(Box, reconcile), options=options(graceful_timeout=0.05)):
        await cluster.create(Box(Meta("a")))
        await begun.wait()
    assert story == ["cancelled"]


async def test_exceptions_of_a_lifespan_end_the_run_unchanged(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        raise LookupError("VC_HOST is not set")
        yield

    manager = Manager(Operator(Controller(Box, nothing), lifespan=lifespan), cluster.config, OPTIONS)
    with pytest.raises(LookupError, match="VC_HOST"):
        await manager.run()


async def test_a_port_in_use_ends_the_run_with_its_address(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    serving = options(health_probe_bind_address="127.0.0.1:0")
    async with running(cluster, Controller(Box, nothing), options=serving) as manager:
        taken = options(health_probe_bind_address=f"127.0.0.1:{manager.probe_port}")
        with pytest.raises(BindError, match=str(manager.probe_port)):
            await Manager(Operator(Controller(Box, nothing)), cluster.config, taken).run()


async def test_secure_metrics_are_served_to_authorized_users(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    name = f"scraper-{cluster.namespace}"
    await cluster.create(core_v1.ServiceAccount(Meta("scraper")))
    token = (await cluster.client.token_request("scraper", cluster.namespace)).token
    chosen = options(metrics_bind_address="127.0.0.1:0", metrics_secure=True)
    async with running(cluster, Controller(Box, nothing), options=chosen) as manager:
        assert (await asked_securely(manager.metrics_port, token))[0] == 403
    await cluster.client.create(
        rbac_v1.ClusterRole(
            Meta(name), rules=[rbac_v1.PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])]
        )
    )
    subject = rbac_v1.Subject(kind="ServiceAccount", name="scraper", namespace=cluster.namespace)
    role = rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name)
    await cluster.client.create(rbac_v1.ClusterRoleBinding(Meta(name), role_ref=role, subjects=[subject]))
    user = f"system:serviceaccount:{cluster.namespace}:scraper"
    await may(cluster.client, user, "get", "/metrics")
    async with running(cluster, Controller(Box, nothing), options=chosen) as manager:
        assert (await asked_securely(manager.metrics_port, "forged"))[0] == 401
        status, text = await asked_securely(manager.metrics_port, token)
        assert status == 200
        assert "controller_runtime_reconcile_total" in text


async def asked_securely(port: int, token: str) -> tuple[int, str]:
    async with connected(port, without_verification()) as wire:
        reply = await wire.ask("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        return reply.status, reply.text


async def test_metrics_of_a_service_are_served_with_a_certificate_of_the_authority_in_its_secret(
    cluster: Cluster,  # noqa: F811 (a fixture)
) -> None:
    await cluster.install(Box)
    chosen = options(metrics_bind_address="127.0.0.1:0", metrics_secure=True, metrics_service="box-metrics")
    async with running(cluster, Controller(Box, nothing), options=chosen) as manager:
        secret = await cluster.get(core_v1.Secret, "box-metrics-cert")
        trusted = ssl.create_default_context(cadata=secret.data["ca.crt"].decode())
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            manager.metrics_port,
            ssl=trusted,
            server_hostname=f"box-metrics.{cluster.namespace}.svc",
        )
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n")
        assert b"401" in await reader.readline()
        writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", manager.metrics_port, ssl=trusted, server_hostname="other.example.com"
            )
    async with running(cluster, Controller(Box, nothing), options=chosen):
        assert (await cluster.get(core_v1.Secret, "box-metrics-cert")).data == secret.data
