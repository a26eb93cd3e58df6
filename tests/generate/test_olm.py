"""Bundles for OLM: what is in them, and that operator-framework's own validator finds no fault."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

import foo
import kubewright as kw
import mycustomresource
import myownshell
import pulsarconsumer
import vmgroup
from kubewright.api.builtin import apps_v1, autoscaling_v2, core_v1
from kubewright.generate import Package, Settings, bundle, cluster_service_version, crds
from kubewright.generate.capability import criteria, level_of
from kubewright.generate.descriptors import owned_kinds
from kubewright.generate.scorecard import checks

JsonObject = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parents[1] / "golden" / "fleet" / "deploy" / "olm" / "bundle"


class Spec(kw.Model):
    replicas: Annotated[int, kw.Field(ge=0, description="How many.")] = 1
    image: str = "a"


class Status(kw.Model):
    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class Card(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A card."""


@kw.controller(Card, owns=[apps_v1.Deployment], needs=[kw.needs(core_v1.Node, "list")])
async def cards(card: Card, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.admission.validating_webhook(Card)
def sensible(card: Card) -> None:
    """Find nothing."""


OPERATOR = kw.Operator(cards, name="cards", webhooks=[sensible])
PACKAGE = Package(name="cards", version="1.2.3", channels=["stable", "fast"])
SETTINGS = Settings(image="registry.example/cards@sha256:0123")


def csv() -> JsonObject:
    return cluster_service_version(OPERATOR, PACKAGE, SETTINGS)


def test_a_bundle_has_the_layout_that_olm_reads() -> None:
    tree = bundle(OPERATOR, PACKAGE, SETTINGS)
    assert {name for name in tree if "role" not in name} == {
        "bundle.Dockerfile",
        "bundle/manifests/cards.clusterserviceversion.yaml",
        "bundle/manifests/example.com_cards.yaml",
        "bundle/manifests/poddisruptionbudget-cards-controller-manager.yaml",
        "bundle/manifests/service-cards-controller-manager-metrics-service.yaml",
        "bundle/metadata/annotations.yaml",
    }
    annotations = yaml.safe_load(tree["bundle/metadata/annotations.yaml"])["annotations"]
    assert annotations["operators.operatorframework.io.bundle.channels.v1"] == "stable,fast"
    for name, value in annotations.items():
        assert f"LABEL {name}={value}" in tree["bundle.Dockerfile"]
    assert not any(
        yaml.safe_load(text)["kind"] == "ServiceAccount" for name, text in tree.items() if "manifests" in name
    )


def test_rules_on_nodes_are_for_the_cluster_and_the_rest_for_the_chosen_namespaces() -> None:
    install = csv()["spec"]["install"]["spec"]

    def resources(part: str) -> set[str]:
        return {name for rule in install[part][0]["rules"] for name in rule.get("resources", ())}

    assert {"nonResourceURLs": ["/journal"], "verbs": ["get"]} in install["clusterPermissions"][0]["rules"]
    assert resources("clusterPermissions") == {"nodes", "tokenreviews", "subjectaccessreviews"}
    assert {"cards", "deployments", "events", "leases"} <= resources("permissions")
    assert "secrets" not in resources("permissions")


def test_olm_provides_certificates_and_the_namespaces_to_watch() -> None:
    (deployment,) = csv()["spec"]["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][-3:] == [
        "--namespace=$(WATCH_NAMESPACE)",
        "--webhook-reach=given",
        "--webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs",
    ]
    (webhook,) = csv()["spec"]["webhookdefinitions"]
    assert (webhook["type"], webhook["targetPort"]) == ("ValidatingAdmissionWebhook", 9443)
    assert webhook["webhookPath"] == "/validate-example-com-v1-card"


def test_kinds_are_described_from_their_schemas() -> None:
    (owned,) = csv()["spec"]["customresourcedefinitions"]["owned"]
    assert owned["resources"] == [{"kind": "Deployment", "name": "", "version": "v1"}]
    assert owned["specDescriptors"][1] == {
        "path": "replicas",
        "displayName": "Replicas",
        "description": "How many.",
        "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:podCount"],
    }
    assert owned["statusDescriptors"][0]["x-descriptors"] == ["urn:alm:descriptor:io.kubernetes.conditions"]


def test_conversion_allows_only_installation_for_the_whole_cluster() -> None:
    modes = {mode["type"]: mode["supported"] for mode in csv()["spec"]["installModes"]}
    assert all(modes.values())
    golden = yaml.safe_load((GOLDEN / "manifests" / "fleet.clusterserviceversion.yaml").read_text())
    assert [mode["type"] for mode in golden["spec"]["installModes"] if mode["supported"]] == ["AllNamespaces"]


def written(tree: Mapping[str, str], folder: Path) -> Path:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "bundle"


