"""Tables: what kubectl prints, one row of cells for each object."""

from collections.abc import Sequence
from typing import Any

from kubewright.devserver.objects import JsonObject, meta, order_meta, section
from kubewright.devserver.objects.clock import parse_time
from kubewright.devserver.objects.jsonpath import PathError, compile_path, show
from kubewright.devserver.strategy import Strategy, TableColumn

NAME = TableColumn(
    "Name",
    format="name",
    description="The object's name, unique among the objects of its kind in its namespace.",
)
CREATED_AT = TableColumn("Created At", "date", description="When the object was created.")
AGE_PATH = ".metadata.creationTimestamp"

# What the kind's Go type has a field for is an annotation only where the whole object is shown.
_FIELDS_AS_ANNOTATIONS = {("apps/v1", "DaemonSet"): "deprecated.daemonset.template.generation"}


def age(stamp: Any, now: float) -> str:
    """Return how long ago a time was, as kubectl prints it."""
    if not stamp:
        return "<unknown>"
    try:
        return human_duration(now - parse_time(str(stamp)))
    except ValueError:
        return "<invalid>"


def human_duration(seconds: float) -> str:
    """Write a span with two or three significant figures."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    days, years = hours // 24, hours // 24 // 365
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(years, "y", days % 365, "d")
    return f"{years}y"


def _pair(big: int, unit: str, small: int, small_unit: str) -> str:
    return f"{big}{unit}{small}{small_unit}" if small else f"{big}{unit}"


def columns_of(strategy: Strategy) -> Sequence[TableColumn]:
    """Return the columns of a kind; one without its own shows name and time of creation."""
    return strategy.columns or (NAME, CREATED_AT)


def cells_of(strategy: Strategy, obj: JsonObject, now: float) -> list[Any]:
    """Return an object's cells."""
    if strategy.row is not None:
        return strategy.row(obj, now)
    return [meta(obj).get("name", ""), meta(obj).get("creationTimestamp")]


def table(
    strategy: Strategy,
    objects: Sequence[JsonObject],
    metadata: JsonObject,
    *,
    now: float,
    is_list: bool = False,
    include: str = "Metadata",
    headers: bool = True,
    version: str = "v1",
) -> JsonObject:
    """Build the Table of some objects."""
    api = f"meta.k8s.io/{version}"
    rows: list[JsonObject] = []
    default = strategy.default_in_list(objects) if is_list and strategy.default_in_list else ""
    for obj in objects:
        row: JsonObject = {"cells": cells_of(strategy, obj, now)}
        if default and meta(obj)["name"] == default:
            row["cells"][0] += " (default)"
        if include == "Object":
            row["object"] = obj
        else:
            row["object"] = partial(obj, version) if include != "None" else None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": api,
        "metadata": metadata,
        "columnDefinitions": [column.wire() for column in columns_of(strategy)] if headers else None,
        "rows": rows,
    }


def partial(obj: JsonObject, version: str = "v1") -> JsonObject:
    """Build the PartialObjectMetadata of an object."""
    metadata = order_meta(meta(obj))
    if (obj.get("apiVersion"), obj.get("kind")) in _FIELDS_AS_ANNOTATIONS:
        hidden = _FIELDS_AS_ANNOTATIONS[obj["apiVersion"], obj["kind"]]
        shown = {name: text for name, text in section(metadata, "annotations").items() if name != hidden}
        metadata = {**metadata, "annotations": shown}
        if not shown:
            del metadata["annotations"]
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


class CustomColumns:
    """The columns of a custom resource, found by their JSONPaths."""

    def __init__(self, definitions: Sequence[JsonObject]) -> None:
        shown = definitions or [{"name": "Age", "type": "date", "jsonPath": AGE_PATH}]
        self.columns: list[TableColumn] = [NAME]
        self._cells: list[tuple[str, Any]] = []
        for item in shown:
            path = str(item.get("jsonPath", ""))
            text = (
                item.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
            )
            kind = str(item.get("type", "string"))
            self.columns.append(
                TableColumn(item["name"], kind, item.get("format", ""), text, item.get("priority", 0))
            )
            try:
                self._cells.append((kind, compile_path(path)))
            except PathError:
                self._cells.append((kind, _nothing))

    def row(self, obj: JsonObject, now: float) -> list[Any]:
        """Return an object's cells."""
        cells: list[Any] = [meta(obj).get("name", "")]
        for kind, find in self._cells:
            values = find(obj)
            cells.append(_cell(kind, values[0], now) if values else None)
        return cells


def _nothing(document: Any) -> list[Any]:
    return []


def _cell(kind: str, value: Any, now: float) -> Any:
    if kind == "string":
        return show([value])
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date":
        return age(value, now) if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else float(value)
