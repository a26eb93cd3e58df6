"""How a webhook is reached: by a URL or through a Service."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.urls import UrlError, parse_url

_FORM = "; desired format: https://host[/path]"


def check_webhook_client(
    config: dict[str, Any], path: str, *, confused: bool = False
) -> Iterator[FieldError]:
    """Report what is wrong with a webhook's address; where names are confused, each is missed as the other."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield problems.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from check_webhook_url(url, f"{path}.url")
    else:
        yield from _service(service or {}, f"{path}.service", confused=confused)


def check_webhook_url(text: str, path: str) -> Iterator[FieldError]:
    """Report why a URL cannot be that of a webhook."""
    try:
        url = parse_url(text)
    except UrlError as error:
        yield problems.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    refused = (
        (url.scheme != "https", url.scheme, f"'https' is the only allowed URL scheme{_FORM}"),
        (not url.host, url.host, f"host must be specified{_FORM}"),
        (url.user, url.user, "user information is not permitted in the URL"),
        (url.fragment, url.fragment, "fragments are not permitted in the URL"),
        (url.query, url.query, "query parameters are not permitted in the URL"),
    )
    yield from (problems.invalid(path, shown, text) for wrong, shown, text in refused if wrong)


def _service(service: dict[str, Any], path: str, *, confused: bool) -> Iterator[FieldError]:
    for name, other in (("name", "namespace"), ("namespace", "name")):
        if not service.get(other if confused else name):
            yield problems.required(f"{path}.{name}")
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
