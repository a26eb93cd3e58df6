"""Command lines and configuration files of the control plane's programs, as values."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubewright.certificates import KeyPair

# File names are relative to the working directory of all programs.
AUTHORITY, SERVING, TOKENS, SERVICE_ACCOUNT_KEY = "ca", "serving", "tokens.csv", "service-accounts.key"
CONTROLLER_MANAGER, SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
SCHEDULER_CONFIGURATION = "scheduler.yaml"
# Names by which clients may reach the API server; 10.0.0.1 is the IP of the Service `kubernetes` in the range below.
HOSTS = ("127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")

# etcd requires host:port even for a socket: it creates a file of that name, in a directory that only its owner can read.
_CLIENTS, _PEERS = "localhost:1", "localhost:2"


def etcd() -> list[str]:
    """Return etcd's flags: one member, on sockets, without fsync."""
    return [
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls=unix://{_CLIENTS}",
        f"--advertise-client-urls=unix://{_CLIENTS}",
        f"--listen-peer-urls=unix://{_PEERS}",
        f"--initial-advertise-peer-urls=unix://{_PEERS}",
        f"--initial-cluster=default=unix://{_PEERS}",
    ]


def api_server(directory: Path, port: int, feature_gates: Mapping[str, bool]) -> list[str]:
    """Return kube-apiserver's flags: a cluster's defaults, with RBAC, certificates and static tokens."""
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in feature_gates.items())
    return [
        f"--etcd-servers=unix://{directory}/{_CLIENTS}",
        "--etcd-count-metric-poll-period=0",
        "--etcd-db-metric-poll-interval=0",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # Endpoints must not contain a loopback address: without this the server would retry forever.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={SERVING}.crt",
        f"--tls-private-key-file={SERVING}.key",
        f"--client-ca-file={AUTHORITY}.crt",
        f"--token-auth-file={TOKENS}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={SERVICE_ACCOUNT_KEY}",
        f"--service-account-signing-key-file={SERVICE_ACCOUNT_KEY}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged=true",
        "--profiling=false",
        *([f"--feature-gates={gates}"] if gates else ()),
    ]


def controller_manager() -> list[str]:
    """Return kube-controller-manager's flags: every controller, and a very high client-side rate limit."""
    return [
        f"--kubeconfig={CONTROLLER_MANAGER}.kubeconfig",
        "--controllers=*",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={SERVICE_ACCOUNT_KEY}",
        f"--root-ca-file={AUTHORITY}.crt",
        f"--cluster-signing-cert-file={AUTHORITY}.crt",
        f"--cluster-signing-key-file={AUTHORITY}.key",
        "--flex-volume-plugin-dir=volume-plugins",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--secure-port=0",
    ]


def scheduler() -> list[str]:
    """Return kube-scheduler's flags."""
    return [f"--config={SCHEDULER_CONFIGURATION}", "--secure-port=0"]


def scheduler_configuration() -> dict[str, Any]:
    """Return kube-scheduler's configuration file."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{SCHEDULER}.kubeconfig", "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
    }


def kubeconfig(server: str, authority: bytes, users: Mapping[str, KeyPair]) -> dict[str, Any]:
    """Return a kubeconfig with one context per user; the first is the current context."""
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubewright", "cluster": cluster}],
        "users": [{"name": user, "user": _credentials(pair)} for user, pair in users.items()],
        "contexts": [{"name": user, "context": {"cluster": "kubewright", "user": user}} for user in users],
        "current-context": next(iter(users)),
    }


def _credentials(pair: KeyPair) -> dict[str, str]:
    return {"client-certificate-data": _encoded(pair.certificate), "client-key-data": _encoded(pair.key)}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
