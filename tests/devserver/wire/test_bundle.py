"""The data bundle is what its generator wrote."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_bundle_matches_its_recorded_hashes() -> None:
    generator = [sys.executable, str(ROOT / "tools" / "generate_devserver_data.py"), "--check"]
    nowhere = {**os.environ, "GOMODCACHE": str(ROOT / "nowhere")}
    checked = subprocess.run(generator, env=nowhere, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
