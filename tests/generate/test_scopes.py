"""Manifests of an operator that works in namespaces with a label, or on objects with a label."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.api.scoping import lease_name
from kubewright.cli.app import main
from kubewright.generate import PARTS, USUAL_PARTS, Chart, Settings, helm, manifests
from kubewright.namespaces import NamespaceSelector

JsonObject = dict[str, Any]
READ = ["get", "list", "watch"]


class Spec(kw.Model):
    size: int = 1


class Status(kw.Model):
    ready: int = 0


class Card(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A card."""


@kw.controller(Card, owns=[core_v1.ConfigMap])
async def cards(card: Card, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.admission.validating_webhook(Card)
def sensible(card: Card) -> None:
    """Find nothing."""


OPERATOR = kw.Operator(cards, name="cards", webhooks=[sensible])
FOLLOWING = kw.Operator(cards, name="cards", namespaces=NamespaceSelector("team=a"))


def by_key(documents: list[JsonObject]) -> dict[str, JsonObject]:
    return {
        f"{each['kind']}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each
        for each in documents
    }


def rendered(operator: kw.Operator, **settings: Any) -> dict[str, JsonObject]:
    return by_key(manifests(operator, USUAL_PARTS, Settings(**settings)))


def args(documents: Mapping[str, JsonObject], name: str = "cards") -> list[str]:
    deployment = documents[f"Deployment/cards-system/{name}-controller-manager"]
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def resources(role: JsonObject, verbs: list[str]) -> set[str]:
    return {name for rule in role["rules"] if rule["verbs"] == verbs for name in rule["resources"]}


def test_an_operator_that_follows_namespaces_may_read_them() -> None:
    found = rendered(FOLLOWING)
    assert "namespaces" in resources(found["ClusterRole//cards-manager-role"], READ)
    assert not any(each.startswith("--namespace") for each in args(found))


def test_roles_are_limited_to_some_of_the_followed_namespaces() -> None:
    found = rendered(FOLLOWING, namespaces=["a", "b"])
    for namespace in "ab":
        assert "configmaps" in {
            name
            for rule in found[f"Role/{namespace}/cards-manager-role"]["rules"]
            for name in rule["resources"]
        }
    clustered = found["ClusterRole//cards-manager-role"]
    assert resources(clustered, READ) == {"namespaces"}
    # An Event about a namespace that cannot be read is in the namespace default.
    assert resources(clustered, ["create", "patch"]) == {"events"}
    assert not any(each.startswith("--namespace") for each in args(found))


def test_namespaces_by_label_are_chosen_when_manifests_are_rendered() -> None:
    found = rendered(OPERATOR, namespace_selector=NamespaceSelector("team in (a,b)"), namespaces=["a"])
    assert "--namespace-selector=team in (a,b)" in args(found)
    assert "--namespace=a" not in args(found)
    assert resources(found["ClusterRole//cards-manager-role"], READ) == {"namespaces"}
    assert "Role/a/cards-manager-role" in found


def test_a_selector_reaches_the_deployment_and_the_role_of_its_lease() -> None:
    found = rendered(OPERATOR, selector="track!=canary")
    assert "--selector=track!=canary" in args(found)
    rules = found["Role/cards-system/cards-leader-election-role"]["rules"]
    assert [rule["resourceNames"] for rule in rules if "resourceNames" in rule] == [
        [lease_name("cards", "track!=canary")]
    ]


def test_a_second_deployment_has_its_own_objects_and_nothing_of_the_first_one() -> None:
    first = rendered(OPERATOR, selector="track!=canary")
    second = rendered(OPERATOR, selector="track=canary", name="cards-canary")
    assert not first.keys() & second.keys()
    assert {each.partition("/")[0] for each in second} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
    }
    assert {"--selector=track=canary", "--webhook-bind-address=0"} <= set(args(second, "cards-canary"))
    selectors = [
        found[f"Deployment/cards-system/{name}-controller-manager"]["spec"]["selector"]["matchLabels"]
        for found, name in ((first, "cards"), (second, "cards-canary"))
    ]
    assert selectors[0]["app.kubernetes.io/name"] != selectors[1]["app.kubernetes.io/name"]


def chart(operator: kw.Operator, folder: Path, settings: Settings) -> Path:
    for name, text in helm(operator, Chart(name=settings.name or "cards"), settings).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def templated(helm_program: Path, folder: Path, *options: str) -> dict[str, JsonObject]:
    command = [str(helm_program), "template", "x", str(folder), "-n", "cards-system", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return by_key([each for each in yaml.safe_load_all(done.stdout) if each])


def test_the_selector_is_a_value_of_the_chart(helm_program: Path, tmp_path: Path) -> None:
    folder = chart(OPERATOR, tmp_path, Settings())
    subprocess.run([helm_program, "lint", "--strict", folder], check=True, capture_output=True)
    role = "Role/cards-system/cards-leader-election-role"
    plain = templated(helm_program, folder)
    assert not any(each.startswith("--selector") for each in args(plain))
    assert ["cards"] in [rule.get("resourceNames") for rule in plain[role]["rules"]]
    found = templated(helm_program, folder, "--set", "selector=track!=canary")
    assert "--selector=track!=canary" in args(found)
    # The name of the Lease follows from the selector, which only the release knows.
    leases = [rule for rule in found[role]["rules"] if rule["resources"] == ["leases"]]
    assert not any("resourceNames" in rule for rule in leases)
    assert {verb for rule in leases for verb in rule["verbs"]} == {"create", "get", "update"}


def test_the_chart_of_a_second_deployment_is_installed_beside_the_first_one(
    helm_program: Path, tmp_path: Path
) -> None:
    first = templated(helm_program, chart(OPERATOR, tmp_path / "first", Settings()))
    folder = chart(OPERATOR, tmp_path / "second", Settings(selector="track=canary", name="cards-canary"))
    subprocess.run([helm_program, "lint", "--strict", folder], check=True, capture_output=True)
    second = templated(helm_program, folder)
    assert not first.keys() & second.keys()
    assert "--selector=track=canary" in args(second, "cards-canary")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--selector", "track in ("], "'track in (' is not a label selector such as team=a"),
        (["--namespace-selector", "=a"], "'=a' is not a label selector such as team=a"),
        (["--name", "Canary"], "'Canary': a lowercase RFC 1123 label"),
        (["--name", "canary"], "choose another name, and its objects with --selector"),
    ],
)
def test_invalid_scopes_are_usage_errors(
    given: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scoped_cards.py"
    path.write_text(
        "import kubewright as kw\n"
        "class Card(kw.Object, group='example.com', version='v1'):\n    '''A card.'''\n"
        "@kw.controller(Card)\nasync def cards(card: Card, ctx: kw.Context) -> None:\n    pass\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["manifests", str(path), *given])
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_all_parts_of_a_second_deployment_are_rendered() -> None:
    settings = Settings(selector="track=canary", name="cards-canary")
    found = by_key(manifests(OPERATOR, PARTS, settings))
    assert "ServiceMonitor/cards-system/cards-canary-controller-manager-metrics-monitor" in found
