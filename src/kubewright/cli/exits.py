"""Exit codes and messages of errors: without click, which a deployed operator does not load."""

import errno

from kubewright.api import ConnectionFailed, KubewrightError
from kubewright.tracebacks import crash_report

FAILED = 1
WRONG_USAGE = 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class WrongUsage(KubewrightError):
    """The command line is invalid, for example a TARGET that does not exist: the command exits with 2."""


def error_line(error: BaseException) -> str:
    """Return what is printed for an error: a line, and for an unexpected one the frames of the author's code."""
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted: run the same command again to continue"
    if isinstance(error, ConnectionFailed):
        return f"Error: {error} (run `kubewright doctor` to check the cluster and the kubeconfig)"
    if isinstance(error, KubewrightError):
        return f"Error: {error}"
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return f"Error: cannot write to standard output: {error.strerror}"
    return f"Error: {crash_report(error)}"


def exit_code_of(error: BaseException) -> int:
    """Return 2 for a usage error, else 1."""
    return WRONG_USAGE if isinstance(error, WrongUsage) else FAILED
