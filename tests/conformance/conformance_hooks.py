"""A webhook server for scenarios: each path answers in its own way, well or badly."""

import base64
import contextlib
import json
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.certificates import Authority

Review = dict[str, Any]
Reply = tuple[int, str, bytes]
Responder = Callable[[list[str], Review], Reply]
"""Answers a review that is posted to `/reply/...`, from the segments of the path and the whole review."""
SLOW_SECONDS = 3.0
RACERS = 6
"""Requests that `meet` lets pass together."""

_ended = threading.Event()
"""Cancel slow responses."""


def _review(request: Review, **response: Any) -> Reply:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }
    return 200, "application/json", json.dumps(body).encode()


def _patch(*operations: Any, patch_type: str = "JSONPatch", **more: Any) -> Callable[[Review], Reply]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: _review(request, allowed=True, patch=text, patchType=patch_type, **more)


def _says(**response: Any) -> Callable[[Review], Reply]:
    return lambda request: _review(request, **response)


def _raw(status: int, kind: str, body: str) -> Callable[[Review], Reply]:
    return lambda request: (status, kind, body.encode())


def _echo(request: Review) -> Reply:
    shown = {name: value for name, value in request.items() if name not in ("uid", "userInfo")}
    return _review(request, allowed=False, status={"message": json.dumps(shown, separators=(",", ":"))})


def _append(letter: str) -> Callable[[Review], Reply]:
    def answer(request: Review) -> Reply:
        before = (request["object"].get("data") or {}).get("seen", "")
        return _patch({"op": "add", "path": "/data", "value": {"seen": before + letter}})(request)

    return answer


def wait_slowly() -> None:
    """Wait longer than a webhook with a timeout of one or two seconds may take, or until the server ends."""
    _ended.wait(SLOW_SECONDS)


def _slow(request: Review) -> Reply:
    wait_slowly()
    return _review(request, allowed=True)


_together = threading.Barrier(RACERS)


def _meet(request: Review) -> Reply:
    """Allow once as many requests have arrived."""
    with contextlib.suppress(threading.BrokenBarrierError):
        _together.wait(SLOW_SECONDS * 10)
    return _review(request, allowed=True)


def _wrong_version(request: Review) -> Reply:
    status, kind, body = _review(request, allowed=True)
    return status, kind, body.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1")


