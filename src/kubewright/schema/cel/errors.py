"""Errors of the compilation and of the evaluation of expressions."""

from dataclasses import dataclass

from kubewright.api import KubewrightError


@dataclass(frozen=True, slots=True)
class Issue:
    """One error in the source."""

    offset: int
    message: str


class CompileError(KubewrightError, ValueError):
    """An expression that does not compile; the message marks each error with a caret."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = issues
        super().__init__("\n".join(_shown(source, issue) for issue in issues))


class EvaluationError(KubewrightError):
    """An expression that has no value for this input."""


class CostExceeded(EvaluationError):
    """An expression whose cost is above the limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """Return the error for arguments that no overload of a function accepts."""
    return EvaluationError("no such overload")


def no_such_key(key: object) -> EvaluationError:
    """Return the error for a key or field that is absent."""
    return EvaluationError(f"no such key: {key}")


def _shown(source: str, issue: Issue) -> str:
    before = source[: issue.offset]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1].replace("\t", " ")
    dots = "".join("\uff0e" if ord(char) > 0x7F else "." for char in text[:column])
    caret = "\uff3e" if column < len(text) and ord(text[column]) > 0x7F else "^"
    return f"ERROR: <input>:{line}:{column + 1}: {issue.message}\n | {text}\n | {dots}{caret}"
