"""Errors of decoding a request body, with the messages of Go's decoders."""

from kubewright.api import GroupVersionKind, KubewrightError

TOO_DEEP = "exceeded max depth"


_UNREGISTERED = 'no kind "{}" is registered for version "{}" in scheme "pkg/api/legacyscheme/scheme.go:30"'


class WireDecodeError(KubewrightError, ValueError):
    """A body cannot be decoded into its type; the message is kube-apiserver's."""


class UnknownKind(WireDecodeError):
    """A body names an unknown kind."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        super().__init__(_UNREGISTERED.format(gvk.kind, gvk.api_version))
        self.gvk = gvk


class TypeMismatch(Exception):
    """A JSON value of the wrong type; at the root it becomes a `WireDecodeError`."""

    def __init__(self, value: str, go_type: str) -> None:
        super().__init__(value, go_type)
        self.value = value
        self.go_type = go_type
        self.struct = ""
        self.fields: list[str] = []

    def text(self) -> str:
        """Spell the error as Go's JSON decoder does."""
        where = f"struct field {self.struct}.{'.'.join(self.fields)}" if self.struct else "value"
        return f"json: cannot unmarshal {self.value} into Go {where} of type {self.go_type}"


def json_sort(value: object) -> str:
    """Return the JSON type of a value, as Go's decoder names it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"
