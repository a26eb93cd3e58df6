"""The options of `kubewright run` as values, and a parser for the arguments of a Deployment that does not load click.

`parse_arguments` returns the same options as click, or None: for help, options that need more than a running operator,
unusual spellings and invalid values. The click command handles those and reports errors.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubewright.api import KubewrightError
from kubewright.api.scoping import NamespaceSelector
from kubewright.api.sharding import Shards, parse_shards
from kubewright.cli.logs import LogFormat
from kubewright.cli.values import checked_selector, namespace_selector, size_or_off, split_namespaces
from kubewright.webhook import Reach


class RunOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of a run; the defaults are those of the command line."""

    target: str
    kubeconfig: Path | None = None
    context: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: NamespaceSelector | None = None
    selector: str = ""
    leader_elect: bool = False
    leader_election_id: str = ""
    leader_election_namespace: str = ""
    shards: Shards | None = None
    metrics_bind_address: str = ":8080"
    metrics_secure: bool = False
    metrics_service: str = ""
    health_probe_bind_address: str = ":8081"
    webhook_bind_address: str = ":9443"
    webhook_reach: Reach | None = None
    webhook_cert_dir: Path | None = None
    webhook_client_ca: Path | None = None
    replaced_webhooks: tuple[str, ...] = ()
    journal_limit: int = 16 * 1024 * 1024
    record: Path | None = None
    record_limit: int = 200 * 1024 * 1024
    ephemeral_cluster: bool = False
    log_format: LogFormat = "text"
    verbose: bool = False


def _log_format(text: str) -> str:
    if text not in ("text", "json"):
        raise ValueError(text)
    return text


def _file(text: str) -> Path:
    path = Path(text)
    if path.is_dir():
        raise ValueError(text)
    return path


_FLAGS = {
    "--leader-elect": "leader_elect",
    "--metrics-secure": "metrics_secure",
    "--verbose": "verbose",
    "-v": "verbose",
}
_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--kubeconfig": ("kubeconfig", _file),
    "--context": ("context", str),
    "--namespace-selector": ("namespace_selector", namespace_selector),
    "--selector": ("selector", checked_selector),
    "--leader-election-id": ("leader_election_id", str),
    "--leader-election-namespace": ("leader_election_namespace", str),
    "--shards": ("shards", parse_shards),
    "--metrics-bind-address": ("metrics_bind_address", str),
    "--metrics-service": ("metrics_service", str),
    "--health-probe-bind-address": ("health_probe_bind_address", str),
    "--webhook-bind-address": ("webhook_bind_address", str),
    "--journal-limit": ("journal_limit", size_or_off),
    "--log-format": ("log_format", _log_format),
}
_NAMESPACES = ("--namespace", "-n")
_WITHOUT = "--without-webhook"
_LISTS = (*_NAMESPACES, _WITHOUT)


def parse_arguments(words: Sequence[str]) -> RunOptions | None:
    """Return the options of `run TARGET ...` if all of them are understood here; None leaves them to click."""
    if words[:1] != ["run"]:
        return None
    found: dict[str, Any] = {}
    namespaces: list[str] = []
    replaced: list[str] = []
    left = iter(words[1:])
    try:
        for word in left:
            option, equals, value = word.partition("=")
            if word in _FLAGS:
                found[_FLAGS[word]] = True
            elif option in _VALUES or option in _LISTS:
                if not equals:
                    value = next(left, "-")
                if value.startswith("-") or (equals and not option.startswith("--")):
                    return None
                if option in _NAMESPACES:
                    namespaces += split_namespaces(value)
                elif option == _WITHOUT:
                    replaced.append(value)
                else:
                    name, parse = _VALUES[option]
                    found[name] = parse(value)
            elif word.startswith("-") or "target" in found or not word:
                return None
            else:
                found["target"] = word
    except (ValueError, KubewrightError):
        return None
    if "target" not in found or (namespaces and found.get("namespace_selector") is not None):
        return None
    return RunOptions(namespaces=tuple(namespaces), replaced_webhooks=tuple(replaced), **found)
