"""An embedded Kubernetes API server for development and tests, in pure Python.

`Server` runs inside the current event loop and is the entry point. Read in this order: `server` (assembly), `credentials` and `listener`
(HTTPS), `handlers` with `handlers/pipeline.py` (every step of a request in order), `request` (what travels), `auth`,
`admission`, `registry` and `strategy` (which resources are served, and how kinds differ), `builtin` (built-in kinds), `definitions`
(CustomResourceDefinitions), `merge` (server-side apply), `wire` (JSON, YAML, protobuf), `storage` (objects under one revision),
`discovery` (OpenAPI and API groups), `webhook_client`, `bootstrap` (first objects), `faults` (fault injection for tests).
"""

from kubewright.certificates import KeyPair
from kubewright.devserver.admission import ADMISSION_PLUGINS, quota_usage
from kubewright.devserver.auth import AuthorizationMode, AuthorizationObserver, TokenFileError
from kubewright.devserver.builtin.pods.subresources import choose_container
from kubewright.devserver.credentials import ServerCredentials
from kubewright.devserver.data import KubernetesRelease, UnknownReleaseError
from kubewright.devserver.faults import Fault, Faults, Match, RequestFaults
from kubewright.devserver.feature_gates import FEATURE_GATES, FeatureGateError, parse_feature_gates
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import AuthorizationAttributes, UserInfo
from kubewright.devserver.server import Server, Statistics, Timing
from kubewright.devserver.strategy import EndpointRequest, SubresourceEndpoint

__all__ = [
    "ADMISSION_PLUGINS",
    "FEATURE_GATES",
    "AuthorizationAttributes",
    "AuthorizationMode",
    "AuthorizationObserver",
    "Clock",
    "EndpointRequest",
    "Fault",
    "Faults",
    "FeatureGateError",
    "KeyPair",
    "KubernetesRelease",
    "Match",
    "RequestContext",
    "RequestFaults",
    "Server",
    "ServerCredentials",
    "Statistics",
    "StatusError",
    "SubresourceEndpoint",
    "Timing",
    "TokenFileError",
    "UnknownReleaseError",
    "UserInfo",
    "choose_container",
    "parse_feature_gates",
    "quota_usage",
]
