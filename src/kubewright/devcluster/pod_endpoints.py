"""The log, exec, attach and portforward subresources of Pods that nothing runs: an error that says how to run them."""

from collections.abc import Mapping

from kubewright.devserver import Endpoint, EndpointRequest, StatusError, choose_container
from kubewright.http.server import Response


async def _log(call: EndpointRequest) -> Response:
    pod = call.api.get("", "pods", call.namespace, call.name)
    choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204, b"", "")
    raise _not_implemented("logs")


async def _command(call: EndpointRequest) -> Response:
    call.authorize_create()
    pod = call.api.get("", "pods", call.namespace, call.name)
    choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    raise _not_implemented(call.subresource)


async def _forward(call: EndpointRequest) -> Response:
    call.authorize_create()
    call.api.get("", "pods", call.namespace, call.name)
    raise _not_implemented("port-forward")


def _not_implemented(what: str) -> StatusError:
    return StatusError(
        501,
        "NotImplemented",
        f"Pods of this cluster only pretend to run, so there is no {what}: "
        "start it with `kubewright dev --pods=process` to run them as processes of this machine",
    )


POD_ENDPOINTS: Mapping[str, Endpoint] = {
    "log": _log,
    "exec": _command,
    "attach": _command,
    "portforward": _forward,
}
