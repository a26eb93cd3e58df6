"""The project that `create from-kopf` makes of a kopf operator: it is sound as it is, and works once it is decided."""

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Kind
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.documents import read_yaml
from kubewright.testing import Cluster

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "cachefarm"
CLUSTER = Kind(group="cache.example.com", version="v1", kind="CacheCluster", plural="cacheclusters")
USER = Kind(group="cache.example.com", version="v1", kind="CacheUser", plural="cacheusers")
# A library of the original that is not installed here: it can be imported, and anything may be read from it.
LIBRARY = "from typing import Any\n\n\ndef __getattr__(name: str) -> Any: ...\n"

# What a person decides: these handlers are not needed any more, since each reconcile applies the children again.
NOT_NEEDED = {
    "clusters": ["configure", "scale", "reconfigure", "follow_metrics", "count_pods", "pod_gone"],
    "namespaces": ["count_cluster", "in_steps"],
    "users": ["create_account", "replace_rules", "administration"],
}
DECIDED = {
    "clusters": [
        ('    patch.status["phase"] = "Created"\n', '    if not body.status.get("phase"):\n        patch.status["phase"] = "Created"\n'),
        ("def check_health(name, namespace, patch, logger, **_):", "async def check_health(ctx, name, patch, **_):"),
        ("    apps = kubernetes.client.AppsV1Api()\n    try:\n        deployment = apps.read_namespaced_deployment(name, namespace)\n", "    deployment = await ctx.find(apps_v1.Deployment, name)\n"),
        ("    except kubernetes.client.exceptions.ApiException as error:\n        if error.status == 404:\n            raise NotReady(f\"no Deployment {name} yet\", after=5)\n        raise\n", "    if deployment is None:\n        raise NotReady(f\"no Deployment {name} yet\", after=1)\n"),
        ("is ready\", after=5)", "is ready\", after=1)"),
        ("import kubernetes\n", "from kubewright.api.builtin import apps_v1\n"),
    ],
    "users": [("import kubernetes\n", "")],
    "controllers": [
        ("import kubernetes\n", ""),
        ("    kubernetes.config.load_config()\n", ""),
        ('name="cachecluster-check-health", ', 'name="cachecluster-check-health", needs=[kw.needs(apps_v1.Deployment, "get", "list", "watch")], '),
        ("ctx.run_sync(\n            check_health,\n            name=handling.name,\n            namespace=handling.namespace,\n", "check_health(\n            ctx=ctx,\n            name=handling.name,\n"),
        ("            patch=handling.patch,\n            logger=handling.logger,\n        ),\n    )\n    await handling.finish(has_status=True)\n    return kw.Result(after=timedelta(seconds=CHECK_INTERVAL))", "            patch=handling.patch,\n        ),\n    )\n    await handling.finish(has_status=True)\n    return kw.Result(after=timedelta(seconds=CHECK_INTERVAL))"),
    ],
}  # fmt: skip
TODO = re.compile(
    r"    # TODO\(kopf-\d+\): .*\n|    raise NotImplementedError\(\"(\w+): decide kopf-[^\"]*\"\)\n"
)


def decide(project: Path) -> None:
    """Make the decisions of MIGRATION.md in a project."""
    for module in DECIDED.keys() | NOT_NEEDED.keys():
        path = project / "cachefarm" / f"{module}.py"
        text = path.read_text()
        for name in NOT_NEEDED.get(module, []):
            text = text.replace(f'raise NotImplementedError("{name}: decide', f'return  # ("{name}: decide')
        text = TODO.sub("", text)
        for old, new in DECIDED.get(module, []):
            assert text.count(old) == 1, f"{module}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A copy of the golden project, which can be imported while the test runs."""
    copied = tmp_path / "project"
    shutil.copytree(GOLDEN, copied)
    (copied / "requests.py").write_text(LIBRARY)
    before = set(sys.modules)
    sys.path.insert(0, str(copied))
    yield copied
    sys.path.remove(str(copied))
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("cachefarm", "kubernetes", "requests"):
            del sys.modules[name]


