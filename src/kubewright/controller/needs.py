"""What a controller does beyond its kinds: declared, so that roles can be rendered and the context can serve it."""

from typing import Any

import msgspec

from kubewright.api import DeclarationError, Kind, kind_of

VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_SPECIAL_VERBS = frozenset({"bind", "escalate", "impersonate", "use", "approve", "sign", "attest"})


class Needs(msgspec.Struct, frozen=True):
    """Verbs on a kind; made by `needs`."""

    kind: Kind
    verbs: frozenset[str]
    subresource: str = ""


def needs(kind: type[Any] | Kind, *verbs: str, subresource: str = "") -> Needs:
    """Declare verbs on a kind: `needs(core_v1.ConfigMap, "get")`."""
    known = kind_of(kind)
    wrong = sorted(set(verbs) - VERBS - _SPECIAL_VERBS)
    if wrong or not verbs:
        said = f"{wrong[0]!r} is no verb" if wrong else "no verbs given"
        raise DeclarationError(f"needs({known.kind}): {said}; use {', '.join(sorted(VERBS))}")
    return Needs(known, frozenset(verbs), subresource)
