"""The face of the package: what it names, and what it costs."""

import subprocess
import sys

import kubewright.client


def test_every_name_is_there_and_documented() -> None:
    for name in kubewright.client.__all__:
        assert getattr(kubewright.client, name).__doc__, name


def test_the_names_are_in_order() -> None:
    assert kubewright.client.__all__ == sorted(kubewright.client.__all__)


def test_declaring_an_operator_loads_no_client() -> None:
    code = "import sys, kubewright; print(sorted(set(sys.modules) & {'aiohttp', 'yaml', 'cryptography'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
