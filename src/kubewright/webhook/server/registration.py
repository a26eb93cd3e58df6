"""Make the API server ask us, whoever of the replicas comes first, and take that back where we brought it."""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any, cast
from urllib.parse import urlsplit

from kubewright.api import Kind, KubewrightError, NotFound
from kubewright.client import Client
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.configurations import GROUP, ByService, ByUrl, Place, configurations, conversion

Wire = dict[str, Any]

_log = logging.getLogger("kubewright.webhook")

CONFIGURATIONS = {
    kind: Kind(
        group=GROUP, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False, builtin=True
    )
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
DEFINITIONS = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
    builtin=True,
)


class NotRegistered(KubewrightError):
    """The cluster lacks what the webhooks need."""


class Registration(ABC):
    """What makes the API server ask: the configurations, and the conversion of the CRDs."""

    def __init__(self, client: Client, endpoints: Endpoints, names: WebhookNames) -> None:
        self.client = client
        self.endpoints = endpoints
        self.names = names
        self.manager: str = f"{names.operator}-webhooks"

    async def put_right(self, ca_bundle: bytes) -> None:
        """Make everything in the cluster point here and trust these authorities; writes only what differs."""
        place = self.place(ca_bundle)
        for document in configurations(self.endpoints, self.names, place):
            await self.configure(document, place)
        for name in self.endpoints.converted:
            await self.convert(name, place)

    @abstractmethod
    async def take_away(self) -> None:
        """Undo what only this process could serve."""

    @abstractmethod
    def place(self, ca_bundle: bytes) -> Place:
        """Say where the API server finds us."""

    @abstractmethod
    async def configure(self, document: Wire, place: Place) -> None:
        """Put one configuration right."""

    async def convert(self, name: str, place: Place) -> Wire:
        """Put the conversion of one CRD right, and return the one it had."""
        live = await self.definition(name)
        before: Wire = live["spec"].get("conversion") or {}
        wanted = conversion(place)
        if _covers(before, wanted) and place.other not in client_config(before):
            return before
        if place.other in client_config(before):
            # The server wants exactly one of url and service, and an apply cannot take away what others own.
            wanted["webhook"]["clientConfig"] |= {place.other: None}
            await self.client.patch(
                DEFINITIONS, {"spec": {"conversion": wanted}}, name=name, field_manager=self.manager
            )
        else:
            document = _document(DEFINITIONS, name) | {"spec": {"conversion": wanted}}
            await self.client.apply(document, field_manager=self.manager, kind=DEFINITIONS)
        return before

    async def definition(self, name: str) -> Wire:
        """Read a CRD."""
        try:
            return await self.client.get(DEFINITIONS, name)
        except NotFound as error:
            raise NotRegistered(
                f"CRD {name} is not installed: run `kubewright install` first, or with --install"
            ) from error


class ServiceRegistration(Registration):
    """Registered by whoever deployed the operator; only address and trust are kept right here."""

    def __init__(
        self,
        client: Client,
        endpoints: Endpoints,
        names: WebhookNames,
        service: ByService,
    ) -> None:
        super().__init__(client, endpoints, names)
        self._service = service

    def place(self, ca_bundle: bytes) -> Place:
        """Point to the Service."""
        return ByService(self._service.namespace, self._service.name, ca_bundle, self._service.port)

    async def configure(self, document: Wire, place: Place) -> None:
        """Set address and authorities; everything else is as it was deployed."""
        kind, name = CONFIGURATIONS[document["kind"]], document["metadata"]["name"]
        way = "apply what `kubewright manifests --only webhooks` prints"
        try:
            live = await self.client.get(kind, name)
        except NotFound as error:
            raise NotRegistered(f"{kind.kind} {name} is not in the cluster: {way}") from error
        entries: dict[str, Wire] = {entry["name"]: entry for entry in live.get("webhooks") or ()}
        wanted = {entry["name"]: entry["clientConfig"] for entry in document["webhooks"]}
        for missing in wanted.keys() - entries.keys():
            raise NotRegistered(f"{kind.kind} {name} has no webhook {missing}: {way}")
        if all(
            _covers(entries[entry]["clientConfig"], config) for entry, config in wanted.items()
        ) and not any(place.other in entries[entry]["clientConfig"] for entry in wanted):
            return
        if any(place.other in entries[entry]["clientConfig"] for entry in wanted):
            whole = [
                entry | ({"clientConfig": wanted[entry["name"]]} if entry["name"] in wanted else {})
                for entry in entries.values()
            ]
            await self.client.patch(kind, {"webhooks": whole}, name=name, field_manager=self.manager)
            return
        partial = [{"name": entry, "clientConfig": config} for entry, config in wanted.items()]
        await self.client.apply(
            _document(kind, name) | {"webhooks": partial}, field_manager=self.manager, kind=kind
        )

    async def take_away(self) -> None:
        """Leave everything in place: other replicas serve, or this one will again."""


