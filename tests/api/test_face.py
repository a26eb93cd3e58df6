"""What `kubewright.api` offers and what it costs."""

import subprocess
import sys

from kubewright import api


def test_every_public_name_is_there_and_explained() -> None:
    for name in api.__all__:
        found = getattr(api, name)
        assert getattr(found, "__doc__", None), name


def test_loads_no_library_that_does_input_or_output() -> None:
    heavy = {"aiohttp", "cryptography", "prometheus_client", "yaml", "rich", "typer", "asyncio"}
    script = (
        "import sys, types; root = types.ModuleType('kubewright');"
        f"root.__path__ = {list(sys.modules['kubewright'].__path__)!r}; sys.modules['kubewright'] = root;"
        "import kubewright.api; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(found.stdout.split())
