"""An embedded Kubernetes API server for development and tests, in pure Python.

`Server` runs inside the current event loop. Read in this order: `connection` and `request` (HTTP), `routing`
(from a path to a verb), `handlers` (the verbs, one write path), `registry` (what is served), `storage` (objects
under one revision), `definitions` (custom resources). Kinds, authentication and admission plug in at `strategy`,
`identity` and `operation`.
"""

from kubewright.devserver.admission import quota_usage
from kubewright.devserver.builtin.pods.subresources import choose_container
from kubewright.devserver.faults import Fault, Faults, Match
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.server import Server, Statistics, Timing
from kubewright.devserver.strategy import Endpoint, EndpointRequest

__all__ = [
    "Clock",
    "Endpoint",
    "EndpointRequest",
    "Fault",
    "Faults",
    "Match",
    "RequestContext",
    "Server",
    "Statistics",
    "StatusError",
    "Timing",
    "choose_container",
    "quota_usage",
]
