"""Reports of exceptions in the user's code: the user's own line first, without frames of libraries."""

import sysconfig
import traceback
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType

import click

from kubewright.api import KubewrightError

# Every command runs inside click, so its frames are left out too.
_OURS = (str(Path(__file__).resolve().parents[1]), str(Path(click.__file__).resolve().parent))


class WrongUsage(KubewrightError):
    """The command line is invalid, for example a TARGET that does not exist: the command exits with 2."""


def author_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames outside kubewright and the standard library; only those of the user's own files, if any."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", *_OURS)) and not _is_standard(frame.filename)
    ]
    installed = _folders("purelib", "platlib")
    own = [frame for frame in frames if not frame.filename.startswith(installed)]
    return own or frames


def place_of(error: BaseException) -> str:
    """Return the line of the user's code that raised the exception, as `file.py:12`, or an empty string."""
    frames = author_frames(error)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def crash_report(error: BaseException) -> str:
    """Format an exception: a line with file and line of the user's code, then the user's frames; without any, all frames."""
    frames = author_frames(error)
    if not frames:
        return "".join(traceback.format_exception(error)).rstrip()
    headline = f"{place_of(error)}: {type(error).__name__}: {error}"
    return "\n".join([headline, *"".join(traceback.format_list(frames)).rstrip().splitlines()])


def stack_trace(error: BaseException) -> str:
    """Return the whole traceback of a failure as text.

    The frames of one place in the code are formatted once: a reconciler that fails for a thousand objects would
    otherwise keep the event loop busy with reading source lines.
    """
    context = None if error.__suppress_context__ else error.__context__
    is_group = issubclass(type(error), BaseExceptionGroup)
    if is_group or error.__cause__ is not None or context is not None:
        return "".join(traceback.format_exception(error))
    places = tuple((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    last = "".join(traceback.format_exception_only(error))
    return f"Traceback (most recent call last):\n{_stack(places)}{last}"


@lru_cache(maxsize=256)
def _stack(places: tuple[tuple[CodeType, int], ...]) -> str:
    frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in places]
    return "".join(traceback.format_list(frames))


def _is_standard(filename: str) -> bool:
    # Installed packages lie below the standard library's folder in some layouts.
    standard, installed = _folders("stdlib", "platstdlib"), _folders("purelib", "platlib")
    return filename.startswith(standard) and not filename.startswith(installed)


@cache
def _folders(*names: str) -> tuple[str, ...]:
    # Computed only on failure: it reads Python's build configuration, which would slow every start.
    return tuple(sysconfig.get_path(name) for name in names)
