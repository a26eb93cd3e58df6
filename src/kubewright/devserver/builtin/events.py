"""Events, which two API groups serve from one storage."""

from collections.abc import Callable
from typing import Any

from kubewright.api import FieldError, GroupVersionKind, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Strategy, TableColumn
from kubewright.devserver.strategy.tables import age

CORE = GroupVersionKind("", "v1", "Event")
_COLUMNS = (
    TableColumn("Last Seen"),
    TableColumn("Type"),
    TableColumn("Reason"),
    TableColumn("Object"),
    TableColumn("Subobject", priority=1),
    TableColumn("Source", priority=1),
    TableColumn("Message"),
    TableColumn("First Seen", priority=1),
    TableColumn("Count", priority=1),
    TableColumn("Name", "string", "name", priority=1),
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


_OBJECT = "kind namespace name uid apiVersion resourceVersion fieldPath"
_STRUCTS = {"involvedObject": _OBJECT, "related": _OBJECT, "source": "component host"}
# The real server compares the reason twice.
_IMMUTABLE = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason"),
    *("type", "eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_ZERO = {
    "count": 0,
    **dict.fromkeys(("reason", "message", "type", "action", "reportingComponent", "reportingInstance"), ""),
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
    """Check a new event; those of events.k8s.io must have a time, and no deprecated fields."""
    new_group = event["apiVersion"] != "v1"
    event = convert(event, CORE)
    errors = _legacy(event, new_group=new_group)
    if not new_group:
        return errors
    errors += _series(event)
    if not event.get("eventTime"):
        errors.append(problems.required("eventTime"))
    kind, source = event.get("type", ""), section(event, "source")
    if kind not in ("Normal", "Warning"):
        errors.append(problems.invalid("type", "", f"has invalid value: {kind}"))
    given = {**event, "source": source.get("component") or source.get("host")}
    unset = [name for name in ("firstTimestamp", "lastTimestamp", "count", "source") if given.get(name)]
    return errors + [problems.invalid(name, "", "needs to be unset") for name in unset]


def _validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check a changed event; of those of events.k8s.io only the series may change."""
    new_group = new["apiVersion"] != "v1"
    new, old = convert(new, CORE), convert(old, CORE)
    errors = _legacy(new, new_group=new_group)
    if not new_group:
        return errors
    if new.get("series") != old.get("series"):
        errors += _series(new)
    for name in _IMMUTABLE:
        value = new.get(name)
        if value != old.get(name):
            shown = "reportingController" if name == "reportingComponent" else name
            if name in _STRUCTS and value is not None:
                struct = check.struct(value, _STRUCTS[name])
                errors.append(check.invalid_struct(shown, struct, check.IMMUTABLE))
            else:
                value = _ZERO.get(name) if value is None else value
                errors.append(problems.invalid(shown, value, check.IMMUTABLE))
    return errors


def _series(event: JsonObject) -> list[FieldError]:
    series: JsonObject | None = event.get("series")
    errors: list[FieldError] = []
    if series is not None and series.get("count", 0) < 2:
        errors.append(problems.invalid("series.count", "", "should be at least 2"))
    if series is not None and not series.get("lastObservedTime"):
        errors.append(problems.required("series.lastObservedTime"))
    return errors


def _legacy(event: JsonObject, *, new_group: bool) -> list[FieldError]:
    """Check the rules that hold in both groups; events with a time need a reporting controller."""
    space, target = event["metadata"].get("namespace", ""), event["involvedObject"].get("namespace", "")
    # Events about cluster-scoped objects are in the default namespace.
    if event.get("eventTime"):
        fits = bool(target) or space in ("default", "kube-system")
    else:
        fits = target == space or (not target and space == "default")
    errors: list[FieldError] = []
    if not fits:
        errors.append(problems.invalid("involvedObject.namespace", target, "does not match event.namespace"))
    if not event.get("eventTime"):
        return errors
    field = "reportingController" if new_group else "reportingComponent"
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(problems.required(field))
    errors += check.named(field, controller, names.qualified_name(controller))
    for name, most in (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)):
        value = event.get(name, "")
        if not value and name != "message":
            errors.append(problems.required(name))
        if len(value.encode()) > most:
            errors.append(problems.invalid(name, "", f"can have at most {most} characters"))
    return errors


def _fields(new_group: bool) -> dict[str, Callable[[JsonObject], str]]:
    target = "regarding" if new_group else "involvedObject"
    found = {f"{target}.{part}": text_at(target, part) for part in _OBJECT.split()}
    controller = "reportingController" if new_group else "reportingComponent"
    found |= {part: text_at(part) for part in ("reason", "type", controller)}
    source = text_at("deprecatedSource" if new_group else "source", "component")
    if not new_group:
        found["source"] = lambda event: source(event) or text_at("reportingComponent")(event)
    return found


def _strategy(new_group: bool) -> Strategy:
    return Strategy(
        validate=_validate,
        validate_update=_validate_update,
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
