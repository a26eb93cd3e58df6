"""Registration by URL: lasts as long as a run outside the cluster; also the cleanup after it."""

import asyncio
import logging
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    ApiError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    JsonObject,
    Kind,
    NotFound,
)
from kubewright.client import Client
from kubewright.http.network import NETWORK
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.configurations import (
    REPLACED,
    ByService,
    ByUrl,
    WebhookAddress,
    client_config,
    configurations,
    conversion,
    switched,
)
from kubewright.webhook.server.registration import (
    CONFIGURATIONS,
    NotRegistered,
    Registration,
    covers,
)

ATTEMPTS = 5
_log = logging.getLogger("kubewright.webhook")


class UrlRegistration(Registration):
    """Registration by this process while it runs; afterwards the deployed registration is restored."""

    def __init__(
        self,
        client: Client,
        endpoints: Endpoints,
        names: WebhookNames,
        base: str,
        *,
        leading: bool = True,
        ephemeral_cluster: bool = False,
        declared_policies: bool = False,
    ) -> None:
        super().__init__(client, endpoints, names)
        self._base = base
        self.leading: bool = leading
        """Whether to take over from another process that serves the same webhooks."""
        self._ephemeral_cluster = ephemeral_cluster
        self._declared_policies = declared_policies
        self._registered = False
        self._yielded = False

    def lead(self) -> None:
        """Take over at the next `register`, even from a process that responds."""
        self.leading, self._registered = True, False

    async def register(self, ca_bundle: bytes) -> None:
        """Register, unless another process responds and this one is a standby or registered earlier.

        The run that started last is called. Otherwise two runs would replace each other's registration forever.
        """
        try:
            await self._register_unless_served(ca_bundle)
        except Forbidden as error:
            raise NotRegistered(
                f"{error}. A run outside the cluster registers its webhooks itself: apply what `kubewright manifests "
                "TARGET --only rbac --webhook-reach url` prints, or run without webhooks (--webhook-bind-address 0)"
            ) from error

    async def _register_unless_served(self, ca_bundle: bytes) -> None:
        if self._registered or not self.leading:
            other = await self._other_registration()
            if other and self._registered and not self._yielded:
                self._yielded = True
                _log.warning(
                    "The webhooks of %s are registered at %s now: start this run again to take them back",
                    self.names.operator,
                    other,
                )
            if other:
                return
        await super().register(ca_bundle)
        self._registered, self._yielded = True, False

    def address(self, ca_bundle: bytes) -> WebhookAddress:
        """Return the URL of this process."""
        return ByUrl(self._base, ca_bundle, self._declared_policies)

    def replaced(self, before: Any) -> str | None:
        """Return the deployed configuration, to restore it on exit."""
        return msgspec.json.encode(before).decode()

    async def configure(self, document: JsonObject, address: WebhookAddress) -> None:
        """Write the whole configuration."""
        kind, name = CONFIGURATIONS[document["kind"]], document["metadata"]["name"]
        live = await _live(self.client, kind, name)
        if live is None:
            await self.client.apply(document, field_manager=self.manager, kind=kind)
            return
        entries: list[JsonObject] = live.get("webhooks") or []
        deployed = any(address.other in found for found in addresses_of(live))
        if entries and not deployed and not self._ours(live):
            _log.info("Taking over %s, which another run has registered", name)
        patch: JsonObject = {"webhooks": document["webhooks"]}
        if deployed:
            patch["metadata"] = {"annotations": {REPLACED: self.replaced(entries)}}
        if deployed or not covers(entries, document["webhooks"]):
            await self.client.patch(kind, patch, name=name, field_manager=self.manager)

    async def unregister(self) -> None:
        """Restore what was deployed; without that, remove the configurations and keep conversions registered.

        A webhook that no longer runs must not block writes. But without a conversion webhook the API server would
        change `apiVersion` and drop every field that has another name in the other version: it is better that such
        requests fail until the operator runs again.
        """
        registered = [
            *(
                (CONFIGURATIONS[document["kind"]], document["metadata"]["name"])
                for document in configurations(self.endpoints, self.names, self.address(b""))
            ),
            *((CUSTOM_RESOURCE_DEFINITION, name) for name in self.endpoints.converted),
        ]
        for kind, name in registered:
            try:
                await self._take_away(kind, name)
            except (ApiError, ConnectionFailed) as error:
                _log.error("%s %s could not be taken away: %s", kind.kind, name, error)

    async def _take_away(self, kind: Kind, name: str) -> None:
        for _ in range(ATTEMPTS):
            live = await _live(self.client, kind, name)
            if live is None or not self._ours(live):
                return
            try:
                left = await restore_deployed(self.client, kind, live, self.names)
            except Conflict:
                # Another run may be taking over right now: do not remove what it writes.
                continue
            if left is not None and kind == CUSTOM_RESOURCE_DEFINITION and not self._ephemeral_cluster:
                _warn_of(left)
            return

    def _ours(self, live: JsonObject) -> bool:
        return any(self._is_here(address) for address in addresses_of(live))

    def _is_here(self, address: JsonObject) -> bool:
        return str(address.get("url", "")).startswith(f"{self._base}/")

    async def _other_registration(self) -> str:
        """Return the URL or Service that is registered instead of this process; empty if there is none that responds."""
        found: list[JsonObject] = []
        for document in configurations(self.endpoints, self.names, self.address(b"")):
            live = await _live(self.client, CONFIGURATIONS[document["kind"]], document["metadata"]["name"])
            found += addresses_of(live) if live is not None else []
        for name in self.endpoints.converted:
            found += addresses_of(await self.definition(name))
        others = [address for address in found if not self._is_here(address)]
        if self._registered and (services := [config["service"] for config in others if "service" in config]):
            return f"Service {services[0]['namespace']}/{services[0]['name']}"
        urls = sorted({config["url"] for config in others if "url" in config})
        return urls[0] if urls and all([await listens(url) for url in urls]) else ""


