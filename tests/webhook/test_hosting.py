"""Webhooks on an API server: how it finds and trusts them, and that rotation loses no write."""

import asyncio
import contextlib
import itertools
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from acceptance_ports import lasting_port

import kubewright as kw
from kubewright.api import CUSTOM_RESOURCE_DEFINITION, ConnectionFailed, Kind, KubewrightError, Status
from kubewright.api.builtin import admissionregistration_v1, core_v1
from kubewright.backoff import Backoff
from kubewright.client import Client, ClusterConfig
from kubewright.client.requests import ApiRequest
from kubewright.controller import Operator
from kubewright.generate import Names, crds, webhooks
from kubewright.http.client import ClientResponse
from kubewright.manager import ManagerOptions, Reach, WebhookOptions
from kubewright.metrics import Registry
from kubewright.serving import BindAddress
from kubewright.testing import Cluster, eventually
from kubewright.webhook import Lifetimes, certificate_rules, webhook_rules
from kubewright.webhook.certificates.authority import begin, utc_now
from kubewright.webhook.server import (
    HostOptions,
    NotRegistered,
    WebhookHost,
)

from .kinds import Widget, WidgetV1Alpha1, colored, from_alpha, from_beta, sensible
from .learning import asked, validated

JsonObject = dict[str, Any]
MANY = 50
# A third of the authority's life is left for a busy API server to learn of the next one.
QUICK = Lifetimes(
    authority=timedelta(seconds=18),
    serving=timedelta(seconds=12),
    trust=timedelta(seconds=4),
    follow=timedelta(seconds=1),
    poll=timedelta(seconds=0.2),
)
VALIDATING = Kind(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
    builtin=True,
)


class Missing(kw.Object, group="missing.example.com", version="v1", stored=True):
    """A kind that is not installed."""


class MissingV1Beta1(kw.Object, kind="Missing", group="missing.example.com", version="v1beta1"):
    """A kind that is not installed, in an older version."""


missing_from_beta = kw.Conversion(
    Missing,
    MissingV1Beta1,
    up=lambda old: Missing(old.metadata),
    down=lambda new: MissingV1Beta1(new.metadata),
)


@kw.controller(Widget, name="turning")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


def operator() -> Operator:
    return Operator(nothing, webhooks=[sensible, colored, from_alpha, from_beta])


def options(**changes: Any) -> ManagerOptions:
    webhooks = WebhookOptions(bind_address="127.0.0.1:0", **changes)
    return ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", webhooks=webhooks)


async def trusted(cluster: Cluster, name: str) -> str:
    live = await cluster.client.get(VALIDATING, name)
    return live["webhooks"][0]["clientConfig"].get("caBundle", "")


async def write_until_rotated(cluster: Cluster, name: str) -> None:
    """Write through the webhooks without a pause, often, until the authority is another one."""
    first, count = await trusted(cluster, name), itertools.count()
    done, enough = asyncio.Event(), asyncio.Event()

    async def writer(number: int) -> None:
        await cluster.create(WidgetV1Alpha1(kw.Meta(f"w{number}"), size=0))
        while not done.is_set():
            written = next(count)
            if written > MANY:
                enough.set()
            change = {"metadata": {"annotations": {"n": str(written)}}}
            await cluster.client.patch(Widget, change, name=f"w{number}", namespace=cluster.namespace)
            found = await cluster.get(WidgetV1Alpha1, f"w{number}")
            assert found.color == "blue"

    async with asyncio.timeout(150), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(writer(number))
        seen = {first}

        async def rotated() -> bool:
            seen.add(await trusted(cluster, name))
            return len(seen) == 3  # the old authority, both, the new one

        await eventually(rotated, timeout=150)
        await enough.wait()
        done.set()


async def test_rotating_the_authority_fails_no_write(cluster: Cluster) -> None:
    async with cluster.running(operator(), options=options(lifetimes=QUICK)) as manager:
        await asked(cluster)
        await write_until_rotated(cluster, "turning-validating-webhook-configuration")
        assert not manager.readiness.failures()
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)


