"""`Client`: all verbs; scale, eviction, tokens, logs and port-forward are in this module."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kubewright.api import (
    DecodeError,
    JsonObject,
    Kind,
    Object,
    UnexpectedResponse,
    decode,
    kind_of,
)
from kubewright.api.meta import Propagation
from kubewright.client import requests
from kubewright.client.port_forward import PORT_FORWARD_PROTOCOL, PortForward, forwarded
from kubewright.client.requests import ApiRequest
from kubewright.client.writer import ClientWriter
from kubewright.http.client import ClientWebSocket, handshake_headers

PODS = Kind(group="", version="v1", kind="Pod", plural="pods", status=True, builtin=True)
SERVICE_ACCOUNTS = Kind(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", builtin=True)
LOG_IDLE_TIMEOUT = 3600.0


class ScaleReplicas(msgspec.Struct):
    """The spec or the status of a scale."""

    replicas: int = 0
    selector: str = ""


class ScaleState(msgspec.Struct):
    """A scale subresource: desired replicas, current replicas and the selector."""

    spec: ScaleReplicas = msgspec.field(default_factory=ScaleReplicas)
    status: ScaleReplicas = msgspec.field(default_factory=ScaleReplicas)


class _TokenStatus(msgspec.Struct, rename="camel"):
    token: str
    expiration_timestamp: datetime


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


class ServiceAccountToken:
    """A token of a ServiceAccount; repr does not show it."""

    __slots__ = ("expires", "token")

    def __init__(self, token: str, expires: datetime) -> None:
        self.token: str = token
        self.expires: datetime = expires

    def __repr__(self) -> str:
        return f"ServiceAccountToken(expires={self.expires:%Y-%m-%dT%H:%M:%SZ})"


class Client(ClientWriter):
    """A client of one cluster: `async with Client(load_config()) as client: ...`.

    Kinds are given as classes, and objects are typed; or as `Kind`, and objects are dicts.
    Every request has a timeout. Methods raise the exceptions of `kubewright.api.failures`.
    """

    async def get_scale(self, kind: type[Object] | Kind, name: str, namespace: str = "") -> ScaleState:
        """Read the current and desired replicas of an object."""
        return await self._struct(
            ScaleState, requests.get(kind_of(kind), name, namespace, subresource="scale")
        )

    async def scale(
        self,
        kind: type[Object] | Kind,
        name: str,
        namespace: str = "",
        *,
        replicas: int,
        dry_run: bool = False,
    ) -> ScaleState:
        """Set the desired replicas of an object."""
        request = requests.patch(
            kind_of(kind),
            name,
            namespace,
            {"spec": {"replicas": replicas}},
            subresource="scale",
            field_manager=self.field_manager,
            dry_run=dry_run,
        )
        return await self._struct(ScaleState, request)

    async def evict(
        self,
        name: str,
        namespace: str,
        *,
        uid: str = "",
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Evict a Pod; raise TooManyRequests immediately if its disruption budget does not allow it."""
        options = requests.delete_options(uid, "", propagation, grace_period_seconds, dry_run)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        await self.raw(
            requests.post_subresource(PODS, name, namespace, "eviction", eviction, honor_retry_after=False)
        )

    async def token_request(
        self,
        service_account: str,
        namespace: str,
        *,
        audiences: tuple[str, ...] = (),
        lifetime: timedelta = timedelta(hours=1),
        bound_to: Object | None = None,
    ) -> ServiceAccountToken:
        """Request a token for a ServiceAccount; a token that is bound to a Pod, Secret or Node expires with it."""
        spec: JsonObject = {"expirationSeconds": int(lifetime.total_seconds()), "audiences": list(audiences)}
        if bound_to is not None:
            kind, meta = kind_of(bound_to), bound_to.metadata
            reference = {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "name": meta.name,
                "uid": meta.uid,
            }
            spec["boundObjectRef"] = reference
        document = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        request = requests.post_subresource(SERVICE_ACCOUNTS, service_account, namespace, "token", document)
        made = (await self._struct(_TokenRequest, request)).status
        return ServiceAccountToken(made.token, made.expiration_timestamp.astimezone(UTC))

    async def pod_logs(
        self,
        name: str,
        namespace: str,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail_lines: int | None = None,
        since: timedelta | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the output of a Pod's container in pieces; with `follow`, until the container ends."""
        options = {
            "container": container,
            "follow": "true" if follow else "",
            "previous": "true" if previous else "",
            "timestamps": "true" if timestamps else "",
            "tailLines": "" if tail_lines is None else str(tail_lines),
            "sinceSeconds": "" if since is None else str(max(1, int(since.total_seconds()))),
        }
        async with self._transport.stream(
            requests.logs(PODS, name, namespace, options), idle=LOG_IDLE_TIMEOUT
        ) as stream:
            while piece := await stream.read():
                yield piece

    @asynccontextmanager
    async def port_forward(self, name: str, namespace: str, port: int) -> AsyncGenerator[PortForward, None]:
        """Forward a free port of the loopback interface to a port of a Pod until the end of the block."""

        async def connect() -> ClientWebSocket:
            headers = handshake_headers(PORT_FORWARD_PROTOCOL)
            return await self._transport.open_websocket(
                requests.port_forward(PODS, name, namespace, port, headers)
            )

        async with forwarded(connect, port) as forward:
            yield forward

    async def _struct(self, cls: type[Any], request: ApiRequest) -> Any:
        response = await self.raw(request)
        try:
            return decode(cls, response.body)
        except DecodeError as error:
            raise UnexpectedResponse(
                f"{request.verb} {request.object}: the response is not understood"
            ) from error
