"""Validation of webhook client configurations and of the conversion of a CRD."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.go_urls import GoUrlError, parse_url
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
    # The real server leaves out the first byte, also of a path that does not start with a slash.
    rest = text.encode()[1:].decode(errors="replace")
    for position, step in enumerate(rest.removesuffix("/").split("/")):
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
