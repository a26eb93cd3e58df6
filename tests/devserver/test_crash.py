"""A server that is killed while it writes loses nothing it has acknowledged."""

from pathlib import Path

import pytest
from devserver_crash import crash


@pytest.mark.timeout(120)
async def test_keeps_what_it_acknowledged_and_gives_no_revision_twice(tmp_path: Path) -> None:
    ledger = await crash(tmp_path / "cluster.db", rounds=4, seed=20260101)
    assert ledger.faults == []
    assert len(ledger.revisions) > 20
