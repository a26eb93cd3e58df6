"""Writing YAML the way the real server does."""

from typing import Any

import yaml

from kubewright.devserver.objects import JsonObject

_STR = "tag:yaml.org,2002:str"
_NOT_PLAIN = frozenset("yYnN")


class _Dumper(yaml.SafeDumper):
    """Quote strings where YAML 1.1 would take them for something else, and always with double quotes."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif text in _NOT_PLAIN or _resolve(dumper, text) != _STR:
        style = '"'
    return yaml.ScalarNode(_STR, text, style=style)


def _resolve(dumper: yaml.SafeDumper, text: str) -> str:
    resolver: Any = dumper
    return resolver.resolve(yaml.ScalarNode, text, (True, False))


_Dumper.add_representer(str, _represent_text)


def dump_yaml(document: JsonObject) -> bytes:
    """Write a document with sorted keys."""
    return yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True).encode()
