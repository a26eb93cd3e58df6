"""The HTTP endpoints of an operator: probes and metrics.

Read in this order: `http` (the server), `checks` (probes), `metrics_page` (/metrics), `guard` (authentication and
authorization of scrapes), `certificates` (the serving certificate). `metrics_page` and `certificates` are not
imported here: they load libraries that an operator without metrics does not need.
"""

from kubewright.serving.checks import Checks, HealthCheck
from kubewright.serving.guard import Guard
from kubewright.serving.http import PROBE_LIMITS, BindAddress, BindError, BoundHttpServer, parse_address

__all__ = [
    "PROBE_LIMITS",
    "BindAddress",
    "BindError",
    "BoundHttpServer",
    "Checks",
    "Guard",
    "HealthCheck",
    "parse_address",
]
