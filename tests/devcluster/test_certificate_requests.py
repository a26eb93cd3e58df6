"""CertificateSigningRequests, approved with kubectl."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kubewright.api import Forbidden, Meta
from kubewright.api.builtin import certificates_v1, core_v1
from kubewright.client import Client
from kubewright.testing import Cluster

Kubectl = Callable[..., Awaitable[str]]
Request = certificates_v1.CertificateSigningRequest
SIGNER = "kubernetes.io/kube-apiserver-client"


def request(name: str, *, usages: list[str]) -> tuple[Request, bytes]:
    """Create a request for a user certificate, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "painters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "vincent"),
        ]
    )
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    spec = certificates_v1.CertificateSigningRequestSpec(
        request=asked.public_bytes(Encoding.PEM), signer_name=SIGNER, usages=usages, expiration_seconds=3600
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Request(Meta(name), spec=spec), secret


async def test_an_approved_request_gets_a_certificate_that_the_server_accepts(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    made, key = request(f"{cluster.namespace}-user", usages=["client auth"])
    await cluster.create(made)
    await kubectl("certificate", "approve", made.metadata.name)
    found = await cluster.eventually(Request, made.metadata.name, lambda item: item.status.certificate)
    certificate = x509.load_pem_x509_certificate(found.status.certificate)
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() < 4000
    config = replace(
        cluster.config,
        client_cert_data=found.status.certificate,
        client_key_data=key,
    )
    async with Client(config) as client:
        with pytest.raises(Forbidden, match='User "vincent" cannot list resource "secrets"'):
            await client.list(core_v1.Secret, namespace=cluster.namespace)
    await cluster.client.delete(made)


async def test_a_request_with_usages_that_the_signer_does_not_allow_fails(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    made, _ = request(f"{cluster.namespace}-greedy", usages=["server auth"])
    await cluster.create(made)
    await kubectl("certificate", "approve", made.metadata.name)
    found = await cluster.eventually(
        Request,
        made.metadata.name,
        lambda item: any(one.type == "Failed" for one in item.status.conditions),
    )
    assert not found.status.certificate
    reasons = {item.type: item.reason for item in found.status.conditions}
    assert reasons == {"Approved": "KubectlApprove", "Failed": "SignerValidationFailure"}
    await cluster.client.delete(made)
