"""ConfigMaps, Secrets and ServiceAccounts."""

import base64
import json
from collections.abc import Callable
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, object_age
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Column, Strategy

_MAX_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_NEEDED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON_KEYS = (".dockerconfigjson", ".dockercfg")


def _check_keys(obj: JsonObject, *fields: str) -> list[FieldError]:
    return [
        error
        for field in fields
        for key in section(obj, field)
        for error in check.named(f"{field}[{key}]", key, names.config_key(key))
    ]


def _size(obj: JsonObject) -> int:
    plain = sum(len(str(value).encode()) for value in section(obj, "data").values())
    return plain + sum(_bytes(value) for value in section(obj, "binaryData").values())


def _bytes(encoded: str | None) -> int:
    """Count the bytes behind base64; null is allowed and holds none."""
    if not encoded:
        return 0
    return len(encoded) // 4 * 3 - encoded[-2:].count("=")


def _validate_config_map(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in section(obj, "data"):
        errors += check.named(f"data[{key}]", key, names.config_key(key))
        if key in section(obj, "binaryData"):
            errors.append(problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    errors += _check_keys(obj, "binaryData")
    if _size(obj) > _MAX_BYTES:
        errors.append(problems.too_long("", _MAX_BYTES))
    return errors


def _check_frozen(new: JsonObject, old: JsonObject, *fields: str) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    changed = [field for field in fields if section(new, field) != section(old, field)]
    if not new.get("immutable"):
        changed.insert(0, "immutable")
    return [problems.forbidden(field, _FROZEN) for field in changed]


def _update_config_map(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return [*_check_frozen(new, old, "data", "binaryData"), *_validate_config_map(new)]


def _default_secret(secret: JsonObject) -> None:
    secret["type"] = secret.get("type") or "Opaque"
    plain: dict[str, str] = secret.pop("stringData", None) or {}
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = dict(sorted({**section(secret, "data"), **encoded}.items()))


def _validate_secret(secret: JsonObject) -> list[FieldError]:
    kind, data = secret.get("type", ""), section(secret, "data")
    errors = _check_keys(secret, "data")
    if sum(_bytes(value) for value in data.values()) > _MAX_BYTES:
        errors.append(problems.too_long("data", _MAX_BYTES))
    errors += [problems.required(f"data[{key}]") for key in _NEEDED_KEYS.get(kind, ()) if key not in data]
    annotated = section(secret["metadata"], "annotations").get(_ACCOUNT_ANNOTATION)
    if kind == "kubernetes.io/service-account-token" and not annotated:
        errors.append(problems.required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]"))
    if kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        errors += [problems.required(f"data[{key}]") for key in ("username", "password")]
    if kind in _NEEDED_KEYS:
        errors += [error for key in _JSON_KEYS if key in data for error in _check_json(key, data[key])]
    return errors


def _check_json(key: str, encoded: str | None) -> list[FieldError]:
    """Check that a secret holds JSON; the text of the trouble is Go's for the commonest case only."""
    text = base64.b64decode(encoded or "").decode(errors="replace")
    try:
        json.loads(text)
    except ValueError as error:
        detail = _go_json_trouble(text) or str(error)
        return [problems.invalid(f"data[{key}]", "<secret contents redacted>", detail)]
    return []


def _go_json_trouble(text: str) -> str:
    stripped = text.lstrip()
    if not stripped:
        return "unexpected end of JSON input"
    for literal in ("null", "true", "false"):
        if stripped[0] != literal[0]:
            continue
        for expected, found in zip(literal[1:], stripped[1:], strict=False):
            if expected != found:
                return f"invalid character '{found}' in literal {literal} (expecting '{expected}')"
    if stripped[0] not in '{["-0123456789tfn':
        return f"invalid character '{stripped[0]}' looking for beginning of value"
    return ""


def _secret_warnings(secret: JsonObject, old: JsonObject | None) -> list[str]:
    data: dict[str, str | None] = section(secret, "data")
    if secret.get("type") != "kubernetes.io/tls" or "tls.crt" not in data:
        return []
    if b"-----BEGIN" in base64.b64decode(data["tls.crt"] or ""):
        return []
    return ["tls: failed to find any PEM data in certificate input"]


def _keep_secret_type(new: JsonObject, old: JsonObject) -> None:
    if not new.get("type"):
        new["type"] = old.get("type")


def _update_secret(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = check.unchanged("type", new.get("type"), old.get("type"))
    return [*errors, *_check_frozen(new, old, "data"), *_validate_secret(new)]


def _count_row(*fields: str) -> Callable[[JsonObject, float], list[Any]]:
    def row(obj: JsonObject, now: float) -> list[Any]:
        count = sum(len(obj.get(field) or ()) for field in fields)
        return [obj["metadata"]["name"], count, object_age(obj, now)]

    return row


def _secret_row(secret: JsonObject, now: float) -> list[Any]:
    count = len(section(secret, "data"))
    return [secret["metadata"]["name"], secret.get("type"), count, object_age(secret, now)]


STRATEGIES = {
    ("", "ConfigMap"): Strategy(
        validate=_validate_config_map,
        validate_update=_update_config_map,
        columns=(NAME, Column("Data"), AGE),
        row=_count_row("data", "binaryData"),
    ),
    ("", "Secret"): Strategy(
        default=_default_secret,
        prepare_update=_keep_secret_type,
        validate=_validate_secret,
        warnings=_secret_warnings,
        validate_update=_update_secret,
        selectable_fields={"type": text_at("type")},
        columns=(NAME, Column("Type"), Column("Data"), AGE),
        row=_secret_row,
    ),
    ("", "ServiceAccount"): Strategy(
        returns_deleted=True,
        columns=(NAME, AGE),
        row=lambda obj, now: [obj["metadata"]["name"], object_age(obj, now)],
    ),
}
