"""Users, and the attributes of a request that authorization decides on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.info import RequestInfo

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated user."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def to_wire(self) -> dict[str, Any]:
        """Return the user as a UserInfo object of reviews and admission requests."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


SYSTEM = UserInfo("system:apiserver", groups=(MASTERS,))
"""The user of the server's own writes."""


class AuthorizationAttributes(Struct, frozen=True):
    """What authorization decides on; `resource` is empty for non-resource paths."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @classmethod
    def of(cls, info: RequestInfo) -> "AuthorizationAttributes":
        """Return the attributes of a parsed request."""
        return cls(
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.namespace,
            info.name or info.selected_name,
            info.path,
        )


class Decision(Struct, frozen=True):
    """An authorization decision and its reason."""

    allowed: bool
    reason: str = ""


def forbidden(user: UserInfo, attributes: AuthorizationAttributes, reason: str = "") -> StatusError:
    """Return the Forbidden error for a request that authorization denied."""
    if not attributes.resource:
        why = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
        return StatusError.forbidden("", "", "", f"{why}: {reason}" if reason else why)
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {where}'
    if reason:
        why = f"{why}: {reason}"
    return StatusError.forbidden(attributes.group, attributes.resource, attributes.name, why)
