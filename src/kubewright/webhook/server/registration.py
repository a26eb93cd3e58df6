"""Register webhooks with the API server: the base of every registration, and registration by Service."""

from abc import ABC, abstractmethod
from typing import Any, cast

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, JsonObject, Kind, KubewrightError, NotFound
from kubewright.client import Client
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.configurations import (
    GROUP,
    REPLACED,
    ByService,
    WebhookAddress,
    client_config,
    configurations,
    conversion,
    switched,
)

CONFIGURATIONS = {
    kind: Kind(
        group=GROUP, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False, builtin=True
    )
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}


class NotRegistered(KubewrightError):
    """The cluster lacks what the webhooks need."""


class Registration(ABC):
    """The registration of webhooks: the configurations, and the conversion of the CRDs."""

    def __init__(self, client: Client, endpoints: Endpoints, names: WebhookNames) -> None:
        self.client = client
        self.endpoints = endpoints
        self.names = names
        self.manager: str = names.manager

    async def register(self, ca_bundle: bytes) -> None:
        """Set the address and the CA bundle in all configurations and CRDs; write only what differs."""
        address = self.address(ca_bundle)
        for document in configurations(self.endpoints, self.names, address):
            await self.configure(document, address)
        for name in self.endpoints.converted:
            await self.convert(name, address)

    @abstractmethod
    async def unregister(self) -> None:
        """Remove or restore the registrations that only this process could serve."""

    @abstractmethod
    def address(self, ca_bundle: bytes) -> WebhookAddress:
        """Return the clientConfig target: how the API server reaches this process."""

    @abstractmethod
    async def configure(self, document: JsonObject, address: WebhookAddress) -> None:
        """Bring one configuration up to date."""

    def replaced(self, before: Any) -> str | None:
        """Return what to restore on exit, or None if it was the configuration of another run by URL."""
        return None

    async def convert(self, name: str, address: WebhookAddress) -> None:
        """Bring the conversion of one CRD up to date."""
        before: JsonObject = (await self.definition(name))["spec"].get("conversion") or {}
        desired = conversion(address)
        if address.other in client_config(before):
            patch = switched(desired, address.other, self.replaced(before))
            await self.client.patch(CUSTOM_RESOURCE_DEFINITION, patch, name=name, field_manager=self.manager)
        elif not covers(before, desired):
            document = _document(CUSTOM_RESOURCE_DEFINITION, name) | {"spec": {"conversion": desired}}
            await self.client.apply(document, field_manager=self.manager, kind=CUSTOM_RESOURCE_DEFINITION)

    async def definition(self, name: str) -> JsonObject:
        """Read a CRD."""
        try:
            return await self.client.get(CUSTOM_RESOURCE_DEFINITION, name)
        except NotFound as error:
            raise NotRegistered(
                f"CRD {name} is not installed: run `kubewright install` first, or with --install"
            ) from error


class ServiceRegistration(Registration):
    """Keep address and CA bundle up to date in configurations that were deployed with the operator."""

    def __init__(
        self,
        client: Client,
        endpoints: Endpoints,
        names: WebhookNames,
        service: ByService,
    ) -> None:
        super().__init__(client, endpoints, names)
        self._service = service

    def address(self, ca_bundle: bytes) -> WebhookAddress:
        """Return the Service as the target."""
        return ByService(self._service.namespace, self._service.name, ca_bundle, self._service.port)

    async def configure(self, document: JsonObject, address: WebhookAddress) -> None:
        """Set the address and the CA bundle; everything else stays as it was deployed."""
        kind, name = CONFIGURATIONS[document["kind"]], document["metadata"]["name"]
        way = "apply what `kubewright manifests --only webhooks` prints"
        try:
            live = await self.client.get(kind, name)
        except NotFound as error:
            raise NotRegistered(f"{kind.kind} {name} is not in the cluster: {way}") from error
        entries: dict[str, JsonObject] = {entry["name"]: entry for entry in live.get("webhooks") or ()}
        desired = {entry["name"]: entry["clientConfig"] for entry in document["webhooks"]}
        for missing in desired.keys() - entries.keys():
            raise NotRegistered(f"{kind.kind} {name} has no webhook {missing}: {way}")
        found = {entry: entries[entry]["clientConfig"] for entry in desired}
        if any(address.other in config for config in found.values()):
            whole = [
                entry | {"clientConfig": desired.get(each, entry["clientConfig"])}
                for each, entry in entries.items()
            ]
            patch = {"metadata": {"annotations": {REPLACED: None}}, "webhooks": whole}
            await self.client.patch(kind, patch, name=name, field_manager=self.manager)
        elif not covers(found, desired):
            partial = [{"name": entry, "clientConfig": config} for entry, config in desired.items()]
            document = _document(kind, name) | {"webhooks": partial}
            await self.client.apply(document, field_manager=self.manager, kind=kind)

    async def unregister(self) -> None:
        """Do nothing: other replicas serve the webhooks, or this one does after its restart."""


class GivenRegistration(Registration):
    """Leave registration to another program, such as OLM: read nothing and change nothing."""

    async def register(self, ca_bundle: bytes) -> None:
        """Do nothing: another program registers them."""

    async def unregister(self) -> None:
        """Do nothing: another program registers them."""

    def address(self, ca_bundle: bytes) -> WebhookAddress:
        """Raise NotRegistered: another program registers the webhooks, so the address is unknown."""
        raise NotRegistered(f"the webhooks of {self.names.operator} are registered by another program")

    async def configure(self, document: JsonObject, address: WebhookAddress) -> None:
        """Do nothing: another program registers them."""


def _document(kind: Kind, name: str) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def covers(live: Any, desired: Any) -> bool:
    """Return True if a live value contains everything that is desired; it may contain defaults of the server too."""
    match desired, live:
        case dict(), dict():
            have = cast(JsonObject, live)
            return all(
                key in have and covers(have[key], value) for key, value in cast(JsonObject, desired).items()
            )
        case list(), list():
            expected, present = cast("list[Any]", desired), cast("list[Any]", live)
            return len(present) == len(expected) and all(map(covers, present, expected))
        case _:
            return live == desired
