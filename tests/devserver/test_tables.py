"""Cells as kubectl prints them."""

import pytest

from kubewright.devserver.objects.jsonpath import PathError, compile_path
from kubewright.devserver.strategy.tables import CustomColumns, human_duration

DURATIONS = {
    -5: "<invalid>",
    -1: "0s",
    0: "0s",
    119: "119s",
    120: "2m",
    125: "2m5s",
    600: "10m",
    3 * 3600: "3h",
    3 * 3600 + 300: "3h5m",
    8 * 3600 + 60: "8h",
    48 * 3600: "2d",
    49 * 3600: "2d1h",
    8 * 86400: "8d",
    800 * 86400: "2y70d",
    3000 * 86400: "8y",
}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items())
def test_durations_have_two_or_three_figures(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


OBJECT = {
    "metadata": {
        "name": "x",
        "creationTimestamp": "1970-01-01T00:00:00Z",
        "annotations": {"a.b/c": "dotted"},
    },
    "spec": {
        "n": 3,
        "f": 2.5,
        "on": True,
        "list": [{"t": "a", "v": 1}, {"t": "b", "v": 2}],
        "map": {"k": "v"},
    },
}
PATHS = {
    ".spec.n": [3],
    "{.spec.n}": [3],
    ".spec.list[0].v": [1],
    ".spec.list[-1].v": [2],
    ".spec.list[*].v": [1, 2],
    '.spec.list[?(@.t=="b")].v': [2],
    ".spec.list[?(@.v>1)].t": ["b"],
    ".metadata.annotations.a\\.b/c": ["dotted"],
    ".metadata.annotations['a.b/c']": ["dotted"],
    ".spec.nope.deeper": [],
    ".spec.list[0:1].t": ["a"],
    ".spec.map.*": ["v"],
}


@pytest.mark.parametrize(("path", "values"), PATHS.items())
def test_paths_find_values(path: str, values: list[object]) -> None:
    assert compile_path(path)(OBJECT) == values


@pytest.mark.parametrize("path", [".a[", ".a[b]", "..", "[?(@.a", ".a b"])
def test_invalid_column_paths_are_refused(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


def test_cells_have_their_columns_type() -> None:
    columns = CustomColumns(
        [
            {"name": "N", "type": "integer", "jsonPath": ".spec.f"},
            {"name": "F", "type": "number", "jsonPath": ".spec.n"},
            {"name": "B", "type": "boolean", "jsonPath": ".spec.on"},
            {"name": "S", "type": "string", "jsonPath": ".spec.list"},
            {"name": "Wrong", "type": "boolean", "jsonPath": ".spec.n"},
            {"name": "Missing", "type": "string", "jsonPath": ".spec.nope"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]
    )
    cells = columns.row(OBJECT, 125.0)
    assert cells == ["x", 2, 3.0, True, '[{"t":"a","v":1},{"t":"b","v":2}]', None, None, "2m5s"]


def test_a_kind_without_columns_shows_its_age() -> None:
    columns = CustomColumns([])
    assert [column.name for column in columns.columns] == ["Name", "Age"]