CAUSES = [
    {"reason": "FieldValueInvalid", "message": 'Invalid value: "a": too short', "field": "data.a"},
    {"reason": "FieldValueRequired", "message": "Required value", "field": "data.b"},
]
ANSWERS: dict[str, Callable[[Review], Reply]] = {
    "allow": _says(allowed=True),
    "deny": _says(allowed=False, status={"message": "nope"}),
    "deny-silent": _says(allowed=False),
    "deny-reason": _says(allowed=False, status={"reason": "Because"}),
    "deny-teapot": _says(
        allowed=False,
        status={"code": 418, "reason": "Teapot", "message": "short and stout"},
        warnings=["w1", 'say "w2"'],
    ),
    "deny-fields": _says(
        allowed=False,
        status={
            "code": 422,
            "reason": "Invalid",
            "message": 'ConfigMap "x" is invalid: [data.a: Invalid value: "a": too short, data.b: Required value]',
            "details": {"name": "x", "kind": "ConfigMap", "causes": CAUSES},
        },
    ),
    "deny-success": _says(allowed=False, status={"code": 200, "status": "Success", "message": "odd"}),
    "deny-exists": _says(allowed=False, status={"code": 401, "reason": "AlreadyExists"}),
    "deny-odd": _says(allowed=False, status={"status": "Odd", "message": "odd"}),
    "deny-details": _says(allowed=False, status={"message": "nope", "details": "text"}),
    "warn-empty": _says(allowed=True, warnings=["first", "", "a\u0007b", "no\u00a0break"]),
    "warn-text": _says(allowed=True, warnings="text"),
    "allowed-text": _says(allowed="true"),
    "audit-text": _says(allowed=True, auditAnnotations="text"),
    "versionless": _raw(200, "application/json", '{"kind":"AdmissionReview","response":{"allowed":true}}'),
    "versionless-pod": _raw(200, "application/json", '{"kind":"Pod"}'),
    "version-number": _raw(200, "application/json", '{"apiVersion":1,"kind":"AdmissionReview"}'),
    "truncated": _raw(200, "application/json", '{"apiVersion":"admission.k8s.io/v1"'),
    "trailing": _raw(200, "application/json", '{"apiVersion":"admission.k8s.io/v1"} x'),
    "null": _raw(200, "application/json", "null"),
    "success-status": _raw(200, "application/json", '{"kind":"Status","apiVersion":"v1","status":"Failure"}'),
    "warn": _says(allowed=True, warnings=["careful", "line\nbreak"], auditAnnotations={"k": "v"}),
    "echo": _echo,
    "slow": _slow,
    "meet": _meet,
    "uid": lambda request: _review({"uid": "other"}, allowed=True),
    "version": _wrong_version,
    "absent": _raw(200, "application/json", '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'),
    "kindless": _raw(200, "application/json", "{}"),
    "other-kind": _raw(200, "application/json", '{"apiVersion":"v1","kind":"Pod"}'),
    "no-json": _raw(200, "application/json", "nope"),
    "html": _raw(200, "text/html", "<html></html>"),
    "array": _raw(200, "application/json", "[]"),
    "empty": _raw(200, "application/json", ""),
    "not-found": _raw(404, "text/plain", "404 page not found"),
    "bad-request": _raw(400, "text/plain", "bad"),
    "forbidden": _raw(403, "text/plain", "not you"),
    "teapot": _raw(418, "text/plain", "teapot"),
    "failing": _raw(500, "text/plain", "it broke"),
    "failing-json": _raw(500, "application/json", '{"it":"broke"}'),
    "unavailable": _raw(503, "text/plain", "later"),
    "status": _raw(
        500,
        "application/json",
        '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"own words","code":500}',
    ),
    "kind-true": _patch({"op": "replace", "path": "/kind", "value": True}),
    "kind-text": _patch({"op": "replace", "path": "/kind", "value": "b"}),
    "kind-pod": _patch({"op": "replace", "path": "/kind", "value": "Pod"}),
    "kind-null": _patch({"op": "replace", "path": "/kind", "value": None}),
    "version-true": _patch({"op": "replace", "path": "/apiVersion", "value": True}),
    "version-text": _patch({"op": "replace", "path": "/apiVersion", "value": "b"}),
    "version-gone": _patch({"op": "remove", "path": "/apiVersion"}),
    "whole-text": _patch({"op": "replace", "path": "", "value": "b"}),
    "label": _patch({"op": "add", "path": "/metadata/labels/mut", "value": "1"}, warnings=["labelled"]),
    "a": _append("a"),
    "b": _append("b"),
    "replicas": _patch({"op": "add", "path": "/spec/replicas", "value": 3}),
    "container": _patch(
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "side", "image": "s"}}
    ),
    "missing-path": _patch({"op": "add", "path": "/a/b/c", "value": 1}),
    "remove-missing": _patch({"op": "remove", "path": "/data/none"}),
    "test-fails": _patch({"op": "test", "path": "/metadata/name", "value": "other"}),
    "wrong-type": _patch({"op": "add", "path": "/data", "value": {"a": 1}}),
    "unknown-field": _patch({"op": "add", "path": "/nonsense", "value": 1}),
    "remove-metadata": _patch({"op": "remove", "path": "/metadata"}),
    "remove-name": _patch({"op": "remove", "path": "/metadata/name"}),
    "rename": _patch({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
    "invalid": _patch({"op": "add", "path": "/metadata/labels/bad", "value": "not valid!"}),
    "no-operations": _patch(),
    "patch-object": lambda request: _review(
        request, allowed=True, patchType="JSONPatch", patch=base64.b64encode(b'{"a":1}').decode()
    ),
    "patch-text": lambda request: _review(
        request, allowed=True, patchType="JSONPatch", patch=base64.b64encode(b"nope").decode()
    ),
    "patch-alone": lambda request: _review(request, allowed=True, patch=base64.b64encode(b"[]").decode()),
    "type-alone": _says(allowed=True, patchType="JSONPatch"),
    "merge": _patch({"op": "add", "path": "/metadata/labels/mut", "value": "1"}, patch_type="Merge"),
    "type-unknown": lambda request: _review(
        request, allowed=True, patchType="Merge", patch=base64.b64encode(b"[]").decode()
    ),
}


def _converted(request: Review, *, change: Callable[[Review], None] = lambda obj: None) -> list[Review]:
    wanted = request["desiredAPIVersion"]
    found = json.loads(json.dumps(request["objects"]))
    for obj in found:
        spec = obj.setdefault("spec", {})
        if wanted.endswith("v2") and "size" in spec:
            spec["dimensions"] = {"size": spec.pop("size")}
        elif wanted.endswith("v1") and "dimensions" in spec:
            spec["size"] = spec.pop("dimensions").get("size")
            spec.pop("shape", None)
        obj["apiVersion"] = wanted
        change(obj)
    return found


def _conversion(request: Review, objects: Any, **result: Any) -> Reply:
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": request["uid"],
            "convertedObjects": objects,
            "result": {"status": "Success", **result},
        },
    }
    return 200, "application/json", json.dumps(body).encode()


