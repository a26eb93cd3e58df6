"""Fail on words that the project's text does not use: `python tools/check_words.py [PATH ...]`.

Names, comments, docstrings, messages and pages use the vocabulary of Kubernetes and Python. Each row below is a word
with its forms, and what to use instead. Words are also found inside identifiers, such as `_told` or `SOCKET_PATIENCE`.
A line that uses a word in another sense, such as a message of Kubernetes itself, is listed in `ALLOWED`.
Docstrings that begin with one of `OPENINGS` are found too, and each of `PHRASES`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SCOPE: Sequence[str] = (
    "src",
    "examples",
    "benchmarks",
    "tests",
    "tools",
    "scripts",
    ".ci",
    "docs",
    ":(glob)*.md",
    "mkdocs.yml",
    "pyproject.toml",
)
"""Paths that are checked, as `git ls-files` takes them."""

EXCLUDED: Sequence[str] = (
    "tools/check_words.py",
    "src/kubewright/api/builtin/",
    "src/kubewright/devserver/data/",
    "tests/clients/recorded/",
    "tests/conformance/recorded/",
)
"""The list itself, and files that are generated from Kubernetes' sources or recorded from its responses."""

INSTEAD = {
    # The project's own coinages for concepts that have a name in Kubernetes, Python or HTTP.
    "patience": "timeout",
    "mould moulds": "template",
    "shelf shelves": "informer set",
    "holdings": "cache reader",
    "surroundings": "dependencies",
    "horizon": "max_visible_revision",
    "forgiving": "fails_open",
    "warden": "reaper",
    "crew": "pod_processes",
    "strays": "orphans",
    "fate fates": "pod_scenarios, outcome",
    "ledger": "allocations, record",
    "keeper": "indexer, owner",
    "wish wishes wished": "desired state",
    "face faces": "public names, exports",
    "pretend pretends pretended": "simulated",
    # Programs do not talk, judge or feel.
    "tell tells telling told": "report, notify, publish, show",
    "judge judges judged judging": "validate, check",
    "mend mends mended mending": "fix, repair",
    "answerer answerers": "handler, reviewer; the answer to an HTTP request is a response",
    "heard overheard": "seen, received",
    "wants": "requires, requests, expects",
    "believes believe believed": "assumes, has cached",
    "fare fares": "behave",
    "dear dearest": "slow, expensive",
    # People and programs have roles: name the role.
    "whom": "the identity, the user",
    "whoever": "the client, the user, the process",
    "nobody": "no client, no webhook, no process",
    "somebody": "a user, another client, a process",
    "anybody": "any client, any user",
    "everybody": "every client, all users",
    "stranger strangers": "another client, an unknown user",
    "shall": "must, or the present tense",
    # Words that stop a reader.
    "afresh anew": "again, newly",
}
"""Words to avoid, with their forms, and the words to use."""

PHRASES = {
    "in the place of": "instead of, replacing",
    "that of which": "turn the sentence around",
    "without end": "forever, endless",
    "comes to rest": "settles",
    "come to rest": "settle",
}
"""Phrases to avoid, and what to use."""

OPENINGS = ("Say", "Tell", "Give")
"""Docstrings begin with what a function does: Return, Yield, Raise, Create, Set."""

ALLOWED: Sequence[tuple[str, str]] = (
    ("examples/pulsarconsumer/test_with_pulsar.py", "edger"),  # a term and settings of Apache BookKeeper
    ("tests/api/test_pydantic_models.py", "helf"),  # a kind with books
    ("tests/conformance/scenarios/rules.py", "grows-anew"),  # a name in recorded requests
    ("tests/clients/kubectl/", "nobody"),  # names in recorded requests
    ("tests/conformance/", "body"),  # names in recorded requests
    ("tests/conformance/scenarios/webhooks.py", "judg"),  # names in recorded requests
    ("tests/golden/cachefarm/", "Give every cluster a tier"),  # converted from a kopf operator
    ("tests/scaffold/kopf_project/", "Give every cluster a tier"),  # an operator as its author wrote it
    ("tools/picture_demo.py", "@font-face"),  # a rule of CSS
)
"""Lines that may use a word, as (path or directory, part of the line)."""

SUFFIXES = {".py", ".js", ".md", ".txt", ".yaml", ".yml", ".toml", ".html", ".go", ".rs", ".sh", ""}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OPENING = re.compile(rf'\s*r?"""({"|".join(OPENINGS)})\b')
_ADVICE = {word: advice for words, advice in INSTEAD.items() for word in words.split()}


def findings(path: str, text: str) -> Iterator[str]:
    """Yield a line for each use of a word, and for each such opening of a docstring, in a file's text."""
    for number, line in enumerate(text.splitlines(), 1):
        allowed = any(path.startswith(where) and what in line for where, what in ALLOWED)
        for word in dict.fromkeys(found.lower() for found in _WORD.findall(line)):
            if word in _ADVICE and not allowed:
                yield f"{path}:{number}: {word!r}: use {_ADVICE[word]}"
        lowered = line.lower()
        for phrase, advice in PHRASES.items():
            if re.search(rf"\b{phrase}\b", lowered) and not allowed:
                yield f"{path}:{number}: {phrase!r}: use {advice}"
        if (opening := _OPENING.match(line)) and not allowed:
            yield f"{path}:{number}: {opening[1]!r} begins a docstring: use Return, Yield, Create or Set"


def tracked(scope: Sequence[str]) -> list[str]:
    """Return the tracked text files of these paths."""
    command = ["git", "ls-files", "-z", "--", *scope]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and Path(name).suffix in SUFFIXES]
    names = [name for name in names if not name.startswith(tuple(EXCLUDED))]
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
