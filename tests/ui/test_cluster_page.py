"""The live page of a cluster: objects, their history, and what the page does to them."""

from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import pytest
from page_client import PageClient, browser

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1, rbac_v1
from kubewright.client import ClusterConfig, ConnectionFailed
from kubewright.devserver import Match
from kubewright.journal import is_placeholder
from kubewright.serving import BindError
from kubewright.testing import Cluster, eventually
from kubewright.ui import PageOptions, cluster_page

CANARY = "canary-4711-secret"
WRITABLE = PageOptions(allow_writes=True)


class SafeSpec(kw.Model):
    pin: Annotated[str, kw.Field(sensitive=True)] = ""
    pins: Annotated[list[str], kw.Field(list_type="set", sensitive=True)] = []
    label: str = ""


class SafeStatus(kw.Model):
    locked: bool = True


class Safe(kw.Resource[SafeSpec, SafeStatus], group="ui.kubewright.dev", version="v1"):
    """A safe."""


async def test_objects_of_the_cluster_are_shown_with_their_changes(cluster: Cluster) -> None:
    await cluster.create(core_v1.ConfigMap(kw.Meta("before"), data={"a": "1"}))
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        shown = await view.has("ConfigMap", "before")
        assert shown["namespace"] == cluster.namespace
        assert shown["resource"] == "configmaps"
        assert view.hello["title"] == "test"
        assert view.hello["live"] is True
        created = await cluster.create(core_v1.ConfigMap(kw.Meta("after")))
        await view.has("ConfigMap", "after")
        await cluster.client.delete(created)
        await eventually(lambda: view.find("ConfigMap", "after") is None)
        assert view.own_problems == []


async def test_a_new_kind_is_shown_when_its_crd_is_installed(cluster: Cluster) -> None:
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await eventually(lambda: bool(view.objects))
        await cluster.install(Safe)
        await cluster.create(Safe(kw.Meta("one"), spec=SafeSpec(label="x")))
        assert (await view.has("Safe", "one"))["group"] == "ui.kubewright.dev"


async def test_an_object_has_managers_by_field_events_and_versions(cluster: Cluster) -> None:
    await cluster.client.apply(
        core_v1.ConfigMap(kw.Meta("c", namespace=cluster.namespace), data={"a": "1"}), field_manager="one"
    )
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        first = await view.has("ConfigMap", "c")
        uid = first["uid"]
        await cluster.client.create(
            core_v1.Event(
                kw.Meta("happened", namespace=cluster.namespace),
                involved_object=core_v1.ObjectReference(
                    kind="ConfigMap", namespace=cluster.namespace, name="c", uid=uid
                ),
                type="Warning",
                reason="Tested",
                message="<b>markup</b>",
            )
        )
        await cluster.client.apply(
            core_v1.ConfigMap(kw.Meta("c", namespace=cluster.namespace), data={"a": "2"}), field_manager="one"
        )
        await view.has("ConfigMap", "c", lambda it: it["resourceVersion"] != first["resourceVersion"])
        found = await page.get(f"/api/object?uid={uid}")
        assert found["object"]["data"] == {"a": "2"}
        assert "managedFields" not in found["object"]["metadata"]
        owners = {each["path"]: each["manager"] for each in found["managers"]}
        assert owners["data.a"] == "one"
        assert found["versions"][0]["resourceVersion"] == first["resourceVersion"]
        events = await eventually(lambda: _events(page, uid))
        assert (events[0]["reason"], events[0]["message"]) == ("Tested", "<b>markup</b>")
        earlier = await page.get(f"/api/object?uid={uid}&at={quote(found['versions'][0]['at'])}")
        assert earlier["object"]["data"] == {"a": "1"}


async def _events(page: PageClient, uid: str) -> list[Any] | None:
    return (await page.get(f"/api/object?uid={uid}"))["events"] or None


