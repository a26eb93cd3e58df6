"""Admission webhooks: drawn configurations, and responses that are good or bad in drawn ways."""

import random
from typing import Any

from compare_admission import (
    CONFIG_MAPS,
    OWN_NAMESPACE,
    R,
    create_objects,
    draw_conditions,
    draw_labels,
    draw_rule,
    draw_write,
)
from compare_case import CaseBuilder, query
from compare_replies import draw_reply, reply_server

_REQUESTS = 16


def webhooks(case: CaseBuilder) -> None:
    """Configure webhooks for the run's namespace, wait until they are in effect, and send writes."""
    chance = case.random
    case.fixture = reply_server
    case.namespace(labels={"run": "{run}", "team": chance.choice(("x", "y"))})
    create_objects(case)
    # The mutating ones come last: they would deny the object with which the validating ones are waited for.
    for kind in chance.choice((("validating",), ("mutating",), ("mutating",), ("validating", "mutating"))):
        drawn = chance.random() < 0.7
        if chance.random() < 0.3:
            _configure_more(case, kind, drawn=not drawn)
        _configure(case, kind, drawn=drawn)
    for _ in range(_REQUESTS):
        draw_write(case)


def _configure(case: CaseBuilder, kind: str, *, drawn: bool) -> None:
    """Create a configuration and wait until its first webhook denies an object with a label of its own."""
    path, name = f"{R}/{kind}webhookconfigurations", f"{{run}}-{kind}-m"
    marker = {
        "name": "marker.ex.io",
        "clientConfig": {"url": "https://{hook}/reply/deny", "caBundle": "{ca}"},
        "rules": [
            {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        ],
        "namespaceSelector": OWN_NAMESPACE,
        "objectSelector": {"matchLabels": {"marker": kind}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    case.clean(f"{path}/{name}")
    case.send(
        "POST", path, {"metadata": {"name": name}, "webhooks": [marker, *_hooks(case.random, kind, drawn)]}
    )
    # The name of a configuration that was not accepted is empty, and so invalid for the object.
    case.prepare("GET", f"{path}/{name}", save={f"found-{kind}": "metadata.name"})
    body = {"metadata": {"name": f"{{found-{kind}}}", "labels": {"marker": kind}}}
    case.prepare("POST", query(CONFIG_MAPS, dryRun="All"), body, until=_is_denied)


def _is_denied(status: int, body: Any) -> bool:
    return status >= 400


def _configure_more(case: CaseBuilder, kind: str, *, drawn: bool) -> None:
    """Create a configuration that is called before or after the other one, and lets the marked object pass."""
    path = f"{R}/{kind}webhookconfigurations"
    name = f"{{run}}-{kind}-{case.random.choice('az')}"
    hooks = _hooks(case.random, kind, drawn)
    for hook in hooks:
        selector = dict(hook.get("objectSelector", {}))
        unmarked = {"key": "marker", "operator": "DoesNotExist"}
        hook["objectSelector"] = {
            **selector,
            "matchExpressions": [*selector.get("matchExpressions", ()), unmarked],
        }
    case.clean(f"{path}/{name}")
    case.send("POST", path, {"metadata": {"name": name}, "webhooks": hooks})


def _hooks(chance: random.Random, kind: str, drawn: bool) -> list[dict[str, Any]]:
    """Draw webhooks; of the validating ones only one has a drawn response.

    kube-apiserver calls those at once: whose denial and whose warnings it reports first is a matter of chance.
    """
    count = chance.choice((1, 1, 2, 3))
    first = chance.randrange(count) if drawn else count
    return [
        _webhook(chance, kind, f"{'abc'[index]}", always_allows=kind == "validating" and index != first)
        for index in range(count)
    ]


def _webhook(chance: random.Random, kind: str, name: str, *, always_allows: bool) -> dict[str, Any]:
    reply = "reply/allow" if always_allows else draw_reply(chance, mutating=kind == "mutating")
    trusted = always_allows or chance.random() < 0.97
    made: dict[str, Any] = {
        "name": f"{name}.ex.io",
        "clientConfig": {
            "url": f"https://{{hook}}/{reply}",
            "caBundle": "{ca}" if trusted else "{otherca}",
        },
        "rules": [draw_rule(chance) for _ in range(chance.choice((1, 1, 2)))],
        "namespaceSelector": OWN_NAMESPACE,
        "sideEffects": chance.choice(("None", "None", "NoneOnDryRun")) if chance.random() > 0.02 else "Some",
        "admissionReviewVersions": ["v1"],
        # A webhook that does not respond must not keep a case for ten seconds.
        "timeoutSeconds": chance.choice((1, 2)),
    }
    if chance.random() < 0.2:
        made["admissionReviewVersions"] = chance.choice(
            (["v1", "v1beta1"], ["v1beta1", "v1"], ["v1beta1"], ["v2", "v1"], ["v2"], [])
        )
    if chance.random() < 0.02:
        made["timeoutSeconds"] = chance.choice((0, 31, -1))
    if chance.random() < 0.4:
        made["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    if chance.random() < 0.3:
        made["objectSelector"] = draw_labels(chance)
    if chance.random() < 0.3:
        made["matchConditions"] = draw_conditions(chance)
    if chance.random() < 0.3:
        made["matchPolicy"] = chance.choice(("Exact", "Equivalent"))
    if kind == "mutating" and chance.random() < 0.5:
        made["reinvocationPolicy"] = chance.choice(("Never", "IfNeeded"))
    return made
