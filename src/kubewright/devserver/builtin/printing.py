"""The tables that kubectl prints: columns, and where their cells come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import TableColumn
from kubewright.devserver.strategy.tables import age

NONE = "<none>"
UNSET = "<unset>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A column and how its cell is read from an object at a time (seconds since the epoch)."""

    column: TableColumn
    read: Callable[[JsonObject, float], Any]


class Printed(TypedDict):
    """What a strategy needs to print its kind."""

    columns: Sequence[TableColumn]
    row: Callable[[JsonObject, float], list[Any]]


def printed(*cells: Cell) -> Printed:
    """Build the table of a kind; pass it to a strategy with `**`."""
    reads = [cell.read for cell in cells]
    return {
        "columns": tuple(cell.column for cell in cells),
        "row": lambda obj, now: [read(obj, now) for read in reads],
    }


def cell(
    name: str,
    source: str | Callable[[JsonObject], Any],
    missing: Any = "",
    kind: str = "string",
    *,
    wide: bool = False,
) -> Cell:
    """Make a column of the field at a dotted path, or of what a function returns.

    `missing` is shown for a field that is not set or empty. A wide column is shown only with `-o wide`.
    """
    column = TableColumn(name, kind, priority=int(wide))
    if callable(source):
        return Cell(column, lambda obj, now: source(obj))
    path = source.split(".")

    def read(obj: JsonObject, now: float) -> Any:
        value: Any = obj
        for part in path:
            value = value.get(part)
            if value is None:
                return missing
        return missing if value == "" else value

    return Cell(column, read)


def object_age(obj: JsonObject, now: float) -> str:
    """Return the age of an object."""
    return age(obj["metadata"].get("creationTimestamp"), now)


NAME = Cell(TableColumn("Name", "string", "name"), lambda obj, now: obj["metadata"]["name"])
AGE = Cell(TableColumn("Age"), object_age)


def class_name(annotation: str) -> Cell:
    """Make the column for the name of a class, which shows the default one; an annotation marks it."""

    def read(obj: JsonObject, now: float) -> str:
        is_default = section(obj["metadata"], "annotations").get(annotation) == "true"
        return obj["metadata"]["name"] + (" (default)" if is_default else "")

    return Cell(NAME.column, read)


def container_cells(*path: str) -> tuple[Cell, Cell]:
    """Make the wide columns for the names and images of the containers of a Pod template."""

    def joined(field: str) -> Callable[[JsonObject], str]:
        def read(obj: JsonObject) -> str:
            found: Sequence[JsonObject] = items(section(obj, *path, "spec"), "containers")
            return ",".join(item.get(field, "") for item in found)

        return read

    return cell("Containers", joined("name"), wide=True), cell("Images", joined("image"), wide=True)


def count(path: str) -> Callable[[JsonObject], int]:
    """Return a function that counts the items of a list or map."""
    *parents, last = path.split(".")
    return lambda obj: len(section(obj, *parents).get(last) or ())


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Write labels as `a=b,c=d`, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: JsonObject | None) -> str:
    """Write a structured label selector as text."""
    if selector is None:
        return NONE
    labels = sorted(section(selector, "matchLabels").items())
    parts = [(key, f"{key}={value}") for key, value in labels]
    for expression in items(selector, "matchExpressions"):
        key, values = expression["key"], ",".join(sorted(items(expression, "values")))
        match expression["operator"]:
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case _:
                parts.append((key, f"!{key}"))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0])) or NONE


def short_modes(modes: Sequence[str] | None) -> str:
    """Abbreviate the access modes of a volume."""
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in (modes or ()))


def some_of(found: Sequence[str], most: int, nothing: str, separator: str = ",") -> str:
    """Join the first few texts and count the others."""
    text = separator.join(found[:most]) or nothing
    return f"{text} + {len(found) - most} more..." if len(found) > most else text
