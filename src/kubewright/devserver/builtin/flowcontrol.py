"""Flow schemas and priority levels: kept and shown, without any queueing behind them."""

from typing import Any

from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.builtin.flow_checks import check_conditions, check_level, check_schema
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "flowcontrol.apiserver.k8s.io"


def _default_schema(obj: JsonObject) -> None:
    spec: JsonObject = obj.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def _fill(values: JsonObject, defaults: JsonObject) -> None:
    for name, value in defaults.items():
        if values.get(name) is None:
            values[name] = value


def _default_level(obj: JsonObject) -> None:
    spec: JsonObject = obj.setdefault("spec", {})
    exempt: JsonObject | None = spec.get("exempt")
    if exempt is not None:
        _fill(exempt, {"nominalConcurrencyShares": 0, "lendablePercent": 0})
    limited: JsonObject | None = spec.get("limited")
    if limited is None:
        return
    _fill(limited, {"nominalConcurrencyShares": 30, "lendablePercent": 0})
    queuing: JsonObject | None = section(limited, "limitResponse").get("queuing")
    if queuing is not None:
        for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
            queuing[name] = queuing.get(name) or value


def _schema_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    dangling = [
        item.get("status", "")
        for item in items(section(obj, "status"), "conditions")
        if item.get("type") == "Dangling"
    ]
    return [
        obj["metadata"]["name"],
        section(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        section(spec, "distinguisherMethod").get("type") or NONE,
        object_age(obj, now),
        dangling[0] if dangling else "?",
    ]


def _level_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    limited: JsonObject = section(spec, "limited")
    queuing: JsonObject = section(section(limited, "limitResponse"), "queuing")
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")),
        object_age(obj, now),
    ]


STRATEGIES = {
    (GROUP, "FlowSchema"): Strategy(
        default=_default_schema,
        validate=check_schema,
        validate_update=lambda new, old: check_schema(new),
        validate_status_update=lambda new, old: list(check_conditions(new)),
        has_generation=True,
        columns=(
            NAME,
            Column("PriorityLevel"),
            Column("MatchingPrecedence"),
            Column("DistinguisherMethod"),
            AGE,
            Column("MissingPL"),
        ),
        row=_schema_row,
    ),
    (GROUP, "PriorityLevelConfiguration"): Strategy(
        default=_default_level,
        validate=check_level,
        validate_update=lambda new, old: check_level(new),
        validate_status_update=lambda new, old: list(check_conditions(new)),
        has_generation=True,
        columns=(
            NAME,
            Column("Type"),
            Column("NominalConcurrencyShares"),
            Column("Queues"),
            Column("HandSize"),
            Column("QueueLengthLimit"),
            AGE,
        ),
        row=_level_row,
    ),
}
