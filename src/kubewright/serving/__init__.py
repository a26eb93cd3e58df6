"""HTTP for people and machines that look at an operator: metrics and probes.

`http` is the server, `checks` and `metrics_page` what it serves, `guard` and `certificates` what protects it.
"""

from kubewright.serving.certificates import ServingCertificate
from kubewright.serving.checks import Check, Checks
from kubewright.serving.guard import Guard
from kubewright.serving.http import Address, BindError, HttpServer, parse_address
from kubewright.serving.metrics_page import MetricsPage

__all__ = [
    "Address",
    "BindError",
    "Check",
    "Checks",
    "Guard",
    "HttpServer",
    "MetricsPage",
    "ServingCertificate",
    "parse_address",
]
