"""The conversion of a CRD: its strategy and its webhook."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from kubewright.api import FieldError, names, problems
from kubewright.schema.nodes import part

_REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def check_conversion(conversion: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Report what is wrong with the conversion; paths are those of the server's internal type."""
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
        yield from _client_config(config, f"{path}.webhookClientConfig")
    yield from _review_versions(versions, f"{path}.conversionReviewVersions")


def _client_config(config: dict[str, Any], path: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield problems.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from check_webhook_url(url, f"{path}.url")
    else:
        yield from _service(service or {}, f"{path}.service")


def check_webhook_url(url: str, path: str) -> Iterator[FieldError]:
    """Report why a URL cannot be that of a webhook."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        yield problems.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    host = parts.netloc.rpartition("@")[2]
    if not host:
        yield problems.invalid(path, "", f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        yield problems.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield problems.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield problems.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(service: dict[str, Any], path: str) -> Iterator[FieldError]:
    # The server confuses the two names here: an empty namespace is reported at the name, and vice versa.
    if not service.get("namespace"):
        yield problems.required(f"{path}.name")
    if not service.get("name"):
        yield problems.required(f"{path}.namespace")
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
        troubles = names.dns1123_subdomain(step) if step else []
        if not step:
            yield problems.invalid(path, text, f"segment[{position}] may not be empty")
        for trouble in troubles:
            yield problems.invalid(path, text, f"segment[{position}]: {trouble}")


def _review_versions(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield problems.required(path)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield problems.invalid(f"{path}[{position}]", version, "duplicate version")
            continue
        for trouble in names.dns1035_label(version):
            yield problems.invalid(f"{path}[{position}]", version, trouble)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield problems.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
