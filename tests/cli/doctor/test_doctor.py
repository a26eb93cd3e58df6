"""doctor, on whichever server the tests run."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.api import Meta
from kubewright.api.builtin import (
    admissionregistration_v1,
    apiextensions_v1,
    apps_v1,
    core_v1,
    meta_v1,
)
from kubewright.cli.app import main
from kubewright.cli.target import load_operator
from kubewright.generate import Names, rbac
from kubewright.testing import Cluster
from kubewright.webhook import WebhookNames

OPERATOR = '''
import kubewright as kw

class Spec(kw.Model):
    {field}: int = 0

class Status(kw.Model):
    ready: int = 0

class Patient(kw.Resource[Spec, Status], group="{group}", version="v1"):
    """A kind of the operator."""

@kw.controller(Patient)
async def patients(patient: Patient, ctx: kw.Context) -> None:
    pass
'''


CONVERTING = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class OldSpec(kw.Model):
    number: int = 0

class Patient(
    kw.Resource[Spec, Status],
    group="{group}",
    version="v1",
    stored=True,
    scale=kw.Scale(spec=".spec.size", status=".status.ready"),
):
    """A kind of the operator."""

class PatientV1Beta1(kw.Resource[OldSpec, Status], kind="Patient", group="{group}", version="v1beta1"):
    """A kind of the operator, in an older version."""

@kw.controller(Patient)
async def patients(patient: Patient, ctx: kw.Context) -> None:
    pass

def up(old: PatientV1Beta1) -> Patient:
    return Patient(old.metadata, spec=Spec(size=old.spec.number))

def down(new: Patient) -> PatientV1Beta1:
    return PatientV1Beta1(new.metadata, spec=OldSpec(number=new.spec.size))

@kw.admission.validating_webhook(Patient)
def sensible(patient: Patient) -> None:
    pass

conversion = kw.Conversion(Patient, PatientV1Beta1, up=up, down=down)
operator = kw.Operator(patients, name="{name}", kinds=[PatientV1Beta1], webhooks=[sensible, conversion])
'''


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


async def findings(
    capsys: pytest.CaptureFixture[str], kubeconfig: Path, *arguments: str
) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    code = await asyncio.to_thread(run, "doctor", *arguments, "--kubeconfig", str(kubeconfig), "-o", "json")
    found = json.loads(capsys.readouterr().out)
    assert code == any(finding["state"] == "failed" for finding in found)
    assert all(finding["remedy"] for finding in found if finding["state"] in ("failed", "warning"))
    return {finding["check"]: finding for finding in found}


def operator(folder: Path, group: str, *, field: str = "size") -> str:
    path = folder / f"patients_{field}.py"
    path.write_text(OPERATOR.format(group=group, field=field))
    return str(path)


async def test_a_healthy_machine_and_cluster_need_no_fix(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await findings(capsys, cluster.kubeconfig)
    assert {name: item["state"] for name, item in found.items()} == dict.fromkeys(
        ("python", "cluster", "version", "identity", "clock"), "ok"
    )


async def test_crds_are_compared_with_the_code(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"{cluster.namespace}.example.com"
    crd, target = f"crd patients.{group}", operator(tmp_path, group)
    found = await findings(capsys, cluster.kubeconfig, target)
    assert found[crd]["detail"] == "is not installed"
    assert found[crd]["remedy"] == f"kubewright install {target}"
    assert found["deployment"]["state"] == "skipped"

    where = ("--kubeconfig", str(cluster.kubeconfig))
    capsys.readouterr()
    for word in ("created", "unchanged"):
        assert await asyncio.to_thread(run, "install", target, *where) == 0
        shown = capsys.readouterr().out
        assert shown == f"customresourcedefinition.apiextensions.k8s.io/patients.{group} {word}\n"
    found = await findings(capsys, cluster.kubeconfig, target)
    assert found[crd]["state"] == "ok"
    assert found["rights to run"]["state"] == "ok"
    # get, list and watch of patients, patch of their status, create and patch of Events
    assert found["rights to run"]["detail"] == "all 6 rights are allowed"

    other = operator(tmp_path, group, field="weight")
    found = await findings(capsys, cluster.kubeconfig, other)
    assert found[crd]["state"] == "failed"
    assert "breaks stored objects" in found[crd]["detail"]
    assert await asyncio.to_thread(run, "uninstall", target, *where) == 0


async def test_objects_that_may_be_stored_in_an_older_version_are_reported(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"{cluster.namespace}.example.com"
    crd, older = f"patients.{group}", operator(tmp_path, group)
    where = ("--kubeconfig", str(cluster.kubeconfig))
    assert await asyncio.to_thread(run, "install", older, *where) == 0
    target = tmp_path / "patients_v2.py"
    two = OPERATOR.format(group=group, field="size").replace('version="v1"', 'version="v2", stored=True')
    two += f'''
class PatientV1(kw.Resource[Spec, Status], kind="Patient", group="{group}", version="v1"):
    """The same in an older version."""

operator = kw.Operator(patients, name="patients", kinds=[PatientV1])
'''
    target.write_text(two)
    assert await asyncio.to_thread(run, "install", str(target), *where) == 0
    found = (await findings(capsys, cluster.kubeconfig, str(target)))[f"crd {crd}"]
    assert (found["state"], found["detail"]) == (
        "warning",
        "is served; objects may still be stored in v1",
    )
    assert found["remedy"] == f"kubewright migrate storage {target}"
    assert await asyncio.to_thread(run, "migrate", "storage", str(target), *where) == 0
    found = await findings(capsys, cluster.kubeconfig, str(target))
    assert found[f"crd {crd}"]["state"] == "ok"


async def test_webhooks_at_addresses_where_no_process_answers_are_found(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, path = f"{cluster.namespace}.example.com", tmp_path / "converting.py"
    text = CONVERTING.format(group=group, name=cluster.namespace)
    await asyncio.to_thread(path.write_text, text)
    target, where = str(path), ("--kubeconfig", str(cluster.kubeconfig))
    assert await asyncio.to_thread(run, "install", target, *where) == 0
    check = f"conversion of patients.{group}"
    found = await findings(capsys, cluster.kubeconfig, target)
    assert found[check]["state"] == "warning"
    scale = found[f"scale of patients.{group}"]
    assert "do not call the webhooks of the object" in scale["detail"]
    assert 'subresources=["scale"], of=Patient' in scale["remedy"]
    service = f"Service {cluster.namespace}-system/{WebhookNames(cluster.namespace).service} does not exist"
    assert service in found[check]["detail"]
    none = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    await cluster.client.patch(apiextensions_v1.CustomResourceDefinition, none, name=f"patients.{group}")
    found = await findings(capsys, cluster.kubeconfig, target)
    assert "loses fields" in found[check]["detail"]

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{closed.getsockname()[1]}"
        names = WebhookNames(cluster.namespace)
        await register_by_url(cluster, names.validating, f"patients.{group}", url)
        place = await cluster.client.create(core_v1.Namespace(Meta(f"{cluster.namespace}-system")))
        await cluster.client.create(core_v1.Secret(Meta(names.secret, namespace=place.metadata.name)))
        found = await findings(capsys, cluster.kubeconfig, target)
        await cluster.client.delete(place)
        await cluster.client.delete(admissionregistration_v1.ValidatingWebhookConfiguration, names.validating)
    assert found[check]["state"] == "failed"
    assert f"no process responds at {url}" in found[check]["detail"]
    assert f"no process responds at {url}" in found[f"webhook {names.validating}"]["detail"]
    assert "registered by URL" in found["webhook certificates"]["detail"]
    assert await asyncio.to_thread(run, "uninstall", target, *where) == 0


async def test_webhooks_that_policies_replace_are_not_looked_for(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "replaced.py"
    text = CONVERTING.format(group=f"{cluster.namespace}.example.com", name=cluster.namespace)
    await asyncio.to_thread(path.write_text, text)
    target, names, labels = str(path), Names(cluster.namespace), {"app": "patients"}
    assert await asyncio.to_thread(run, "install", target, "--kubeconfig", str(cluster.kubeconfig)) == 0
    [replaced] = (await asyncio.to_thread(load_operator, target)).webhooks.admissions
    container = core_v1.Container(
        name="manager", image="x", args=["run", target, f"--without-webhook={replaced.name}"]
    )
    template = core_v1.PodTemplateSpec(
        metadata=Meta(labels=labels), spec=core_v1.PodSpec(containers=[container])
    )
    selector = meta_v1.LabelSelector(match_labels=labels)
    place = await cluster.client.create(core_v1.Namespace(Meta(names.namespace)))
    await cluster.client.create(
        apps_v1.Deployment(
            Meta(names.manager, namespace=names.namespace),
            spec=apps_v1.DeploymentSpec(replicas=0, selector=selector, template=template),
        )
    )
    secret = WebhookNames(cluster.namespace).secret
    await cluster.client.create(core_v1.Secret(Meta(secret, namespace=names.namespace)))
    found = await findings(capsys, cluster.kubeconfig, target)
    await cluster.client.delete(place)
    assert found["webhook certificates"]["detail"] == f"Secret {secret} has no valid certificate"
    assert await asyncio.to_thread(run, "uninstall", target, "--kubeconfig", str(cluster.kubeconfig)) == 0


async def register_by_url(cluster: Cluster, configuration: str, definition: str, url: str) -> None:
    """Leave in the cluster what a killed run by URL leaves."""
    config = {"url": f"{url}/convert", "service": None}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    conversion = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    await cluster.client.patch(
        apiextensions_v1.CustomResourceDefinition, conversion, name=definition, field_manager="killed"
    )
    hook = admissionregistration_v1.ValidatingWebhook(
        name="sensible.example.com",
        client_config=admissionregistration_v1.WebhookClientConfig(url=f"{url}/validate"),
        failure_policy="Ignore",
        side_effects="None",
        admission_review_versions=["v1"],
    )
    await cluster.create(
        admissionregistration_v1.ValidatingWebhookConfiguration(Meta(configuration), webhooks=[hook])
    )


async def test_doctor_checks_the_operator_of_the_project(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def project() -> None:
        operator(tmp_path, f"{cluster.namespace}.example.com")
        settings = '[project]\nname = "patients"\n[tool.kubewright]\ntarget = "patients_size"\n'
        (tmp_path / "pyproject.toml").write_text(settings)

    await asyncio.to_thread(project)
    found = await findings(capsys, cluster.kubeconfig)
    assert found[f"crd patients.{cluster.namespace}.example.com"]["detail"] == "is not installed"


async def account(cluster: Cluster, name: str, folder: Path) -> Path:
    """Write the kubeconfig of a new ServiceAccount."""
    await cluster.create(core_v1.ServiceAccount(Meta(name)))
    token = await cluster.client.token_request(name, cluster.namespace)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{**document["users"][0], "user": {"token": token.token}}]
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    return kubeconfig


async def test_missing_rights_are_named(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = await account(cluster, "unprivileged", tmp_path)
    group = f"{cluster.namespace}.example.com"
    found = await findings(capsys, kubeconfig, operator(tmp_path, group))
    assert f"get patients.{group}" in found["rights to run"]["detail"]
    assert "missing rule" in found[f"crd patients.{group}"]["detail"]


async def test_doctor_checks_the_rights_to_register_webhooks_if_there_are_webhooks(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, check = f"{cluster.namespace}.example.com", "rights to run outside the cluster"
    assert check not in await findings(capsys, cluster.kubeconfig, operator(tmp_path, group))
    target = tmp_path / "converting_patients.py"
    target.write_text(CONVERTING.format(group=group, name=cluster.namespace))
    assert (await findings(capsys, cluster.kubeconfig, str(target)))[check]["state"] == "ok"
    kubeconfig = await account(cluster, "unprivileged", tmp_path)
    found = (await findings(capsys, kubeconfig, str(target)))[check]
    assert "create validatingwebhookconfigurations.admissionregistration.k8s.io" in found["detail"]
    assert "--only rbac --webhook-reach url" in found["remedy"]


async def test_doctor_accepts_rights_in_the_namespaces_of_the_operator(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = await account(cluster, "local", tmp_path)
    group = f"{cluster.namespace}.example.com"
    target = operator(tmp_path, group)
    patients = await asyncio.to_thread(load_operator, target)
    for document in rbac(patients, Names("local"), [cluster.namespace]):
        if document["kind"] in ("Role", "RoleBinding") and document["metadata"]["name"].startswith(
            "local-manager"
        ):
            for subject in document.get("subjects", ()):
                subject |= {"name": "local", "namespace": cluster.namespace}
            await cluster.client.apply(document, field_manager="test")
    found = await findings(capsys, kubeconfig, target)
    assert f"get patients.{group}, " in found["rights to run"]["detail"]
    found = await findings(capsys, kubeconfig, target, "-n", cluster.namespace)
    assert found["rights to run"]["state"] == "ok"
    found = await findings(capsys, kubeconfig, target, "-n", cluster.namespace, "-n", "elsewhere")
    assert f"get patients.{group} in elsewhere" in found["rights to run"]["detail"]
    assert f"in {cluster.namespace}" not in found["rights to run"]["detail"]


def test_a_cluster_that_does_not_answer_is_one_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a,"
        ' clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],'
        " contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: x}}]}"
    )
    assert run("doctor", "--kubeconfig", str(kubeconfig)) == 1
    shown = capsys.readouterr().out
    assert "cannot be reached" in shown
    assert "-> check the server's address" in shown


async def test_a_required_environment_variable_that_is_unset_is_named(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(operator(tmp_path, f"{cluster.namespace}.example.com"))
    declared = 'kw.packaging.Env("PATIENT_TOKEN", secret="login", key="token", required=True, description="token of the clinic")'
    path.write_text(
        path.read_text() + f'operator = kw.Operator(patients, name="patients", env=[{declared}])\n'
    )
    monkeypatch.delenv("PATIENT_TOKEN", raising=False)
    found = await findings(capsys, cluster.kubeconfig, str(path))
    finding = found["environment variable PATIENT_TOKEN"]
    assert finding["state"] == "warning"
    assert finding["detail"] == (
        "is not set (token of the clinic; a deployed operator takes it from Secret login, key token)"
    )
    assert await asyncio.to_thread(run, "run", str(path), "--kubeconfig", str(cluster.kubeconfig)) == 1
    assert capsys.readouterr().err == (
        "Error: environment variable PATIENT_TOKEN is not set "
        "(token of the clinic; a deployed operator takes it from Secret login, key token)\n"
    )
    monkeypatch.setenv("PATIENT_TOKEN", "x")
    found = await findings(capsys, cluster.kubeconfig, str(path))
    assert found["environment"]["detail"] == "PATIENT_TOKEN set"
