"""Which requests the page's server accepts: only those of a browser that opened the link, to the loopback address.

Other websites in the same browser can send requests to a loopback port. The browser sends no cookie with them
(SameSite=Strict), and they do not know the token. DNS rebinding, a name of another site that resolves to 127.0.0.1, is
recognized by the Host header; a request of another site by its Origin. Both are refused before anything else is read.
"""

import hmac
import secrets

from kubewright.http.server import Request, Response, text

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_NO_ACCESS = (
    "401 Unauthorized: this browser has no access to the live page of kubewright.\n\n"
    "Open the link with ?token=... that the command printed (kubewright ui, dev --ui or run --ui).\n"
    "If you followed that link from another website, reload this page. The link changes when the command is restarted.\n"
)


class PageAccess:
    """Check requests for the page on one port of the loopback interface."""

    def __init__(self, token: str = "") -> None:
        self._token = token or secrets.token_urlsafe(32)
        self._port = 0

    def bind(self, port: int) -> None:
        """Set the port of the server, which is known after it was bound."""
        self._port = port

    @property
    def link(self) -> str:
        """Return the URL with the token, which gives a browser access."""
        return f"http://127.0.0.1:{self._port}/?token={self._token}"

    def refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is not allowed; None if the request is allowed."""
        hosts = {f"{name}:{self._port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        host = request.headers.get("host", "").lower()
        if host not in hosts:
            return text(421, f"421 Misdirected Request: open the page at 127.0.0.1:{self._port}\n")
        origin = request.headers.get("origin", "").lower()
        if origin and origin != f"http://{host}":
            return text(403, "403 Forbidden: the request comes from another website\n")
        if self.gives_token(request) or self._has_cookie(request):
            return None
        return text(401, _NO_ACCESS)

    def gives_token(self, request: Request) -> bool:
        """Return True if the request is for the page and has the token in its query."""
        given = request.one("token")
        return request.method == "GET" and request.path == "/" and bool(given) and self._is_token(given)

    def admission(self) -> Response:
        """Return the response to the link: a redirect that stores the token as a cookie and removes it from the URL."""
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        return Response(303, b"", "", [("Location", "/"), ("Set-Cookie", cookie)])

    @property
    def _cookie(self) -> str:
        # Browsers share cookies between all ports of a host, so the name contains the port.
        return f"kubewright-ui-{self._port}"

    def _has_cookie(self, request: Request) -> bool:
        for part in request.headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._cookie and self._is_token(value):
                return True
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())
