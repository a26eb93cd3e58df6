"""Documents that describe the server: API groups, OpenAPI, version and health.

Read in this order: `documents` (`Documents`, the entry point: paths that are not API objects), `discovery` (API groups
and resources), `openapi` (OpenAPI v3), `swagger` (OpenAPI v2).
"""

from kubewright.devserver.discovery.discovery import AGGREGATED, Discovery, Document
from kubewright.devserver.discovery.documents import Documents
from kubewright.devserver.discovery.openapi import OpenApi

__all__ = ["AGGREGATED", "Discovery", "Document", "Documents", "OpenApi"]
