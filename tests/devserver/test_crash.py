"""A server that is killed while it writes loses nothing it has acknowledged."""

from pathlib import Path

import pytest
from devserver_crash import crash


@pytest.mark.seeds(20260101)
async def test_keeps_what_it_acknowledged_and_gives_no_revision_twice(tmp_path: Path, seed: int) -> None:
    journal = await crash(tmp_path / "cluster.db", rounds=4, seed=seed)
    assert journal.faults == []
    assert journal.revisions
