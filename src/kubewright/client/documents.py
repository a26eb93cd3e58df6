"""Kubeconfig documents: their structure, reading files, and merging several documents."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from kubewright.api import ConfigError

# Loaded only if there is a kubeconfig: a Pod has none, and YAML takes a tenth of an operator's start.
YAML = "kubewright.documents"


class Extension(msgspec.Struct):
    """An extension of an entry."""

    name: str
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """The address of a server and its certificate authority."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class EnvironmentVariable(msgspec.Struct):
    """An environment variable of a plugin."""

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


class KubeconfigUser(msgspec.Struct, rename="kebab"):
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


class KubeconfigContext(msgspec.Struct):
    """One cluster, one user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: KubeconfigContext | None = None


class _Document(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


# Several threads may read kubeconfigs; msgspec's type information, created on first use, is not safe to create in two.
_converting = Lock()


class EntryOrigin(msgspec.Struct, frozen=True):
    """The file of an entry; relative paths start at its directory."""

    source: str
    folder: Path
    file: str = ""

    def path(self, text: str) -> str:
        """Return the absolute path of a path in the document; an empty path stays empty."""
        return str(self.folder / text) if text else ""


class KubeconfigDocuments:
    """Merged documents: the first one that has an entry, or the current context, wins."""

    def __init__(self) -> None:
        self.current_context: str = ""
        self.clusters: dict[str, tuple[KubeconfigCluster, EntryOrigin]] = {}
        self.users: dict[str, tuple[KubeconfigUser, EntryOrigin]] = {}
        self.contexts: dict[str, KubeconfigContext] = {}

    @property
    def empty(self) -> bool:
        """Return True if nothing is configured."""
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def add(self, document: Mapping[str, Any], origin: EntryOrigin) -> None:
        """Merge a document after those that were added before."""
        try:
            with _converting:
                parsed = msgspec.convert(document, _Document)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{origin.source} is not a kubeconfig: {error}") from None
        self.current_context = self.current_context or parsed.current_context or ""
        _refuse_twice(origin, "cluster", (entry.name for entry in parsed.clusters or ()))
        _refuse_twice(origin, "user", (entry.name for entry in parsed.users or ()))
        _refuse_twice(origin, "context", (entry.name for entry in parsed.contexts or ()))
        for cluster in parsed.clusters or ():
            self.clusters.setdefault(cluster.name, (cluster.cluster or KubeconfigCluster(), origin))
        for user in parsed.users or ():
            self.users.setdefault(user.name, (user.user or KubeconfigUser(), origin))
        for context in parsed.contexts or ():
            self.contexts.setdefault(context.name, context.context or KubeconfigContext())

    def add_file(self, path: Path, *, required: bool) -> None:
        """Merge a file; it may be missing unless it is required."""
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
            self.add(
                document, EntryOrigin(f"kubeconfig {path}", path.absolute().parent, str(path.absolute()))
            )


def _parse(text: bytes, source: str) -> dict[str, Any] | None:
    yaml: Any = import_module(YAML)
    try:
        found = [document.value for document in yaml.read_yaml(text) if document.value is not None]
    except yaml.DocumentError as error:
        # Without the error's own text: it may quote a line that contains a token.
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


def _refuse_twice(origin: EntryOrigin, what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"{origin.source} names the {what} {name!r} twice")
        seen.add(name)
