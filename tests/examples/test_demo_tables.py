"""The demo's tables fit the terminal; the widest columns are truncated first."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from show.tables import LEAST, Tables, fitted

CELLS = st.text("abc", max_size=40)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5)
    )
)
def test_columns_fit_unless_each_is_as_narrow_as_can_be(lines: list[list[str]]) -> None:
    sizes, gap = fitted(lines, 60)
    natural = [max(map(len, column)) for column in zip(*lines, strict=True)]
    assert sum(sizes) + gap * (len(sizes) - 1) <= 60 or max(sizes) <= LEAST
    assert all(size == wide or size >= LEAST for size, wide in zip(sizes, natural, strict=True))
    assert all(size <= wide for size, wide in zip(sizes, natural, strict=True))


def test_a_short_name_is_not_truncated_for_a_long_message() -> None:
    columns = [{"name": name, "priority": 0} for name in ("Name", "Phase", "Last_Message")]
    columns.insert(1, {"name": "Hidden", "priority": 1})
    rows = {"columnDefinitions": columns, "rows": [{"cells": ["vg-1", "x", None, "successfully " * 9]}]}
    console = Console(width=40, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(Tables().draw("VmGroup", rows, 40))
    lines = captured.get().splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert lines[-1].startswith("vg-1          successfully")
    assert "HIDDEN" not in captured.get()


def test_changed_cells_are_highlighted() -> None:
    console, tables = Console(width=40, file=None, force_terminal=True, color_system="standard"), Tables()

    def drawn(size: int) -> str:
        columns = [{"name": name, "priority": 0} for name in ("Name", "Size")]
        with console.capture() as captured:
            console.print(
                tables.draw("Shell", {"columnDefinitions": columns, "rows": [{"cells": ["a", size]}]}, 40)
            )
        return captured.get().splitlines()[-1]

    assert "\x1b" not in drawn(3)
    assert "\x1b[1;33m5" in drawn(5)
    assert "\x1b[1;33m5" in drawn(5)
