"""What goes wrong when a request body is read, in the words of Go's decoders."""

from kubewright.api import GroupVersionKind, KubewrightError

_UNREGISTERED = 'no kind "{}" is registered for version "{}" in scheme "pkg/api/legacyscheme/scheme.go:30"'


class DecodeError(KubewrightError, ValueError):
    """A body that cannot be read into its type; the text is what the real server says."""


class UnknownKind(DecodeError):
    """A body that says it is of a kind there is not."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        super().__init__(_UNREGISTERED.format(gvk.kind, gvk.api_version))
        self.gvk = gvk


class TypeMismatch(Exception):
    """A JSON value of the wrong sort, on its way up to the root, where it becomes a `DecodeError`."""

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
    """Name the JSON sort of a value as Go's decoder does."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"
