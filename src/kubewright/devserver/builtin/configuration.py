"""ConfigMaps, Secrets and ServiceAccounts."""

import base64
import json
from collections.abc import Iterator

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, cell, printed
from kubewright.devserver.builtin.rules import ChangeCheck, immutable, validated
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Strategy

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_MAX_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
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
    """Return the number of bytes that are encoded as base64; null has none."""
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
        errors.append(problems.too_long("[]", _MAX_BYTES))
    return errors


def _immutable(*fields: str) -> ChangeCheck:
    """Make the check that an object that is immutable stays so, and keeps its fields."""

    def run(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
        if old.get("immutable"):
            if not new.get("immutable"):
                yield problems.forbidden("immutable", _IMMUTABLE)
            for field in fields:
                if section(new, field) != section(old, field):
                    yield problems.forbidden(field, _IMMUTABLE)

    return run


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
    errors += [problems.required(f"data[{key}]") for key in _REQUIRED_KEYS.get(kind, ()) if key not in data]
    annotated = section(secret["metadata"], "annotations").get(_ACCOUNT_ANNOTATION)
    if kind == "kubernetes.io/service-account-token" and not annotated:
        errors.append(problems.required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]"))
    if kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        errors += [problems.required(f"data[{key}]") for key in ("username", "password")]
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key in _JSON_KEYS and key in data:
            errors += _check_json(key, data[key])
    return errors


def _check_json(key: str, encoded: str | None) -> list[FieldError]:
    """Check that a value is JSON; the error is worded like Go's in common cases only."""
    text = base64.b64decode(encoded or "").decode(errors="replace")
    try:
        json.loads(text)
    except ValueError as error:
        detail = _go_json_error(text) or str(error)
        return [problems.invalid(f"data[{key}]", "<secret contents redacted>", detail)]
    return []


def _go_json_error(text: str) -> str:
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


def _warn_about_secret(secret: JsonObject, old: JsonObject | None) -> list[str]:
    data: dict[str, str | None] = section(secret, "data")
    if secret.get("type") != "kubernetes.io/tls" or "tls.crt" not in data:
        return []
    if b"-----BEGIN" in base64.b64decode(data["tls.crt"] or ""):
        return []
    return ["tls: failed to find any PEM data in certificate input"]


def _keep_secret_type(new: JsonObject, old: JsonObject) -> None:
    if not new.get("type"):
        new["type"] = old.get("type")


def _clean_secrets(account: JsonObject) -> None:
    """Keep only the names of the secrets of a ServiceAccount."""
    if account.get("secrets"):
        account["secrets"] = [
            {name: item[name] for name in ("name",) if name in item} for item in account["secrets"]
        ]


def _number_of_keys(obj: JsonObject) -> int:
    return sum(len(obj.get(field) or ()) for field in ("data", "binaryData"))


def _warn_about_account(new: JsonObject, old: JsonObject | None) -> list[str]:
    held_before = old is not None and _MOUNTABLE in section(old["metadata"], "annotations")
    if held_before or _MOUNTABLE not in section(new["metadata"], "annotations"):
        return []
    text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {text}"]


STRATEGIES = {
    ("", "ConfigMap"): Strategy(
        **validated(_validate_config_map, first=[_immutable("data", "binaryData")]),
        **printed(NAME, cell("Data", _number_of_keys), AGE),
    ),
    ("", "Secret"): Strategy(
        default=_default_secret,
        prepare_update=_keep_secret_type,
        **validated(_validate_secret, first=[immutable("type"), _immutable("data")]),
        warnings=_warn_about_secret,
        selectable_fields={"type": text_at("type")},
        **printed(NAME, cell("Type", "type"), cell("Data", _number_of_keys), AGE),
    ),
    ("", "ServiceAccount"): Strategy(
        warnings=_warn_about_account,
        prepare_create=_clean_secrets,
        prepare_update=lambda new, old: _clean_secrets(new),
        returns_deleted=True,
        optional_keys=True,
        **printed(NAME, AGE),
    ),
}
