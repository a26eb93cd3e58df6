"""Choose a cluster and an identity: from kubeconfig files by kubectl's rules, or from a Pod's ServiceAccount."""

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kubewright.api import ConfigError
from kubewright.client.config import ClusterConfig, ExecPlugin, Impersonation, InteractiveMode, OidcProvider
from kubewright.client.documents import (
    AuthProvider,
    EntryOrigin,
    Exec,
    KubeconfigCluster,
    KubeconfigDocuments,
    KubeconfigUser,
)
from kubewright.client.proxies import check_proxy, has_spaces

SERVICE_ACCOUNT = Path("var/run/secrets/kubernetes.io/serviceaccount")
MOUNTS = "CONTAINER_SANDBOX_MOUNT_POINT"
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_MODES: Mapping[str, InteractiveMode] = {"Never": "Never", "IfAvailable": "IfAvailable", "Always": "Always"}


def load_config(kubeconfig: Path | None = None, context: str | None = None) -> ClusterConfig:
    """Load the file given, else KUBECONFIG's files, else ~/.kube/config, else the Pod's ServiceAccount."""
    documents = KubeconfigDocuments()
    if kubeconfig is not None:
        documents.add_file(Path(kubeconfig), required=True)
        where = f"kubeconfig {kubeconfig}"
    else:
        paths = _default_paths()
        for path in paths:
            documents.add_file(path, required=False)
        where = f"kubeconfig {os.pathsep.join(str(path) for path in paths)}"
        if documents.empty and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return in_cluster_config()
    if documents.empty:
        raise ConfigError(
            f"no cluster is configured: {where} does not exist or is empty, and this is not a Pod. "
            "Set KUBECONFIG, pass a kubeconfig file, or use `kubewright run --dev`, which starts an embedded cluster"
        )
    return _resolve(documents, context, where)


def config_from_kubeconfig(
    document: Mapping[str, Any],
    context: str | None = None,
    *,
    source: str = "the kubeconfig",
    folder: Path | None = None,
) -> ClusterConfig:
    """Convert a kubeconfig document to a ClusterConfig; its relative paths start at `folder`."""
    documents = KubeconfigDocuments()
    documents.add(document, EntryOrigin(source, folder or Path()))
    return _resolve(documents, context, source)


def in_cluster_config(folder: Path | None = None) -> ClusterConfig:
    """Use the ServiceAccount that Kubernetes mounts into a Pod."""
    # Containers that run as processes of their host find their mounts in a folder given by an environment variable.
    folder = folder or Path(os.environ.get(MOUNTS, "/"), SERVICE_ACCOUNT)
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "not in a Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set. Pass a kubeconfig file"
        )
    token_file = folder / "token"
    if not token_file.is_file():
        raise ConfigError(
            f"the Pod has no ServiceAccount token at {token_file}: is automountServiceAccountToken off?"
        )
    namespace_file = folder / "namespace"
    namespace = namespace_file.read_text().strip() if namespace_file.is_file() else ""
    return ClusterConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace or "default",
        ca_data=_read(str(folder / "ca.crt"), "the Pod's certificate authority"),
        token_file=str(token_file),
        source="the Pod's ServiceAccount",
    )


def _default_paths() -> list[Path]:
    listed = os.environ.get("KUBECONFIG", "")
    if listed:
        return [Path(part) for part in dict.fromkeys(listed.split(os.pathsep)) if part]
    return [Path.home() / ".kube" / "config"]


def _resolve(documents: KubeconfigDocuments, context_name: str | None, where: str) -> ClusterConfig:
    name = context_name or documents.current_context
    if not name:
        raise ConfigError(
            f"{where} has no current-context: pass a context, one of {_listing(documents.contexts)}"
        )
    if name not in documents.contexts:
        raise ConfigError(f"context {name!r} is not in {where}: it has {_listing(documents.contexts)}")
    context = documents.contexts[name]
    if context.cluster not in documents.clusters:
        raise ConfigError(
            f"context {name!r} names the cluster {context.cluster!r}, which is not in {where}: "
            f"it has {_listing(documents.clusters)}"
        )
    if context.user and context.user not in documents.users:
        raise ConfigError(
            f"context {name!r} names the user {context.user!r}, which is not in {where}: "
            f"it has {_listing(documents.users)}"
        )
    cluster, cluster_origin = documents.clusters[context.cluster]
    user, user_origin = documents.users.get(context.user, (KubeconfigUser(), cluster_origin))
    whose = f"user {context.user!r} in {user_origin.source}"
    return ClusterConfig(
        namespace=context.namespace or "default",
        source=f"context {name!r} of {where}",
        **_server_side(cluster, f"cluster {context.cluster!r} in {cluster_origin.source}", cluster_origin),
        **_certificates(user, whose, user_origin),
        token=user.token,
        token_file=user_origin.path(user.token_file),
        username=user.username,
        password=user.password,
        exec=_exec_plugin(user.exec, cluster, f"exec of {whose}", user_origin),
        oidc=_oidc_provider(user.auth_provider, context.user, user_origin),
        impersonate=_impersonation(user, whose),
    )


