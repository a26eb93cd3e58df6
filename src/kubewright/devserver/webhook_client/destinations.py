"""Where a webhook's client configuration leads: a URL, or a Service and the endpoint behind it."""

import base64
import binascii
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote as quoted
from urllib.parse import unquote, urljoin, urlsplit

from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.status import quote
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client.failures import CallFailed


@dataclass(frozen=True, slots=True)
class Destination:
    """A server to call: its address, the name in its certificate, and the path."""

    url: str
    """The address as messages name it."""
    host: str
    port: int
    server_name: str
    target: str
    authority: str
    """The PEM of the certificates that vouch for it; empty for the machine's own."""


def destination(config: JsonObject, query: str, api: Access) -> Destination:
    """Find where a client configuration leads."""
    authority = _authority(config.get("caBundle", ""))
    service = config.get("service")
    if service is None:
        return _of_url(config.get("url", ""), query, authority)
    port = service.get("port") or 443
    name = f"{service['name']}.{service['namespace']}.svc"
    target = _target(service.get("path", ""), query)
    url = f"https://{name}:{port}{target}"
    try:
        host, endpoint_port = _endpoint(api, service["namespace"], service["name"], port)
    except CallFailed as error:
        raise CallFailed(f"Post {quote(url)}: {error}") from None
    return Destination(url, host, endpoint_port, name, target, authority)


def _of_url(url: str, query: str, authority: str) -> Destination:
    parts = urlsplit(url)
    host = parts.hostname or ""
    target = _target(parts.path, query)
    shown = f"{parts.scheme}://{parts.netloc}{target}"
    return Destination(shown, host, parts.port or 443, host, target, authority)


def redirected(place: Destination, location: str) -> Destination:
    """Return where a redirect leads: a path of the same server, or another server that the same authority vouches for."""
    parts = urlsplit(urljoin(place.url, location))
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    url = f"{parts.scheme}://{parts.netloc}{target}"
    if parts.netloc == urlsplit(place.url).netloc:
        return replace(place, url=url, target=target)
    host = parts.hostname or ""
    return Destination(url, host, parts.port or 443, host, target, place.authority)


def _target(path: str, query: str) -> str:
    """Return the path as kube-apiserver sends it: decoded, without empty, `.` and `..` segments, encoded again."""
    path = quoted(posixpath.normpath(f"/{unquote(path).lstrip('/')}"), safe="/:@!$&'()*+,;=~")
    return f"{path}?{query}" if query else path


def _authority(bundle: str) -> str:
    try:
        return base64.b64decode(bundle).decode("ascii", "replace").strip()
    except binascii.Error:
        return ""


def _endpoint(api: Access, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Find what serves a Service: one of its ready endpoints, for there is no proxy behind its address."""
    service = api.find("", "services", namespace, name)
    if service is None:
        raise CallFailed(f"service {quote(name)} not found")
    spec = section(service, "spec")
    if spec.get("type") == "ExternalName":
        return spec.get("externalName", ""), port
    chosen = next((item for item in items(spec, "ports") if item.get("port") == port), None)
    if chosen is None:
        raise CallFailed(f"no service port {port} found for service {quote(name)}")
    for host, number in _ready(api, namespace, name, chosen.get("name", "")):
        return host, number
    raise CallFailed(f"no endpoints available for service {quote(name)}")


def _ready(api: Access, namespace: str, name: str, port_name: str) -> Iterator[tuple[str, int]]:
    label = f"kubernetes.io/service-name={name}"
    for found in api.list("discovery.k8s.io", "endpointslices", namespace, label):
        numbers = [
            item["port"]
            for item in items(found, "ports")
            if item.get("name", "") == port_name and item.get("port")
        ]
        for endpoint in items(found, "endpoints"):
            if section(endpoint, "conditions").get("ready") is False or not numbers:
                continue
            for address in items(endpoint, "addresses"):
                yield address, numbers[0]
