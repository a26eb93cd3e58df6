"""A request for a resource, after routing: its response format, and its write."""

from dataclasses import dataclass

from kubewright.api import problems
from kubewright.devserver.core import Core
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.handlers.read import object_body
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.info import RequestInfo
from kubewright.devserver.request.negotiation import OFFERED, ResponseFormat, negotiate
from kubewright.devserver.request.options import WriteParameters
from kubewright.devserver.request.responses import (
    COMPRESSED,
    compress,
    compressible,
    encode_body,
    warning_header,
)
from kubewright.devserver.strategy import Strategy
from kubewright.http.server import Request, Response


@dataclass(slots=True)
class ResourceRequest:
    """A request and the resource that its path names."""

    core: Core
    context: RequestContext
    resource: ServedResource

    @property
    def request(self) -> Request:
        """Return the HTTP request."""
        return self.context.request

    @property
    def info(self) -> RequestInfo:
        """Return the parsed path."""
        return self.context.info

    def format(self, *, many: bool = False, plain: bool = False) -> ResponseFormat:
        """Negotiate the format of the response, before anything is done; `plain` permits no Table."""
        found = negotiate(self.request.headers.get("accept", ""), custom=self.resource.custom, many=many)
        if plain and found.form == "Table":
            raise StatusError.not_acceptable(OFFERED)
        if not many:
            self.check_form(found)
        return found

    def check_form(self, found: ResponseFormat, *, many: bool = False) -> None:
        """Raise NotAcceptable if the client requests a list and gets an object, or the other way around.

        Lists are read first: errors in their options come before this one.
        """
        if found.form == ("PartialObjectMetadata" if many else "PartialObjectMetadataList"):
            raise self._wrong_form(found.form, many=many)

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
        """Return `includeObject`: what the rows of a Table carry."""
        requested = self.request.one("includeObject") or "Metadata"
        if requested not in ("Metadata", "Object", "None"):
            error = problems.invalid(
                "includeObject", requested, "must be 'Metadata', 'Object', 'None', or empty"
            )
            raise StatusError.bad_request(f"Unable to convert to Table as requested: {error}")
        return requested

    def write(self, options: WriteParameters, *, subresource: str = "") -> ObjectWrite:
        """Return a write of the object that the path names."""
        info = self.info
        return ObjectWrite(
            self.core, self.context, self.resource, info.namespace, info.name, options, subresource
        )

    def respond(
        self, status: int, data: bytes, form: ResponseFormat, strategy: Strategy | None = None
    ) -> Response:
        """Respond with one object in the negotiated form; a Status is sent as it is."""
        if form.form != "object" and b'"kind":"Status"' not in data[:40]:
            shown = strategy or self.resource.strategy
            data = object_body(self.core, shown, data, form, self.include())
        return self.respond_encoded(status, data, form)

    def respond_encoded(self, status: int, data: bytes, form: ResponseFormat) -> Response:
        """Respond with JSON that already has the negotiated form, in the negotiated media type."""
        return self.respond_written(status, *encode_body(self.request, data, form.media, self.core.types))

    def respond_written(self, status: int, body: bytes, media: str) -> Response:
        """Respond with a body that is written in its media type, compressed if it is large."""
        headers = [warning_header(text) for text in dict.fromkeys(self.context.warnings)]
        if status < 300 and compressible(self.request, body):
            headers += COMPRESSED
            body = compress(body)
        return Response(status, body, media, headers)
