"""What starting an operator loads: nothing that it does not use."""

import subprocess
import sys

# An embedded cluster, CRDs and their rules, certificates and metrics pages are for those who ask for them.
UNUSED = (
    "kubewright.devserver",
    "kubewright.devcluster",
    "kubewright.generate",
    "kubewright.schema",
    "kubewright.webhook.server",
    "aiohttp",
    "cryptography",
    "email",
    "http.client",
    "prometheus_client",
    "rich",
    "tomllib",
)


def test_running_an_operator_loads_neither_clusters_nor_certificates() -> None:
    program = "import sys, kubewright.cli.run.command; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    assert "kubewright.manager" in modules
    assert not modules.intersection(UNUSED)
