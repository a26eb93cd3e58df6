"""One API request on its way through a verb: what it asks for, who asks, and how the answer is shaped."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kubewright.api import problems
from kubewright.devserver.core import Core
from kubewright.devserver.handlers.read import object_body
from kubewright.devserver.handlers.scope import Scope
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import Resource
from kubewright.devserver.request.identity import User
from kubewright.devserver.request.info import RequestInfo
from kubewright.devserver.request.negotiation import Format, negotiate
from kubewright.devserver.request.options import WriteOptions, manager_of
from kubewright.devserver.request.responses import encode_body, warning_header
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.strategy.access import Access
from kubewright.http.server import Request, Response


@dataclass(slots=True)
class Call:
    """A request for a resource by a known user."""

    core: Core
    api: Access
    request: Request
    info: RequestInfo
    resource: Resource
    user: User
    horizon: Callable[[], int | None]
    """Give the last revision that this client may see; None is no limit."""
    warnings: list[str] = field(default_factory=list[str])

    def format(self, *, many: bool = False) -> Format:
        """Choose the form of the answer, before anything is done."""
        found = negotiate(self.request.headers.get("accept", ""), custom=self.resource.custom)
        if found.form == ("PartialObjectMetadata" if many else "PartialObjectMetadataList"):
            raise self._wrong_form(found.form, many=many)
        return found

    def _wrong_form(self, form: str, *, many: bool) -> StatusError:
        resource = self.resource
        package = resource.group.partition(".")[0] or "core"
        kind = resource.list_kind if many else resource.kind
        name = f"*{package}.{kind}"
        if resource.custom:
            name = "*unstructured.UnstructuredList" if many else "*unstructured.Unstructured"
        what = f"a list ({name})" if many else f"not a list ({name})"
        return StatusError(406, "NotAcceptable", f"you requested {form}, but the requested object is {what}")

    def include(self) -> str:
        """Read what a Table's rows should carry."""
        wanted = self.request.one("includeObject") or "Metadata"
        if wanted not in ("Metadata", "Object", "None"):
            error = problems.invalid(
                "includeObject", wanted, "must be 'Metadata', 'Object', 'None', or empty"
            )
            raise StatusError.bad_request(f"Unable to convert to Table as requested: {error}")
        return wanted

    def scope(self, options: WriteOptions, *, subresource: str = "") -> Scope:
        """Aim a write at what the path names."""
        return Scope(
            self.core,
            self.resource,
            self.info.namespace,
            self.info.name,
            self.user,
            options,
            manager_of(options, self.request),
            subresource,
            warnings=self.warnings,
        )

    def answer(self, status: int, data: bytes, form: Format, strategy: Strategy | None = None) -> Response:
        """Answer with one object in the chosen form; a Status stays as it is."""
        if form.form != "object" and b'"kind":"Status"' not in data[:40]:
            shown = strategy or self.resource.strategy
            data = object_body(self.core, shown, data, form, self.include())
        return self.plain(status, data, form)

    def plain(self, status: int, data: bytes, form: Format) -> Response:
        """Answer with bytes that are already in the chosen form, in the chosen format."""
        headers = [warning_header(text) for text in dict.fromkeys(self.warnings)]
        body, media = encode_body(self.request, data, form.media)
        return Response(status, body, media, headers)
