"""The HTTP endpoints of an operator: probes and metrics.

Read in this order: `http` (the server), `checks` (probes), `metrics_page` (/metrics), `guard` (authentication and
authorization of scrapes), `certificates` (the serving certificate). `metrics_page` and `certificates` are not
imported here: they load libraries that an operator without metrics does not need.
"""

from kubewright.serving.checks import Check, Checks
from kubewright.serving.guard import Guard
from kubewright.serving.http import PROBE_LIMITS, Address, BindError, BoundHttpServer, parse_address

__all__ = [
    "PROBE_LIMITS",
    "Address",
    "BindError",
    "BoundHttpServer",
    "Check",
    "Checks",
    "Guard",
    "parse_address",
]
