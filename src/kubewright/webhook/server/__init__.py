"""Serving webhooks: the HTTPS server, its certificates, and the registration with the API server.

Read in this order: `hosting` (all of it, from start to stop), `http` and `reviewers` (a request and its response),
`reach` (whether the API server reaches the webhooks), `registration`, `by_url` and `leftovers` (the configurations and
CRDs). Its certificates come from `kubewright.webhook.certificates`.
"""

from kubewright.webhook.certificates.stores import CertificateStoreError
from kubewright.webhook.server.by_url import listens
from kubewright.webhook.server.hosting import HostOptions, WebhookHost
from kubewright.webhook.server.leftovers import clear_leftovers, find_leftovers
from kubewright.webhook.server.reach import WebhookUnreachable, reach_of
from kubewright.webhook.server.registration import NotRegistered

__all__ = [
    "CertificateStoreError",
    "HostOptions",
    "NotRegistered",
    "WebhookHost",
    "WebhookUnreachable",
    "clear_leftovers",
    "find_leftovers",
    "listens",
    "reach_of",
]