async def restore_deployed(
    client: Client, kind: Kind, live: JsonObject, names: WebhookNames
) -> JsonObject | None:
    """Restore what a run by URL replaced; without that, remove its configuration.

    A conversion is pointed to the Service of an operator that may be deployed later. Return what was written.
    Raise Conflict if `live` has changed since it was read.
    """
    metadata: JsonObject = live["metadata"]
    name, version = metadata["name"], metadata["resourceVersion"]
    before = _replaced(live)
    if kind == CUSTOM_RESOURCE_DEFINITION:
        before = before or conversion(ByService(names.namespace, names.service))
        patch = switched(before, "url", None)
    elif before:
        patch = {"metadata": {"annotations": {REPLACED: None}}, "webhooks": before}
    else:
        await client.delete(kind, name, resource_version=version)
        return None
    patch["metadata"]["resourceVersion"] = version
    return await client.patch(kind, patch, name=name, field_manager=names.manager)


async def listens(url: str) -> bool:
    """Return True if a server listens at the URL."""
    parts = urlsplit(url)
    network = NETWORK.get()
    if network is not None:
        return network.listens(parts.hostname or "", parts.port or 443)
    try:
        async with asyncio.timeout(1):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _warn_of(definition: JsonObject) -> None:
    """Warn about versions without a conversion webhook from now on, unless a deployed operator converts them."""
    spec: JsonObject = definition["spec"]
    # An operator behind the Service has set its CA bundle there.
    if "caBundle" in client_config(spec["conversion"]):
        return
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    _log.warning(
        "No webhook converts %s now: requests in another version than %s fail until the operator runs again "
        "(`kubewright run` or `kubewright deploy`)",
        definition["metadata"]["name"],
        stored,
    )


def _replaced(live: JsonObject) -> Any:
    """Return what a run by URL replaced, or None if there was nothing or it cannot be read."""
    annotations: dict[str, str] = live["metadata"].get("annotations") or {}
    try:
        return msgspec.json.decode(annotations.get(REPLACED, "null"))
    except msgspec.DecodeError:
        return None


async def _live(client: Client, kind: Kind, name: str) -> JsonObject | None:
    try:
        return await client.get(kind, name)
    except NotFound:
        return None


def addresses_of(live: JsonObject) -> list[JsonObject]:
    """Return the client configurations of a webhook configuration or a CRD."""
    if "spec" not in live:
        entries: list[JsonObject] = live.get("webhooks") or []
        return [entry["clientConfig"] for entry in entries]
    config = client_config(live["spec"].get("conversion") or {})
    return [config] if config else []
