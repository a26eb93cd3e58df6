"""Validation of webhook client configurations, the conversion of a CRD, and URLs as Go parses them."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.json_tree import part

_FORM = "; desired format: https://host[/path]"


def check_webhook_client(config: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors in a webhook's clientConfig."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield problems.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from check_webhook_url(url, f"{path}.url")
    else:
        yield from _service(service or {}, f"{path}.service")


def check_webhook_url(text: str, path: str) -> Iterator[FieldError]:
    """Yield the reasons why a URL cannot be that of a webhook."""
    try:
        url = parse_url(text)
    except GoUrlError as error:
        yield problems.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    checks = (
        (url.scheme != "https", url.scheme, f"'https' is the only allowed URL scheme{_FORM}"),
        (not url.host, url.host, f"host must be specified{_FORM}"),
        (url.user, url.user, "user information is not permitted in the URL"),
        (url.fragment, url.fragment, "fragments are not permitted in the URL"),
        (url.query, url.query, "query parameters are not permitted in the URL"),
    )
    yield from (problems.invalid(path, shown, text) for wrong, shown, text in checks if wrong)


def _service(service: dict[str, Any], path: str) -> Iterator[FieldError]:
    # The API server swaps the two arguments: a missing name is reported as a missing namespace, and the reverse.
    for missing, reported in (("namespace", "name"), ("name", "namespace")):
        if not service.get(missing):
            yield problems.required(f"{path}.{reported}")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield problems.invalid(
            f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"
        )
    yield from _url_path(service.get("path"), f"{path}.path")


def _url_path(text: str | None, path: str) -> Iterator[FieldError]:
    if text in (None, "", "/"):
        return
    if text == "//":
        yield problems.invalid(path, text, "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield problems.invalid(path, text, "must start with a '/'")
    for position, step in enumerate(text[1:].removesuffix("/").split("/")):
        messages = names.dns1123_subdomain(step) if step else []
        if not step:
            yield problems.invalid(path, text, f"segment[{position}] may not be empty")
        for message in messages:
            yield problems.invalid(path, text, f"segment[{position}]: {message}")


_REVIEW_VERSIONS = ("v1", "v1beta1")


def check_conversion(conversion: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors in the conversion; paths are those of the server's internal type."""
    strategy = conversion.get("strategy", "")
    webhook = part(conversion, "webhook")
    config: dict[str, Any] | None = webhook.get("clientConfig")
    versions: list[str] = webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield problems.required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield problems.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield problems.forbidden(f"{path}.webhookClientConfig", text)
        if versions:
            yield problems.forbidden(f"{path}.conversionReviewVersions", text)
        return
    if config is None:
        yield problems.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from check_webhook_client(config, f"{path}.webhookClientConfig")
    yield from _review_versions(versions, f"{path}.conversionReviewVersions")


def _review_versions(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield problems.required(path)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield problems.invalid(f"{path}[{position}]", version, "duplicate version")
            continue
        for message in names.dns1035_label(version):
            yield problems.invalid(f"{path}[{position}]", version, message)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield problems.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


# The ASCII characters that a host may contain.
_HOST_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\""
)
_USER = r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*"
_CONTROL = r"[\x00-\x1f\x7f]"
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):(.*)"


class GoUrlError(ValueError):
    """A string that is not a URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class GoUrl:
    """The parts of a URL, not unescaped."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(text: str) -> GoUrl:
    """Parse a URL; raise GoUrlError with Go's message if it is invalid."""
    rest, _, fragment = text.partition("#")
    try:
        found = _parse(rest)
    except GoUrlError as error:
        raise GoUrlError(f"parse {problems.quoted(rest)}: {error}") from None
    try:
        _check_escapes(fragment)
    except GoUrlError as error:
        raise GoUrlError(f"parse {problems.quoted(text)}: {error}") from None
    return GoUrl(found.scheme, found.user, found.host, found.path, found.query, fragment)


def _parse(text: str) -> GoUrl:
    if re.search(_CONTROL, text):
        raise GoUrlError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise GoUrlError("missing protocol scheme")
    match = re.fullmatch(_SCHEME, text, re.DOTALL)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme, query=query)
        if ":" in rest.partition("/")[0]:
            raise GoUrlError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    _check_escapes(rest)
    return GoUrl(scheme, user, host, rest, query)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    _check_host(host)
    if not re.fullmatch(_USER, user, re.ASCII):
        raise GoUrlError("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _check_host(host: str) -> None:
    if "[" in host[1:]:
        raise GoUrlError("invalid IP-literal")
    if host.startswith("["):
        inside, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise GoUrlError("missing ']' in host")
        _check_port(port)
        name, _, _ = inside.partition("%25")
        _check_host_characters(name)
        _check_literal(name)
        return
    name, colon, port = host.partition(":")
    _check_port(colon + port)
    _check_host_characters(name)


def _check_literal(name: str) -> None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        raise GoUrlError(f"invalid host: ParseAddr({problems.quoted(name)}): unable to parse IP") from None
    if found.version == 4:
        raise GoUrlError("invalid IP-literal")


def _check_port(text: str) -> None:
    if text and not re.fullmatch(":[0-9]*", text, re.ASCII):
        raise GoUrlError(f"invalid port {problems.quoted(text)} after host")


def _check_host_characters(name: str) -> None:
    _check_escapes(name, host=True)
    for char in re.sub("%..", "", name):
        if char.isascii() and char not in _HOST_CHARACTERS:
            raise GoUrlError(f"invalid character {problems.quoted(char)} in host name")


def _check_escapes(text: str, *, host: bool = False) -> None:
    """Validate percent escapes; in a host, only bytes beyond ASCII may be escaped."""
    for match in re.finditer("%.{0,2}", text, re.DOTALL):
        escape = match[0]
        known = re.fullmatch("%[0-9A-Fa-f]{2}", escape, re.ASCII)
        if not known or (host and int(escape[1], 16) < 8 and escape != "%25"):
            raise GoUrlError(f"invalid URL escape {problems.quoted(escape)}")
