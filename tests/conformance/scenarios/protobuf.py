"""Bodies in protobuf, as every Go client sends them: what is read, and what is said of those that cannot be."""

from collections.abc import Mapping

from conformance_exchange import Step

N = "/api/v1/namespaces/protobuf"
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf", "Accept": "application/json"}


def number(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def part(field: int, value: bytes | str | int) -> bytes:
    """Write one field: a number, or bytes with their length."""
    if isinstance(value, int):
        return number(field << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(field << 3 | 2) + number(len(data)) + data


def pairs(field: int, values: Mapping[str, str]) -> bytes:
    return b"".join(part(field, part(1, key) + part(2, value)) for key, value in values.items())


def envelope(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\x00" + part(1, part(1, version) + part(2, kind)) + part(2, raw) + part(3, "") + part(4, "")


def meta(name: str, **labels: str) -> bytes:
    return part(1, part(1, name) + pairs(11, labels))


CONFIG = envelope("ConfigMap", meta("a", x="1") + pairs(2, {"k": "v", "l": "ü"}))
DEPLOYMENT = envelope(
    "Deployment",
    meta("web")
    + part(
        2,
        part(1, 0)
        + part(2, pairs(1, {"app": "web"}))
        + part(
            3,
            part(1, pairs(11, {"app": "web"})) + part(2, part(2, part(1, "c") + part(2, "i"))),
        ),
    ),
    "apps/v1",
)
REVIEW = envelope("SelfSubjectReview", part(1, b""), "authentication.k8s.io/v1")
OPTIONS = envelope("DeleteOptions", part(1, 0) + part(4, "Background"))


def post(name: str, body: bytes, path: str = f"{N}/configmaps", method: str = "POST") -> Step:
    return Step(name, method, path, body, PROTOBUF)


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "protobuf"}}, compared=False),
    post("create", CONFIG),
    post("create-again", CONFIG),
    post("replace", CONFIG.replace(b"\x01v", b"\x01w"), f"{N}/configmaps/a", "PUT"),
    post("zero-of-a-pointer", DEPLOYMENT, "/apis/apps/v1/namespaces/protobuf/deployments"),
    post("unknown-fields", envelope("ConfigMap", meta("b") + part(99, "x") + part(98, 5))),
    post("other-kind", envelope("Secret", meta("a"))),
    post("unregistered", envelope("Nope", meta("a"))),
    post("no-kind", b"k8s\x00" + part(2, meta("c"))),
    Step(
        "review", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW, PROTOBUF, user="jane"
    ),
    post("delete-options", OPTIONS, f"{N}/configmaps/a", "DELETE"),
    Step("gone", "GET", f"{N}/configmaps/a"),
    Step("not-protobuf", "POST", f"{N}/configmaps", b"{}", PROTOBUF),
    Step(
        "answer-either-way",
        "GET",
        f"{N}/configmaps/b",
        headers={"Accept": "application/json, application/vnd.kubernetes.protobuf"},
    ),
]
