"""The same documents as plain YAML, as a kustomize tree and as a Helm chart."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.generate import PARTS, USUAL_PARTS, Chart, Settings, helm, kustomize, manifests, with_policies

JsonObject = dict[str, Any]
MONITORED = "serviceMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true"


class Spec(kw.Model):
    text: Annotated[str, kw.Field(description="May hold {{ braces }}.")] = "a"


class Status(kw.Model):
    ready: int = 0


class Card(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A card."""


class Rack(kw.Resource[Spec, Status], group="example.com", version="v1", scope="Cluster"):
    """A rack."""


@kw.controller(Card, owns=[core_v1.ConfigMap])
async def cards(card: Card, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.controller(Rack)
async def racks(rack: Rack, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.admission.validating_webhook(Card)
def sensible(card: Card) -> None:
    """Find nothing."""


@kw.admission.validating_webhook(Card)
def few(card: Card) -> Iterator[kw.admission.Problem]:
    """Refuse a text that looks like a template."""
    if card.spec.text == "{{ x }}":
        yield kw.admission.invalid("spec.text", card.spec.text, "is a template")


OPERATOR = kw.Operator(
    cards,
    racks,
    name="cards",
    webhooks=[sensible],
    env=[kw.packaging.Env("MODE", "quick")],
    workload=kw.packaging.Workload(
        replicas=2,
        args=["-v"],
        volumes=[kw.packaging.Volume("login", "/etc/login", secret="login", optional=True), kw.packaging.Volume("work", "/work", size="1Gi")],
        limits={"memory": "1Gi", "cpu": ""},
    ),
)  # fmt: skip


def key(document: JsonObject) -> str:
    metadata = document["metadata"]
    return f"{document['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"


def written(tree: Mapping[str, str], folder: Path) -> Path:
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def output(*command: str | Path) -> dict[str, JsonObject]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {key(document): document for document in yaml.safe_load_all(done.stdout) if document}


def without_labels(document: JsonObject) -> JsonObject:
    """Leave out labels: a chart has those of its release."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "labels"}
    if document["kind"] != "Deployment":
        return {**document, "metadata": metadata}
    spec = {**document["spec"], "template": without_labels({"kind": "", **document["spec"]["template"]})}
    return {**document, "metadata": metadata, "spec": spec}


def plain(parts: Sequence[str]) -> dict[str, JsonObject]:
    return {key(document): document for document in manifests(OPERATOR, parts)}


def test_a_kustomize_tree_renders_the_plain_manifests(kubectl_program: Path, tmp_path: Path) -> None:
    folder = written(kustomize(OPERATOR), tmp_path)
    assert output(kubectl_program, "kustomize", folder) == plain(USUAL_PARTS)
    assert output(kubectl_program, "kustomize", folder / "samples") == plain(["samples"])


def test_components_add_monitoring_and_a_network_policy(kubectl_program: Path, tmp_path: Path) -> None:
    written(kustomize(OPERATOR), tmp_path / "base")
    overlay = {"resources": ["../base"], "components": ["../base/monitoring", "../base/network"]}
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    expected = plain([part for part in PARTS if part != "samples"])
    assert output(kubectl_program, "kustomize", tmp_path / "overlay") == expected


def test_a_chart_renders_the_plain_manifests(helm_program: Path, tmp_path: Path) -> None:
    folder = written(helm(OPERATOR, Chart(name="cards")), tmp_path)
    subprocess.run([helm_program, "lint", "--strict", folder], check=True, capture_output=True)
    switches = f"crds.keep=false,{MONITORED},networkPolicy.enabled=true"
    found = output(helm_program, "template", "x", folder, "-n", "cards-system", "--set", switches)
    expected = plain([part for part in PARTS if part != "samples"])
    del expected["Namespace//cards-system"]
    for document in found.values():
        if document["kind"] == "Deployment":
            assert (
                document["spec"]["template"]["spec"]["containers"][0].pop("imagePullPolicy") == "IfNotPresent"
            )
    assert {name: without_labels(each) for name, each in found.items()} == {
        name: without_labels(each) for name, each in expected.items()
    }


def test_a_charts_values_reach_the_pods(helm_program: Path, tmp_path: Path) -> None:
    folder = written(
        helm(OPERATOR, Chart(name="cards"), Settings(image="registry.example:5000/a/cards:3")), tmp_path
    )
    values = {
        "replicas": 1,
        "image": {"digest": "sha256:0123"},
        "args": ["--leader-election-id=other"],
        "env": [{"name": "MORE", "value": "1"}],
        "priorityClassName": "high",
        "podLabels": {"team": "a"},
        "podAnnotations": {"scrape": "no"},
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
        "nodeSelector": {"disk": "fast"},
        "serviceAccount": {"annotations": {"a": "b"}},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "userRoles": {"enabled": False},
        "crds": {"install": False},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    found = output(helm_program, "template", "x", folder, "-n", "else", "-f", tmp_path / "mine.yaml")
    template = found["Deployment/else/cards-controller-manager"]["spec"]["template"]
    assert template["metadata"]["labels"]["team"] == "a"
    assert template["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/default-container": "manager",
        "scrape": "no",
    }
    pod = template["spec"]
    assert pod["volumes"][-1] == {"name": "ca", "configMap": {"name": "ca"}}
    assert pod["containers"][0]["volumeMounts"][-1] == {"name": "ca", "mountPath": "/etc/ca"}
    container = pod["containers"][0]
    assert container["image"] == "registry.example:5000/a/cards@sha256:0123"
    assert container["args"][-2:] == ["-v", "--leader-election-id=other"]
    assert container["env"] == [{"name": "MODE", "value": "quick"}, {"name": "MORE", "value": "1"}]
    assert (pod["priorityClassName"], pod["nodeSelector"]) == ("high", {"disk": "fast"})
    assert found["ServiceAccount/else/cards-controller-manager"]["metadata"]["annotations"] == {"a": "b"}
    monitor = found["ServiceMonitor/else/cards-controller-manager-metrics-monitor"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"][0]["tlsConfig"] == {
        "ca": {"secret": {"name": "cards-controller-manager-metrics-service-cert", "key": "ca.crt"}},
        "serverName": "cards-controller-manager-metrics-service.else.svc",
    }
    assert "Secret/else/cards-controller-manager-metrics-service-cert" in found
    kinds = {document["kind"] for document in found.values()}
    assert not kinds & {"CustomResourceDefinition", "PodDisruptionBudget", "NetworkPolicy"}
    assert not any("viewer" in name for name in found)
    service = found["ValidatingWebhookConfiguration//cards-validating-webhook-configuration"]["webhooks"][0]
    assert service["clientConfig"]["service"]["namespace"] == "else"


def test_a_chart_with_policies_has_no_webhooks(helm_program: Path, tmp_path: Path) -> None:
    operator, settings, kept = with_policies(kw.Operator(cards, webhooks=[few]))
    assert not kept
    folder = written(helm(operator, Chart(name="card"), settings), tmp_path)
    subprocess.run([helm_program, "lint", "--strict", folder], check=True, capture_output=True)
    found = output(helm_program, "template", "x", folder, "-n", "else")
    policy = found["ValidatingAdmissionPolicy//card-few.cards.example.com"]
    assert policy["spec"] == settings.policies[0]["spec"]
    assert not any("webhook" in name.lower() for name in found)
    assert found["Deployment/else/card-controller-manager"]["spec"]["replicas"] == 1


def test_every_object_of_a_chart_has_the_recommended_labels(helm_program: Path, tmp_path: Path) -> None:
    folder = written(helm(OPERATOR, Chart(name="cards", version="1.2.0+build.7")), tmp_path)
    switches = f"{MONITORED},networkPolicy.enabled=true"
    found = output(helm_program, "template", "blue", folder, "--set", switches)
    recommended = {
        "app.kubernetes.io/name": "cards",
        "app.kubernetes.io/instance": "blue",
        "app.kubernetes.io/version": "1.2.0+build.7".replace("+", "_"),
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "cards-1.2.0_build.7",
    }
    assert "CustomResourceDefinition" in {document["kind"] for document in found.values()}
    for name, document in found.items():
        assert recommended.items() <= document["metadata"]["labels"].items(), name
    deployment = found["Deployment/default/cards-controller-manager"]["spec"]
    # The selector of a Deployment is immutable, so no label that changes with a release may be in it.
    assert (
        deployment["selector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()
    )
    assert set(deployment["selector"]["matchLabels"]) == {"app.kubernetes.io/name", "control-plane"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("replica=2", "replica"),
        ("image.repo=x", "repo"),
        ("replicas=two", "replicas"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("crds.install=maybe", "install"),
    ],
)
def test_a_wrong_value_of_a_chart_is_an_error(
    helm_program: Path, tmp_path: Path, wrong: str, named: str
) -> None:
    folder = written(helm(OPERATOR, Chart(name="cards")), tmp_path)
    command = [helm_program, "template", "x", folder, "--set", wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert named in done.stderr


def test_rendering_is_the_same_every_time() -> None:
    assert kustomize(OPERATOR) == kustomize(OPERATOR)
    assert helm(OPERATOR, Chart(name="cards")) == helm(OPERATOR, Chart(name="cards"))
