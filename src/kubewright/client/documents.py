"""Kubeconfig documents: their shape, how files are read, and how several become one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubewright.api import ConfigError
from kubewright.documents import DocumentError, read_yaml


class Extension(msgspec.Struct):
    """Something a tool keeps beside an entry."""

    name: str
    extension: Any = None


class Cluster(msgspec.Struct, rename="kebab"):
    """Where a server is and how to trust it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class EnvironmentVariable(msgspec.Struct):
    """A variable that a plugin is given."""

    name: str
    value: str


class Exec(msgspec.Struct, rename="camel"):
    """A plugin that prints credentials."""

    command: str = ""
    args: list[str] | None = None
    env: list[EnvironmentVariable] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct):
    """An identity provider that is part of the client."""

    name: str
    config: dict[str, str] | None = None


class User(msgspec.Struct, rename="kebab"):
    """One identity."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: Exec | None = None


class Context(msgspec.Struct):
    """One cluster, one user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: Context | None = None


class _Document(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


# Threads read kubeconfigs side by side; msgspec's plan of these structs, made on first use, is not safe to make in two.
msgspec.convert({}, _Document)


class Origin(msgspec.Struct, frozen=True):
    """Where an entry was written: its relative paths count from there."""

    source: str
    folder: Path
    file: str = ""

    def path(self, text: str) -> str:
        """Return a path of the document as an absolute one; nothing stays nothing."""
        return str(self.folder / text) if text else ""


class Documents:
    """Several documents as one: the first to name an entry, or the current context, wins."""

    def __init__(self) -> None:
        self.current_context: str = ""
        self.clusters: dict[str, tuple[Cluster, Origin]] = {}
        self.users: dict[str, tuple[User, Origin]] = {}
        self.contexts: dict[str, Context] = {}

    @property
    def empty(self) -> bool:
        """Return True if nothing at all was configured."""
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def add(self, document: Mapping[str, Any], origin: Origin) -> None:
        """Take in one document, after those that were added before."""
        try:
            parsed = msgspec.convert(document, _Document)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{origin.source} is not a kubeconfig: {error}") from None
        self.current_context = self.current_context or parsed.current_context or ""
        _refuse_twice(origin, "cluster", (entry.name for entry in parsed.clusters or ()))
        _refuse_twice(origin, "user", (entry.name for entry in parsed.users or ()))
        _refuse_twice(origin, "context", (entry.name for entry in parsed.contexts or ()))
        for cluster in parsed.clusters or ():
            self.clusters.setdefault(cluster.name, (cluster.cluster or Cluster(), origin))
        for user in parsed.users or ():
            self.users.setdefault(user.name, (user.user or User(), origin))
        for context in parsed.contexts or ():
            self.contexts.setdefault(context.name, context.context or Context())

    def add_file(self, path: Path, *, required: bool) -> None:
        """Take in one file; one that is not required may be missing."""
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            if required:
                raise ConfigError(f"kubeconfig {path} does not exist") from None
            return
        except OSError as error:
            raise ConfigError(f"kubeconfig {path} cannot be read: {error.strerror}") from None
        document = _parse(text, f"kubeconfig {path}")
        if document is not None:
            self.add(document, Origin(f"kubeconfig {path}", path.absolute().parent, str(path.absolute())))


def _parse(text: bytes, source: str) -> dict[str, Any] | None:
    try:
        found = [document.value for document in read_yaml(text) if document.value is not None]
    except DocumentError as error:
        # Not the error's own text: it may quote a line that holds a token.
        where = f" (line {error.line}, column {error.column})" if error.line else ""
        raise ConfigError(f"{source} is not valid YAML{where}") from None
    if len(found) > 1:
        raise ConfigError(f"{source} is not a kubeconfig: it holds more than one YAML document")
    document: Any = found[0] if found else None
    if document is None:
        return None
    if not isinstance(document, dict):
        raise ConfigError(f"{source} is not a kubeconfig: it holds no mapping at its top")
    return document  # pyright: ignore[reportUnknownVariableType]  (msgspec.convert checks what it holds)


def _refuse_twice(origin: Origin, what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"{origin.source} names the {what} {name!r} twice")
        seen.add(name)