async def deploy(cluster: Cluster, port: int) -> None:
    """Bring what `kubewright manifests` renders, with a Service that leads to this machine."""
    names = Names("turning", cluster.namespace)
    for document in (*crds(operator(), names), *webhooks(operator(), names)):
        if document["kind"] == "Service":
            document["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        await cluster.client.apply(document, field_manager="deployer")


@asynccontextmanager
async def hosted(cluster: Cluster, port: int, **changes: Any) -> AsyncIterator[WebhookHost]:
    chosen = HostOptions(
        address=BindAddress("127.0.0.1", changes.pop("own_port", port)),
        namespace=cluster.namespace,
        reach="service",
        service_port=port,
        webhooks=WebhookOptions(**changes),
    )
    host = WebhookHost("turning", operator().webhooks, cluster.client, chosen, Registry())
    async with asyncio.TaskGroup() as group, host.serving(group):
        yield host


@pytest.fixture
async def deployed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr("kubewright.webhook.server.hosting.SERVICE_DRAIN", 0.1)
    port = lasting_port()
    await deploy(cluster, port)
    yield port
    await cluster.client.delete(VALIDATING, "turning-validating-webhook-configuration")
    mutating = admissionregistration_v1.MutatingWebhookConfiguration
    await cluster.client.delete(mutating, "turning-mutating-webhook-configuration")
    patch = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    await cluster.client.patch(CUSTOM_RESOURCE_DEFINITION, patch, name="widgets.widgets.example.com")


async def test_a_deployed_operator_is_called_through_its_service_and_rotates(
    cluster: Cluster, deployed: int
) -> None:
    async with hosted(cluster, deployed, lifetimes=QUICK) as host:
        assert host.problem() is None
        await asked(cluster)
        await write_until_rotated(cluster, "turning-validating-webhook-configuration")
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)


async def test_replicas_share_one_secret_and_one_of_them_writes_it(cluster: Cluster, deployed: int) -> None:
    async with (
        hosted(cluster, deployed, own_port=0) as one,
        hosted(cluster, deployed, own_port=0) as two,
        hosted(cluster, deployed) as three,
    ):
        shown = {await asyncio.to_thread(certificate_of, host.port) for host in (one, two, three)}
        assert len(shown) == 1
        secret = await cluster.get(core_v1.Secret, "turning-webhook-server-cert")
        assert set(secret.data) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
        assert await trusted(cluster, "turning-validating-webhook-configuration")


def certificate_of(port: int) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        context.wrap_socket(raw) as connection,
    ):
        found = connection.getpeercert(binary_form=True)
        assert found
        return found


async def test_a_deployed_operator_repairs_the_configuration_of_a_killed_local_run(
    cluster: Cluster, deployed: int
) -> None:
    name = "turning-validating-webhook-configuration"
    live = await cluster.client.get(VALIDATING, name)
    left = [entry | {"clientConfig": {"url": "https://127.0.0.1:1/x"}} for entry in live["webhooks"]]
    await cluster.client.patch(VALIDATING, {"webhooks": left}, name=name)
    async with hosted(cluster, deployed):
        live = await cluster.client.get(VALIDATING, name)
        config = live["webhooks"][0]["clientConfig"]
        assert "url" not in config
        assert config["service"]["name"] == "turning-webhook-service"
        await asked(cluster)


async def test_missing_webhook_configurations_are_reported_with_the_command_to_apply_them(
    cluster: Cluster,
) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with hosted(cluster, 0):
            pass
    assert caught.group_contains(NotRegistered, match="kubewright manifests --only webhooks")


async def test_an_operator_survives_the_deletion_of_its_configuration_and_uses_a_new_one(
    cluster: Cluster, deployed: int, caplog: pytest.LogCaptureFixture
) -> None:
    name = "turning-validating-webhook-configuration"
    often = Lifetimes(poll=timedelta(seconds=0.05))
    async with hosted(cluster, deployed, lifetimes=often) as host:
        await cluster.client.delete(VALIDATING, name)
        await eventually(lambda: f"{name} is not in the cluster" in caplog.text)
        # It still answers what else it is asked: no reason to take it out of its Service.
        assert host.problem() is None
        await deploy(cluster, deployed)
        await eventually(lambda: trusted(cluster, name))


async def test_a_run_that_cannot_start_leaves_no_configuration(cluster: Cluster) -> None:
    converted = Operator(nothing, webhooks=[sensible, colored, missing_from_beta])
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
    host = WebhookHost("hasty", converted.webhooks, cluster.client, chosen, Registry())
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group, host.serving(group):
            pass
    assert caught.group_contains(NotRegistered, match="is not installed")
    with pytest.raises(kw.NotFound):
        await cluster.client.get(VALIDATING, "hasty-validating-webhook-configuration")


class Unsteady(Client):
    """Fail each request once for each of some reasons, then send it."""

    def __init__(self, config: ClusterConfig, *failures: KubewrightError) -> None:
        super().__init__(config)
        self._failures = failures
        self.failed: Counter[str] = Counter()

    async def raw(self, request: ApiRequest) -> ClientResponse:
        what = f"{request.verb} {request.object}"
        if self.failed[what] < len(self._failures):
            self.failed[what] += 1
            raise self._failures[self.failed[what] - 1]
        return await super().raw(request)


