"""Liveness and readiness: named checks, and the paths that report them."""

from collections.abc import Callable, Iterable

from kubewright.http.server import PathEndpoint, Request, Response, text

HealthCheck = Callable[[], str | None]
"""Return None if healthy, else the reason of the failure."""


class Checks:
    """Named checks behind one path, such as /readyz; each also has a path of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, HealthCheck] = {"ping": lambda: None}

    def add(self, name: str, check: HealthCheck) -> None:
        """Add a check under a name."""
        self._checks[name] = check

    def failures(self, exclude: Iterable[str] = ()) -> dict[str, str]:
        """Return the reasons of failed checks by name."""
        left_out = set(exclude)
        found = ((name, check()) for name, check in self._checks.items() if name not in left_out)
        return {name: reason for name, reason in found if reason is not None}

    @property
    def routes(self) -> list[PathEndpoint]:
        """Return the paths to serve."""
        return [
            PathEndpoint(f"/{self.name}", self._serve_all),
            PathEndpoint(f"/{self.name}/", self._serve_all),
            PathEndpoint(f"/{self.name}/*", self._serve_one),
        ]

    def _serve_all(self, request: Request) -> Response:
        excluded = request.query.get("exclude", [])
        failures = self.failures(excluded)
        if not failures and "verbose" not in request.query:
            return text(200, "ok")
        lines: list[str] = []
        for name in self._checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif name in failures:
                lines.append(f"[-]{name} failed: {failures[name]}")
            else:
                lines.append(f"[+]{name} ok")
        lines += [
            f'warn: some health checks cannot be excluded: no matches for "{name}"'
            for name in excluded
            if name not in self._checks
        ]
        lines.append(f"{self.name} check {'failed' if failures else 'passed'}")
        return text(500 if failures else 200, "\n".join(lines) + "\n")

    def _serve_one(self, request: Request) -> Response:
        check = self._checks.get(request.path.rpartition("/")[2])
        if check is None:
            return text(404, "404 page not found\n")
        reason = check()
        if reason is not None:
            return text(500, f"internal server error: {reason}\n")
        return text(200, "ok")
