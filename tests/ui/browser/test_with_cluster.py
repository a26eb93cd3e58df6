"""The page on a cluster, from its link to what it changes there."""

import asyncio
from pathlib import Path

import yaml

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.manager import ManagerOptions
from kubewright.testing import Cluster
from kubewright.ui import PageOptions, cluster_page, record_page
from kubewright.why import journal_file

from .page import Page

ROW = (
    "[...document.querySelectorAll('#object-list .row:not([hidden])')]"
    ".find(({ item }) => [item.kind, item.namespace, item.name].join() === arguments[0])"
)
MANIFEST = "document.querySelector('.manifest')?.textContent ?? ''"


class KettleSpec(kw.Model):
    litres: int = 1


class KettleStatus(kw.Model):
    hot: bool = False


class Kettle(kw.Resource[KettleSpec, KettleStatus], group="browser.kubewright.dev", version="v1"):
    """A kettle."""


async def boil(kettle: Kettle, ctx: kw.Context) -> None:
    if kettle.spec.litres > 9:
        raise ValueError("too much <b>water</b>")
    water = {"litres": str(kettle.spec.litres)}
    await ctx.apply(core_v1.ConfigMap(kw.Meta(kettle.metadata.name), data=water))
    await ctx.patch_status(kettle, KettleStatus(hot=True))
    ctx.log.info("boiled")


def kettles() -> kw.Operator:
    return kw.Operator(kw.Controller(Kettle, boil, owns=[core_v1.ConfigMap], name="kettles"), name="kettles")


def kettle_options(record: Path | None = None) -> ManagerOptions:
    return ManagerOptions(
        metrics_bind_address="0",
        health_probe_bind_address="0",
        journal_file=journal_file("kettles"),
        record=record,
    )


def select(page: Page, cluster: Cluster, kind: str, name: str) -> None:
    """Open an object of the test's namespace from the list, however many others there are."""
    page.set_value("#filter-text", f"{kind} {name} {cluster.namespace}")
    page.until(f"({ROW}) && (({ROW}).click(), true)", f"{kind},{cluster.namespace},{name}")
    page.until_text(".panel-heading", name, cluster.namespace)


def deployment(name: str) -> apps_v1.Deployment:
    labels = {"app": name}
    volume = core_v1.Volume(name="settings", config_map=core_v1.ConfigMapVolumeSource(name=name))
    pod = core_v1.PodSpec(containers=[core_v1.Container(name="sh", image="busybox")], volumes=[volume])
    template = core_v1.PodTemplateSpec(metadata=kw.Meta(labels=labels), spec=pod)
    spec = apps_v1.DeploymentSpec(
        replicas=2, selector=meta_v1.LabelSelector(match_labels=labels), template=template
    )
    return apps_v1.Deployment(kw.Meta(name), spec=spec)


async def test_link_opens_the_page_and_leaves_no_token_in_the_address(cluster: Cluster, page: Page) -> None:
    async with cluster_page(cluster.config, "<b>title</b>") as link:
        await asyncio.to_thread(page.open, link)
        assert "token" not in page.driver.current_url
        assert page.driver.title == "<b>title</b> · kubewright"
        assert await asyncio.to_thread(page.js, "document.cookie") == ""


async def test_deployment_is_shown_with_its_pods_and_their_configmap(cluster: Cluster, page: Page) -> None:
    await cluster.create(core_v1.ConfigMap(kw.Meta("web"), data={"a": "1"}))
    await cluster.create(deployment("web"))
    async with cluster_page(cluster.config, "test") as link:
        await asyncio.to_thread(page.open, link)

        def look() -> None:
            page.set_value("#filter-text", f"web {cluster.namespace}")
            page.until("document.querySelectorAll('.node.object').length === 5")
            page.until("document.querySelectorAll('.edge.owner').length === 3")
            # The Deployment, the ReplicaSet and the Pods name it: one line is drawn.
            page.until("document.querySelectorAll('.edge.reference').length === 1")

        await asyncio.to_thread(look)


async def test_past_version_of_an_object_is_shown_and_live_again(cluster: Cluster, page: Page) -> None:
    settings = await cluster.create(core_v1.ConfigMap(kw.Meta("settings"), data={"colour": "green"}))
    async with cluster_page(cluster.config, "test") as link:
        await asyncio.to_thread(page.open, link)
        await asyncio.to_thread(select, page, cluster, "ConfigMap", "settings")
        await asyncio.to_thread(page.press, "2")
        await asyncio.to_thread(page.until, f"{MANIFEST}.includes('colour: green')")
        # The clock of the page's history has passed the first version.
        seen = await asyncio.to_thread(
            page.until,
            "Number(document.querySelector('#time').max) > 1500 && Number(document.querySelector('#time').max)",
        )
        await cluster.client.patch(settings, {"data": {"colour": "red"}})
        await asyncio.to_thread(page.until, f"{MANIFEST}.includes('colour: red')")

        def back_and_forth() -> None:
            page.set_value("#time", seen - 500)
            page.until(f"{MANIFEST}.includes('colour: green')")
            page.js("document.querySelector('#filter-text').blur()")
            page.press("l")
            page.until(f"{MANIFEST}.includes('colour: red')")

        await asyncio.to_thread(back_and_forth)