TROUBLES = (
    kw.errors.InternalError(Status(code=500, reason="InternalError", message="etcd has no leader")),
    kw.errors.ServiceUnavailable(Status(code=503, reason="ServiceUnavailable", message="starting")),
    kw.errors.Conflict(Status(code=409, reason="Conflict", message="the object has been modified")),
    ConnectionFailed("the API server is away for a moment"),
)


@pytest.mark.parametrize("reach", ["url", "service"])
async def test_registering_is_retried_while_the_server_fails(
    cluster: Cluster,
    deployed: int,
    reach: Reach,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("kubewright.webhook.server.hosting.RETRIES", Backoff(base=0.001, maximum=0.001))
    chosen = HostOptions(
        address=BindAddress("127.0.0.1", deployed if reach == "service" else 0),
        namespace=cluster.namespace,
        reach=reach,
        service_port=deployed,
    )
    async with Unsteady(cluster.config, *TROUBLES) as client:
        host = WebhookHost("turning", operator().webhooks, client, chosen, Registry())
        assert host.problem() == "the webhooks are not registered yet"
        await host.confirm_reach()
        async with asyncio.TaskGroup() as group, host.serving(group):
            assert host.problem() is None
            await asked(cluster)
        assert len(client.failed) >= 5
    assert "Registering webhooks failed, trying again" in caplog.text
    assert "etcd has no leader" in caplog.text


async def test_the_readiness_probe_names_what_keeps_webhooks_from_being_registered(
    cluster: Cluster,
) -> None:
    await cluster.install(operator())
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
    async with Unsteady(cluster.config, *[TROUBLES[0]] * 1000) as client:
        host = WebhookHost("turning", operator().webhooks, client, chosen, Registry())
        async with asyncio.TaskGroup() as group:

            async def serve() -> None:
                async with host.serving(group):
                    raise AssertionError("it was registered")

            serving = group.create_task(serve())
            await eventually(lambda: "etcd has no leader" in (host.problem() or ""))
            serving.cancel()


async def test_permanent_registration_errors_end_the_start(cluster: Cluster) -> None:
    await cluster.install(operator())
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
    forbidden = kw.errors.Forbidden(Status(code=403, reason="Forbidden", message="you may not"))
    async with Unsteady(cluster.config, forbidden) as client:
        host = WebhookHost("turning", operator().webhooks, client, chosen, Registry())
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group, host.serving(group):
                pass
    assert caught.group_contains(NotRegistered, match="--only rbac --webhook-reach url")


async def test_a_configuration_that_cannot_be_removed_does_not_keep_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    delete = cluster.client.delete

    async def unable(target: Any, name: str = "", *arguments: Any, **options: Any) -> None:
        if name == "turning-mutating-webhook-configuration":
            raise ConnectionFailed("the API server is away for a moment")
        await delete(target, name, *arguments, **options)

    await cluster.install(operator())
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
    host = WebhookHost("turning", operator().webhooks, cluster.client, chosen, Registry())
    with monkeypatch.context() as patched:
        async with asyncio.TaskGroup() as group, host.serving(group):
            patched.setattr(cluster.client, "delete", unable)
    assert "turning-mutating-webhook-configuration could not be taken away" in caplog.text
    with pytest.raises(kw.NotFound):
        await cluster.client.get(VALIDATING, "turning-validating-webhook-configuration")
    live = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, "widgets.widgets.example.com")
    assert "service" in live["spec"]["conversion"]["webhook"]["clientConfig"]
    mutating = admissionregistration_v1.MutatingWebhookConfiguration
    await cluster.client.delete(mutating, "turning-mutating-webhook-configuration")