async def test_the_state_of_an_earlier_moment_is_shown(cluster: Cluster) -> None:
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        made = await cluster.create(core_v1.ConfigMap(kw.Meta("gone")))
        shown = await view.has("ConfigMap", "gone")
        at = (await page.get(f"/api/object?uid={shown['uid']}"))["versions"][0]["at"]
        await cluster.client.delete(made)
        await eventually(lambda: view.find("ConfigMap", "gone") is None)
        past = await page.get(f"/api/snapshot?at={quote(at)}")
        assert shown["uid"] in {each["uid"] for each in past["objects"]}
        now = await page.get(f"/api/snapshot?at={quote(view.history['to'])}")
        assert "from" in view.history
        assert now["objects"]
        assert "is not available" in (await page.get("/api/snapshot?at=2001-01-01T00:00:00Z", 404))["message"]
        assert "is not a time" in (await page.get("/api/snapshot?at=yesterday", 400))["message"]
        assert "no time zone" in (await page.get("/api/snapshot?at=2026-01-01T00:00:00", 400))["message"]
        assert "at= is missing" in (await page.get("/api/snapshot", 400))["message"]
        assert "no object" in (await page.get("/api/object?uid=unknown", 404))["message"]
        assert "not found" in (await page.get("/api/reconcile?operator=o&id=i", 404))["message"]


async def test_secrets_and_sensitive_fields_never_reach_the_page(cluster: Cluster) -> None:
    await cluster.install(Safe)
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        await cluster.client.apply(
            core_v1.Secret(
                kw.Meta(
                    "s",
                    namespace=cluster.namespace,
                    annotations={"kubectl.kubernetes.io/last-applied-configuration": CANARY},
                ),
                string_data={"password": CANARY},
            ),
            field_manager="test",
        )
        spec = SafeSpec(pin=CANARY, pins=[CANARY], label="shown")
        safe = Safe(kw.Meta("s", namespace=cluster.namespace), spec=spec)
        await cluster.client.apply(safe, field_manager="test")
        secret = await view.has("Secret", "s")
        shown = await view.has("Safe", "s")
        safe.spec.pin = f"{CANARY}-2"
        safe.spec.label = "changed"
        await cluster.client.apply(safe, field_manager="test")
        await view.has("Safe", "s", lambda it: it["generation"] == 2)
        found = await page.get(f"/api/object?uid={shown['uid']}")
        assert is_placeholder(found["object"]["spec"]["pin"])
        assert found["object"]["spec"]["label"] == "changed"
        assert "spec.pins" in {each["path"] for each in found["managers"]}
        seen = [str(view.events), str(found)]
        for uid in (shown["uid"], secret["uid"]):
            for version in (await page.get(f"/api/object?uid={uid}"))["versions"]:
                seen.append(str(await page.get(f"/api/object?uid={uid}&at={quote(version['at'])}")))
                seen.append(str(await page.get(f"/api/snapshot?at={quote(version['at'])}")))
        assert not [text for text in seen if "canary" in text.lower()]
        encoded = "Y2FuYXJ5"  # base64
        assert not [text for text in seen if encoded in text]


async def test_actions_change_the_cluster(cluster: Cluster) -> None:
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {a: '1'}\n"
        place = f"  namespace: {cluster.namespace}\n"
        text = text.replace("metadata: {name: made}\n", f"metadata:\n  name: made\n{place}")
        assert await page.act(action="apply", manifest=text) == "configmap/made created"
        assert await page.act(action="apply", manifest=text) == "configmap/made unchanged"
        assert (
            await page.act(action="apply", manifest=text.replace("'1'", "'2'")) == "configmap/made configured"
        )
        shown = await view.has("ConfigMap", "made")
        assert await page.act(action="delete", uid=shown["uid"]) == "configmap/made deleted"
        await eventually(lambda: view.find("ConfigMap", "made") is None)
        assert "no longer exists" in await page.act(404, action="delete", uid=shown["uid"])