class GivenRegistration(Registration):
    """Registered by somebody else, under names of that one's own: nothing is looked at and nothing is changed."""

    async def put_right(self, ca_bundle: bytes) -> None:
        """Leave it to whoever registered them."""

    async def take_away(self) -> None:
        """Leave it to whoever registered them."""

    def place(self, ca_bundle: bytes) -> Place:
        """Say nothing: the place is not ours to know."""
        raise NotRegistered(f"the webhooks of {self.names.operator} are registered by somebody else")

    async def configure(self, document: Wire, place: Place) -> None:
        """Leave it to whoever registered them."""


class UrlRegistration(Registration):
    """Registered by this process for as long as it runs; what was there before comes back afterwards."""

    def __init__(self, client: Client, endpoints: Endpoints, names: WebhookNames, base: str) -> None:
        super().__init__(client, endpoints, names)
        self._base = base
        self.leading = True
        """Whether to take over from another process that serves the same webhooks."""
        self._found: dict[tuple[str, str], list[Wire] | None] = {}
        self._conversions: dict[str, Wire] = {}

    async def put_right(self, ca_bundle: bytes) -> None:
        """Register, unless this is a standby and another replica answers."""
        if self.leading or not await self._served_elsewhere():
            await super().put_right(ca_bundle)

    def place(self, ca_bundle: bytes) -> Place:
        """Point to this process."""
        return ByUrl(self._base, ca_bundle)

    async def configure(self, document: Wire, place: Place) -> None:
        """Bring the whole configuration."""
        kind, name = CONFIGURATIONS[document["kind"]], document["metadata"]["name"]
        live = await self._entries(kind, name)
        deployed = live is not None and any(place.other in entry["clientConfig"] for entry in live)
        # What a run before us left behind is nothing to come back to.
        self._found.setdefault((kind.kind, name), live if deployed else None)
        if live and not deployed and not all(self._ours(entry["clientConfig"]) for entry in live):
            _log.info("Taking over %s, which another run has registered", name)
        if live is None:
            await self.client.apply(document, field_manager=self.manager, kind=kind)
        elif deployed or not _covers(live, document["webhooks"]):
            patch = {"webhooks": document["webhooks"]}
            await self.client.patch(kind, patch, name=name, field_manager=self.manager)

    async def convert(self, name: str, place: Place) -> Wire:
        """Take over the conversion, and remember the one that was there."""
        before = await super().convert(name, place)
        self._conversions.setdefault(name, {} if "url" in client_config(before) else before)
        return before

    async def take_away(self) -> None:
        """Leave the cluster as it was found: nothing of ours must be asked for when nobody answers."""
        for (kind, name), found in self._found.items():
            entries = await self._entries(CONFIGURATIONS[kind], name)
            if not any(self._ours(entry["clientConfig"]) for entry in entries or ()):
                continue
            if found is None:
                await self.client.delete(CONFIGURATIONS[kind], name)
            else:
                patch = {"webhooks": found}
                await self.client.patch(CONFIGURATIONS[kind], patch, name=name, field_manager=self.manager)
        for name, before in self._conversions.items():
            try:
                live = await self.client.get(DEFINITIONS, name)
            except NotFound:
                continue
            if self._ours(client_config(live["spec"].get("conversion") or {})):
                patch = {"spec": {"conversion": _restored(before)}}
                await self.client.patch(DEFINITIONS, patch, name=name, field_manager=self.manager)

    async def _served_elsewhere(self) -> bool:
        configs: list[Wire] = []
        for document in configurations(self.endpoints, self.names, self.place(b"")):
            kind, name = CONFIGURATIONS[document["kind"]], document["metadata"]["name"]
            configs += [entry["clientConfig"] for entry in await self._entries(kind, name) or ()]
        for name in self.endpoints.converted:
            live = await self.definition(name)
            configs.append(client_config(live["spec"].get("conversion") or {}))
        others = {config["url"] for config in configs if "url" in config and not self._ours(config)}
        return bool(others) and all([await answers(url) for url in others])

    async def _entries(self, kind: Kind, name: str) -> list[Wire] | None:
        try:
            return (await self.client.get(kind, name)).get("webhooks") or []
        except NotFound:
            return None

    def _ours(self, config: Wire) -> bool:
        return str(config.get("url", "")).startswith(f"{self._base}/")


async def answers(url: str) -> bool:
    """Say whether somebody listens there."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(1):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _restored(before: Wire) -> Wire:
    if before.get("strategy") != "Webhook":
        return {"strategy": "None", "webhook": None}
    config = {"url": None, "caBundle": None, **client_config(before)}
    return before | {"webhook": before["webhook"] | {"clientConfig": config}}


def _document(kind: Kind, name: str) -> Wire:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def client_config(conversion: Wire) -> Wire:
    """Give where the conversion of a CRD leads."""
    webhook: Wire = conversion.get("webhook") or {}
    return webhook.get("clientConfig") or {}


def _covers(live: Any, wanted: Any) -> bool:
    """Say whether a live value holds everything that is wanted; defaults of the server's may stand beside."""
    match wanted, live:
        case dict(), dict():
            have = cast(Wire, live)
            return all(key in have and _covers(have[key], value) for key, value in cast(Wire, wanted).items())
        case list(), list():
            wants, haves = cast("list[Any]", wanted), cast("list[Any]", live)
            return len(haves) == len(wants) and all(map(_covers, haves, wants))
        case _:
            return live == wanted
