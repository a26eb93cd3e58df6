"""The CertificateSigningRequest controller: signs approved requests and deletes old ones."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kubewright.api.builtin import certificates_v1
from kubewright.controller import Context, Controller, Options, Result, needs
from kubewright.devcluster import clock
from kubewright.devcluster.statuses import FIELD_MANAGER, is_true

NAME = "csrsigning"
MAX_DURATION = timedelta(days=365)
RETENTION = timedelta(hours=1)
"""How long a request is kept after it was signed or denied."""
PENDING_RETENTION = timedelta(hours=24)

_CLIENT = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVER = frozenset({"digital signature", "key encipherment", "server auth"})
SIGNERS = {
    "kubernetes.io/kube-apiserver-client": (_CLIENT, "client auth"),
    "kubernetes.io/kube-apiserver-client-kubelet": (_CLIENT, "client auth"),
    "kubernetes.io/kubelet-serving": (_SERVER, "server auth"),
}

SigningRequest = certificates_v1.CertificateSigningRequest
Sign = Callable[[bytes, Sequence[str], timedelta], bytes]
"""Signs a PEM request for the given usages and duration; raises ValueError if the request is not valid."""


def signing_problem(request: SigningRequest) -> str:
    """Return why the signer refuses a request, or an empty string if it signs it."""
    allowed, needed = SIGNERS[request.spec.signer_name]
    usages = request.spec.usages
    if not set(usages) <= allowed:
        return f"invalid usage for client certificate: {', '.join(sorted(set(usages) - allowed))}"
    if needed not in usages:
        return f"usages did not contain {needed}"
    return ""


def removal_time(request: SigningRequest, now: datetime) -> datetime:
    """Return when a request is deleted."""
    made = request.metadata.creation_timestamp or now
    pending = not request.status.certificate and not is_true(request.status.conditions, "Denied")
    return made + (PENDING_RETENTION if pending else RETENTION)


class Signer:
    """Sign requests with the cluster's certificate authority."""

    def __init__(self, sign: Sign) -> None:
        self._sign = sign

    async def reconcile(self, request: SigningRequest, ctx: Context) -> Result | None:
        """Sign an approved request, or delete an old one."""
        now = clock.now()
        until = removal_time(request, now)
        if now >= until:
            await ctx.delete(request)
            return None
        status, conditions = request.status, request.status.conditions
        pending = (
            is_true(conditions, "Approved") and not is_true(conditions, "Failed") and not status.certificate
        )
        if pending and request.spec.signer_name in SIGNERS:
            await ctx.patch_status(request, await self._signed(request, ctx))
        return Result(after=until - now)

    async def _signed(
        self, request: SigningRequest, ctx: Context
    ) -> certificates_v1.CertificateSigningRequestStatus:
        problem = signing_problem(request)
        asked = request.spec.expiration_seconds
        span = min(timedelta(seconds=asked), MAX_DURATION) if asked else MAX_DURATION
        if not problem:
            try:
                signed = await ctx.run_sync(self._sign, request.spec.request, request.spec.usages, span)
            except ValueError as error:
                problem = str(error)
            else:
                return certificates_v1.CertificateSigningRequestStatus(certificate=signed)
        failed = certificates_v1.CertificateSigningRequestCondition(
            type="Failed", status="True", reason="SignerValidationFailure", message=problem
        )
        return certificates_v1.CertificateSigningRequestStatus(conditions=[failed])


def controller(sign: Sign) -> Controller[SigningRequest]:
    """Declare the CertificateSigningRequest controller."""
    return Controller(
        SigningRequest,
        Signer(sign),
        name=NAME,
        needs=[needs(SigningRequest, "delete")],
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER),
    )
