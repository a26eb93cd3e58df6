"""COM 1 and 2: the definitions are those of the documents, and every server takes them."""

from pathlib import Path
from typing import Any

import yaml
from acceptance_commands import kubewright
from acceptance_kubectl import Kubectl
from acceptance_samples import Sample
from acceptance_waits import created

from kubewright.schema import crd
from kubewright.testing import Cluster

JsonObject = dict[str, Any]
DEFINITIONS = Path(__file__).parent / "definitions"


def definition_of(sample: Sample) -> JsonObject:
    return crd(*sample.operator().kinds)


def normal(value: Any) -> Any:
    """Leave out what says nothing: descriptions, the server's defaults, the order of required fields."""
    if isinstance(value, list):
        return [normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: normal(item) for key, item in value.items() if not is_prose(key, item)}
    if kept.get("type") == "integer" and kept.get("format") == "int64":
        del kept["format"]
    if isinstance(kept.get("required"), list):
        kept["required"] = sorted(kept["required"])
    return kept


def is_prose(key: str, value: Any) -> bool:
    return key == "description" and isinstance(value, str)


def test_is_the_definition_of_the_document(sample: Sample) -> None:
    written = yaml.safe_load((DEFINITIONS / f"{sample.name}.yaml").read_text())
    made = normal(definition_of(sample))
    assert made["metadata"]["name"] == written["metadata"]["name"]
    assert made["spec"] == written["spec"]


async def test_the_definition_is_accepted_without_a_warning_and_established(
    sample: Sample, kubectl: Kubectl
) -> None:
    definition = definition_of(sample)
    answer = await kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(definition)
    )
    assert "Warning" not in answer
    name = definition["metadata"]["name"]
    await kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    conditions = yaml.safe_load(await kubectl("get", f"crd/{name}", "-o", "yaml"))["status"]["conditions"]
    assert {"NonStructuralSchema"}.isdisjoint(condition["type"] for condition in conditions)


async def test_samples_are_valid(sample: Sample, cluster: Cluster) -> None:
    documents = sample.documents()
    assert documents
    # Running, so that those in another version than the stored one are converted.
    async with cluster.running(sample.operator()):
        for document in documents:
            document["metadata"]["namespace"] = cluster.namespace
            made = await created(cluster.client, document, dry_run=True, field_validation="Strict")
            assert made["metadata"]["name"] == document["metadata"]["name"]


async def test_manifests_and_install_name_the_same_crd(sample: Sample, cluster: Cluster) -> None:
    text = await kubewright("manifests", str(sample.target), "--only", "crds,rbac")
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert kinds.count("CustomResourceDefinition") == 1
    assert {"ServiceAccount", "ClusterRole"} <= set(kinds)
    printed = await kubewright("install", str(sample.target), f"--kubeconfig={cluster.kubeconfig}")
    assert definition_of(sample)["metadata"]["name"] in printed
