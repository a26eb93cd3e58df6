"""Where running operators serve their journals: on this machine, and in the Pods of a cluster.

An operator that runs on this machine writes its address and a token to a file in the user's runtime directory. A deployed
operator serves its journal on the metrics port, which is reached by port forwarding, and authenticates clients by a token:
a short-lived one of the Pod's own ServiceAccount. So the Pod receives no credentials that it does not have already, and a
kubeconfig with a client certificate is enough. The Pod's self-signed certificate is not verified, because the API server
and the kubelet ensure that the forwarded connection ends in that Pod.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from kubewright.api import ApiError, ConnectionFailed, JsonObject, Kind, NotFound
from kubewright.client import Client, ClusterConfig

OPERATOR_LABELS = "app.kubernetes.io/managed-by=kubewright,control-plane=controller-manager"
"""The labels of the Pods of deployed operators."""
_NAME_LABEL = "app.kubernetes.io/name"
_METRICS_PORT_NAME = "metrics"
# The shortest lifetime that an API server allows.
_TOKEN_LIFETIME = timedelta(minutes=10)
_POD = Kind(group="", version="v1", kind="Pod", plural="pods", builtin=True)
_LEASE = Kind(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", builtin=True)


def _no_failure() -> str:
    return ""


class JournalEndpoint(NamedTuple):
    """A running operator whose journal can be read: connect with `config` and read the path `/journal`."""

    operator: str
    source: str
    """Where it runs, for messages."""
    config: ClusterConfig
    in_cluster: bool = False
    failure: Callable[[], str] = _no_failure
    """Returns the reason of the last connection failure, if it is known; else an empty string."""


class EndpointSearch(NamedTuple):
    """The operators that were found in a cluster, and the problems of the search."""

    endpoints: list[JournalEndpoint]
    problems: list[str]


def journal_file(operator: str) -> Path:
    """Return the file with the address of an operator that runs in this process."""
    return _folder() / f"{operator}-{os.getpid()}.json"


async def local_endpoints() -> list[JournalEndpoint]:
    """Return the operators that this user runs on this machine."""
    return await asyncio.to_thread(lambda: list(_published()))


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime, "kubewright")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kubewright", "running")


def _published() -> Iterator[JournalEndpoint]:
    folder = _folder()
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text())
            url, token, pid = content["url"], content["token"], content["pid"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if _is_running(pid):
            operator = path.stem.removesuffix(f"-{pid}")
            yield JournalEndpoint(
                operator, f"the operator {operator} (process {pid})", ClusterConfig(server=url, token=token)
            )
        else:
            path.unlink(missing_ok=True)  # its operator was killed


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class OperatorPod(NamedTuple):
    """A Pod of a deployed operator that serves its journal."""

    operator: str
    namespace: str
    name: str
    service_account: str
    port: int


@asynccontextmanager
async def cluster_endpoints(
    client: Client, *, namespace: str = "", service_account: str = ""
) -> AsyncGenerator[EndpointSearch, None]:
    """Find the deployed operators, and forward a port to each of them while the context is open.

    `namespace` limits the search. `service_account`, as `NAMESPACE/NAME`, is the ServiceAccount whose token is sent to the
    Pods; by default it is that of each Pod.
    """
    problems: list[str] = []
    async with AsyncExitStack() as stack:
        found: list[JournalEndpoint] = []
        for pod in await _operator_pods(client, namespace, problems):
            where = f"Pod {pod.namespace}/{pod.name}"
            own = f"{pod.namespace}/{pod.service_account}"
            account_namespace, _, account = (service_account or own).rpartition("/")
            try:
                token = await client.token_request(
                    account, account_namespace or pod.namespace, lifetime=_TOKEN_LIFETIME
                )
            except (ApiError, ConnectionFailed) as error:
                problems.append(f"the journal of {where} was not read: {error}")
                continue
            forward = await stack.enter_async_context(client.port_forward(pod.name, pod.namespace, pod.port))
            config = ClusterConfig(
                server=f"https://127.0.0.1:{forward.port}", token=token.token, insecure=True
            )
            source = f"the operator {pod.operator} ({where})"
            found.append(JournalEndpoint(pod.operator, source, config, True, lambda it=forward: it.error))
        yield EndpointSearch(found, problems)


async def _operator_pods(client: Client, namespace: str, problems: list[str]) -> list[OperatorPod]:
    """Return the Pods whose journals to read; add failed requests to `problems`."""
    try:
        pods = await client.list(_POD, namespace=namespace, labels=OPERATOR_LABELS)
    except (ApiError, ConnectionFailed) as error:
        problems.append(f"the Pods of operators cannot be listed: {error}")
        return []
    holders: dict[tuple[str, str], str] = {}
    for place, operator in sorted({_operator_of(pod) for pod in pods}):
        try:
            lease = await client.get(_LEASE, operator, place)
        except NotFound:
            continue  # it runs without leader election
        except (ApiError, ConnectionFailed) as error:
            problems.append(f"the leader of operator {operator} is not known: {error}")
            continue
        spec: JsonObject = lease.get("spec") or {}
        holders[place, operator] = spec.get("holderIdentity") or ""
    return serving_pods(pods, holders, problems)


def serving_pods(
    pods: Sequence[JsonObject], holders: Mapping[tuple[str, str], str], problems: list[str]
) -> list[OperatorPod]:
    """Return the Pods that reconcile: for each operator the leader, or all running Pods if the leader is not known.

    `holders` has the identity in the lease of each operator, by namespace and name; it begins with the Pod's name.
    Messages about operators without a usable Pod are added to `problems`.
    """
    groups: dict[tuple[str, str], list[JsonObject]] = {}
    for pod in pods:
        groups.setdefault(_operator_of(pod), []).append(pod)
    chosen: list[OperatorPod] = []
    for (namespace, operator), members in sorted(groups.items()):
        running = [pod for pod in members if _is_serving(pod)]
        holder = holders.get((namespace, operator), "").rpartition("_")[0]
        leading = [pod for pod in running if pod["metadata"]["name"] == holder]
        if not running:
            problems.append(f"operator {operator} in namespace {namespace} has no running Pod")
        for pod in leading or running:
            name, port = pod["metadata"]["name"], _metrics_port(pod)
            if port is None:
                problems.append(
                    f"Pod {namespace}/{name} has no port named {_METRICS_PORT_NAME}, on which the journal is served"
                )
                continue
            account = pod["spec"].get("serviceAccountName") or "default"
            chosen.append(OperatorPod(operator, namespace, name, account, port))
    return chosen


def _operator_of(pod: JsonObject) -> tuple[str, str]:
    metadata: JsonObject = pod["metadata"]
    labels: JsonObject = metadata.get("labels") or {}
    return metadata["namespace"], labels.get(_NAME_LABEL, metadata["name"])


def _is_serving(pod: JsonObject) -> bool:
    status: JsonObject = pod.get("status") or {}
    return status.get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


def _metrics_port(pod: JsonObject) -> int | None:
    ports: Iterable[JsonObject] = (
        port for container in pod["spec"]["containers"] for port in container.get("ports") or ()
    )
    return next((port["containerPort"] for port in ports if port.get("name") == _METRICS_PORT_NAME), None)