def _server_side(cluster: KubeconfigCluster, where: str, origin: EntryOrigin) -> dict[str, Any]:
    if not cluster.server:
        raise ConfigError(f"{where} has no server")
    server = cluster.server if "://" in cluster.server else f"http://{cluster.server}"
    for value, what in ((server, "server"), (cluster.tls_server_name, "tls-server-name")):
        if has_spaces(value):
            raise ConfigError(f"{where}: {what} contains a line break, space or control character")
    if not server.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: server is not an http(s) URL")
    if cluster.insecure_skip_tls_verify and (
        cluster.certificate_authority or cluster.certificate_authority_data
    ):
        raise ConfigError(f"{where} has both insecure-skip-tls-verify and a certificate authority: keep one")
    authority = _decode(cluster.certificate_authority_data, f"certificate-authority-data of {where}")
    if not authority and cluster.certificate_authority:
        authority = _read(origin.path(cluster.certificate_authority), f"certificate-authority of {where}:")
    return {
        "server": server.rstrip("/"),
        "ca_data": authority,
        "insecure": cluster.insecure_skip_tls_verify,
        "tls_server_name": cluster.tls_server_name,
        "proxy_url": check_proxy(cluster.proxy_url, f"proxy-url of {where}") if cluster.proxy_url else "",
        "compression": cluster.disable_compression is False,
    }


def _certificates(user: KubeconfigUser, where: str, origin: EntryOrigin) -> dict[str, Any]:
    certificate = _decode(user.client_certificate_data, f"client-certificate-data of {where}")
    key = _decode(user.client_key_data, f"client-key-data of {where}")
    certificate_file = (
        "" if certificate else _existing(user.client_certificate, f"client-certificate of {where}", origin)
    )
    key_file = "" if key else _existing(user.client_key, f"client-key of {where}", origin)
    if bool(certificate or certificate_file) != bool(key or key_file):
        raise ConfigError(f"{where} has only one of client certificate and key")
    return {
        "client_cert_data": certificate,
        "client_key_data": key,
        "client_cert_file": certificate_file,
        "client_key_file": key_file,
    }


def _exec_plugin(
    given: Exec | None, cluster: KubeconfigCluster, where: str, origin: EntryOrigin
) -> ExecPlugin | None:
    if given is None:
        return None
    if not given.command:
        raise ConfigError(f"{where} names no command")
    if given.api_version not in EXEC_VERSIONS:
        raise ConfigError(
            f"{where} has apiVersion {given.api_version!r}: supported are {', '.join(EXEC_VERSIONS)}"
        )
    mode = given.interactive_mode or ("" if given.api_version == EXEC_VERSIONS[0] else "IfAvailable")
    if mode not in _MODES:
        raise ConfigError(f"{where} has interactiveMode {mode!r}: it must be one of {', '.join(_MODES)}")
    command = given.command
    if os.sep in command and not os.path.isabs(command):
        command = origin.path(command)
    extensions = {extension.name: extension.extension for extension in cluster.extensions or ()}
    return ExecPlugin(
        command=command,
        args=tuple(given.args or ()),
        env=tuple((variable.name, variable.value) for variable in given.env or ()),
        api_version=given.api_version,
        install_hint=given.install_hint,
        interactive_mode=_MODES[mode],
        provide_cluster_info=given.provide_cluster_info,
        cluster_extension=extensions.get(EXEC_EXTENSION),
    )


def _oidc_provider(given: AuthProvider | None, user: str, origin: EntryOrigin) -> OidcProvider | None:
    if given is None:
        return None
    where = f"user {user!r} in {origin.source}"
    if given.name != "oidc":
        raise ConfigError(
            f"{where} uses the auth-provider {given.name!r}, which Kubernetes has removed: use its exec plugin"
        )
    values = given.config or {}
    for required in ("idp-issuer-url", "client-id"):
        if not values.get(required):
            raise ConfigError(f"the oidc auth-provider of {where} has no {required}")
    authority = _decode(
        values.get("idp-certificate-authority-data", ""), f"idp-certificate-authority-data of {where}"
    )
    if not authority and values.get("idp-certificate-authority"):
        authority = _read(
            origin.path(values["idp-certificate-authority"]), f"idp-certificate-authority of {where}:"
        )
    return OidcProvider(
        issuer_url=values["idp-issuer-url"],
        client_id=values["client-id"],
        client_secret=values.get("client-secret", ""),
        id_token=values.get("id-token", ""),
        refresh_token=values.get("refresh-token", ""),
        ca_data=authority,
        kubeconfig=origin.file,
        user=user,
    )


def _impersonation(user: KubeconfigUser, where: str) -> Impersonation | None:
    if not user.impersonate:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise ConfigError(f"{where} has as-uid, as-groups or as-user-extra without as")
        return None
    return Impersonation(
        user=user.impersonate,
        uid=user.as_uid,
        groups=tuple(user.as_groups or ()),
        extra={key: tuple(values) for key, values in (user.as_user_extra or {}).items()},
    )


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _existing(path: str, what: str, origin: EntryOrigin) -> str:
    absolute = origin.path(path)
    if absolute and not Path(absolute).is_file():
        raise ConfigError(f"{what}: {absolute} does not exist")
    return absolute


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from None


def _decode(text: str, what: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{what} is not valid base64") from None
