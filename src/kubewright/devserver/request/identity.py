"""Who asks and for what: the values and faces that authentication and authorization meet at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.info import FINGERPRINT, RequestInfo

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody the server knows."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def to_wire(self) -> dict[str, Any]:
        """Write the user as review kinds and admission requests show one."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


SYSTEM = User("system:apiserver", groups=(MASTERS,))
"""The server itself, as it writes its own objects."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do; `resource` is empty for paths that are not API objects."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @classmethod
    def of(cls, info: RequestInfo) -> "Attributes":
        """Read the attributes from what the path asks for."""
        return cls(
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.namespace,
            info.name,
            info.path,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request may go on, and why."""

    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    """Tell who sends a request."""

    def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User:
        """Name the user, or raise `StatusError.unauthorized`."""
        ...


class Authorizer(Protocol):
    """Tell what a user may do."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Decide about one request."""
        ...


class CertificateAuthenticator:
    """Know users by their verified client certificate: the common name, and organizations as groups."""

    def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User:
        """Name the user of a client certificate."""
        if peer_certificate is None or "authorization" in headers:
            raise StatusError.unauthorized()
        name, groups = "", list[str]()
        for part in peer_certificate.get("subject", ()):
            for key, value in part:
                if key == "commonName":
                    name = value
                elif key == "organizationName":
                    groups.append(value)
        if not name:
            raise StatusError.unauthorized()
        fingerprint = peer_certificate.get(FINGERPRINT)
        extra = {CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)} if fingerprint else {}
        return User(name, groups=(*groups, AUTHENTICATED), extra=extra)


def forbidden(user: User, attributes: Attributes, reason: str = "") -> StatusError:
    """Build the refusal in the real server's words."""
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