async def test_objects_are_applied_edited_scaled_and_deleted(
    cluster: Cluster, page: Page, tmp_path: Path
) -> None:
    sample = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sample", "namespace": cluster.namespace},
        "data": {"text": "one\ntwo\n"},
    }
    await cluster.create(deployment("web"))
    options = PageOptions(allow_writes=True, samples=(tmp_path,))
    async with cluster_page(cluster.config, "test", options) as link:
        await asyncio.to_thread(page.open, link)

        def apply() -> None:
            page.press("a")
            page.until("document.querySelector('#manifest-text')")
            page.set_value("#manifest-text", yaml.safe_dump(sample))
            page.click("#dialog [type=submit]")
            page.until_text("#notices", "configmap/sample created")

        def edit() -> None:
            select(page, cluster, "ConfigMap", "sample")
            page.click("[data-key^=edit]")
            text = page.until("document.querySelector('#manifest-text')?.value")
            page.set_value("#manifest-text", text.replace("two", "three"))
            page.click("#dialog [type=submit]")
            page.until_text("#notices", "configmap/sample edited")

        def delete() -> None:
            page.click("[data-key^=delete]")
            page.click("#dialog [type=submit]")
            page.until_text(".panel-heading", "has been deleted")

        def scale() -> None:
            select(page, cluster, "Deployment", "web")
            page.click("[data-key^=scale]")
            page.set_value("#replicas", 3)
            page.click("#dialog [type=submit]")
            page.until_text("#notices", "scaled to 3")

        await asyncio.to_thread(apply)
        assert (await cluster.get(core_v1.ConfigMap, "sample")).data == {"text": "one\ntwo\n"}
        await asyncio.to_thread(edit)
        assert (await cluster.get(core_v1.ConfigMap, "sample")).data == {"text": "one\nthree\n"}
        await asyncio.to_thread(delete)
        await asyncio.to_thread(scale)
        assert (await cluster.get(apps_v1.Deployment, "web")).spec.replicas == 3


async def test_error_of_the_api_server_is_shown_in_the_dialog(cluster: Cluster, page: Page) -> None:
    async with cluster_page(cluster.config, "test", PageOptions(allow_writes=True)) as link:
        await asyncio.to_thread(page.open, link)

        def apply() -> None:
            page.press("a")
            page.until("document.querySelector('#manifest-text')")
            page.set_value(
                "#manifest-text", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"
            )
            page.click("#dialog [type=submit]")
            page.until_text("#dialog [role=alert]", "Not_A_Name", "RFC 1123")

        await asyncio.to_thread(apply)


# Operators


async def test_reconciles_of_an_operator_are_shown_with_their_differences(
    cluster: Cluster, page: Page
) -> None:
    async with (
        cluster.running(kettles(), options=kettle_options()),
        cluster_page(cluster.config, "test") as link,
    ):
        kettle = await cluster.create(Kettle(kw.Meta("k"), spec=KettleSpec(litres=2)))
        await asyncio.to_thread(page.open, link)
        await asyncio.to_thread(page.until_text, "#operators", "kettles", "queue 0")
        await asyncio.to_thread(page.until_text, "#timeline-list", "Kettle/k", "apply configmaps/k")
        await cluster.eventually(Kettle, "k", lambda it: it.status.hot)
        await cluster.client.patch(kettle, {"spec": {"litres": 3}})

        def look() -> None:
            row = (
                "[...document.querySelectorAll('#timeline-list .row:not([hidden])')]"
                ".find((row) => row.textContent.includes('spec.litres') && row.textContent.includes('apply configmaps'))"
            )
            page.until(f"({row}) && (({row}).click(), true)")
            page.until_text(".cause-block .diff", "spec.litres", "2", "3")
            page.until_text(".write .diff", "data.litres", '"2"', '"3"')
            page.until_text(".log", "boiled")

        await asyncio.to_thread(look)


async def test_failing_object_counts_down_and_is_paused_and_resumed(cluster: Cluster, page: Page) -> None:
    async with (
        cluster.running(kettles(), options=kettle_options()),
        cluster_page(cluster.config, "test", PageOptions(allow_writes=True)) as link,
    ):
        await cluster.create(Kettle(kw.Meta("k"), spec=KettleSpec(litres=99)))
        await asyncio.to_thread(page.open, link)
        await asyncio.to_thread(page.until_text, "#timeline-list .with-error", "too much <b>water</b>")
        await asyncio.to_thread(page.until_text, "#operators", "retry Kettle/k in")

        def pause() -> None:
            select(page, cluster, "Kettle", "k")
            page.click("[data-key^=pause]")
            page.until("document.querySelector('[data-key^=resume]')")

        await asyncio.to_thread(pause)
        paused = await cluster.get(Kettle, "k")
        assert paused.metadata.annotations["kubewright.dev/paused"] == "true"
        await asyncio.to_thread(page.click, "[data-key^=resume]")
        await cluster.eventually(
            Kettle, "k", lambda it: "kubewright.dev/paused" not in it.metadata.annotations
        )


async def test_record_file_is_shown_with_its_reconciles(cluster: Cluster, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "kettles.jsonl"
    async with cluster.running(kettles(), options=kettle_options(file)):
        await cluster.create(Kettle(kw.Meta("k"), spec=KettleSpec(litres=2)))
        await cluster.eventually(Kettle, "k", lambda it: it.status.hot)
    async with record_page(file) as link:
        await asyncio.to_thread(page.open, link)

        def look() -> None:
            assert page.texts("#read-only") == ["read-only"]
            page.until_text("#connection", "record")
            page.until_text("#timeline-list", "Kettle/k", "apply configmaps/k")
            page.press("[")
            page.until_text("#connection", "in the past")
            page.press("l")
            page.until_text("#connection", "record")

        await asyncio.to_thread(look)
