"""The webhooks of one operator with their paths and names."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from kubewright.api import DeclarationError, Kind, kind_of
from kubewright.webhook.authentication import Authentication
from kubewright.webhook.conversion import Conversion, Versions, versions_of
from kubewright.webhook.declaration import Admission

CONVERT_PATH = "/convert"

Webhook: TypeAlias = Admission[Any] | Conversion[Any, Any] | Authentication


class WebhookEndpoint(msgspec.Struct, frozen=True):
    """One admission webhook with its path and its name in the webhook configuration."""

    webhook: Admission[Any]
    path: str
    name: str


class Endpoints:
    """All webhooks of an operator; raises for webhooks with the same path or name."""

    def __init__(self, webhooks: Iterable[Webhook] = ()) -> None:
        declared = list(dict.fromkeys(webhooks))
        admissions = [each for each in declared if isinstance(each, Admission)]
        self.conversions: tuple[Conversion[Any, Any], ...] = tuple(
            each for each in declared if isinstance(each, Conversion)
        )
        self.versions: Mapping[tuple[str, str], Versions] = versions_of(self.conversions)
        self.authentications: tuple[Authentication, ...] = tuple(
            each for each in declared if isinstance(each, Authentication)
        )
        taken = {CONVERT_PATH}
        for each in self.authentications:
            if each.path in taken:
                raise DeclarationError(f"{each!r}: path={each.path!r} is taken: choose another")
            taken.add(each.path)
        self.admissions: tuple[WebhookEndpoint, ...] = tuple(_endpoints(admissions, taken))

    def __bool__(self) -> bool:
        return bool(self.admissions or self.conversions or self.authentications)

    @property
    def mutating(self) -> tuple[WebhookEndpoint, ...]:
        """Return the mutating webhooks, in the order of their declaration."""
        return tuple(endpoint for endpoint in self.admissions if endpoint.webhook.mutates)

    @property
    def validating(self) -> tuple[WebhookEndpoint, ...]:
        """Return the validating webhooks."""
        return tuple(endpoint for endpoint in self.admissions if not endpoint.webhook.mutates)

    @property
    def converted(self) -> tuple[str, ...]:
        """Return the names of the CRDs with a conversion webhook."""
        return tuple(versions.kind.resource for versions in self.versions.values())

    @property
    def unvalidated_scales(self) -> tuple[Kind, ...]:
        """Return kinds whose objects are validated but whose `scale` is not: API servers treat it as another resource."""
        validating = [endpoint.webhook for endpoint in self.validating if "update" in endpoint.webhook.on]
        scales = {webhook.resource.resource for webhook in validating if "scale" in webhook.subresources}
        found = {
            webhook.resource.resource: webhook.resource
            for webhook in validating
            if webhook.resource.scale is not None and not webhook.subresources
        }
        return tuple(kind for name, kind in found.items() if name not in scales)

    def without(self, names: Collection[str]) -> "Endpoints":
        """Return the webhooks without the admission webhooks of these names."""
        kept = (each.webhook for each in self.admissions if each.name not in names)
        return Endpoints([*kept, *self.conversions, *self.authentications])

    def check(self, kinds: Iterable[type[Any]]) -> None:
        """Raise DeclarationError for a version of the operator that has no conversion."""
        for declared in kinds:
            kind = kind_of(declared)
            versions = self.versions.get((kind.group, kind.kind))
            if versions is not None and kind.api_version not in versions.classes:
                hub = versions.hub.__name__
                raise DeclarationError(
                    f"{declared.__name__} ({kind.version}) cannot be converted: "
                    f"add kw.Conversion({hub}, {declared.__name__}, up=..., down=...)"
                )


def _endpoints(admissions: Iterable[Admission[Any]], taken: Iterable[str]) -> Iterable[WebhookEndpoint]:
    """Yield endpoints with kubebuilder's paths; a further webhook of the same kind appends its name."""
    paths = set(taken)
    seen: dict[tuple[bool, str], Admission[Any]] = {}
    for webhook in admissions:
        path = webhook.path or _path(webhook)
        if webhook.path and path in paths:
            raise DeclarationError(f"{webhook!r}: path={path!r} is taken: choose another")
        if path in paths:
            path = f"{path}/{webhook.name}"
        name = _entry_name(webhook)
        other = seen.setdefault((webhook.mutates, name), webhook)
        if other is not webhook:
            raise DeclarationError(f'{webhook!r} is declared twice: give one of them name="..."')
        paths.add(path)
        yield WebhookEndpoint(webhook, path, name)


def _path(webhook: Admission[Any]) -> str:
    kind = kind_of(webhook.kind)
    return f"/{webhook.verb}-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"


def _entry_name(webhook: Admission[Any]) -> str:
    """Return a fully qualified name, as webhook configurations require."""
    if webhook.name.count(".") >= 2:
        return webhook.name
    resource = webhook.resource
    return f"{webhook.name}.{resource.plural}.{resource.group or 'core'}"
