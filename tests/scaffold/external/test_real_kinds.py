"""Classes of cert-manager, prometheus-operator and Gateway API say and carry what their CRDs do."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from external_values import carried, random_object, spoiled

from kubewright.api import decode, encode, from_wire, kind_of, to_wire
from kubewright.schema import Validator, compile_schema, crd, structural

KINDS = [
    ("cert_manager_v1", "Certificate"),
    ("cert_manager_v1", "ClusterIssuer"),
    ("cert_manager_v1", "Issuer"),
    ("gateway_v1", "Gateway"),
    ("gateway_v1", "HTTPRoute"),
    ("gateway_v1beta1", "HTTPRoute"),
    ("monitoring_v1", "Prometheus"),
    ("monitoring_v1", "PrometheusRule"),
    ("monitoring_v1", "ServiceMonitor"),
]
ROOT = Path(__file__).parents[3]
Find = Callable[[str, str], Any]


def drawn(schema: dict[str, Any], cls: Any, random: Random) -> dict[str, Any]:
    kind = kind_of(cls)
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "one"}}
    value = {**head, **random_object(schema, random)}
    # An object without spec or status has empty ones in Python: only those that the schema requires are sent.
    for part in ("spec", "status"):
        if value.get(part) == {} and part not in schema.get("required", ()):
            del value[part]
    # A spec with required fields is required in Python.
    if "spec" not in value and schema["properties"]["spec"].get("required"):
        value["spec"] = random_object(schema["properties"]["spec"], random, 1)
    return value


@pytest.mark.parametrize(("module", "kind"), KINDS)
@pytest.mark.seeds(1, 2)
def test_an_object_is_the_same_after_it_was_read_and_written(
    module: str, kind: str, seed: int, example: Find
) -> None:
    cls, schema = example(module, kind)
    random = Random(seed)
    for _ in range(30):
        value = drawn(schema, cls, random)
        assert to_wire(from_wire(cls, value)) == value
        assert json.loads(encode(decode(cls, json.dumps(value)))) == value


@pytest.mark.parametrize(("module", "kind"), KINDS)
def test_the_schema_of_the_class_is_that_of_the_crd(module: str, kind: str, example: Find) -> None:
    cls, schema = example(module, kind)
    assert carried(structural(cls), is_kind=True) == carried(schema, is_kind=True)


@pytest.mark.parametrize(("module", "kind"), KINDS)
@pytest.mark.seeds(1)
def test_objects_are_valid_by_the_class_exactly_if_they_are_by_the_crd(
    module: str, kind: str, seed: int, example: Find
) -> None:
    cls, schema = example(module, kind)
    original, ours = compile_schema(schema), compile_schema(structural(cls))
    random = Random(seed)
    for _ in range(30):
        value = spoiled(drawn(schema, cls, random), random)
        assert reported(ours, value) == reported(original, value)


def reported(validator: Validator, value: dict[str, Any]) -> set[str]:
    """Return the invalid fields; classes carry no oneOf, and messages differ where an integer has no format."""
    return {error.field for error in validator.validate(value) if "oneOf" not in error.detail}


def test_the_crd_of_the_classes_is_one_that_a_server_accepts(example: Find) -> None:
    gateway = [example(module, "HTTPRoute").cls for module in ("gateway_v1", "gateway_v1beta1")]
    definition = crd(*gateway)
    assert definition["metadata"]["name"] == "httproutes.gateway.networking.k8s.io"
    assert [version["storage"] for version in definition["spec"]["versions"]] == [True, False]
    assert crd(example("monitoring_v1", "Prometheus").cls)["spec"]["versions"][0]["subresources"] == {
        "scale": {
            "labelSelectorPath": ".status.selector",
            "specReplicasPath": ".spec.shards",
            "statusReplicasPath": ".status.shards",
        },
        "status": {},
    }
    assert crd(example("cert_manager_v1", "ClusterIssuer").cls)["spec"]["scope"] == "Cluster"


def test_kinds_with_the_same_spec_share_its_class(example: Find) -> None:
    issuer, cluster_issuer = (
        example("cert_manager_v1", name).cls.__annotations__["spec"].__origin__
        for name in ("Issuer", "ClusterIssuer")
    )
    assert issuer is cluster_issuer
    assert issuer.__name__ == "IssuerSpec"


@pytest.mark.parametrize(
    "command",
    [
        ("pyright", "--project", "."),
        ("mypy", "--strict", "other_kinds"),
        ("ty", "check", "--python", sys.prefix, "other_kinds"),
        ("ruff", "check", "--config", str(ROOT / "pyproject.toml"), "--no-cache", "."),
        ("ruff", "check", "--isolated", "--select", "D,E,F,I,N,RUF,UP", "--no-cache", "."),
        ("ruff", "format", "--check", "--no-cache", "."),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_generated_modules_pass(command: tuple[str, ...], package: Path) -> None:
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src")]}
    (package.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    arguments = [*command, "--pythonpath", sys.executable] if command[0] == "pyright" else list(command)
    program = Path(sys.executable).parent / arguments[0]
    ended = subprocess.run(
        [program, *arguments[1:]],
        cwd=package.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
