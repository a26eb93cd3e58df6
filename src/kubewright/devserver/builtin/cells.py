"""Table cells that several kinds share."""

from collections.abc import Mapping, Sequence

from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column
from kubewright.devserver.strategy.tables import age

NAME = Column("Name", "string", "name")
AGE = Column("Age")
NONE = "<none>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def wide(name: str, kind: str = "string") -> Column:
    """Make a column that is shown only with `-o wide`."""
    return Column(name, kind, priority=1)


def object_age(obj: JsonObject, now: float) -> str:
    """Tell how old an object is."""
    return age(obj["metadata"].get("creationTimestamp"), now)


def containers(template: JsonObject) -> tuple[str, str]:
    """Give the names and images of a template's containers."""
    found: Sequence[JsonObject] = items(section(template, "spec"), "containers")
    return ",".join(item["name"] for item in found), ",".join(item.get("image", "") for item in found)


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


def integer(name: str) -> Column:
    """Make a column of whole numbers."""
    return Column(name, "integer")


def boolean(name: str) -> Column:
    """Make a column of truth values."""
    return Column(name, "boolean")


def short_modes(modes: Sequence[str] | None) -> str:
    """Write in which ways a volume may be used, shortly."""
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in (modes or ()))
