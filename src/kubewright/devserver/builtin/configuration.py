"""ConfigMaps, Secrets, ServiceAccounts, namespaces, nodes, events and limits."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin.ages import age
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age, wide
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column, Strategy

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"


def _validate_keys(obj: Wire, *fields: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in fields:
        for key in obj.get(field) or {}:
            if not _KEY.fullmatch(key):
                errors.append(problems.invalid(f"{field}[{key}]", key, _KEY_RULE))
    return errors


def _validate_config_map(obj: Wire) -> list[FieldError]:
    errors = _validate_keys(obj, "data", "binaryData")
    for key in obj.get("data") or {}:
        if key in (obj.get("binaryData") or {}):
            errors.append(problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    size = sum(
        len(str(value).encode())
        for field in ("data", "binaryData")
        for value in (obj.get(field) or {}).values()
    )
    if size > _MAX_BYTES:
        errors.append(problems.too_long("", "", _MAX_BYTES))
    return errors


def _frozen(*fields: str) -> Callable[[Wire, Wire], list[FieldError]]:
    def check(new: Wire, old: Wire) -> list[FieldError]:
        if not old.get("immutable"):
            return []
        errors: list[FieldError] = []
        if not new.get("immutable"):
            errors.append(problems.forbidden("immutable", _IMMUTABLE))
        errors += [
            problems.forbidden(field, _IMMUTABLE)
            for field in fields
            if (new.get(field) or {}) != (old.get(field) or {})
        ]
        return errors

    return check


def _update_config_map(new: Wire, old: Wire) -> list[FieldError]:
    return [*_frozen("data", "binaryData")(new, old), *_validate_config_map(new)]


def _default_secret(secret: Wire) -> None:
    secret["type"] = secret.get("type") or "Opaque"
    plain: dict[str, str] = secret.pop("stringData", None) or {}
    if plain:
        data: dict[str, Any] = secret.get("data") or {}
        secret["data"] = {
            **data,
            **{key: base64.b64encode(value.encode()).decode() for key, value in plain.items()},
        }


def _validate_secret(secret: Wire) -> list[FieldError]:
    errors = _validate_keys(secret, "data")
    needed = {
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/dockercfg": (".dockercfg",),
        "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    }
    for key in needed.get(secret.get("type", ""), ()):
        if key not in (secret.get("data") or {}):
            errors.append(problems.required(f"data[{key}]", ""))
    return errors


def _update_secret(new: Wire, old: Wire) -> list[FieldError]:
    errors = list(_validate_secret(new))
    if new.get("type") != old.get("type"):
        errors.append(problems.invalid("type", new.get("type"), "field is immutable"))
    return [*errors, *_frozen("data")(new, old)]


def _secret_size(value: str) -> int:
    try:
        return len(base64.b64decode(value))
    except (binascii.Error, ValueError):
        return len(value)


def _count_row(*fields: str) -> Callable[[Wire, float], list[Any]]:
    def row(obj: Wire, now: float) -> list[Any]:
        return [
            obj["metadata"]["name"],
            sum(len(obj.get(field) or ()) for field in fields),
            object_age(obj, now),
        ]

    return row


def _secret_row(secret: Wire, now: float) -> list[Any]:
    return [
        secret["metadata"]["name"],
        secret.get("type"),
        len(secret.get("data") or ()),
        object_age(secret, now),
    ]


def _default_namespace(namespace: Wire) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _new_namespace(namespace: Wire) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers: list[str] = (namespace.get("spec") or {}).get("finalizers") or []
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    namespace["spec"] = {"finalizers": finalizers}


def _kept_namespace(new: Wire, old: Wire) -> None:
    new["spec"] = {"finalizers": list((old.get("spec") or {}).get("finalizers") or ())}
    if not new["spec"]["finalizers"]:
        new["spec"] = {}


def _terminate_namespace(namespace: Wire) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"


def _emptied_namespace(namespace: Wire) -> bool:
    return not (namespace.get("spec") or {}).get("finalizers")


def _namespace_row(namespace: Wire, now: float) -> list[Any]:
    return [
        namespace["metadata"]["name"],
        (namespace.get("status") or {}).get("phase"),
        object_age(namespace, now),
    ]


def _node_row(node: Wire, now: float) -> list[Any]:
    status: Wire = node.get("status") or {}
    ready = [item for item in status.get("conditions") or () if item["type"] == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[0]["status"] == "True" else "NotReady"
    if (node.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(
        label[len(prefix) :] for label in node["metadata"].get("labels") or () if label.startswith(prefix)
    )
    addresses = {item["type"]: item["address"] for item in status.get("addresses") or ()}
    info: Wire = status.get("nodeInfo") or {}
    return [
        node["metadata"]["name"],
        state,
        ",".join(roles) or NONE,
        object_age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _event_row(event: Wire, now: float) -> list[Any]:
    series: Wire = event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    target: Wire = event.get("involvedObject") or {}
    source: Wire = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    count = series.get("count") or event.get("count") or 1
    return [
        age(last, now),
        event.get("type"),
        event.get("reason"),
        f"{target.get('kind', '').lower()}/{target.get('name', '')}",
        target.get("fieldPath", ""),
        ", ".join(part for part in (component, host) if part),
        (event.get("message") or "").strip(),
        age(first, now),
        count,
        event["metadata"]["name"],
    ]


def _event_fields() -> dict[str, Callable[[Wire], str]]:
    def involved(name: str) -> Callable[[Wire], str]:
        return lambda event: str((event.get("involvedObject") or {}).get(name) or "")

    def plain(name: str) -> Callable[[Wire], str]:
        return lambda event: str(event.get(name) or "")

    parts = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    found = {f"involvedObject.{part}": involved(part) for part in parts}
    found |= {part: plain(part) for part in ("reason", "reportingComponent", "type")}
    found["source"] = lambda event: (
        (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    )
    return found


def _default_event(event: Wire) -> None:
    if event.get("kind") == "Event" and "involvedObject" in event:
        event.setdefault("firstTimestamp", None)
        event.setdefault("lastTimestamp", None)


def _core_event(event: Wire, target: Any) -> Wire:
    """Convert between core/v1 and events.k8s.io/v1, which share one storage."""
    names_core = {"regarding": "involvedObject", "note": "message", "deprecatedSource": "source"}
    names_core |= {
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    }
    renames = names_core if not target.group else {core: new for new, core in names_core.items()}
    made = {renames.get(name, name): value for name, value in event.items()}
    for old, new in (("reportingController", "reportingComponent"),):
        source, wanted = (old, new) if not target.group else (new, old)
        if source in made:
            made[wanted] = made.pop(source)
    return {**made, "apiVersion": target.api_version, "kind": target.kind}


def _quota_row(quota: Wire, now: float) -> list[Any]:
    status: Wire = quota.get("status") or {}
    hard: dict[str, Any] = status.get("hard") or {}
    used: dict[str, Any] = status.get("used") or {}
    told = {name: f"{name}: {used.get(name, '0')}/{amount}" for name, amount in sorted(hard.items())}
    requests = ", ".join(text for name, text in told.items() if not name.startswith("limits"))
    limits = ", ".join(text for name, text in told.items() if name.startswith("limits"))
    return [quota["metadata"]["name"], requests, limits, object_age(quota, now)]


STRATEGIES = {
    ("", "ConfigMap"): Strategy(
        validate=_validate_config_map,
        validate_update=_update_config_map,
        columns=(NAME, Column("Data"), AGE),
        row=_count_row("data", "binaryData"),
    ),
    ("", "Secret"): Strategy(
        default=_default_secret,
        validate=_validate_secret,
        validate_update=_update_secret,
        selectable_fields={"type": lambda secret: secret.get("type") or ""},
        columns=(NAME, Column("Type"), Column("Data"), AGE),
        row=_secret_row,
    ),
    ("", "ServiceAccount"): Strategy(
        returns_deleted=True, columns=(NAME, Column("Secrets"), AGE), row=_count_row("secrets")
    ),
    ("", "Namespace"): Strategy(
        default=_default_namespace,
        prepare_create=_new_namespace,
        prepare_update=_kept_namespace,
        name_check=names.dns1123_label,
        returns_deleted=True,
        begin_delete=_terminate_namespace,
        deletable=_emptied_namespace,
        selectable_fields={
            "status.phase": lambda obj: (obj.get("status") or {}).get("phase") or "",
            "name": lambda obj: obj["metadata"]["name"],
        },
        columns=(NAME, Column("Status"), AGE),
        row=_namespace_row,
    ),
    ("", "Node"): Strategy(
        selectable_fields={
            "spec.unschedulable": lambda obj: str(bool((obj.get("spec") or {}).get("unschedulable"))).lower()
        },
        columns=(
            NAME,
            Column("Status"),
            Column("Roles"),
            AGE,
            Column("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        row=_node_row,
    ),
    ("", "ResourceQuota"): Strategy(
        returns_deleted=True, columns=(NAME, Column("Request"), Column("Limit"), AGE), row=_quota_row
    ),
    ("", "LimitRange"): Strategy(allow_create_on_update=True),
}

EVENT_COLUMNS = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    wide("Subobject"),
    wide("Source"),
    Column("Message"),
    wide("First Seen"),
    wide("Count"),
    Column("Name", "string", "name", priority=1),
)


def _new_event_row(event: Wire, now: float) -> list[Any]:
    class Core:
        group, api_version, kind = "", "v1", "Event"

    return _event_row(_core_event(event, Core), now)


STRATEGIES |= {
    ("", "Event"): Strategy(
        default=_default_event,
        allow_create_on_update=True,
        selectable_fields=_event_fields(),
        columns=EVENT_COLUMNS,
        row=_event_row,
        convert=_core_event,
    ),
    ("events.k8s.io", "Event"): Strategy(
        allow_create_on_update=True,
        columns=EVENT_COLUMNS,
        row=_new_event_row,
        convert=_core_event,
        stored_as=("", "events"),
    ),
}
