"""The command line of kube-apiserver, read as the real one reads it, with kubewright's own flags beside.

`flags.json` has the names and types of the real flags. Values of the wrong type, unknown flags and words that are no flag
fail with the same line as the real binary.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

VARIABLE = "KUBEWRIGHT_ENVTEST_FLAGS"
"""Environment variable with further flags, for tests whose code must also run with the real binaries."""

OWN_FLAGS: Mapping[str, tuple[str, str]] = {
    "kubernetes": ("string", "Kubernetes version to serve, such as 1.33; by default the newest."),
    "controllers": (
        "bool",
        "Run controllers, a scheduler and a kubelet, so that Pods and Deployments become ready.",
    ),
    "nodes": ("int", "With --controllers, the number of nodes (default 1)."),
    "pods": (
        "string",
        "simulated: simulate containers (default). process: run them as processes, as your user. Implies --controllers.",
    ),
    "run": ("stringArray", "With --pods=process, the command for an image: IMAGE=COMMAND; repeatable."),
    "faults": ("string", "YAML file of faults to inject; it is read again when it changes."),
    "record-access": ("string", "File to append the permissions to that each user uses."),
}
"""Flags that only the stand-in has: type and description."""

_BOOLEANS = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}
_INTEGERS = {"int", "Level"}


class FlagError(Exception):
    """A command line that kube-apiserver does not accept; the text is the line it prints."""


@dataclass(frozen=True, slots=True)
class KnownFlags:
    """The flags of one version of kube-apiserver."""

    version: str
    types: Mapping[str, str]
    short: Mapping[str, str]
    admission_plugins: Sequence[str]

    @classmethod
    def load(cls) -> "KnownFlags":
        """Read `flags.json`."""
        found: dict[str, Any] = json.loads(files(__package__ or "").joinpath("flags.json").read_bytes())
        server = found["kube-apiserver"]
        own = {name: kind for name, (kind, _) in OWN_FLAGS.items()}
        return cls(server["version"], server["flags"] | own, server["short"], server["admission_plugins"])


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """The flags of a command line: all values of each, in their order."""

    values: Mapping[str, Sequence[str]]

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a flag."""
        return self.values[name][-1] if name in self.values else default

    def texts(self, name: str) -> list[str]:
        """Return all values of a flag that takes a list, split at commas."""
        return [
            part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()
        ]

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean flag."""
        return _BOOLEANS[self.text(name).lower()] if name in self.values else default

    def __contains__(self, name: str) -> bool:
        return name in self.values


def parse(arguments: Sequence[str], environment: Mapping[str, str], known: KnownFlags) -> GivenFlags:
    """Return the flags of a command line, after those of the environment variable; raise FlagError if one is wrong."""
    try:
        added = shlex.split(environment.get(VARIABLE, ""))
    except ValueError as error:
        raise FlagError(f"{VARIABLE}: {error}") from None
    values: dict[str, list[str]] = {}
    for words, where in ((added, f" (in {VARIABLE})"), (arguments, "")):
        try:
            _read(list(words), known, values)
        except FlagError as error:
            raise FlagError(f"{error}{where}") from None
    return GivenFlags(values)


def _read(rest: list[str], known: KnownFlags, values: dict[str, list[str]]) -> None:
    while rest:
        word = rest.pop(0)
        if word == "--" or not word.startswith("-") or word == "-":
            stray = rest if word == "--" else [word, *rest]
            if stray:
                raise FlagError(f'"kube-apiserver" does not take any arguments, got {json.dumps(stray)}')
            return
        given, name, value = _split(word, known)
        kind = known.types[name]
        if value is None and kind == "bool":
            value = "true"
        elif value is None:
            if not rest:
                raise FlagError(f"flag needs an argument: {given}")
            value = rest.pop(0)
        _check(given, kind, value)
        values.setdefault(name, []).append(value)


def _split(word: str, known: KnownFlags) -> tuple[str, str, str | None]:
    """Return a flag as messages name it, its name, and the value that is in the same word."""
    if not word.startswith("--"):
        name = known.short.get(word[1])
        if name is None:
            raise FlagError(f"unknown shorthand flag: '{word[1]}' in {word}")
        return f"-{word[1]}, --{name}", name, word[2:].removeprefix("=") or None
    text, equals, value = word[2:].partition("=")
    name = text.replace("_", "-")
    if name not in known.types:
        raise FlagError(f"unknown flag: --{text}")
    return f"--{name}", name, value if equals else None


def _check(given: str, kind: str, value: str) -> None:
    if kind == "bool" and value.lower() not in _BOOLEANS:
        raise FlagError(
            f'invalid argument "{value}" for "{given}" flag: strconv.ParseBool: parsing "{value}": invalid syntax'
        )
    if kind in _INTEGERS and not value.lstrip("+-").isdecimal():
        raise FlagError(
            f'invalid argument "{value}" for "{given}" flag: strconv.ParseInt: parsing "{value}": invalid syntax'
        )


def help_text(known: KnownFlags) -> str:
    """Return the output of `--help`: all flags in the form that envtest looks for."""
    lines = [
        "kubewright's embedded API server, which replaces kube-apiserver.",
        "",
        "Usage:",
        "  kube-apiserver [flags]",
        "",
        "Flags of kubewright:",
        "",
        *(_help_line(name, kind, f"   {text}") for name, (kind, text) in OWN_FLAGS.items()),
        "",
        f"Flags of kube-apiserver {known.version}; a warning at start names those that have no effect here:",
        "",
        *(_help_line(name, kind) for name, kind in known.types.items() if name not in OWN_FLAGS),
    ]
    return "\n".join(lines) + "\n"


def _help_line(name: str, kind: str, text: str = "") -> str:
    shown = f"--{name}" if kind == "bool" else f"--{name} {kind}"
    return f"      {shown}{text}"
