"""Requests and responses are read as h11 reads them; the differences that we choose are listed in `differential`."""

import pytest
from differential import compare, explain

CASES = 40_000
"""About eight seconds for each kind; `scripts/fuzz-http --seconds 3600` searches with fresh seeds."""


@pytest.mark.parametrize("kind", ["requests", "responses"])
async def test_bytes_are_read_as_h11_reads_them(kind: str) -> None:
    found, unknown = await compare(kind, range(CASES))
    assert not unknown, "\n".join(explain(kind, seed) for seed in unknown[:5])
    assert found["same"] > CASES // 2