def remarks(operator_verify: Path, folder: Path) -> list[str]:
    """Return the output of operator-framework's validator, without the lines that it prints for every bundle."""
    command = [operator_verify, "manifests", "--object_validate", "--operatorhub_validate", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    printed = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return [line for line in printed if not any(known in line for known in KNOWN)]


KNOWN = (
    # It goes by the resource alone: events of events.k8s.io/v1 are there, those of v1beta1 went with 1.25.
    "deprecation-guide/#v1-25. Migrate the API(s) for events: ",
    # Its own check for operatorhub.io has a successor that its program does not offer.
    r"The \"operatorhub\" validator is deprecated",
)


@pytest.mark.parametrize("which", ["golden", "own"])
def test_the_olm_validator_accepts_the_bundle(which: str, operator_verify: Path, tmp_path: Path) -> None:
    folder = GOLDEN if which == "golden" else written(bundle(OPERATOR, PACKAGE, SETTINGS), tmp_path)
    assert remarks(operator_verify, folder) == []


@pytest.mark.parametrize(
    "operator",
    [
        mycustomresource.operator(),
        myownshell.operator(),
        foo.operator(),
        vmgroup.operator(),
        pulsarconsumer.operator(),
    ],
    ids=lambda operator: operator.name,
)
def test_the_olm_validator_accepts_the_bundle_of_an_example(
    operator: kw.Operator, operator_verify: Path, tmp_path: Path
) -> None:
    samples = sorted((EXAMPLES / operator.name / "samples").glob("*.yaml"))
    documents = [document for file in samples for document in yaml.safe_load_all(file.read_text())]
    settings = Settings(image=f"registry.example/{operator.name}@sha256:0123", examples=documents)
    package = Package(name=operator.name, version="1.0.0")
    assert remarks(operator_verify, written(bundle(operator, package, settings), tmp_path)) == []


def test_the_checks_of_the_scorecard_suggest_fixes() -> None:
    document = csv()
    annotations = yaml.safe_load(bundle(OPERATOR, PACKAGE)["bundle/metadata/annotations.yaml"])["annotations"]
    assert [check.name for check in checks(document, crds(OPERATOR), annotations) if not check.passed] == []
    (owned,) = document["spec"]["customresourcedefinitions"]["owned"]
    del owned["resources"], owned["specDescriptors"][0]
    document["metadata"]["annotations"]["alm-examples"] = (
        '[{"apiVersion": "example.com/v1", "kind": "Card", "metadata": {"name": "a"}, "spec": {"colour": 1}}]'
    )
    found = {check.name: check.findings for check in checks(document, crds(OPERATOR), {})}
    assert len(found["olm-bundle-validation"]) == 5
    assert found["olm-crds-have-validation"] == ("spec.colour of Card is in a sample but not in the schema",)
    assert found["olm-crds-have-resources"] == ("Card v1: no resource is made for it: declare what it owns",)
    assert found["olm-spec-descriptors"] == ("spec.image of Card v1 has no descriptor",)


def test_created_kinds_are_resources_of_the_owned_kind() -> None:
    @kw.controller(Card, needs=[kw.needs(core_v1.Pod, "create"), kw.needs(core_v1.Secret, "get")])
    async def made(card: Card, ctx: kw.Context) -> None:
        """Do nothing."""

    (owned,) = owned_kinds(kw.Operator(made))
    assert owned["resources"] == [{"kind": "Pod", "name": "", "version": "v1"}]


def test_a_field_with_parts_is_described_itself_as_well() -> None:
    class Paper(kw.Model):
        weight: int = 1

    class FolderSpec(kw.Model):
        paper: Paper = Paper()

    class Folder(kw.Resource[FolderSpec, kw.Model], group="example.com", version="v1"):
        """A folder."""

    @kw.controller(Folder)
    async def folders(folder: Folder, ctx: kw.Context) -> None:
        """Do nothing."""

    (owned,) = owned_kinds(kw.Operator(folders))
    assert [each["path"] for each in owned["specDescriptors"]] == ["paper", "paper.weight"]


def test_the_level_is_what_declarations_and_tests_support() -> None:
    assert level_of(criteria(OPERATOR, [])) == 0
    found = criteria(OPERATOR, ["Card"])
    assert level_of(found) == 2
    ways = [each.way for each in found if each.level == 3 and not each.met]
    assert ways[-1] == "make a PodDisruptionBudget for what runs"

    @kw.controller(Card, owns=[autoscaling_v2.HorizontalPodAutoscaler])
    async def scaled(card: Card, ctx: kw.Context) -> None:
        """Do nothing."""

    met = {each.requirement for each in criteria(kw.Operator(scaled), ["Card"]) if each.met}
    assert "scales automatically" in met
