"""Tracebacks of the author's code: frames of kubewright, installed packages and the standard library are folded.

A reconcile runs below some ten frames of the runtime and often ends in as many of a client library. The author's own
frames are what a reader looks for: `folded_traceback` shows them, and counts the others.
"""

import os
import traceback
from collections.abc import Collection
from functools import cache, lru_cache
from importlib import import_module
from types import CodeType
from typing import Any

_PACKAGE = os.path.dirname(__file__)


def author_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of the author's own files; if there are none, those of installed packages."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not package_of(frame.filename)]
    if own:
        return own
    # click calls every command: its frames say nothing about an error below it.
    left_out = ("kubewright", "click", _STANDARD)
    return [frame for frame in frames if package_of(frame.filename) not in left_out]


def place_of(error: BaseException) -> str:
    """Return the line of the author's code that raised the exception, as `file.py:12`, or an empty string."""
    frames = author_frames(error)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def folded_traceback(error: BaseException) -> str:
    """Return the traceback with the author's frames; runs of other frames are one line, `... 6 frames in kubewright`.

    Causes and the members of groups are folded likewise. Without a frame of the author's in any of them it is whole.
    """
    shown = traceback.TracebackException.from_exception(error)
    parts = _parts(shown, {})
    if any(not package_of(frame.filename) for part in parts for frame in part.stack):
        for part in parts:
            folded = _FoldedStack()
            folded.extend(part.stack)
            part.stack = folded
    return "".join(shown.format()).rstrip()


def crash_report(error: BaseException) -> str:
    """Format an exception: a line with file and line of the author's code, then the author's frames; without any, all."""
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


class _FoldedStack(traceback.StackSummary):
    """A stack that shows runs of frames which are not the author's as one line each."""

    def format(self, **options: Any) -> list[str]:
        lines: list[str] = []
        others: list[str] = []
        for frame in self:
            package = package_of(frame.filename)
            if package:
                others.append(package)
                continue
            lines += [*_fold_line(others), *traceback.StackSummary.from_list([frame]).format(**options)]
            others = []
        return [*lines, *_fold_line(others)]


def _fold_line(packages: list[str]) -> list[str]:
    if not packages:
        return []
    names = ", ".join(dict.fromkeys(packages))
    return [f"  ... {len(packages)} frame{'s'[: len(packages) != 1]} in {names}\n"]


def _parts(
    shown: traceback.TracebackException, found: dict[int, traceback.TracebackException]
) -> Collection[traceback.TracebackException]:
    """Return an exception with its causes, contexts and the members of its groups."""
    if id(shown) not in found:
        found[id(shown)] = shown
        for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
            if other is not None:
                _parts(other, found)
    return found.values()


@lru_cache(maxsize=256)
def _stack(places: tuple[tuple[CodeType, int], ...]) -> str:
    frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in places]
    return "".join(traceback.format_list(frames))


_STANDARD = "the standard library"


@lru_cache(maxsize=1024)
def package_of(filename: str) -> str:
    """Return the package whose file this is; empty for the author's own."""
    if filename.startswith(_PACKAGE + os.sep):
        return "kubewright"
    if filename.startswith("<"):
        return _STANDARD
    # Installed packages lie below the standard library's folder in some layouts, so they come first.
    for folder in library_folders("purelib", "platlib"):
        if filename.startswith(folder + os.sep):
            return os.path.splitext(filename[len(folder) + 1 :].split(os.sep, maxsplit=1)[0])[0]
    if filename.startswith(tuple(folder + os.sep for folder in library_folders("stdlib", "platstdlib"))):
        return _STANDARD
    return ""


@cache
def library_folders(*names: str) -> tuple[str, ...]:
    """Return the folders of Python's libraries by their names in `sysconfig`."""
    # Loaded only on failure: it reads Python's build configuration, which would slow every start.
    return tuple(map(import_module("sysconfig").get_path, names))
