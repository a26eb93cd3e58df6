"""A record of the permissions that each user used, as lines of JSON: what `kubewright rbac verify --role` reads.

Each permission is written once, when it is first used, so that a killed server loses none. Several servers, of tests that
run at once, may append to one file.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubewright.devserver import AuthorizationAttributes, UserInfo

MASTERS = "system:masters"
INTERNAL_USERS = frozenset({"kubewright:dev-cluster", "system:apiserver"})
"""Users of the server itself, which are not recorded."""


class UserAccess(msgspec.Struct, frozen=True, omit_defaults=True):
    """One permission that a user used, or was denied."""

    user: str
    verb: str
    group: str = ""
    resource: str = ""
    """Empty for a path that is not a resource."""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    denied: bool = False
    unrestricted: bool = False
    """The user is a member of system:masters: nothing is denied, and escalation is not checked."""

    @property
    def attributes(self) -> AuthorizationAttributes:
        """Return it as authorization sees it."""
        return AuthorizationAttributes(
            verb=self.verb,
            group=self.group,
            resource=self.resource,
            subresource=self.subresource,
            namespace=self.namespace,
            name=self.name,
            path=self.path,
        )


class AccessRecorder:
    """Append permissions to a file: pass `observe` to a server as its authorization observer."""

    def __init__(self, path: Path) -> None:
        """Open the file; raise OSError if that is not possible."""
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._seen: set[UserAccess] = set()

    def observe(self, user: UserInfo, attributes: AuthorizationAttributes, allowed: bool) -> None:
        """Record a permission."""
        if user.name in INTERNAL_USERS:
            return
        access = UserAccess(
            user=user.name,
            verb=attributes.verb,
            group=attributes.group,
            resource=attributes.resource,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
            path="" if attributes.resource else attributes.path,
            denied=not allowed,
            unrestricted=MASTERS in user.groups,
        )
        if access not in self._seen:
            self._seen.add(access)
            os.write(self._descriptor, msgspec.json.encode(access) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_accesses(path: Path) -> Iterable[UserAccess]:
    """Return the permissions in a file; raise OSError if it cannot be read, ValueError if it is not such a record."""
    decoder = msgspec.json.Decoder(UserAccess)
    found: list[UserAccess] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise ValueError(f"line {number}: {error}") from None
    return found
