"""The log subresource of Pods."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin.pods.subresources import choose_container
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.strategy import Endpoint, EndpointRequest
from kubewright.devserver.streaming.containers import Containers, LogRequest, OutputStream
from kubewright.http.server import BodyWriter, Request, Response, Stream

PLAIN = "text/plain"
_STREAMS: dict[str, OutputStream | None] = {"": None, "All": None, "Stdout": "stdout", "Stderr": "stderr"}


def log_endpoint(containers: Containers) -> Endpoint:
    """Make the subresource that answers with what containers print."""

    async def answer(call: EndpointRequest) -> Response | Stream:
        pod = call.api.get("", "pods", call.namespace, call.name)
        container = choose_container(pod, call.request.one("container"))
        wanted = log_request(call.request, call.clock.now())
        if not pod["spec"].get("nodeName"):
            return Response(204, b"", "")
        pieces = containers.logs(pod, container, wanted)
        return Stream(lambda writer: _copy(pieces, writer), PLAIN)

    return answer


async def _copy(pieces: AsyncIterator[bytes], writer: BodyWriter) -> None:
    async for piece in pieces:
        await writer.write(piece)


def log_request(request: Request, now: datetime) -> LogRequest:
    """Read the options of a log request, or raise what is wrong with them."""
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
        raise _unreadable(text) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _read(request: Request, name: str, convert: Callable[[str], int]) -> int | None:
    text = request.one(name)
    if not text:
        return None
    try:
        return convert(text)
    except ValueError:
        raise _unreadable(text) from None


def _unreadable(text: str) -> StatusError:
    return StatusError.bad_request(
        f"unable to decode the log options: {problems.quoted(text)} is not a value"
    )
