"""What the flags of kube-apiserver mean to the embedded server: files are read here, and flags without effect listed."""

import shlex
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from cryptography import x509

from kubewright.certificates import Authority, load_pair
from kubewright.devserver import (
    FEATURE_GATES,
    AuthorizationMode,
    FeatureGateError,
    KeyPair,
    KubernetesRelease,
    ServerCredentials,
    UnknownReleaseError,
    parse_feature_gates,
)
from kubewright.devserver.auth.token_keys import SigningKey, verification_keys
from kubewright.envtest.flags import OWN_FLAGS, GivenFlags, KnownFlags

SERVICE_NETWORK = "10.0.0.0/24"
"""The range of cluster IPs that the embedded server assigns, which is also that of envtest."""
_HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "10.0.0.1")
_CONTENT = {
    "client-ca-file": "any valid RSA or ECDSA certificates",
    "service-account-signing-key-file": "a valid RSA or ECDSA private key",
    "service-account-key-file": "any valid RSA or ECDSA public keys",
}
_KNOWN_MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")

_EMULATED = frozenset(
    {
        *("advertise-address", "allow-privileged", "anonymous-auth", "api-audiences", "authorization-mode"),
        *(
            "bind-address",
            "cert-dir",
            "client-ca-file",
            "disable-admission-plugins",
            "enable-admission-plugins",
        ),
        *("etcd-prefix", "etcd-servers", "feature-gates", "help", "secure-port", "service-account-issuer"),
        *("service-account-key-file", "service-account-signing-key-file", "service-cluster-ip-range"),
        *("tls-cert-file", "tls-private-key-file", "token-auth-file", "version"),
    }
)
# Flags of logs, metrics and tuning: a test cannot see whether they have an effect.
_WITHOUT_EFFECT = frozenset(
    {
        *(
            "contention-profiling",
            "profiling",
            "default-watch-cache-size",
            "watch-cache",
            "watch-cache-sizes",
        ),
        *("delete-collection-workers", "endpoint-reconciler-type", "event-ttl", "goaway-chance"),
        *("etcd-compaction-interval", "etcd-count-metric-poll-period", "etcd-db-metric-poll-interval"),
        *("etcd-healthcheck-timeout", "etcd-readycheck-timeout", "lease-reuse-duration-seconds"),
        *("log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream"),
        *("log-text-info-buffer-size", "log-text-split-stream", "logging-format", "v", "vmodule"),
        *(
            "max-mutating-requests-inflight",
            "max-requests-inflight",
            "min-request-timeout",
            "request-timeout",
        ),
        *(
            "shutdown-delay-duration",
            "storage-backend",
            "storage-media-type",
            "show-hidden-metrics-for-version",
        ),
        *("enable-priority-and-fairness", "http2-max-streams-per-connection", "enable-logs-handler"),
    }
)


class SettingsError(Exception):
    """What keeps kube-apiserver from starting with these flags."""


@dataclass(frozen=True, slots=True)
class ApiServerSettings:
    """What to serve, where and with which credentials."""

    kubernetes: str
    """The Kubernetes version to serve; empty for the newest."""
    host: str
    port: int
    etcd: str
    """The URL of etcd, which names the directory of the data."""
    etcd_prefix: str
    credentials: ServerCredentials
    authorization_modes: Sequence[AuthorizationMode]
    anonymous: bool
    enabled_plugins: Sequence[str]
    disabled_plugins: Sequence[str]
    feature_gates: Mapping[str, bool]
    controllers: bool
    nodes: int
    commands: Mapping[str, Sequence[str]] | None
    """Commands of images for Pods that run as processes; None if Pods are simulated."""
    faults: Path | None
    record_access: Path | None
    warnings: Sequence[str]


