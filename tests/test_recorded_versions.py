"""Each file of recorded responses names the Kubernetes version that it comes from."""

import json
from pathlib import Path

import pytest

from kubewright.testing.controlplane import KUBERNETES

TESTS = Path(__file__).parent
FOLDERS = (
    *("api/golden", "clients/recorded", "conformance/recorded", "schema/observed"),
    *("devserver/builtin/data", "devserver/merge/data", "devserver/wire/data"),
)
FILES = [file for folder in FOLDERS for file in sorted((TESTS / folder).glob("*.json"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_recording_names_the_kubernetes_version_that_the_tests_run_on(file: Path) -> None:
    assert json.loads(file.read_text())["kubernetes"] == KUBERNETES


def test_each_folder_has_recordings() -> None:
    assert {file.parent for file in FILES} == {TESTS / folder for folder in FOLDERS}