async def test_objects_without_a_controller_cannot_be_paused_or_reconciled(cluster: Cluster) -> None:
    await cluster.create(core_v1.ConfigMap(kw.Meta("c")))
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        uid = (await view.has("ConfigMap", "c"))["uid"]
        reason = "no operator on this page has a controller for ConfigMap"
        message = await page.act(409, action="pause", uid=uid)
        assert message == f"configmap/c cannot be paused: {reason}"
        message = await page.act(409, action="reconcile", uid=uid)
        assert message == f"configmap/c cannot be reconciled: {reason}"
        assert (await cluster.get(core_v1.ConfigMap, "c")).metadata.annotations == {}


async def test_an_apply_that_fails_reports_each_document(cluster: Cluster) -> None:
    place = f"namespace: {cluster.namespace}"
    manifest = "\n---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, {place}}}"
        for kind, name in (("ConfigMap", "good"), ("Nope", "bad"), ("ConfigMap", "later"))
    )
    async with cluster_page(cluster.config, "test", WRITABLE) as link, browser(link) as page:
        message = await page.act(404, action="apply", manifest=manifest)
        assert message.startswith("configmap/good created; Nope bad failed: ")
        assert message.endswith("; not applied: ConfigMap later")
        await cluster.get(core_v1.ConfigMap, "good")


async def test_invalid_yaml_is_reported_with_one_line_number(cluster: Cluster) -> None:
    async with cluster_page(cluster.config, "test", WRITABLE) as link, browser(link) as page:
        message = await page.act(400, action="apply", manifest="metadata:\n  name: x\n data: 1\n")
        assert message == "the manifest is not valid YAML: line 3: did not find expected key"


async def test_an_object_is_scaled(cluster: Cluster) -> None:
    template = core_v1.PodTemplateSpec(
        metadata=kw.Meta(labels={"a": "b"}),
        spec=core_v1.PodSpec(containers=[core_v1.Container(name="c", image="i")]),
    )
    spec = apps_v1.DeploymentSpec(
        replicas=1, selector=meta_v1.LabelSelector(match_labels={"a": "b"}), template=template
    )
    await cluster.create(apps_v1.Deployment(kw.Meta("d"), spec=spec))
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        shown = await view.has("Deployment", "d")
        assert shown["scale"] == {"replicas": 1}
        assert await page.act(action="scale", uid=shown["uid"], replicas=3) == "deployment.apps/d scaled to 3"
        await view.has("Deployment", "d", lambda it: it["scale"] == {"replicas": 3})
        assert "0 or more" in await page.act(400, action="scale", uid=shown["uid"], replicas=-1)


async def test_an_edit_sends_only_what_was_changed(cluster: Cluster) -> None:
    secret = core_v1.Secret(kw.Meta("s"), string_data={"password": CANARY, "user": "jane"})
    await cluster.create(secret)
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        uid = (await view.has("Secret", "s"))["uid"]
        opened = (await page.get(f"/api/object?uid={uid}"))["object"]
        unchanged = msgspec.json.encode(opened).decode()
        assert await page.act(action="apply", manifest=unchanged) == "secret/s unchanged"
        opened["metadata"]["labels"] = {"edited": "yes"}
        # In the meantime another field changes, which is no conflict.
        await cluster.client.patch(
            core_v1.Secret, {"data": {"user": "Ym9i"}}, name="s", namespace=cluster.namespace
        )
        edited = msgspec.json.encode(opened).decode()
        assert await page.act(action="apply", manifest=edited) == "secret/s edited"
        live = await cluster.get(core_v1.Secret, "s")
        assert live.metadata.labels == {"edited": "yes"}
        assert {name: bytes(value) for name, value in live.data.items()} == {
            "password": CANARY.encode(),
            "user": b"bob",
        }