async def test_a_mounted_certificate_is_reloaded(
    cluster: Cluster, deployed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubewright.webhook.certificates.sources.DIRECTORY_POLL", 0.05)

    def lay() -> None:
        bundle = begin([f"turning-webhook-service.{cluster.namespace}.svc"], Lifetimes(), utc_now())
        for name, content in (
            ("ca.crt", bundle.ca_bundle),
            ("tls.key", bundle.key),
            ("tls.crt", bundle.certificate),
        ):
            (tmp_path / name).write_bytes(content)

    await asyncio.to_thread(lay)
    async with hosted(cluster, deployed, cert_dir=tmp_path) as host:
        await asked(cluster)
        before = await trusted(cluster, "turning-validating-webhook-configuration")
        shown = await asyncio.to_thread(certificate_of, host.port)
        await asyncio.to_thread(lay)

        async def replaced() -> bool:
            return (
                await trusted(cluster, "turning-validating-webhook-configuration") != before
                and await asyncio.to_thread(certificate_of, host.port) != shown
            )

        await eventually(replaced)
        assert host.problem() is None


def test_the_webhook_roles_are_get_and_patch_by_name() -> None:
    served = operator()
    for rule in (
        *webhook_rules(served.name, served.webhooks),
        *certificate_rules(served.name, served.webhooks),
    ):
        assert rule.verbs == ("get", "patch")
        assert rule.resource_names


async def test_a_standby_leaves_the_webhooks_to_the_replica_that_answers_until_it_leads(
    cluster: Cluster,
) -> None:
    name = "turning-validating-webhook-configuration"
    async with cluster.running(operator()) as first:
        chosen = HostOptions(address=BindAddress("", 0), namespace="default", reach="url", standby=True)
        standby = WebhookHost("turning", operator().webhooks, cluster.client, chosen, Registry())
        async with asyncio.TaskGroup() as group, standby.serving(group):
            assert f":{first.webhook_port}/" in await asked_at(cluster, name)
            assert standby.problem() is None
            await standby.lead()
            assert f":{standby.port}/" in await asked_at(cluster, name)
        with pytest.raises(kw.NotFound):
            await asked_at(cluster, name)


async def test_a_handover_during_writes_loses_no_request(cluster: Cluster) -> None:
    metrics, done, numbers = Registry(), asyncio.Event(), itertools.count()
    chosen = HostOptions(address=BindAddress("", 0), namespace="default", reach="url", standby=True)
    successor = WebhookHost("turning", operator().webhooks, cluster.client, chosen, metrics)

    async def write() -> None:
        while not done.is_set():
            # Completed, and in another version: both a webhook and the converter have answered.
            made = await cluster.create(WidgetV1Alpha1(kw.Meta(f"w{next(numbers)}"), size=1))
            assert made.color == "blue"

    async with asyncio.timeout(150), asyncio.TaskGroup() as group:
        async with cluster.running(operator()):
            await asked(cluster)
            writers = [group.create_task(write()) for _ in range(2)]
            serving = successor.serving(group)
            await serving.__aenter__()
            await successor.lead()
            # The API server learns of each configuration, and of the converter, in its own time.
            await answered(metrics, 10, each=True)
        await answered(metrics, 100)
        done.set()
        await asyncio.wait(writers)
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)
        await serving.__aexit__(None, None, None)


async def test_a_review_under_way_at_a_stop_is_still_answered(cluster: Cluster) -> None:
    entered, released = threading.Event(), threading.Event()

    @kw.admission.validating_webhook(Widget, name="slow")
    def slow(widget: Widget) -> Iterator[kw.admission.Problem]:
        if widget.metadata.name == "held":
            entered.set()
            released.wait()
            yield kw.admission.denied("validated to the end")
        if widget.spec.color == "pink":
            yield kw.admission.invalid("spec.color", "pink", "not nice")

    await cluster.install(operator())
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace="default", reach="url")
    host = WebhookHost(
        "slow", Operator(nothing, webhooks=[slow]).webhooks, cluster.client, chosen, Registry()
    )
    async with asyncio.timeout(150), asyncio.TaskGroup() as group:
        serving = host.serving(group)
        await serving.__aenter__()
        await validated(cluster)
        held = Widget(kw.Meta("held", namespace=cluster.namespace))
        asking = group.create_task(refusal(cluster, held))
        await asyncio.to_thread(entered.wait)
        group.create_task(serving.__aexit__(None, None, None))
        await gone(cluster, "slow-validating-webhook-configuration")
        released.set()
    assert "validated to the end" in asking.result()


async def gone(cluster: Cluster, name: str) -> None:
    with contextlib.suppress(kw.NotFound):
        while True:
            await cluster.client.get(VALIDATING, name)


async def refusal(cluster: Cluster, widget: Widget) -> str:
    with pytest.raises(kw.errors.Forbidden) as caught:
        await cluster.client.create(widget, dry_run=True)
    return str(caught.value)


async def answered(metrics: Registry, count: int, *, each: bool = False) -> None:
    """Wait until a server has answered so many reviews: of all three kinds together, or of each of them."""
    name = "controller_runtime_webhook_requests_total"

    def enough() -> bool:
        counts = [
            sample.value
            for family in metrics.families()
            if family.name == name
            for sample in family.samples
            if sample.labels["code"] == "200"
        ]
        return sum(found >= count for found in counts) >= 3 if each else sum(counts) >= count

    await eventually(enough)


async def asked_at(cluster: Cluster, name: str) -> str:
    live = await cluster.client.get(VALIDATING, name)
    return live["webhooks"][0]["clientConfig"]["url"]