def read_settings(flags: GivenFlags, known: KnownFlags, emulated_plugins: Sequence[str]) -> ApiServerSettings:
    """Return the settings; raise SettingsError if a flag is missing or a file cannot be read."""
    modes, other_modes = _authorization_modes(flags)
    enabled, disabled, other_plugins = _plugins(flags, known, emulated_plugins)
    gates, other_gates = _feature_gates(flags)
    servers = flags.texts("etcd-servers")
    if not servers:
        raise SettingsError("--etcd-servers must be specified")
    issuers = list(flags.values.get("service-account-issuer", ()))
    if not issuers or "service-account-signing-key-file" not in flags:
        raise SettingsError(
            "--service-account-signing-key-file and --service-account-issuer are required flags"
        )
    host = flags.text("bind-address", "127.0.0.1")
    return ApiServerSettings(
        kubernetes=flags.text("kubernetes"),
        host=host,
        port=_port(flags),
        etcd=servers[0],
        etcd_prefix=flags.text("etcd-prefix", "/registry"),
        credentials=_credentials(flags, issuers, host),
        authorization_modes=modes,
        # As the real one: without authorization, requests without credentials are refused.
        anonymous=flags.flag("anonymous-auth", default=True) and "AlwaysAllow" not in modes,
        enabled_plugins=enabled,
        disabled_plugins=disabled,
        feature_gates=gates,
        controllers=flags.flag("controllers") or "pods" in flags,
        nodes=int(flags.text("nodes", "1")),
        commands=_commands(flags),
        faults=_path(flags, "faults"),
        record_access=_path(flags, "record-access"),
        warnings=list(_warnings(flags, other_modes, other_plugins, other_gates)),
    )