async def test_an_edit_of_a_field_that_another_changed_is_refused(cluster: Cluster) -> None:
    await cluster.create(core_v1.ConfigMap(kw.Meta("c"), data={"a": "1"}))
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        uid = (await view.has("ConfigMap", "c"))["uid"]
        opened = (await page.get(f"/api/object?uid={uid}"))["object"]
        await cluster.client.patch(
            core_v1.ConfigMap, {"data": {"a": "2"}}, name="c", namespace=cluster.namespace
        )
        opened["data"]["a"] = "3"
        message = await page.act(409, action="apply", manifest=msgspec.json.encode(opened).decode())
        assert "has changed since you opened it" in message
        assert (await cluster.get(core_v1.ConfigMap, "c")).data == {"a": "2"}


async def test_an_edit_of_a_version_that_is_no_longer_known_is_refused(cluster: Cluster) -> None:
    await cluster.create(core_v1.ConfigMap(kw.Meta("c"), data={"a": "1", "b": "1"}))
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        uid = (await view.has("ConfigMap", "c"))["uid"]
        opened = (await page.get(f"/api/object?uid={uid}"))["object"]
        await cluster.client.patch(
            core_v1.ConfigMap, {"data": {"b": "2"}}, name="c", namespace=cluster.namespace
        )
        opened["data"]["a"] = "3"
        # As after so many changes that the history has dropped the version that was opened.
        opened["metadata"]["resourceVersion"] = "1"
        message = await page.act(409, action="apply", manifest=msgspec.json.encode(opened).decode())
        assert "open it again and repeat your changes" in message
        assert (await cluster.get(core_v1.ConfigMap, "c")).data == {"a": "1", "b": "2"}


async def test_a_placeholder_is_never_written(cluster: Cluster) -> None:
    await cluster.create(core_v1.Secret(kw.Meta("s"), string_data={"password": CANARY}))
    async with (
        cluster_page(cluster.config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        uid = (await view.has("Secret", "s"))["uid"]
        opened = (await page.get(f"/api/object?uid={uid}"))["object"]
        copied = {**opened, "metadata": {"name": "copy", "namespace": cluster.namespace}}
        message = await page.act(400, action="apply", manifest=msgspec.json.encode(copied).decode())
        assert message.startswith("data.password is the placeholder")
        opened["data"]["other"] = opened["data"]["password"]
        message = await page.act(400, action="apply", manifest=msgspec.json.encode(opened).decode())
        assert message.startswith("data.other is the placeholder")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"action": "explode"}, "the action is not valid"),
        ({"action": "apply", "manifest": ""}, "the manifest is empty"),
        ({"action": "apply", "manifest": "- a\n- b"}, "the manifest is not an object"),
        ({"action": "apply", "manifest": "kind: ConfigMap"}, "the manifest has no apiVersion"),
        ({"action": "apply", "manifest": "{a: b"}, "the manifest is not valid YAML"),
        ({"action": "apply", "manifest": "a: 1\na: 2"}, "the manifest has the key"),
        ({"action": "apply", "manifest": "{apiVersion: v1, kind: Secret}"}, "has no metadata.name"),
        ({"action": "delete", "uid": 5}, "the action is not valid"),
    ],
)
async def test_a_bad_action_is_explained(cluster: Cluster, action: dict[str, Any], message: str) -> None:
    async with cluster_page(cluster.config, "test", WRITABLE) as link, browser(link) as page:
        assert message in await page.act(400, **action)


async def test_the_servers_own_message_is_passed_on(cluster: Cluster) -> None:
    async with cluster_page(cluster.config, "test", WRITABLE) as link, browser(link) as page:
        named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: default}\n"
        assert "RFC 1123" in await page.act(422, action="apply", manifest=named)
        unknown = "apiVersion: nowhere.dev/v1\nkind: Thing\nmetadata: {name: a}\n"
        assert "does not serve it" in await page.act(404, action="apply", manifest=unknown)