def _meta(**values: Any) -> Callable[[Review], None]:
    return lambda obj: obj["metadata"].update(values)


def _convert(request: Review) -> Reply:
    """Convert as one should, or as the label `break` of the first object says."""
    first = request["objects"][0].get("metadata", {}).get("labels", {}).get("break", "")
    changes: dict[str, Callable[[Review], None]] = {
        "name": _meta(name="other"),
        "namespace": _meta(namespace="other"),
        "uid": _meta(uid="other"),
        "labels": _meta(labels={"bad key!": "x"}),
        "finalizers": _meta(finalizers=["ex.io/mine"], annotations={"converted": "yes"}),
        "version": lambda obj: obj.update(apiVersion="ex.io/v9"),
        "kind": lambda obj: obj.update(kind="Other"),
        "metadata": lambda obj: obj.pop("metadata"),
    }
    if first in changes:
        return _conversion(request, _converted(request, change=changes[first]))
    if first == "count":
        return _conversion(request, [])
    if first == "fail":
        return _conversion(request, [], status="Failure", message="cannot do that")
    if first == "fail-silent":
        return _conversion(request, [], status="Failure")
    if first == "http":
        return 500, "text/plain", b"it broke"
    if first == "garbage":
        return 200, "application/json", b"nope"
    if first == "review-uid":
        return _conversion({"uid": "other"}, _converted(request))
    return _conversion(request, _converted(request))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one piece: in two, the second waits for the first to be acknowledged.
    wbufsize = -1
    server: "_Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path.partition("?")[0].strip("/")
        location = ""
        first, *segments = name.split("/")
        if first == "reply":
            status, kind, data = self.server.responder(
                [urllib.parse.unquote(part) for part in segments], body
            )
        elif "echo-path" in self.path:
            shown = {"message": self.path.partition("?")[0]}
            status, kind, data = _review(body["request"], allowed=False, status=shown)
        elif name.startswith("redirect-"):
            location = f"/echo-path/{name}" if name != "redirect-307-loop" else "/redirect-307-loop"
            status, kind, data = int(name.split("-")[1]), "text/plain", b"moved"
        else:
            answer = _convert if name == "convert" else ANSWERS[name]
            status, kind, data = answer(body["request"])
        try:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer a redirected request that lost its body."""
        data = b"send a review"
        self.send_response(405)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, responder: Responder) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.responder = responder

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the scenarios."""


def _untrusted_authority() -> bytes:
    """Return the certificate of an authority that signed no certificate here."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "untrusted")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _nameless() -> tuple[bytes, bytes]:
    """Create a self-signed serving certificate with a common name and no alternative names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(2).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    unencrypted = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    return certificate, key.private_bytes(serialization.Encoding.PEM, form, unencrypted)


def _not_found(segments: list[str], review: Review) -> Reply:
    return 404, "text/plain", b"404 page not found"


@contextmanager
def _serving(certificate: bytes, key: bytes, responder: Responder) -> Iterator[int]:
    """Serve webhooks with a certificate; gives the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        file = Path(folder, "serving.pem")
        file.write_bytes(certificate + key)
        context.load_cert_chain(file)
    server = _Server(responder)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, name="conformance-hooks")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        _ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hook_server(responder: Responder = _not_found) -> Iterator[dict[str, str]]:
    """Serve webhooks; gives the values that scenarios put in their bodies."""
    _ended.clear()
    authority = Authority.create()
    pair = authority.serving("hooks", ["127.0.0.1", "localhost"])
    certificate, key = _nameless()
    with (
        _serving(pair.certificate, pair.key, responder) as port,
        _serving(certificate, key, responder) as nameless_port,
    ):
        yield {
            "hook": f"127.0.0.1:{port}",
            "ca": base64.b64encode(authority.pair.certificate).decode(),
            "leaf": base64.b64encode(pair.certificate).decode(),
            "otherca": base64.b64encode(_untrusted_authority()).decode(),
            "nameless": f"localhost:{nameless_port}",
            "namelessca": base64.b64encode(certificate).decode(),
        }
