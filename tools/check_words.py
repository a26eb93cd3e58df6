"""Fail on words that the project's text does not use: `python tools/check_words.py [PATH ...]`.

Names, comments, docstrings, messages and pages use the vocabulary of Kubernetes and Python. Each word below comes with
the word to use instead. Words are also found inside identifiers, such as `_told` or `SOCKET_PATIENCE`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SCOPE: Sequence[str] = (
    "src/kubewright/backoff.py",
    "src/kubewright/certificates",
    "src/kubewright/cli",
    "src/kubewright/client",
    "src/kubewright/generate",
    "src/kubewright/metrics.py",
    "src/kubewright/scaffold",
    "src/kubewright/serving",
    "src/kubewright/testing",
    "tests/golden",
)
"""Files and directories that are checked; extend the list when another one passes."""

INSTEAD = {
    "tell": "report, notify, publish",
    "tells": "reports, shows",
    "told": "reported, notified",
    "telling": "reporting",
    "mend": "fix, repair",
    "mends": "fixes, repairs",
    "mended": "fixed, repaired",
    "judge": "validate, check",
    "judges": "validates, checks",
    "judged": "validated, checked",
    "judging": "validating, checking",
    "wish": "desired state",
    "wishes": "desired state",
    "wished": "desired",
    "shall": "must, or the present tense",
    "whoever": "the client, the user, the process",
    "whom": "the identity, the user",
    "nobody": "no client, no webhook, no process",
    "somebody": "a user, another client, a process",
    "dearest": "slowest, most expensive",
    "patience": "timeout",
    "mould": "template",
    "moulds": "templates",
    "forgiving": "fails_open",
    "horizon": "max_visible_revision",
    "surroundings": "dependencies",
    "holdings": "cache reader",
    "shelf": "informer set",
}

ALLOWED: Sequence[tuple[str, str]] = ()
"""Uses that stay, as (path, text of the line): messages and terms of Kubernetes itself."""

SUFFIXES = {".py", ".md", ".txt", ".yaml", ".toml", ".html", ""}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def findings(path: str, text: str) -> Iterator[str]:
    """Yield a line for each use of a word in a file's text."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in dict.fromkeys(found.lower() for found in _WORD.findall(line)):
            allowed = any(path == where and what in line for where, what in ALLOWED)
            if word in INSTEAD and not allowed:
                yield f"{path}:{number}: {word!r}: use {INSTEAD[word]}"


def tracked(scope: Sequence[str]) -> list[str]:
    """Return the tracked text files of these paths."""
    command = ["git", "ls-files", "-z", "--", *scope]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and Path(name).suffix in SUFFIXES]
    return [name for name in names if (ROOT / name).is_file()]


def main(arguments: Sequence[str]) -> int:
    """Print each finding; return 1 if there is one, and 2 if there is nothing to check."""
    names = tracked(arguments or SCOPE)
    if not names:
        print(f"check_words: no tracked files in {' '.join(arguments or SCOPE)}", file=sys.stderr)
        return 2
    found = [line for name in names for line in findings(name, (ROOT / name).read_text(encoding="utf-8"))]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
