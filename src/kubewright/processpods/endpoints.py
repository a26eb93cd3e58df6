"""The Pod subresources log, exec, attach and portforward of process Pods, over WebSocket as kubectl uses it."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kubewright.api import FieldError, JsonObject, problems
from kubewright.devserver import EndpointRequest, StatusError, SubresourceEndpoint, choose_container
from kubewright.http.server import BodyWriter, Request, Response, Stream, Upgrade
from kubewright.http.server.websocket import WebSocket, accept_headers
from kubewright.http.websocket import VERSION
from kubewright.processpods.streaming import port_channels
from kubewright.processpods.streaming.port_channels import MAX_PORTS, PortChannels
from kubewright.processpods.streaming.requests import CommandRequest, LogRequest, OutputStream
from kubewright.processpods.streaming.session import PROTOCOLS, Run, Session
from kubewright.processpods.streaming.tunnel import PROTOCOL, Tunnel
from kubewright.processpods.streams import ProcessContainers

PLAIN = "text/plain"
_STREAMS: dict[str, OutputStream | None] = {"": None, "All": None, "Stdout": "stdout", "Stderr": "stderr"}
_log = logging.getLogger("kubewright.devserver")


def pod_endpoints(containers: ProcessContainers) -> Mapping[str, SubresourceEndpoint]:
    """Return the handlers of the Pod subresources, by name."""

    async def log(call: EndpointRequest) -> Response | Stream:
        pod = call.api.get("", "pods", call.namespace, call.name)
        container = choose_container(pod, call.request.one("container"))
        options = log_request(call.request, call.clock.now())
        if not pod["spec"].get("nodeName"):
            return Response(204, b"", "")
        pieces = containers.logs(pod, container, options)
        return Stream(lambda writer: _copy(pieces, writer), PLAIN)

    async def execute(call: EndpointRequest) -> Upgrade:
        pod, container, request = _command_request(call)
        if not request.command:
            raise StatusError.bad_request("you must specify at least 1 command for the container")
        return _session(call.request, containers.execute(pod, container, request))

    async def attach(call: EndpointRequest) -> Upgrade:
        pod, container, request = _command_request(call)
        return _session(call.request, containers.attach(pod, container, request))

    async def forward(call: EndpointRequest) -> Upgrade:
        call.authorize_create()
        dial = containers.forward(call.api.get("", "pods", call.namespace, call.name))
        if call.request.query.get("ports"):
            channels = PortChannels(call.name, _ports(call.request), dial)
            return _upgrade(call.request, (port_channels.PROTOCOL,), channels, channels.serve)
        tunnel = Tunnel(call.name, dial)
        return _upgrade(call.request, (PROTOCOL,), tunnel, tunnel.serve)

    return {"log": log, "exec": execute, "attach": attach, "portforward": forward}


def _ports(request: Request) -> list[int]:
    """Return the ports of a port-forward over channels."""
    texts = [text for given in request.query["ports"] for text in given.split(",")]
    ports = [int(text) if text.isdecimal() else 0 for text in texts]
    for text, port in zip(texts, ports, strict=True):
        if not 0 < port < 65536:
            raise StatusError.bad_request(f"invalid port {problems.quoted(text)}: expected 1 to 65535")
    if len(ports) > MAX_PORTS:
        raise StatusError.bad_request(
            f"{len(ports)} ports are too many: at most {MAX_PORTS} can be forwarded"
        )
    return ports


def _command_request(call: EndpointRequest) -> tuple[JsonObject, str, CommandRequest]:
    call.authorize_create()
    pod = call.api.get("", "pods", call.namespace, call.name)
    container = choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    query_request = call.request
    request = CommandRequest(
        tuple(query_request.query.get("command", ())),
        stdin=query_request.flag("stdin"),
        stdout=query_request.flag("stdout"),
        stderr=query_request.flag("stderr"),
        tty=query_request.flag("tty"),
    )
    if not (request.stdin or request.stdout or request.stderr):
        raise StatusError.bad_request("you must specify at least one of stdin, stdout, stderr")
    return pod, container, request


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
    if protocol is None or not key or headers.get("sec-websocket-version") != VERSION:
        raise StatusError.bad_request(
            f"a WebSocket of version {VERSION} with {' or '.join(protocols)} is needed"
        )
    return Upgrade(lambda _: socket, accept_headers(key, protocol), serve)


async def _outcome(run: Run, terminal: Session) -> JsonObject:
    """Run a command and return the Status with its exit code."""
    try:
        code = await run(terminal)
    except StatusError as error:
        return error.wire()
    except Exception as error:
        _log.exception("Command in a container failed")
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


async def _copy(pieces: AsyncIterator[bytes], writer: BodyWriter) -> None:
    async for piece in pieces:
        await writer.write(piece)


def log_request(request: Request, now: datetime) -> LogRequest:
    """Parse the options of a log request; raise StatusError if they are invalid."""
    errors: list[FieldError] = []
    tail = _number(request, "tailLines", errors, 0, "must be greater than or equal to 0")
    limit = _number(request, "limitBytes", errors, 1, "must be greater than 0")
    seconds = _number(request, "sinceSeconds", errors, 1, "must be greater than 0")
    moment = _moment(request)
    if seconds is not None and moment is not None:
        errors.append(problems.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    stream = request.one("stream")
    if stream not in _STREAMS:
        errors.append(problems.not_supported("stream", stream, ["All", "Stderr", "Stdout"]))
    if errors:
        raise StatusError.invalid("", "PodLogOptions", "", errors)
    return LogRequest(
        follow=request.flag("follow"),
        previous=request.flag("previous"),
        timestamps=request.flag("timestamps"),
        since=now - timedelta(seconds=seconds) if seconds is not None else moment,
        tail=tail,
        limit_bytes=limit,
        stream=_STREAMS[stream],
    )


def _number(request: Request, name: str, errors: list[FieldError], least: int, rule: str) -> int | None:
    return _read(request, name, lambda text: _checked(name, int(text), errors, least, rule))


def _checked(name: str, value: int, errors: list[FieldError], least: int, rule: str) -> int:
    if value < least:
        errors.append(problems.invalid(name, value, rule))
    return value


def _moment(request: Request) -> datetime | None:
    text = request.one("sinceTime")
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise _decode_error(text) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _read(request: Request, name: str, convert: Callable[[str], int]) -> int | None:
    text = request.one(name)
    if not text:
        return None
    try:
        return convert(text)
    except ValueError:
        raise _decode_error(text) from None


def _decode_error(text: str) -> StatusError:
    return StatusError.bad_request(
        f"unable to decode the log options: {problems.quoted(text)} is not a value"
    )
