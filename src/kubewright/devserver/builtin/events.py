"""Events, which two API groups serve from one storage."""

from collections.abc import Callable
from typing import Any

from kubewright.api import FieldError, GroupVersionKind, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Column, Strategy
from kubewright.devserver.strategy.tables import age

CORE = GroupVersionKind("", "v1", "Event")
_COLUMNS = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    Column("Subobject", priority=1),
    Column("Source", priority=1),
    Column("Message"),
    Column("First Seen", priority=1),
    Column("Count", priority=1),
    Column("Name", "string", "name", priority=1),
)
_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NEW_NAMES.items()}
_CORE_ALWAYS: JsonObject = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_ALWAYS: JsonObject = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def convert(event: JsonObject, target: GroupVersionKind) -> JsonObject:
    """Convert an event to the other group version, if it is not in it already."""
    names_there = _NEW_NAMES if target.group else _CORE_NAMES
    always = _NEW_ALWAYS if target.group else _CORE_ALWAYS
    made = {names_there.get(name, name): value for name, value in event.items()}
    for name, value in always.items():
        made.setdefault(name, value)
    if target.group:
        for name in ("reportingController", "reportingInstance"):
            if made.get(name) == "":
                del made[name]
    return {**made, "apiVersion": target.api_version, "kind": target.kind}


def _row(event: JsonObject, now: float) -> list[Any]:
    event = convert(event, CORE)
    series: JsonObject = section(event, "series")
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    count = series.get("count", 0) if event.get("series") else event.get("count") or 1
    target, source = event["involvedObject"], event["source"]
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    kind, name = target.get("kind", "").lower(), target.get("name", "")
    return [
        age(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        ", ".join(part for part in (component, host) if part),
        (event.get("message") or "").strip(),
        age(first, now),
        count,
        event["metadata"]["name"],
    ]


def _validate(event: JsonObject) -> list[FieldError]:
    """Check an event; those of events.k8s.io must have a time and a reporting controller."""
    new_group = event["apiVersion"] != "v1"
    event = convert(event, CORE)
    errors = _legacy(event)
    if not new_group:
        return errors + (_reporter(event, "reportingComponent") if event.get("eventTime") else [])
    if event.get("eventTime"):
        errors += _reporter(event, "reportingController")
    else:
        errors.append(problems.required("eventTime"))
    kind = event.get("type", "")
    if kind not in ("Normal", "Warning"):
        errors.append(problems.invalid("type", kind, f"has invalid value: {kind}"))
    return errors


def _legacy(event: JsonObject) -> list[FieldError]:
    space, target = event["metadata"].get("namespace", ""), event["involvedObject"].get("namespace", "")
    # Events about cluster-scoped objects are in the default namespace.
    if event.get("eventTime"):
        fits = bool(target) or space in ("default", "kube-system")
    else:
        fits = target == space or (not target and space == "default")
    return (
        []
        if fits
        else [problems.invalid("involvedObject.namespace", target, "does not match event.namespace")]
    )


def _reporter(event: JsonObject, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(problems.required(field))
    errors += check.named(field, controller, names.qualified_name(controller))
    needed = ("reportingInstance", "action", "reason")
    return errors + [problems.required(name) for name in needed if not event.get(name)]


def _fields(new_group: bool) -> dict[str, Callable[[JsonObject], str]]:
    parts = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    target = "regarding" if new_group else "involvedObject"
    found = {f"{target}.{part}": text_at(target, part) for part in parts}
    controller = "reportingController" if new_group else "reportingComponent"
    found |= {part: text_at(part) for part in ("reason", "type", controller)}
    source = text_at("deprecatedSource" if new_group else "source", "component")
    if not new_group:
        found["source"] = lambda event: source(event) or text_at("reportingComponent")(event)
    return found


def _strategy(new_group: bool) -> Strategy:
    return Strategy(
        validate=_validate,
        validate_update=lambda new, old: _validate(new),
        allow_create_on_update=True,
        default_propagation="Unsupported",
        selectable_fields=_fields(new_group),
        columns=_COLUMNS,
        row=_row,
        convert=convert,
        stored_as=("", "events") if new_group else None,
    )


STRATEGIES = {
    ("", "Event"): _strategy(new_group=False),
    ("events.k8s.io", "Event"): _strategy(new_group=True),
}