def run(*command: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_converted_project_can_be_imported_and_passes_its_own_checks(project: Path) -> None:
    (project / "kubernetes.py").write_text(LIBRARY)
    operator: kw.Operator = importlib.import_module("cachefarm").operator
    assert [controller.name for controller in operator.controllers][:2] == [
        "cachecluster",
        "cachecluster-check-health",
    ]
    run("ruff", "check", ".", cwd=project)
    run("ruff", "format", "--check", ".", cwd=project)
    run("pyright", "--pythonpath", sys.executable, cwd=project)


def test_every_undecided_function_raises_and_is_listed(project: Path) -> None:
    listed = set(re.findall(r"^\| (kopf-\d+) ", (project / "MIGRATION.md").read_text(), re.MULTILINE))
    texts = [path.read_text() for path in (project / "cachefarm").glob("*.py")]
    assert {label for text in texts for label in re.findall(r"TODO\((kopf-\d+)\)", text)} == listed
    raised = [
        found
        for text in texts
        for found in re.findall(r"raise NotImplementedError\(\"\w+: decide ([^\"]*) of", text)
    ]
    assert {label for each in raised for label in each.split(", ")} == listed


async def installed(cluster: Cluster, project: Path) -> None:
    for path in sorted((project / "crds").iterdir()):
        for document in read_yaml(path.read_bytes()):
            await cluster.client.apply(document.value, field_manager="test", kind=CUSTOM_RESOURCE_DEFINITION)
            await cluster.eventually(
                CUSTOM_RESOURCE_DEFINITION,
                document.value["metadata"]["name"],
                lambda it: any(
                    (each["type"], each["status"]) == ("Established", "True")
                    for each in it["status"]["conditions"] or ()
                ),
            )


def cache_cluster(
    cluster: Cluster, name: str, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    meta = {"name": name, "namespace": cluster.namespace, "labels": labels or {}}
    return {"apiVersion": "cache.example.com/v1", "kind": "CacheCluster", "metadata": meta, "spec": spec}


async def changed(cluster: Cluster, name: str, spec: dict[str, Any]) -> None:
    await cluster.client.patch(CLUSTER, {"spec": spec}, name=name, namespace=cluster.namespace)


async def test_a_decided_project_does_what_the_original_did(cluster: Cluster, project: Path) -> None:
    decide(project)
    await installed(cluster, project)
    operator: kw.Operator = importlib.import_module("cachefarm").operator
    async with cluster.running(operator, everywhere=True):
        made = await cluster.client.create(
            cache_cluster(cluster, "shop", memory="128Mi", config={"timeout": "30"})
        )
        assert made["metadata"]["labels"] == {"tier": "standard"}
        live = await cluster.eventually(CLUSTER, "shop", lambda it: it["status"]["phase"] == "Running")
        assert live["status"] == {
            "phase": "Running",
            "ready": 1,
            "endpoint": f"shop.{cluster.namespace}.svc:6379",
            "message": "1 replicas of 128Mi",
            "capacityBytes": 128 << 20,
            "create_children": {"children": 3},
        }
        config = await cluster.get(core_v1.ConfigMap, "shop-config")
        assert (
            config.data["cache.conf"]
            == "port 6379\nmaxmemory 134217728\nmaxmemory-policy allkeys-lru\ntimeout 30\n"
        )
        service = await cluster.get(core_v1.Service, "shop")
        for child in (config, service, await cluster.get(apps_v1.Deployment, "shop")):
            assert [
                (owner.kind, owner.name, owner.controller) for owner in child.metadata.owner_references
            ] == [("CacheCluster", "shop", True)]
            assert child.metadata.labels["tier"] == "standard"

        await changed(cluster, "shop", {"replicas": 3, "config": {"timeout": "60"}})
        await cluster.eventually(apps_v1.Deployment, "shop", lambda it: it.spec.replicas == 3)
        await cluster.eventually(
            core_v1.ConfigMap, "shop-config", lambda it: "timeout 60" in it.data["cache.conf"]
        )
        await cluster.eventually(CLUSTER, "shop", lambda it: it["status"]["message"] == "3 replicas of 128Mi")

        await cluster.client.delete(CLUSTER, name="shop", namespace=cluster.namespace)
        await cluster.eventually_gone(CLUSTER, "shop")
        await cluster.eventually_gone(core_v1.Service, "shop")


async def test_filters_errors_and_webhooks_of_the_original_hold(cluster: Cluster, project: Path) -> None:
    decide(project)
    await installed(cluster, project)
    operator: kw.Operator = importlib.import_module("cachefarm").operator
    async with cluster.running(operator, everywhere=True):
        with pytest.raises(kw.ApiError, match=r"spec\.memory: at most 16Gi"):
            await cluster.client.create(cache_cluster(cluster, "huge", memory="17Gi"))

        # One handler fails for good, and the others run all the same.
        await cluster.client.create(cache_cluster(cluster, "wide", {"tier": "gold"}, replicas=6))
        wide = await cluster.eventually(CLUSTER, "wide", lambda it: it["status"]["tier"] == "gold")
        assert wide["status"]["message"] == "6 replicas are more than 5"
        assert wide["status"]["create_children"] == {"children": 3}

        # A retry sees the repaired spec.
        await cluster.client.create(cache_cluster(cluster, "saved", backup=True))
        await cluster.eventually(CLUSTER, "saved", lambda it: it["status"]["endpoint"])
        await changed(cluster, "saved", {"schedule": "@daily"})
        await cluster.eventually(CLUSTER, "saved", lambda it: it["status"]["backup"] == "@daily")

        user = {"apiVersion": "cache.example.com/v1", "kind": "CacheUser"}
        user |= {"metadata": {"name": "ann", "namespace": cluster.namespace}}
        with pytest.raises(kw.ApiError, match="'get' has no pattern"):
            await cluster.client.create({**user, "spec": {"cluster": "shop", "rules": ["get"]}})
        await cluster.client.create({**user, "spec": {"cluster": "shop", "rules": ["get *"], "retain": True}})
        await cluster.eventually(USER, "ann", lambda it: it["status"] == {"rules": 1, "summary": "get *"})
        await cluster.client.delete(USER, name="ann", namespace=cluster.namespace)
        await cluster.eventually_gone(USER, "ann")
        for name in ("wide", "saved"):
            await cluster.client.delete(CLUSTER, name=name, namespace=cluster.namespace)
            await cluster.eventually_gone(CLUSTER, name)
