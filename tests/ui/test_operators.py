"""The live page of operators: reconciles, queues, retries, and an operator that restarts while the page is open."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from page_client import browser

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.manager import ManagerOptions
from kubewright.testing import Cluster, eventually
from kubewright.ui import PageOptions, cluster_page
from kubewright.why import journal_file

CANARY = "canary-0815-secret"


class TeapotSpec(kw.Model):
    litres: int = 1
    pin: Annotated[str, kw.Field(sensitive=True)] = ""


class TeapotStatus(kw.Model):
    hot: bool = False


class Teapot(kw.Resource[TeapotSpec, TeapotStatus], group="page.kubewright.dev", version="v1"):
    """A teapot."""


async def boil(teapot: Teapot, ctx: kw.Context) -> None:
    if teapot.spec.litres == 0:
        raise kw.RetryLater("no water yet")
    if teapot.spec.litres > 9:
        raise ValueError(f"too much water, {teapot.spec.pin}")
    await ctx.apply(
        core_v1.ConfigMap(kw.Meta(teapot.metadata.name), data={"litres": str(teapot.spec.litres)})
    )
    await ctx.patch_status(teapot, TeapotStatus(hot=True))
    ctx.event("Boiled", f"{teapot.spec.litres} litres")
    ctx.log.warning("boiled")


@asynccontextmanager
async def teapots(cluster: Cluster) -> AsyncIterator[None]:
    controller = kw.Controller(Teapot, boil, owns=[core_v1.ConfigMap], name="teapots", concurrency=3)
    options = ManagerOptions(
        metrics_bind_address="0", health_probe_bind_address="0", journal_file=journal_file("teapots")
    )
    async with cluster.running(kw.Operator(controller, name="teapots"), options=options):
        yield


async def test_reconciles_are_shown_with_causes_and_writes(cluster: Cluster) -> None:
    async with (
        teapots(cluster),
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.create(Teapot(kw.Meta("k"), spec=TeapotSpec(litres=2, pin=CANARY)))

        def written() -> dict[str, Any] | None:
            return next(
                (
                    each
                    for each in view.reconciles.values()
                    if each["writes"] and each["namespace"] == cluster.namespace
                ),
                None,
            )

        shown = await eventually(written)
        assert (shown["operator"], shown["controller"], shown["kind"]) == ("teapots", "teapots", "Teapot")
        assert shown["outcome"] == "success"
        assert [cause["type"] for cause in shown["causes"]] == ["create"]
        assert (shown["writes"][0]["verb"], shown["writes"][0]["resource"]) == ("apply", "configmaps")
        assert shown["writes"][0]["created"] is True
        assert (shown["events"], shown["logs"], shown["logLevel"]) == (1, 1, "WARNING")
        whole = await page.get(f"/api/reconcile?operator=teapots&id={shown['id']}")
        assert whole["reconcile"]["writes"][0]["changes"]
        assert whole["reconcile"]["log"][0]["message"] == "boiled"
        teapot = await view.has("Teapot", "k", lambda it: it["reconciled"])
        child = await view.has("ConfigMap", "k")
        assert child["owners"] == [{"uid": teapot["uid"], "kind": "Teapot", "name": "k", "controller": True}]
        assert child["reconciled"] is False
        found = await page.get(f"/api/object?uid={teapot['uid']}")
        assert found["reconciles"][0]["kind"] == "Teapot"
        assert CANARY not in str(whole) + str(found) + str(view.events)


async def test_queues_workers_and_retries_are_shown(cluster: Cluster) -> None:
    async with (
        teapots(cluster),
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.create(Teapot(kw.Meta("full"), spec=TeapotSpec(litres=10, pin=CANARY)))

        def retry() -> dict[str, Any] | None:
            found = [each for operator in view.operators for each in operator["retries"]]
            return found[0] if found and found[0]["failures"] > 2 else None

        planned = await eventually(retry)
        assert (planned["kind"], planned["name"]) == ("Teapot", "full")
        operator = view.operators[0]
        assert operator["name"] == "teapots"
        assert operator["controllers"][0]["workers"] == 3
        assert operator["throttled"] == {"waiting": 0, "seconds": 0.0}
        assert "lease" not in operator
        failed = next(each for each in view.reconciles.values() if each["error"])
        assert failed["outcome"] == "error"
        assert failed["retryAt"]
        assert "too much water" in failed["error"]
        retried = [each for each in view.reconciles.values() if not each["causes"]]
        assert {each["previousOutcome"] for each in retried} == {"error"}
        assert CANARY not in str(view.events)


async def test_an_object_is_failed_from_a_failed_reconcile_until_the_next_success(cluster: Cluster) -> None:
    async with (
        teapots(cluster),
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.create(Teapot(kw.Meta("k"), spec=TeapotSpec(litres=1)))
        await view.has("Teapot", "k")
        await cluster.client.patch(Teapot, {"spec": {"litres": 10}}, name="k", namespace=cluster.namespace)
        shown = await view.has("Teapot", "k", lambda it: it.get("failing", {}).get("failures", 0) > 1)
        assert (shown["state"], shown["stateText"]) == ("failed", "ValueError: too much water,")
        assert shown["failing"]["outcome"] == "error"
        assert shown["failing"]["controller"] == "teapots"
        assert shown["failing"]["retryAt"]
        async with browser(link) as other, other.following() as late:
            await late.has("Teapot", "k", lambda it: it["state"] == "failed")
        failed = view.reconciles["teapots", shown["failing"]["id"]]
        # As the page computes it: a browser has whole milliseconds.
        started = datetime.fromisoformat(failed["startedAt"])
        started = started.replace(microsecond=started.microsecond // 1000 * 1000)
        ended = started + timedelta(seconds=failed["duration"])
        await cluster.client.patch(Teapot, {"spec": {"litres": 2}}, name="k", namespace=cluster.namespace)
        fine = await view.has("Teapot", "k", lambda it: "failing" not in it)
        assert fine["state"] != "failed"
        moment = ended.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        past = await page.get(f"/api/snapshot?at={moment}")
        then = next(each for each in past["objects"] if (each["kind"], each["name"]) == ("Teapot", "k"))
        assert then["state"] == "failed", "the past is shown as it was"
        assert then["failing"]["id"] == failed["id"]


async def test_an_object_waits_after_retry_later(cluster: Cluster) -> None:
    async with (
        teapots(cluster),
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.create(Teapot(kw.Meta("dry"), spec=TeapotSpec(litres=0)))
        shown = await view.has("Teapot", "dry", lambda it: it["state"] == "waiting")
        assert "no water yet" in shown["stateText"]
        assert shown["failing"]["outcome"] == "requeue"


async def test_reconciled_objects_are_paused_resumed_and_reconciled(cluster: Cluster) -> None:
    async with (
        teapots(cluster),
        cluster_page(cluster.config, "test", PageOptions(allow_writes=True)) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.create(Teapot(kw.Meta("k"), spec=TeapotSpec()))
        uid = (await view.has("Teapot", "k", lambda it: it["reconciled"]))["uid"]
        called = "teapot.page.kubewright.dev/k"
        assert await page.act(action="pause", uid=uid) == f"{called} paused"
        await view.has("Teapot", "k", lambda it: it["state"] == "paused")
        message = await page.act(action="reconcile", uid=uid)
        assert message == f"{called} is paused: it is reconciled when it is resumed"
        assert await page.act(action="resume", uid=uid) == f"{called} resumed"
        await view.has("Teapot", "k", lambda it: it["state"] != "paused")
        assert await page.act(action="reconcile", uid=uid) == f"{called} will be reconciled now"
        found = await cluster.get(Teapot, "k")
        assert list(found.metadata.annotations) == ["kubewright.dev/reconcile-at"]


async def test_an_operator_that_restarts_is_reported_and_shown_again(cluster: Cluster) -> None:
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        async with teapots(cluster):
            await cluster.create(Teapot(kw.Meta("k")))
            await eventually(lambda: len(view.reconciles) > 0)
        gone = await eventually(lambda: next((text for text in view.problems if "has ended" in text), None))
        assert gone.startswith("the operator teapots")
        await eventually(lambda: view.operators == [])
        assert view.reconciles, "what it did stays"
        async with teapots(cluster):
            await eventually(lambda: len(view.operators) == 1 and not view.own_problems)
            await cluster.create(Teapot(kw.Meta("later")))
            await eventually(lambda: any(each["name"] == "later" for each in view.reconciles.values()))


async def test_an_operator_of_another_cluster_is_not_shown(
    cluster: Cluster, embedded_cluster: Cluster
) -> None:
    async with (
        teapots(embedded_cluster),
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await embedded_cluster.create(Teapot(kw.Meta("elsewhere")))
        await embedded_cluster.eventually(core_v1.ConfigMap, "elsewhere")
        await cluster.create(core_v1.ConfigMap(kw.Meta("here")))
        await view.has("ConfigMap", "here")
        assert view.operators == []
        assert all(each["name"] != "elsewhere" for each in view.objects.values())


async def test_a_deployed_operator_that_cannot_be_asked_is_reported(cluster: Cluster) -> None:
    await cluster.create(core_v1.ServiceAccount(kw.Meta("storage")))
    port = core_v1.ContainerPort(container_port=8443, name="metrics")
    labels = {
        "app.kubernetes.io/name": "storage",
        "app.kubernetes.io/managed-by": "kubewright",
        "control-plane": "controller-manager",
    }
    made = await cluster.create(
        core_v1.Pod(
            kw.Meta("storage-0", labels=labels),
            spec=core_v1.PodSpec(
                containers=[core_v1.Container(name="manager", image="example", ports=[port])],
                service_account_name="storage",
            ),
        )
    )
    await cluster.client.patch(made, {"status": {"phase": "Running"}}, subresource="status", type="merge")
    options = PageOptions(operator_namespace=cluster.namespace)
    async with (
        cluster_page(cluster.config, "test", options) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        source = f"the operator storage (Pod {cluster.namespace}/storage-0)"

        def problem() -> str | None:
            return next((text for text in view.problems if text.startswith(source)), None)

        assert "its journal cannot be read: get pods/portforward" in await eventually(problem)
