"""What rendered Deployments say to `kubewright run` is what it understands."""

from pathlib import Path
from typing import Any

import click
import pytest

import kubewright as kw
from kubewright.cli.run.arguments import parse_arguments
from kubewright.cli.run.command import command
from kubewright.generate import Names, Package, Settings, cluster_service_version, deployment, manifests


class Spec(kw.Model):
    size: int = 0


class Status(kw.Model):
    ready: int = 0


class Crate(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A crate."""


@kw.controller(Crate)
async def crates(crate: Crate, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.admission.validating_webhook(Crate)
def sensible(crate: Crate) -> None:
    """Find nothing."""


OPERATOR = kw.Operator(
    crates, name="crates", webhooks=[sensible], workload=kw.packaging.Workload(args=["-v"])
)


def understood(arguments: list[str]) -> dict[str, Any]:
    return command.make_context("run", ["target", *arguments]).params


@pytest.mark.parametrize(
    ("given", "watched"),
    [(["-n", "a,b", "-n", "c"], ("a", "b", "c")), (["--namespace="], ()), ([], ())],
)
def test_namespaces_are_repeated_or_separated_by_commas(given: list[str], watched: tuple[str, ...]) -> None:
    assert understood(given)["namespaces"] == watched


def test_an_invalid_namespace_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="'B c': a lowercase RFC 1123 label"):
        understood(["-n", "a,B c"])


def test_the_arguments_of_a_deployment_are_accepted() -> None:
    (rendered, *_) = deployment(OPERATOR, Names("crates"), image="a", namespaces=["x", "y"])
    (container,) = rendered["spec"]["template"]["spec"]["containers"]
    options = understood(container["args"])
    assert options["namespaces"] == ("x", "y")
    assert options["leader_elect"]
    assert options["metrics_secure"]
    assert options["verbose"]


def test_the_arguments_of_a_deployment_with_policies_are_accepted() -> None:
    settings = Settings(replaced_webhooks=["a.crates.example.com"])
    rendered = manifests(OPERATOR, ["deployment"], settings)
    (container,) = rendered[0]["spec"]["template"]["spec"]["containers"]
    options = understood(container["args"])
    assert options["replaced_webhooks"] == ("a.crates.example.com",)
    assert options["metrics_service"] == f"{OPERATOR.name}-controller-manager-metrics-service"


def test_the_arguments_of_a_bundle_are_accepted(tmp_path: Path) -> None:
    csv = cluster_service_version(OPERATOR, Package(name="crates", version="1.0.0"), Settings())
    (installed,) = csv["spec"]["install"]["spec"]["deployments"]
    (container,) = installed["spec"]["template"]["spec"]["containers"]
    # Kubernetes puts the variable's value in; OLM makes the folder.
    arguments = [
        argument.replace("$(WATCH_NAMESPACE)", "a,b").replace(
            "/tmp/k8s-webhook-server/serving-certs", str(tmp_path)
        )
        for argument in container["args"]
    ]
    options = understood(arguments)
    assert options["namespaces"] == ("a", "b")
    assert (options["webhook_reach"], options["webhook_cert_dir"]) == ("given", tmp_path)


def test_a_hidden_option_marks_the_cluster_of_a_child_process_as_temporary() -> None:
    assert understood(["--install", "--ephemeral-cluster"])["ephemeral_cluster"]
    assert "--ephemeral-cluster" not in command.get_help(command.make_context("run", ["target"]))


@pytest.mark.parametrize(
    "given",
    [
        ["--selector=track!=canary", "--namespace-selector=team in (a,b)"],
        ["--selector", " track = canary ", "--namespace-selector", ""],
        ["--selector=", "-n", "a"],
    ],
)
def test_selectors_are_read_without_click_as_click_reads_them(given: list[str]) -> None:
    found, expected = parse_arguments(["run", "target", *given]), understood(given)
    assert found is not None
    assert (found.selector, found.namespace_selector) == (
        expected["selector"],
        expected["namespace_selector"],
    )


@pytest.mark.parametrize(
    "given", [["--selector=("], ["--namespace-selector==a"], ["-n", "a", "--namespace-selector=team=a"]]
)
def test_selectors_that_are_refused_are_left_to_click(given: list[str]) -> None:
    assert parse_arguments(["run", "target", *given]) is None
