"""How to reach one cluster, and with which identity: plain values, no I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import msgspec

from kubewright.api import ApiError
from kubewright.client.requests import ApiRequest
from kubewright.http.client import MAX_CONNECTIONS, Exchange

InteractiveMode = Literal["Never", "IfAvailable", "Always"]
Observer = Callable[[ApiRequest, int, ApiError | None], None]
"""Called with each request, the status code of its response, and the API error if there was one."""


class Discreet(msgspec.Struct, frozen=True):
    """Base class of values whose repr omits secrets."""

    secret: ClassVar[frozenset[str]]

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Yield the fields that are not secret."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in self.secret]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"
        )


class ExecPlugin(Discreet, frozen=True):
    """A program that prints credentials (`client.authentication.k8s.io`)."""

    secret: ClassVar[frozenset[str]] = frozenset({"args", "env", "cluster_extension"})
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    provide_cluster_info: bool = False
    cluster_extension: Any = None


class OidcProvider(Discreet, frozen=True):
    """An OpenID Connect identity whose token the client refreshes.

    Refreshed tokens are stored in `kubeconfig` for `user`: a provider that rotates refresh tokens invalidates the
    stored one.
    """

    secret: ClassVar[frozenset[str]] = frozenset({"client_secret", "id_token", "refresh_token", "ca_data"})
    issuer_url: str
    client_id: str
    client_secret: str = ""
    id_token: str = ""
    refresh_token: str = ""
    ca_data: bytes = b""
    kubeconfig: str = ""
    user: str = ""


class Impersonation(msgspec.Struct, frozen=True):
    """The identity to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One cluster, one identity and one namespace; repr does not show secrets.

    `source` is its origin, for messages. `observer` is called with each request and its result.
    `max_connections` limits the requests in progress; each stream, such as a watch, has a further connection.
    `exchange` creates an `Exchange` that replaces kubewright's own HTTP: another library, or a server in the process.
    """

    server: str
    namespace: str = "default"
    ca_data: bytes = field(default=b"", repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    compression: bool = False
    client_cert_data: bytes = field(default=b"", repr=False)
    client_key_data: bytes = field(default=b"", repr=False)
    client_cert_file: str = ""
    client_key_file: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecPlugin | None = None
    oidc: OidcProvider | None = None
    impersonate: Impersonation | None = None
    source: str = "the given configuration"
    observer: Observer | None = field(default=None, repr=False, compare=False)
    max_connections: int = MAX_CONNECTIONS
    exchange: Callable[[], Exchange] | None = field(default=None, repr=False, compare=False)


class RateLimit(msgspec.Struct, frozen=True):
    """Limit how many requests a client starts each second; by default there is no limit."""

    rate: float
    burst: int = 1
