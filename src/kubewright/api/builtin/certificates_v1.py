"""The kinds of certificates.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.model import Model
from kubewright.api.resource import Object


class CertificateSigningRequestSpec(Model, builtin=True):
    expiration_seconds: int | None = None
    extra: dict[str, list[str]] = {}
    groups: list[str] = []
    request: bytes
    signer_name: str
    uid: str = ""
    usages: list[str] = []
    username: str = ""


class CertificateSigningRequestCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class CertificateSigningRequestStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    certificate: bytes = b""
    conditions: list[CertificateSigningRequestCondition] = []


class CertificateSigningRequest(
    Object,
    group="certificates.k8s.io",
    version="v1",
    plural="certificatesigningrequests",
    scope="Cluster",
    short_names=["csr"],
    status=True,
    builtin=True,
):
    spec: CertificateSigningRequestSpec
    status: CertificateSigningRequestStatus = _field(default_factory=CertificateSigningRequestStatus)


__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
]
