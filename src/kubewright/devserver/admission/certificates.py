"""Certificates: permissions to approve, to sign and to attest, by signer, and the reserved group system:masters."""

import base64

from kubewright.api import problems
from kubewright.certificates import requested_organizations
from kubewright.devserver.auth import RoleAuthorizer, only_collected_fields_differ
from kubewright.devserver.objects import items, meta, section
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.request.identity import MASTERS, AuthorizationAttributes, UserInfo

GROUP = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_PLURAL = "certificatesigningrequests"


def _is_update_of(attributes: AdmissionAttributes, subresource: str) -> bool:
    group, _, plural = attributes.resource
    found = (group, plural, attributes.subresource, attributes.operation)
    return found == (GROUP, _PLURAL, subresource, "UPDATE")


def _may(authorizer: RoleAuthorizer, user: UserInfo, verb: str, signer: str) -> bool:
    """Return True if a user has a permission for a signer, or for all signers of its domain."""
    names = (signer, f"{signer.partition('/')[0]}/*")
    return any(
        authorizer.may(user, AuthorizationAttributes(verb, GROUP, "*", "signers", name=name))
        for name in names
    )


class CertificateApproval(AdmissionPlugin):
    """Approve requests only with the permission to approve for their signer."""

    resources: frozenset[tuple[str, str]] = frozenset({(GROUP, _PLURAL)})

    def __init__(self, authorizer: RoleAuthorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject an approval or denial by a user without the permission."""
        if not _is_update_of(attributes, "approval"):
            return
        signer = section(attributes.old_object or {}, "spec").get("signerName", "")
        if not _may(self._authorizer, attributes.user, "approve", signer):
            raise attributes.forbidden(f'user not permitted to approve requests with signerName "{signer}"')


class CertificateSigning(AdmissionPlugin):
    """Sign requests only with the permission to sign for their signer."""

    resources: frozenset[tuple[str, str]] = frozenset({(GROUP, _PLURAL)})

    def __init__(self, authorizer: RoleAuthorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a certificate or condition that a user without the permission sets in the status."""
        if not _is_update_of(attributes, "status"):
            return
        old, new = (section(obj or {}, "status") for obj in (attributes.old_object, attributes.object))
        if old.get("certificate") == new.get("certificate") and items(old, "conditions") == items(
            new, "conditions"
        ):
            return
        signer = section(attributes.old_object or {}, "spec").get("signerName", "")
        if not _may(self._authorizer, attributes.user, "sign", signer):
            raise attributes.forbidden(f'user not permitted to sign requests with signerName "{signer}"')


class ClusterTrustBundleAttest(AdmissionPlugin):
    """Publish the trust anchors of a signer only with the permission to attest for it."""

    resources: frozenset[tuple[str, str]] = frozenset({(GROUP, "clustertrustbundles")})

    def __init__(self, authorizer: RoleAuthorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a bundle of a signer that a user without the permission writes."""
        new, old = attributes.object, attributes.old_object
        if new is None or (old is not None and only_collected_fields_differ(new, old)):
            return
        signer = section(new, "spec").get("signerName", "")
        if signer and not _may(self._authorizer, attributes.user, "attest", signer):
            raise attributes.forbidden(f'user not permitted to attest for signerName "{signer}"')


class PodCertificateSigning(AdmissionPlugin):
    """Issue or deny certificates of Pods only with the permission to sign for their signer.

    kube-apiserver has no plugin for this: it checks the permission together with the fields of the status.
    """

    resources: frozenset[tuple[str, str]] = frozenset({(GROUP, "podcertificaterequests")})

    def __init__(self, authorizer: RoleAuthorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a status that a user without the permission changes."""
        new, old = attributes.object, attributes.old_object
        if attributes.subresource != "status" or new is None or old is None:
            return
        signer = section(old, "spec").get("signerName", "")
        if section(new, "status") == section(old, "status"):
            return
        if not _may(self._authorizer, attributes.user, "sign", signer):
            text = f'User {quote(attributes.user.name)} is not permitted to "sign" for signer {quote(signer)}'
            error = problems.forbidden("spec.signerName", text)
            raise StatusError.invalid(GROUP, "PodCertificateRequest", meta(old).get("name", ""), [error])


class CertificateSubjectRestriction(AdmissionPlugin):
    """Issue no client certificates of the group system:masters."""

    resources: frozenset[tuple[str, str]] = frozenset({(GROUP, _PLURAL)})

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a new request for a client certificate of that group."""
        if not attributes.is_write_of(GROUP, _PLURAL, "CREATE"):
            return
        spec = section(attributes.object or {}, "spec")
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        try:
            organizations = requested_organizations(base64.b64decode(spec.get("request", "")))
        except ValueError as error:
            raise attributes.forbidden(f"failed to parse CSR: {error}") from None
        if MASTERS in organizations:
            raise attributes.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
