"""The kinds of certificates.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.conditions import Condition
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


class ClusterTrustBundleSpec(Model, builtin=True):
    signer_name: str = ""
    trust_bundle: str


class ClusterTrustBundle(
    Object,
    group="certificates.k8s.io",
    version="v1",
    plural="clustertrustbundles",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: ClusterTrustBundleSpec


class PodCertificateRequestSpec(
    Model,
    builtin=True,
    wire_names={
        "node_uid": "nodeUID",
        "pod_uid": "podUID",
        "service_account_uid": "serviceAccountUID",
        "stub_pkcs10_request": "stubPKCS10Request",
    },
):
    max_expiration_seconds: int | None = None
    node_name: str
    node_uid: str
    pod_name: str
    pod_uid: str
    service_account_name: str
    service_account_uid: str
    signer_name: str
    stub_pkcs10_request: bytes
    unverified_user_annotations: dict[str, str] = {}


class PodCertificateRequestStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    begin_refresh_at: datetime | None = None
    certificate_chain: str = ""
    conditions: list[Condition] = []
    not_after: datetime | None = None
    not_before: datetime | None = None


class PodCertificateRequest(
    Object,
    group="certificates.k8s.io",
    version="v1",
    plural="podcertificaterequests",
    status=True,
    builtin=True,
):
    spec: PodCertificateRequestSpec
    status: PodCertificateRequestStatus = _field(default_factory=PodCertificateRequestStatus)


__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
    "ClusterTrustBundle",
    "ClusterTrustBundleSpec",
    "PodCertificateRequest",
    "PodCertificateRequestSpec",
    "PodCertificateRequestStatus",
]
