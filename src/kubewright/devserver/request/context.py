"""The one object that travels with a request through the server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from kubewright.devserver.request.identity import UserInfo
from kubewright.devserver.request.info import RequestInfo
from kubewright.http.server import Request

LOOPBACK_AGENT = "kube-apiserver"


def _unlimited(context: "RequestContext") -> int | None:
    return None


@dataclass(eq=False, slots=True)
class RequestContext:
    """One request of an authenticated user: what it contains, and what is collected for its response.

    `RequestPipeline` creates it once; handlers, admission and subresource endpoints hold it.
    """

    request: Request
    info: RequestInfo
    user: UserInfo
    warnings: list[str] = field(default_factory=list[str])
    """Sent to the client as Warning headers."""
    audit_annotations: dict[str, str] = field(default_factory=dict[str, str])
    """Set by admission plugins, for the audit log."""
    revision_limit: Callable[["RequestContext"], int | None] = _unlimited

    def max_visible_revision(self) -> int | None:
        """Return the last revision that this client may see, or None without a limit."""
        return self.revision_limit(self)

    @classmethod
    def loopback(cls, user: UserInfo) -> Self:
        """Return the context of a write that the server makes itself, on behalf of `user`."""
        request = Request("", "", headers={"user-agent": LOOPBACK_AGENT})
        return cls(request, RequestInfo("", ""), user)
