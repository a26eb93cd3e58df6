"""CertificateSigningRequests: what was approved is signed, and what is old is removed."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kubewright.api.builtin import certificates_v1
from kubewright.controller import Context, Controller, Options, Result, needs
from kubewright.devcluster import clock
from kubewright.devcluster.conditions import is_true

NAME = "csrsigning"
LONGEST = timedelta(days=365)
KEPT = timedelta(hours=1)
"""How long a request stays after it was signed or refused."""
KEPT_WAITING = timedelta(hours=24)

_CLIENT = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVER = frozenset({"digital signature", "key encipherment", "server auth"})
SIGNERS = {
    "kubernetes.io/kube-apiserver-client": (_CLIENT, "client auth"),
    "kubernetes.io/kube-apiserver-client-kubelet": (_CLIENT, "client auth"),
    "kubernetes.io/kubelet-serving": (_SERVER, "server auth"),
}

Request = certificates_v1.CertificateSigningRequest
Sign = Callable[[bytes, Sequence[str], timedelta], bytes]
"""Signs a request (PEM) for some usages and some time; raises ValueError where it is not one to sign."""


def refusal(request: Request) -> str:
    """Say why a signer does not sign a request; nothing where it does."""
    allowed, needed = SIGNERS[request.spec.signer_name]
    usages = request.spec.usages
    if not set(usages) <= allowed:
        return f"invalid usage for client certificate: {', '.join(sorted(set(usages) - allowed))}"
    if needed not in usages:
        return f"usages did not contain {needed}"
    return ""


def kept_until(request: Request, now: datetime) -> datetime:
    """Tell when a request is removed."""
    made = request.metadata.creation_timestamp or now
    waits = not request.status.certificate and not is_true(request.status.conditions, "Denied")
    return made + (KEPT_WAITING if waits else KEPT)


class Signer:
    """Sign with the cluster's own authority."""

    def __init__(self, sign: Sign) -> None:
        self._sign = sign

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        """Sign what is approved, remove what is old."""
        now = clock.now()
        until = kept_until(request, now)
        if now >= until:
            await ctx.delete(request)
            return None
        status, conditions = request.status, request.status.conditions
        waits = (
            is_true(conditions, "Approved") and not is_true(conditions, "Failed") and not status.certificate
        )
        if waits and request.spec.signer_name in SIGNERS:
            await ctx.patch_status(request, await self._signed(request, ctx))
        return Result(after=until - now)

    async def _signed(
        self, request: Request, ctx: Context
    ) -> certificates_v1.CertificateSigningRequestStatus:
        trouble = refusal(request)
        asked = request.spec.expiration_seconds
        span = min(timedelta(seconds=asked), LONGEST) if asked else LONGEST
        if not trouble:
            try:
                signed = await ctx.run_sync(self._sign, request.spec.request, request.spec.usages, span)
            except ValueError as error:
                trouble = str(error)
            else:
                return certificates_v1.CertificateSigningRequestStatus(certificate=signed)
        failed = certificates_v1.CertificateSigningRequestCondition(
            type="Failed", status="True", reason="SignerValidationFailure", message=trouble
        )
        return certificates_v1.CertificateSigningRequestStatus(conditions=[failed])


def controller(sign: Sign) -> Controller[Request]:
    """Declare the controller."""
    return Controller(
        Request,
        Signer(sign),
        name=NAME,
        needs=[needs(Request, "delete")],
        options=Options(reporter=NAME),
    )
