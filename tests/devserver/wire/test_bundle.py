"""The data bundle is what its generator wrote, and its types say what the OpenAPI documents say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright.devserver.data import KubernetesRelease
from kubewright.devserver.wire.gotypes import GoTypes

ROOT = Path(__file__).parents[3]
FACTS = {
    "x-kubernetes-list-type": "list",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-map-type": "map",
    "default": "default",
}


def test_the_bundle_matches_its_recorded_hashes() -> None:
    generator = [sys.executable, str(ROOT / "tools" / "generate_devserver_data.py"), "--check"]
    nowhere = {**os.environ, "GOMODCACHE": str(ROOT / "nowhere")}
    checked = subprocess.run(generator, env=nowhere, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("version", KubernetesRelease.known())
def test_fields_merge_as_the_openapi_documents_say_also_those_of_embedded_structs(version: str) -> None:
    release = KubernetesRelease.find(version)
    types = GoTypes(release.types)
    definitions: dict[str, Any] = {}
    for name in release.openapi_hashes:
        definitions |= json.loads(release.openapi(name)).get("components", {}).get("schemas", {})
    compared = 0
    for struct in release.types["structs"]:
        package, name = struct.rsplit(".", 1)
        definition = definitions.get(f"io.k8s.api.{package.replace('/', '.')}.{name}", {})
        for field in types.fields(struct):
            if (schema := definition.get("properties", {}).get(field.name)) is None:
                continue
            expected = {FACTS[key]: value for key, value in schema.items() if key in FACTS}
            found = {key: field.facts[key] for key in FACTS.values() if key in field.facts}
            assert found == expected, f"{struct}.{field.name}"
            compared += 1
    assert compared > 1000
