"""HTTP for people and machines that look at an operator: metrics and probes.

`http` is the server, `checks` and `metrics_page` what it serves, `guard` and `certificates` what protects it.
`metrics_page` and `certificates` are not named here: they bring libraries that only those who use them need.
"""

from kubewright.serving.checks import Check, Checks
from kubewright.serving.guard import Guard
from kubewright.serving.http import Address, BindError, BoundHttpServer, parse_address

__all__ = [
    "Address",
    "BindError",
    "BoundHttpServer",
    "Check",
    "Checks",
    "Guard",
    "parse_address",
]
