"""A setting that is missing or wrong ends the operator with one line."""

import asyncio
import os
import sys

import pytest
from acceptance_samples import ROOT

from kubewright.testing import Cluster


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"VMGROUP_PROVIDER": "vcenter"},
            'the provider "vcenter" needs VC_HOST, VC_USER, VC_PASS in its environment',
        ),
        ({"VMGROUP_PROVIDER": "cloud"}, 'VMGROUP_PROVIDER is "cloud": expected one of simulator, vcenter'),
    ],
)
async def test_vmgroup_names_missing_settings_and_exits(
    cluster: Cluster, settings: dict[str, str], message: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()"),
        *("run", str(ROOT / "examples" / "vmgroup"), "--install", f"--kubeconfig={cluster.kubeconfig}"),
        *("--metrics-bind-address=0", "--health-probe-bind-address=0", f"--namespace={cluster.namespace}"),
        env={name: value for name, value in os.environ.items() if not name.startswith("VC_")} | settings,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, printed = await process.communicate()
    assert process.returncode == 1
    assert message in printed.decode()
    assert "Traceback" not in printed.decode()
