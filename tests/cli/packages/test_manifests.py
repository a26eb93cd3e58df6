"""`kubewright manifests`: what it prints, what it writes, and that a server takes all of it."""

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.api import GroupVersionKind
from kubewright.cli.app import main
from kubewright.cli.packages.examples import written_samples
from kubewright.controller import Operator
from kubewright.generate import PARTS, Names, Settings, manifests
from kubewright.testing import Cluster

EXAMPLES = Path(__file__).parents[3] / "examples"
OPERATOR = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Parcel(kw.Resource[Spec, Status], group="parcels.example.com", version="v1"):
    """A parcel."""

@kw.controller(Parcel)
async def parcels(parcel: Parcel, ctx: kw.Context) -> None:
    pass

operator = kw.Operator(parcels, name="parcels")
'''
MONITORING = [
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    for kind in ("ServiceMonitor", "PrometheusRule")
]


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["manifests", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "parcel_manifests.py"
    path.write_text(OPERATOR)
    return str(path)


def test_optional_parts_are_rendered_on_request(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(target) == 0
    usual = {document["kind"] for document in yaml.safe_load_all(capsys.readouterr().out)}
    assert not usual & {"ServiceMonitor", "NetworkPolicy", "Parcel"}
    assert exit_code(target, "--with", "monitoring,network,samples") == 0
    assert {"ServiceMonitor", "NetworkPolicy", "Parcel"} <= {
        document["kind"] for document in yaml.safe_load_all(capsys.readouterr().out)
    }


def test_roles_for_a_run_outside_the_cluster_are_printed_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / "foo")

    def verbs_on_configurations() -> set[str]:
        documents = yaml.safe_load_all(capsys.readouterr().out)
        return {
            verb
            for document in documents
            for rule in document.get("rules", ())
            if rule["apiGroups"] == ["admissionregistration.k8s.io"]
            for verb in rule["verbs"]
        }

    assert exit_code(".", "--only", "rbac") == 0
    assert verbs_on_configurations() == {"get", "patch"}
    assert exit_code(".", "--only", "rbac", "--webhook-reach", "url") == 0
    assert verbs_on_configurations() == {"get", "patch", "create", "delete"}
    assert exit_code(".", "--webhook-reach", "url") == 2
    assert "use it with --only rbac" in capsys.readouterr().err


def test_prints_the_roles_that_installing_requires(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(target, "--installer", "ci/deployer", "-n", "a") == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [item["kind"] for item in documents].count("Role") == 2
    (subject,) = documents[-1]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}


@pytest.mark.parametrize("form", ["yaml", "kustomize", "helm"])
def test_files_are_checked_against_the_declarations(
    form: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    arguments = (target, "--format", form, "--output-dir", str(folder))
    assert exit_code(*arguments, "--check") == 1
    assert not folder.exists()
    capsys.readouterr()
    assert exit_code(*arguments) == 0
    count = sum(path.is_file() for path in folder.rglob("*"))
    assert capsys.readouterr().out == f"wrote {folder}: {count} files\n"
    assert exit_code(*arguments, "--check") == 0

    stale = next(path for path in sorted(folder.rglob("*.yaml")) if "deployment-" in path.name)
    stale.write_text(stale.read_text() + "# changed\n")
    (folder / "mine.txt").write_text("mine")
    first_line = stale.read_text().splitlines()[0]
    (folder / "old.yaml").write_text(f"{first_line}\nkind: Old\n")
    assert exit_code(*arguments, "--check") == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"stale: {stale}", f"no longer rendered: {folder / 'old.yaml'}"]
    assert "run the same command without --check" in shown.err

    assert exit_code(*arguments) == 0
    assert exit_code(*arguments, "--check") == 0
    assert not (folder / "old.yaml").exists()
    assert (folder / "mine.txt").read_text() == "mine"


def test_a_file_that_was_not_generated_is_never_replaced(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    mine = tmp_path / "out" / "deployment-parcels-controller-manager.yaml"
    mine.write_text("mine: true\n")
    assert exit_code(target, "--output-dir", str(tmp_path / "out")) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [mine.name]
    assert mine.read_text() == "mine: true\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--only", "everything"], 2, "'everything' is not a part"),
        (["--check"], 2, "--check needs --output-dir"),
        (["--format", "helm"], 2, "--format helm needs --output-dir"),
        (["-n", "Not_A_Name"], 2, "'Not_A_Name'"),
        (["--metrics-reader", "prometheus"], 2, "not a NAMESPACE/NAME"),
        (["--replicas", "-1"], 2, "-1"),
        (["--installer", "a/b/c"], 2, "'a/b/c' is neither a user nor NAMESPACE/NAME"),
        (["--installer", "jane", "--output-dir", "x"], 2, "--installer prints plain YAML"),
    ],
)
def test_usage_errors_are_reported(
    arguments: list[str], code: int, message: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(target, *arguments) == code
    assert message in capsys.readouterr().err


def test_a_target_is_needed_outside_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code() == 2
    assert "Missing argument 'TARGET'" in capsys.readouterr().err


def test_two_controllers_of_one_name_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "twice.py").write_text(
        OPERATOR.replace("Operator(parcels,", "Operator(parcels, kw.Controller(Parcel, parcels.reconcile),")
    )
    assert exit_code("twice.py") == 1
    shown = capsys.readouterr().err
    assert "two controllers are named 'parcel'" in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("namespaced", [False, True], ids=["everywhere", "in namespaces"])
@pytest.mark.parametrize("name", ["mycustomresource", "myownshell", "foo", "vmgroup", "pulsarconsumer"])
async def test_a_server_accepts_all_manifests_in_a_dry_run(
    cluster: Cluster, name: str, namespaced: bool
) -> None:
    operator: Operator = importlib.import_module(name).operator()
    settings = Settings(
        namespaces=[cluster.namespace] if namespaced else [],
        replicas=2,
        metrics_reader="monitoring/prometheus-k8s",
        examples=await asyncio.to_thread(written_samples, str(EXAMPLES / name)),
    )
    for definition in MONITORING:
        await cluster.client.apply(definition, field_manager="kubewright-testing")
    home = Names(operator.name).namespace
    documents = manifests(operator, PARTS, settings)
    assert home in {document["metadata"]["name"] for document in documents if document["kind"] == "Namespace"}
    await cluster.install(operator)
    groups = {item["spec"]["group"] for item in documents if item["kind"] == "CustomResourceDefinition"}
    samples = [item for item in documents if item["apiVersion"].partition("/")[0] in groups]
    assert samples
    for document in documents:
        if document not in samples:
            await rehearse(cluster, document)
    # Running, so that those in another version than the stored one are converted.
    async with cluster.running(operator):
        for document in samples:
            await rehearse(cluster, document)


async def rehearse(cluster: Cluster, document: dict[str, Any]) -> None:
    kind = await cluster.client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))
    # A rehearsal makes no namespace for what comes after: take one that is there.
    metadata = document["metadata"] | ({"namespace": cluster.namespace} if kind.namespaced else {})
    wanted = {**document, "metadata": metadata}
    answer = await cluster.client.apply(wanted, field_manager="rehearsal", kind=kind, dry_run=True)
    assert answer["metadata"]["name"] == document["metadata"]["name"]


WEBHOOKS = """
@kw.admission.validating_webhook(Parcel)
def small(parcel: Parcel):
    if parcel.spec.size > 9:
        yield kw.admission.denied("too large")

@kw.admission.validating_webhook(Parcel)
def odd(parcel: Parcel):
    for digit in str(parcel.spec.size):
        yield kw.admission.denied(digit)
"""


def test_webhooks_become_policies_and_the_command_says_which_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "parcels.py"
    head, _, _ = OPERATOR.partition("operator =")
    file.write_text(
        head + WEBHOOKS + 'operator = kw.Operator(parcels, name="parcels", webhooks=[small, odd])\n'
    )
    assert exit_code(str(file), "--policies") == 0
    printed = capsys.readouterr()
    documents = list(yaml.safe_load_all(printed.out))
    line = file.read_text().splitlines().index("    for digit in str(parcel.spec.size):") + 1
    assert printed.err.splitlines() == [
        f"odd stays a webhook: parcels.py:{line}: loops are not translated: use any() or all()",
        "policies replace 1 of 2 admission webhooks",
    ]
    (policy,) = (each for each in documents if each["kind"] == "ValidatingAdmissionPolicy")
    assert policy["spec"]["validations"] == [
        {
            "expression": "!(((has(object.spec) && has(object.spec.size)) ? object.spec.size : 0) > 9)",
            "message": "too large",
            "reason": "Forbidden",
        }
    ]
    (webhooks,) = (each["webhooks"] for each in documents if each["kind"] == "ValidatingWebhookConfiguration")
    assert [each["name"] for each in webhooks] == ["odd.parcels.parcels.example.com"]
    (deployed,) = (each["spec"] for each in documents if each["kind"] == "Deployment")
    assert "--without-webhook=small.parcels.parcels.example.com" in str(deployed["template"]["spec"])


def test_a_chart_of_an_operator_with_nothing_to_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "parcels.py"
    head, _, _ = OPERATOR.partition("@kw.controller")
    file.write_text(head + WEBHOOKS + "operator = kw.Operator(webhooks=[small], kinds=[Parcel])\n")
    chart = ["--format", "helm", "--output-dir", str(tmp_path / "chart")]
    assert exit_code(str(file), "--policies", *chart) == 1
    assert "has no controllers, and policies replace all of its webhooks" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["deploy", str(file), "--policies", "--image", "a"])
    assert "there is nothing to run" in capsys.readouterr().err
