"""One asynchronous client for any cluster.

Read in this order: `config` and `kubeconfig` (which cluster, with which identity), `requests` (every verb as a pure
function that returns a request), `transport` (the only module that sends HTTP), then the verbs: `reader`, `writer`,
`client`. The exceptions are those of `kubewright.api.failures`, and are exported here too.
"""

from kubewright.api import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ConfigError,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    CredentialError,
    Expired,
    FieldConflict,
    Forbidden,
    GatewayTimeout,
    InternalError,
    Invalid,
    InvalidRequest,
    MethodNotAllowed,
    MissingRule,
    NotAcceptable,
    NotFound,
    RequestTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    UnexpectedResponse,
    UnsupportedMediaType,
    error_from_status,
)
from kubewright.client import recording, requests
from kubewright.client.client import Client, ScaleReplicas, ScaleState, ServiceAccountToken
from kubewright.client.config import (
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    OidcProvider,
    RateLimit,
)
from kubewright.client.discovery import ApiResource, ServerVersion
from kubewright.client.kubeconfig import config_from_kubeconfig, in_cluster_config, load_config
from kubewright.client.port_forward import PortForward
from kubewright.client.reader import ObjectList
from kubewright.client.requests import ApiRequest, ListOptions, WriteOptions
from kubewright.client.retries import ThrottleStatistics
from kubewright.http.client import ClientResponse

__all__ = [
    "AlreadyExists",
    "ApiError",
    "ApiRequest",
    "ApiResource",
    "BadRequest",
    "Client",
    "ClientResponse",
    "ClusterConfig",
    "ConfigError",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "CredentialError",
    "ExecPlugin",
    "Expired",
    "FieldConflict",
    "Forbidden",
    "GatewayTimeout",
    "Impersonation",
    "InternalError",
    "Invalid",
    "InvalidRequest",
    "ListOptions",
    "MethodNotAllowed",
    "MissingRule",
    "NotAcceptable",
    "NotFound",
    "ObjectList",
    "OidcProvider",
    "PortForward",
    "RateLimit",
    "RequestTooLarge",
    "ScaleReplicas",
    "ScaleState",
    "ServerTimeout",
    "ServerVersion",
    "ServiceAccountToken",
    "ServiceUnavailable",
    "ThrottleStatistics",
    "TimedOut",
    "TooManyRequests",
    "Unauthorized",
    "UnexpectedResponse",
    "UnsupportedMediaType",
    "WriteOptions",
    "config_from_kubeconfig",
    "error_from_status",
    "in_cluster_config",
    "load_config",
    "recording",
    "requests",
]
