"""An operator at work on kinds of other projects: it owns, watches and updates them on a server that has their CRDs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import Invalid, Kind, Meta, kind_of, parse
from kubewright.testing import Cluster

CRDS = Path(__file__).parent / "crds"
Find = Callable[[str, str], Any]


class SiteSpec(kw.Model):
    host: str


class SiteStatus(kw.Model):
    ready: bool = False


class Site(kw.Resource[SiteSpec, SiteStatus], group="sites.kubewright.dev", version="v1"):
    """A site that needs a certificate."""


def site_operator(certificates: Any) -> kw.Operator:
    Certificate: Any = certificates.Certificate  # noqa: N806 (a class)

    async def reconcile(site: Site, ctx: kw.Context) -> None:
        wanted = Certificate(
            metadata=Meta(site.metadata.name, namespace=site.metadata.namespace),
            spec=certificates.CertificateSpec(
                secret_name=f"{site.metadata.name}-tls",
                dns_names=[site.spec.host],
                issuer_ref=certificates.IssuerRef(name="ca"),
            ),
        )
        made = await ctx.apply(wanted)
        conditions = made.status.conditions or []
        ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        await ctx.patch_status(site, SiteStatus(ready=ready))

    return kw.Operator(kw.Controller(Site, reconcile, owns=[Certificate]))


async def test_an_operator_owns_certificates_and_sees_their_status(cluster: Cluster, example: Find) -> None:
    Certificate = example("cert_manager_v1", "Certificate").cls  # noqa: N806 (a class)
    module = sys.modules[Certificate.__module__]
    await cluster.install(CRDS / "certificates.cert-manager.io.json")
    async with cluster.running(site_operator(module)):
        await cluster.create(Site(Meta("shop"), spec=SiteSpec(host="shop.example.com")))
        made = await cluster.eventually(Certificate, "shop", lambda each: each.spec.dns_names)
        assert made.metadata.owner_references[0].kind == "Site"
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        await cluster.client.patch(made, {"status": status}, type="merge", subresource="status")
        await cluster.eventually(Site, "shop", lambda site: site.status.ready)


async def test_update_keeps_fields_that_a_newer_crd_has(cluster: Cluster, example: Find) -> None:
    Certificate = example("cert_manager_v1", "Certificate").cls  # noqa: N806 (a class)
    path = CRDS / "certificates.cert-manager.io.json"
    newer = parse(path.read_bytes())
    spec = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["brandNew"] = {"type": "string"}
    spec["properties"]["privateKey"]["properties"]["alsoNew"] = {"type": "string"}
    await cluster.install(path)
    await cluster.client.apply(newer, field_manager="kubewright-testing", force=True)
    plain = Kind(group="cert-manager.io", version="v1", kind="Certificate", plural="certificates")
    document = {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "newer", "namespace": cluster.namespace},
        "spec": {
            "secretName": "s",
            "issuerRef": {"name": "ca"},
            "brandNew": "kept",
            "privateKey": {"size": 2048, "alsoNew": "kept"},
        },
    }
    # A server uses a changed schema some time after it was stored.
    while "brandNew" not in (await cluster.client.create(document, kind=plain, dry_run=True))["spec"]:
        pass
    await cluster.client.create(document, kind=plain)
    found = await cluster.get(Certificate, "newer")

    def change(each: Any) -> None:
        each.spec.private_key.size = 4096

    await cluster.client.update(found, change)
    after = await cluster.client.get(plain, "newer", cluster.namespace)
    assert after["spec"]["brandNew"] == "kept"
    assert after["spec"]["privateKey"] == {"size": 4096, "alsoNew": "kept"}


ROUTE = {
    "parentRefs": [{"name": "main"}],
    "hostnames": ["shop.example.com"],
    "rules": [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": [{"name": "shop", "port": 80}],
        }
    ],
}
SAMPLES: list[tuple[str, str, Any]] = [
    ("gateway_v1", "HTTPRoute", ROUTE),
    ("gateway_v1", "HTTPRoute", ROUTE | {"hostnames": ["not a host"]}),
    ("gateway_v1", "HTTPRoute", ROUTE | {"rules": [{"matches": [{"method": "get"}]}]}),
    ("gateway_v1", "HTTPRoute", ROUTE | {"parentRefs": [{}]}),
    ("monitoring_v1", "PrometheusRule", {"groups": [{"name": "a", "rules": [{"expr": 1}, {"expr": "up == 0", "for": "5m"}]}]}),
    ("monitoring_v1", "PrometheusRule", {"groups": [{"name": "a", "interval": "soon"}, {"name": "a"}]}),
    ("monitoring_v1", "ServiceMonitor", {"selector": {}, "endpoints": [{"port": "web", "interval": "30s"}]}),
    ("monitoring_v1", "ServiceMonitor", {"endpoints": [{"targetPort": "web", "scheme": "ftp"}]}),
    ("cert_manager_v1", "Certificate", {"secretName": "x", "issuerRef": {"name": "ca"}, "privateKey": {"size": 1, "algorithm": "RSA"}}),
    ("cert_manager_v1", "Certificate", {"issuerRef": {}, "privateKey": {"algorithm": "DSA"}, "revisionHistoryLimit": 0}),
    ("cert_manager_v1", "Issuer", {"selfSigned": {}}),
    ("cert_manager_v1", "Issuer", {"acme": {"server": 7}}),
]  # fmt: skip


async def answers(cluster: Cluster, kind: type[kw.Object]) -> list[Any]:
    """Return what the server makes of the samples of a kind, or why it rejects them."""
    found: list[Any] = []
    declared = kind_of(kind)
    for _, name, spec in SAMPLES:
        if name != declared.kind:
            continue
        metadata = {"name": "sample", "namespace": cluster.namespace}
        document = {"apiVersion": declared.api_version, "kind": name, "metadata": metadata, "spec": spec}
        try:
            answer = await cluster.client.create(document, kind=declared, dry_run=True)
            found.append({key: answer.get(key) for key in ("spec", "status")})
        except Invalid as refused:
            found.append(sorted(cause.field for cause in refused.status.details.causes))
    return found


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("cert_manager_v1", "Certificate"),
        ("cert_manager_v1", "Issuer"),
        ("gateway_v1", "HTTPRoute"),
        ("monitoring_v1", "PrometheusRule"),
        ("monitoring_v1", "ServiceMonitor"),
    ],
)
async def test_a_server_answers_alike_by_the_crd_and_by_the_class(
    module: str, kind: str, cluster: Cluster, example: Find
) -> None:
    cls = example(module, kind).cls
    declared = kind_of(cls)
    await cluster.install(CRDS / f"{declared.plural}.{declared.group}.json")
    by_crd = await answers(cluster, cls)
    assert any(isinstance(each, dict) for each in by_crd)
    assert any(isinstance(each, list) for each in by_crd)
    await cluster.install(cls)
    assert await answers(cluster, cls) == by_crd