async def test_a_port_in_use_is_named_with_the_option(cluster: Cluster) -> None:
    async with cluster_page(cluster.config, "test") as link:
        port = int(link.partition("127.0.0.1:")[2].partition("/")[0])
        with pytest.raises(BindError, match=r"address already in use; choose another with --port"):
            async with cluster_page(cluster.config, "test", PageOptions(port=port)):
                pass


async def test_a_cluster_that_cannot_be_reached_is_an_error_at_the_start() -> None:
    with pytest.raises(ConnectionFailed):
        async with cluster_page(ClusterConfig(server="http://127.0.0.1:1"), "test"):
            pass


async def restricted(cluster: Cluster, *rules: rbac_v1.PolicyRule) -> ClusterConfig:
    """Return the configuration of a user with these rights everywhere."""
    name = f"reader-{cluster.namespace}"
    await cluster.client.create(core_v1.ServiceAccount(kw.Meta("reader", namespace=cluster.namespace)))
    await cluster.client.create(rbac_v1.ClusterRole(kw.Meta(name), rules=list(rules)))
    await cluster.client.create(
        rbac_v1.ClusterRoleBinding(
            kw.Meta(name),
            role_ref=rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[rbac_v1.Subject(kind="ServiceAccount", name="reader", namespace=cluster.namespace)],
        )
    )
    token = (await cluster.client.token_request("reader", cluster.namespace)).token
    return replace(cluster.config, token=token, client_cert_data=b"", client_key_data=b"")


READ = ["list", "watch"]


async def test_a_user_sees_what_may_be_listed_and_reads_what_is_missing(cluster: Cluster) -> None:
    await cluster.install(Safe)
    config = await restricted(
        cluster,
        rbac_v1.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=READ),
        rbac_v1.PolicyRule(api_groups=["ui.kubewright.dev"], resources=["safes"], verbs=READ),
    )
    await cluster.create(core_v1.ConfigMap(kw.Meta("seen")))
    await cluster.create(core_v1.Secret(kw.Meta("unseen"), string_data={"a": CANARY}))
    await cluster.create(Safe(kw.Meta("s"), spec=SafeSpec(pin=CANARY, label="shown")))
    async with (
        cluster_page(config, "test", WRITABLE) as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        shown = await view.has("ConfigMap", "seen")
        # Its sensitive fields are known from the OpenAPI schema: CRDs may not be read.
        safe = await view.has("Safe", "s")
        spec = (await page.get(f"/api/object?uid={safe['uid']}"))["object"]["spec"]
        assert is_placeholder(spec["pin"])
        assert spec["label"] == "shown"

        def refusal() -> str | None:
            return next((text for text in view.problems if "secrets" in text and "pods" in text), None)

        assert "may not list or watch" in await eventually(refusal)
        # Each ServiceAccount may list ClusterTrustBundles.
        kinds = {each["kind"] for each in view.objects.values()} - {"ClusterTrustBundle"}
        assert kinds == {"ConfigMap", "Safe"}
        assert "forbidden" in (await page.act(403, action="delete", uid=shown["uid"])).lower()
        assert CANARY not in str(view.events)


async def test_the_page_goes_on_after_the_cluster_was_away(embedded_cluster: Cluster) -> None:
    cluster = embedded_cluster
    async with (
        cluster_page(cluster.config, "test") as link,
        browser(link) as page,
        page.following(cluster.namespace) as view,
    ):
        made = await cluster.create(core_v1.ConfigMap(kw.Meta("before")))
        await view.has("ConfigMap", "before")
        reads = Match(resource="configmaps", verbs=("list", "watch"))
        with cluster.faults.add(match=reads, fail=503):
            cluster.faults.cut_watches(reads)
            await cluster.client.delete(made)
            away = await eventually(
                lambda: next((text for text in view.problems if "configmaps" in text), None)
            )
            assert away.startswith("out of date: ")
        await eventually(lambda: view.own_problems == [])
        await eventually(lambda: view.find("ConfigMap", "before") is None)
        assert view.hellos == 1