def image_commands(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the commands of images from texts `IMAGE=COMMAND`; raise ValueError for any other text."""
    found: dict[str, list[str]] = {}
    for text in texts:
        image, equals, words = text.partition("=")
        try:
            found[image] = shlex.split(words)
        except ValueError as error:
            raise ValueError(f"--run {text}: {error}") from None
        if not equals or not image or not found[image]:
            raise ValueError(f"--run {text}: expected IMAGE=COMMAND")
    return found


def _path(flags: GivenFlags, name: str) -> Path | None:
    return Path(flags.text(name)) if flags.text(name) else None


def _commands(flags: GivenFlags) -> dict[str, list[str]] | None:
    pods, images = flags.text("pods", "simulated"), flags.values.get("run", ())
    if pods not in ("simulated", "process"):
        raise SettingsError(f'--pods "{pods}": expected simulated or process')
    if pods == "simulated":
        if images:
            raise SettingsError("--run requires --pods=process")
        return None
    try:
        return image_commands(images)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _port(flags: GivenFlags) -> int:
    port = int(flags.text("secure-port", "6443"))
    if not 1 <= port <= 65535:
        raise SettingsError(
            f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        )
    return port


def _authorization_modes(flags: GivenFlags) -> tuple[list[AuthorizationMode], list[str]]:
    """Return the modes, and those that are not emulated."""
    given = flags.texts("authorization-mode") or ["AlwaysAllow"]
    if unknown := [mode for mode in given if mode not in _KNOWN_MODES]:
        raise SettingsError(f'authorization-mode "{unknown[0]}" is not a valid mode')
    modes: list[AuthorizationMode] = [mode for mode in get_args(AuthorizationMode) if mode in given]
    return modes, [mode for mode in given if mode not in modes]


def _plugins(
    flags: GivenFlags, known: KnownFlags, emulated: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Return the plugins to enable, those to disable, and those that were enabled but are not emulated."""
    enabled, disabled = flags.texts("enable-admission-plugins"), flags.texts("disable-admission-plugins")
    for option, names in (("enable", enabled), ("disable", disabled)):
        if unknown := [name for name in names if name not in known.admission_plugins]:
            raise SettingsError(f'{option}-admission-plugins plugin "{unknown[0]}" is unknown')
    if both := [name for name in enabled if name in disabled]:
        raise SettingsError(
            f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped"
        )
    present = [[name for name in names if name in emulated] for names in (enabled, disabled)]
    return present[0], present[1], [name for name in enabled if name not in emulated]


def _feature_gates(flags: GivenFlags) -> tuple[dict[str, bool], list[str]]:
    """Return the feature gates to switch, and those that are not emulated."""
    # A gate may be written with the component that it is of: kube:WatchList=true.
    gates = [part.rpartition(":")[2] for part in flags.texts("feature-gates")]
    emulated = [gate for gate in gates if gate.partition("=")[0] in FEATURE_GATES]
    try:
        switched = parse_feature_gates(",".join(emulated), KubernetesRelease.find(flags.text("kubernetes")))
    except (FeatureGateError, UnknownReleaseError) as error:
        raise SettingsError(str(error)) from None
    return switched, [gate for gate in gates if gate not in emulated]


def _credentials(flags: GivenFlags, issuers: Sequence[str], host: str) -> ServerCredentials:
    token_file = flags.text("token-auth-file")
    signing_key = flags.text("service-account-signing-key-file")
    client_ca = flags.text("client-ca-file")
    return ServerCredentials(
        serving=_serving(flags, host),
        client_ca=_checked("client-ca-file", client_ca, x509.load_pem_x509_certificates)
        if client_ca
        else b"",
        token_key=_checked("service-account-signing-key-file", signing_key, SigningKey.from_pem),
        token_verification_keys=[
            _checked("service-account-key-file", path, verification_keys)
            for path in flags.values.get("service-account-key-file", ())
        ],
        token_issuers=issuers,
        token_audiences=flags.texts("api-audiences"),
        token_file=Path(token_file) if token_file else None,
    )


def _checked(name: str, path: str, read: Callable[[bytes], object]) -> bytes:
    """Return the content of a file that can be read in a certain way; raise SettingsError with the flag if not."""
    data = _file(name, path)
    try:
        read(data)
    except ValueError:
        raise SettingsError(f"--{name}: {path}: data does not contain {_CONTENT[name]}") from None
    return data


def _serving(flags: GivenFlags, host: str) -> KeyPair:
    """Return the certificate of the server: given, found in the certificate directory, or new and stored there."""
    if "tls-cert-file" in flags or "tls-private-key-file" in flags:
        pair = KeyPair(_read(flags, "tls-cert-file"), _read(flags, "tls-private-key-file"))
        return _matching("tls-cert-file", flags.text("tls-cert-file"), pair)
    folder = Path(flags.text("cert-dir", "/var/run/kubernetes"))
    certificate, key = folder / "apiserver.crt", folder / "apiserver.key"
    if certificate.exists() and key.exists():
        pair = KeyPair(_file("cert-dir", str(certificate)), _file("cert-dir", str(key)))
        return _matching("cert-dir", str(certificate), pair)
    authority = Authority.create("kube-apiserver-ca")
    pair = authority.serving("kube-apiserver", (*_HOSTS, host))
    pair = KeyPair(pair.certificate + authority.pair.certificate, pair.key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SettingsError(f"--cert-dir: cannot write a certificate to {folder}: {why}") from None
    return pair


def _matching(name: str, path: str, pair: KeyPair) -> KeyPair:
    """Return the pair; raise SettingsError if it is not a certificate with its private key."""
    try:
        load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pair)
    except ssl.SSLError as error:
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        why = (
            "private key does not match public key"
            if mismatch
            else "not a certificate and a private key in PEM"
        )
        raise SettingsError(f"--{name}: {path}: {why}") from None
    return pair


def _read(flags: GivenFlags, name: str) -> bytes:
    return _file(name, flags.text(name))


def _file(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"--{name}: open {path}: {(error.strerror or str(error)).lower()}") from None


def _warnings(
    flags: GivenFlags, modes: Sequence[str], plugins: Sequence[str], gates: Sequence[str]
) -> Iterator[str]:
    others = sorted(flags.values.keys() - _EMULATED - _WITHOUT_EFFECT - OWN_FLAGS.keys())
    shown = [f"--{name}" for name in others]
    shown += [f"--authorization-mode={mode}" for mode in modes]
    shown += [f"--enable-admission-plugins={name}" for name in plugins]
    shown += [f"--feature-gates={gate}" for gate in gates]
    if not flags.flag("allow-privileged", default=True):
        shown.append("--allow-privileged=false")
    if (network := flags.text("service-cluster-ip-range", SERVICE_NETWORK)) != SERVICE_NETWORK:
        shown.append(f"--service-cluster-ip-range={network} (cluster IPs are in {SERVICE_NETWORK})")
    if shown:
        yield f"Warning: kubewright does not emulate {', '.join(shown)} of kube-apiserver"
