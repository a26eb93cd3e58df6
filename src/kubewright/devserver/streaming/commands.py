"""The exec, attach and portforward subresources of Pods, over WebSocket as kubectl speaks it."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from kubewright.devserver.auth import RoleAuthorizer
from kubewright.devserver.builtin.pods.subresources import choose_container
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.identity import Attributes, forbidden
from kubewright.devserver.strategy import Endpoint, EndpointRequest
from kubewright.devserver.streaming.containers import CommandRequest, Containers, Run, Terminal
from kubewright.devserver.streaming.frames import accept_key
from kubewright.devserver.streaming.session import PROTOCOLS, Session
from kubewright.devserver.streaming.tunnel import PROTOCOL, Tunnel
from kubewright.devserver.streaming.websocket import WebSocket
from kubewright.http.server import Request, Upgrade

_VERSION = "13"
_log = logging.getLogger("kubewright.devserver")


def command_endpoints(containers: Containers, authorizer: RoleAuthorizer) -> Mapping[str, Endpoint]:
    """Make the subresources that connect a client with a container."""

    async def execute(call: EndpointRequest) -> Upgrade:
        pod, container, request = _asked(call, authorizer)
        if not request.command:
            raise StatusError.bad_request("you must specify at least 1 command for the container")
        return _session(call.request, containers.execute(pod, container, request))

    async def attach(call: EndpointRequest) -> Upgrade:
        pod, container, request = _asked(call, authorizer)
        return _session(call.request, containers.attach(pod, container, request))

    async def forward(call: EndpointRequest) -> Upgrade:
        _check_create(call, authorizer)
        dial = containers.forward(call.api.get("", "pods", call.namespace, call.name))
        tunnel = Tunnel(call.name, dial)
        return _upgrade(call.request, (PROTOCOL,), tunnel, tunnel.serve)

    return {"exec": execute, "attach": attach, "portforward": forward}


def _asked(call: EndpointRequest, authorizer: RoleAuthorizer) -> tuple[JsonObject, str, CommandRequest]:
    _check_create(call, authorizer)
    pod = call.api.get("", "pods", call.namespace, call.name)
    container = choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    asked = call.request
    request = CommandRequest(
        tuple(asked.query.get("command", ())),
        stdin=asked.flag("stdin"),
        stdout=asked.flag("stdout"),
        stderr=asked.flag("stderr"),
        tty=asked.flag("tty"),
    )
    if not (request.stdin or request.stdout or request.stderr):
        raise StatusError.bad_request("you must specify at least one of stdin, stdout, stderr")
    return pod, container, request


def _check_create(call: EndpointRequest, authorizer: RoleAuthorizer) -> None:
    """Ask for the right to create as well: a WebSocket begins with a GET, which is no more than a read to roles."""
    attributes = Attributes(
        "create", resource="pods", subresource=call.subresource, namespace=call.namespace, name=call.name
    )
    decision = authorizer.authorize(call.user, attributes)
    if not decision.allowed:
        raise forbidden(call.user, attributes, decision.reason)


def _session(request: Request, run: Run) -> Upgrade:
    session = Session()
    return _upgrade(
        request, PROTOCOLS, session, lambda: session.serve(lambda terminal: _outcome(run, terminal))
    )


def _upgrade(
    request: Request, protocols: Sequence[str], socket: WebSocket, serve: Callable[[], Awaitable[None]]
) -> Upgrade:
    headers = request.headers
    if not request.upgrade:
        raise StatusError.bad_request("Upgrade request required")
    if headers.get("upgrade", "").lower() != "websocket":
        raise StatusError.bad_request(
            "this server connects to containers over WebSocket only: "
            "that takes kubectl 1.30 or newer, and the rights to get and to create this subresource"
        )
    offered = [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]
    protocol = next((name for name in protocols if name in offered), None)
    key = headers.get("sec-websocket-key", "")
    if protocol is None or not key or headers.get("sec-websocket-version") != _VERSION:
        raise StatusError.bad_request(
            f"a WebSocket of version {_VERSION} with {' or '.join(protocols)} is needed"
        )
    return Upgrade(
        lambda _: socket,
        [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accept_key(key)),
            ("Sec-WebSocket-Protocol", protocol),
        ],
        serve,
    )


async def _outcome(run: Run, terminal: Terminal) -> JsonObject:
    """Run a command and tell of its end in a Status."""
    try:
        code = await run(terminal)
    except StatusError as error:
        return error.wire()
    except Exception as error:
        _log.exception("a command in a container failed")
        return StatusError.internal(str(error)).wire()
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
