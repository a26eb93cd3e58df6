import asyncio
import dataclasses
import sys
import threading
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from acceptance_waits import may
from http_wire import connected, trusting_anybody

from kubewright.api import Conflict, Meta, NotFound
from kubewright.api.builtin import coordination_v1, core_v1, rbac_v1
from kubewright.cache import CacheSyncTimeout
from kubewright.client import ClusterConfig, Impersonation
from kubewright.controller import Context, Controller, Operator, Tuning, needs, rules_for
from kubewright.election import ElectionOptions, LeaseLost, LeaseTimes, NotLeading
from kubewright.manager import Manager, ManagerOptions
from kubewright.serving import BindError

from .controller.running.cluster import OPTIONS, Cluster, settled
from .controller.running.conftest import cluster, known_types, real_config  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxStatus, Paper

# As short as a busy machine lets a leader keep its lease.
QUICK = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0)


async def nothing(box: Box, ctx: Context) -> None:
    pass


def as_user(config: ClusterConfig, name: str) -> ClusterConfig:
    return dataclasses.replace(config, impersonate=Impersonation(user=name))


@asynccontextmanager
async def started(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    """Run a manager that need not become ready."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            yield task
        finally:
            task.cancel()


def options(**changes: Any) -> ManagerOptions:
    return dataclasses.replace(OPTIONS, **changes)


async def asked(port: int, path: str) -> tuple[int, str]:
    async with connected(port) as wire:
        reply = await wire.ask("GET", path)
        return reply.status, reply.text


async def test_probes_and_metrics_are_served(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    serving = options(
        metrics_bind_address="127.0.0.1:0", health_probe_bind_address="127.0.0.1:0", watchdog=True
    )
    async with cluster.running(Controller(Box, nothing), options=serving) as manager:
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


async def test_a_kind_that_is_not_there_yet_is_named_by_the_probe_and_waited_for(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
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

        await cluster.eventually(named)
        await cluster.install(Box)
        await cluster.eventually(manager.ready.wait)
        assert await asked(manager.probe_port, "/readyz") == (200, "ok")


async def served(cluster: Cluster) -> bool:  # noqa: F811 (a fixture's value)
    try:
        await cluster.client.list(Box, namespace=cluster.namespace)
    except NotFound:
        return False
    return True


async def test_a_denied_watch_fails_readiness_and_the_start_and_names_the_rule(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    stranger = as_user(cluster.config, "stranger")
    serving = options(
        health_probe_bind_address="127.0.0.1:0", cache_sync_timeout=4.0, namespaces=(cluster.namespace,)
    )
    manager = Manager(Operator(Controller(Box, nothing)), stranger, serving)
    with pytest.raises(
        CacheSyncTimeout, match=r'resources: \["boxes"\], verbs: \["list"\]|verbs: \["watch"\]'
    ):
        await manager.run()
    [reason] = manager.readiness.failures().values()
    assert "missing rule" in reason


async def test_an_operator_runs_with_no_more_than_its_own_rules(
    cluster: Cluster,  # noqa: F811 (a fixture)
    caplog: pytest.LogCaptureFixture,
) -> None:
    await cluster.install(Box, Paper)

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None:
            settings = await ctx.get(core_v1.ConfigMap, "settings")
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
    async with cluster.running(boxes) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.until(Box, "a", lambda found: found.status.ready == 1)
        await cluster.until(Paper, "a", lambda found: found.text == "x")
        await cluster.client.delete(box)
        await cluster.gone(Box, "a")
        for reason in ("Done", "Gone"):
            await cluster.eventually(lambda reason=reason: cluster.events(reason))
        assert manager.statistics().controllers[0].outcomes["error"] == 0
    cluster.config = admin
    assert "forbidden" not in caplog.text.lower()


async def test_only_the_given_namespaces_are_looked_at(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    other = f"{cluster.namespace}-other"
    await cluster.client.create(core_v1.Namespace(Meta(other)))
    seen: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.namespace)
        assert {found.metadata.namespace for found in await ctx.list(Box)} <= {cluster.namespace}

    async with cluster.running(Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a", namespace=other)))
        await cluster.create(Box(Meta("a")))

        async def met() -> bool:
            return bool(seen)

        await cluster.eventually(met)
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
        while manager.ready.is_set():
            await asyncio.sleep(0)
        # Its threads are its own until it has ended.
        story.append(await ctx.run_sync(lambda: "reconciled"))

    async with cluster.running(Controller(Box, reconcile), lifespan=lifespan) as manager:
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

    async with cluster.running(Controller(Box, reconcile), options=options(graceful_timeout=0.05)):
        await cluster.create(Box(Meta("a")))
        await begun.wait()
    assert story == ["cancelled"]


async def test_what_a_lifespan_raises_ends_the_run_as_it_is(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        raise LookupError("VC_HOST is not set")
        yield

    manager = Manager(Operator(Controller(Box, nothing), lifespan=lifespan), cluster.config, OPTIONS)
    with pytest.raises(LookupError, match="VC_HOST"):
        await manager.run()


async def test_a_port_that_is_taken_ends_the_run_with_its_name(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    serving = options(health_probe_bind_address="127.0.0.1:0")
    async with cluster.running(Controller(Box, nothing), options=serving) as manager:
        taken = options(health_probe_bind_address=f"127.0.0.1:{manager.probe_port}")
        with pytest.raises(BindError, match=str(manager.probe_port)):
            await Manager(Operator(Controller(Box, nothing)), cluster.config, taken).run()


async def test_one_of_two_replicas_works_and_the_other_takes_over(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    worked: list[str] = []

    def replica(name: str) -> Manager:
        async def reconcile(box: Box, ctx: Context) -> None:
            worked.append(name)
            await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

        async def everywhere(box: Box, ctx: Context) -> None:
            worked.append(f"{name} everywhere")

        operator = Operator(
            Controller(Box, reconcile),
            Controller(Box, everywhere, name="unelected", tuning=Tuning(elected=False)),
        )
        chosen = options(
            election=ElectionOptions(times=QUICK, identity=name), namespaces=(cluster.namespace,)
        )
        return Manager(operator, cluster.config, chosen)

    first, second = replica("first"), replica("second")
    async with AsyncExitStack() as stack:
        async with started(first):
            await first.ready.wait()
            await stack.enter_async_context(started(second))
            await second.synced.wait()
            box = await cluster.create(Box(Meta("a")))
            await cluster.until(Box, "a", lambda found: found.status.ready == 1)
            assert not second.ready.is_set()
            lease = await cluster.get(coordination_v1.Lease, "box")
            assert lease.spec.holder_identity == "first"
            assert {one for one in worked if "everywhere" not in one} == {"first"}
        await cluster.merge(box, {"spec": {"size": 5}})
        await cluster.until(Box, "a", lambda found: found.status.ready == 5)
        assert {"second", "first everywhere", "second everywhere"} <= set(worked)
    released = await cluster.get(coordination_v1.Lease, "box")
    assert released.spec.holder_identity == ""


async def test_nothing_is_written_any_more_once_the_lease_is_lost(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun = asyncio.Event()
    refused: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            # Code that cleans up when it is told to stop comes too late to write: another may lead.
            for write in (
                ctx.patch_status(box, BoxStatus(ready=99)),
                ctx.client.create(core_v1.ConfigMap(Meta("late", namespace=cluster.namespace))),
                ctx.client.delete(box),
            ):
                try:
                    await write
                except NotLeading as refusal:
                    refused.append(str(refusal))
            raise

    chosen = options(election=ElectionOptions(times=QUICK, identity="first"), namespaces=(cluster.namespace,))
    manager = Manager(Operator(Controller(Box, reconcile)), cluster.config, chosen)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(expect_loss(manager))
        await cluster.create(Box(Meta("a")))
        await begun.wait()

        async def stolen() -> bool:
            lease = await cluster.get(coordination_v1.Lease, "box")
            lease.spec.holder_identity = "thief"
            try:
                await cluster.client.replace(lease)
            except Conflict:
                return False  # renewed in between
            return True

        await cluster.eventually(stolen)
        await running
    assert len(refused) == 3
    assert "nothing was written" in refused[0]
    assert (await cluster.get(Box, "a")).status.ready == 0
    assert await cluster.find(core_v1.ConfigMap, "late") is None


async def expect_loss(manager: Manager) -> None:
    with pytest.raises(LeaseLost, match="leader election lost"):
        await manager.run()


BLOCKING = """
import asyncio, sys, time, dataclasses
from pathlib import Path
from kubewright.api import Meta
from kubewright.client import load_config
from kubewright.controller import Controller, Operator
from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager import Manager, ManagerOptions
sys.path.insert(0, sys.argv[3])
from running_kinds import Box, BoxStatus

async def reconcile(box, ctx):
    print("blocked", flush=True)
    time.sleep(60)
    await ctx.client.patch(box, {"spec": {"size": 99}}, type="merge")
    await ctx.patch_status(box, BoxStatus(ready=99))

options = ManagerOptions(
    metrics_bind_address="0", health_probe_bind_address="0", namespaces=(sys.argv[2],),
    election=ElectionOptions(
        identity="stuck",
        times=LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0),
    ),
)
config = dataclasses.replace(load_config(Path(sys.argv[1])), namespace=sys.argv[2])
asyncio.run(Manager(Operator(Controller(Box, reconcile)), config, options).run())
"""


async def test_a_replica_that_blocks_its_loop_is_ended_and_never_writes_beside_its_successor(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    await cluster.install(Box)
    kubeconfig = await asyncio.to_thread(write_kubeconfig, cluster.config, tmp_path)
    await cluster.create(Box(Meta("a")))
    arguments = (str(kubeconfig), cluster.namespace, str(tmp_path))
    stuck = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        BLOCKING,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert stuck.stdout is not None
        assert await asyncio.wait_for(stuck.stdout.readline(), 60) == b"blocked\n"
        blocked_at = time.monotonic()
        wrote_at: list[float] = []

        async def reconcile(box: Box, ctx: Context) -> None:
            await ctx.patch_status(box, BoxStatus(ready=7))
            wrote_at.append(time.monotonic())

        chosen = options(election=ElectionOptions(times=QUICK, identity="next"))
        async with cluster.running(Controller(Box, reconcile), options=chosen):
            assert await asyncio.wait_for(stuck.wait(), 60) == 1
            await cluster.until(Box, "a", lambda found: found.status.ready == 7)
        assert wrote_at[0] - blocked_at > QUICK.main_loop_silence
        assert (await cluster.get(Box, "a")).spec.size == 1
    finally:
        if stuck.returncode is None:
            stuck.kill()
            await stuck.wait()


def write_kubeconfig(config: ClusterConfig, folder: Path) -> Path:

    user = {
        "client-certificate-data": b64encode(config.client_cert_data).decode(),
        "client-key-data": b64encode(config.client_key_data).decode(),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [
            {
                "name": "test",
                "cluster": {
                    "server": config.server,
                    "certificate-authority-data": b64encode(config.ca_data).decode(),
                },
            }
        ],
        "users": [{"name": "test", "user": user}],
    }
    kinds = Path(__file__).parent / "controller" / "running" / "kinds.py"
    (folder / "running_kinds.py").write_text(kinds.read_text())
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_a_thread_that_still_runs_keeps_the_lease_from_being_released(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def reconcile(box: Box, ctx: Context) -> None:
        def work() -> None:
            loop.call_soon_threadsafe(begun.set)
            ended.wait()

        await ctx.run_sync(work)

    chosen = options(election=ElectionOptions(times=QUICK, identity="busy"), graceful_timeout=0.05)
    try:
        async with cluster.running(Controller(Box, reconcile), options=chosen):
            await cluster.create(Box(Meta("a")))
            await begun.wait()
        lease = await cluster.get(coordination_v1.Lease, "box")
        assert lease.spec.holder_identity == "busy"
    finally:
        ended.set()


async def test_secure_metrics_are_given_to_whom_the_cluster_allows(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    name = f"scraper-{cluster.namespace}"
    await cluster.create(core_v1.ServiceAccount(Meta("scraper")))
    token = (await cluster.client.token_request("scraper", cluster.namespace)).token
    chosen = options(metrics_bind_address="127.0.0.1:0", metrics_secure=True)
    async with cluster.running(Controller(Box, nothing), options=chosen) as manager:
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
    async with cluster.running(Controller(Box, nothing), options=chosen) as manager:
        assert (await asked_securely(manager.metrics_port, "forged"))[0] == 401
        status, text = await asked_securely(manager.metrics_port, token)
        assert status == 200
        assert "controller_runtime_reconcile_total" in text


async def asked_securely(port: int, token: str) -> tuple[int, str]:
    async with connected(port, trusting_anybody()) as wire:
        reply = await wire.ask("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        return reply.status, reply.text
