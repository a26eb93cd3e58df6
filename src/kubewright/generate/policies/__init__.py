"""Translate admission functions to admission policies, so that the API server validates and defaults without a webhook.

`translate` is the entry point: it returns the policies, an operator without the webhooks that they replace, and the reason
for each webhook that stays. `functions` translates the source of a function, `expressions` its expressions and `values` the
fields of objects; `documents` renders and checks the policies. A function is translated only if the policy does exactly
the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.policies.documents import policies
from kubewright.generate.policies.expressions import overlaps
from kubewright.generate.policies.functions import TranslatedFunction, source_of, translate_function
from kubewright.generate.policies.values import Untranslatable
from kubewright.webhook import Admission, WebhookEndpoint

_EXEMPT = ("admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io")
"""API groups to which the API server applies no admission policies."""
_SUBRESOURCES = ("status", "scale")


@dataclass(frozen=True, slots=True)
class KeptWebhook:
    """A webhook that is not replaced by a policy, and why."""

    name: str
    file: str
    line: int
    why: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        return f"{self.name} stays a webhook: {where}{self.why}"


@dataclass(frozen=True, slots=True)
class Translation:
    """The policies of an operator, the operator without the replaced webhooks, and the webhooks that stay."""

    operator: Operator
    documents: list[JsonObject]
    replaced: tuple[str, ...]
    """The names of the webhooks that policies replace."""
    kept: tuple[KeptWebhook, ...]


def translate(operator: Operator, names: Names) -> Translation:
    """Translate those admission webhooks of an operator that can be translated exactly."""
    documents: list[JsonObject] = []
    replaced: list[str] = []
    kept: list[KeptWebhook] = []
    earlier: list[tuple[Admission[Any], TranslatedFunction | None]] = []
    for endpoint in operator.webhooks.admissions:
        try:
            translated = _translated(endpoint, earlier)
            documents += policies(endpoint, translated, names)
        except Untranslatable as error:
            kept.append(_kept(endpoint, error))
            earlier.append((endpoint.webhook, None))
            continue
        earlier.append((endpoint.webhook, translated))
        replaced.append(endpoint.name)
    return Translation(operator.without_webhooks(replaced), documents, tuple(replaced), tuple(kept))


def _translated(
    endpoint: WebhookEndpoint, earlier: list[tuple[Admission[Any], TranslatedFunction | None]]
) -> TranslatedFunction:
    webhook = endpoint.webhook
    if webhook.resource.group in _EXEMPT:
        raise Untranslatable(f"the API server applies no admission policies to {webhook.resource.kind}")
    if set(webhook.subresources) - set(_SUBRESOURCES) or (webhook.subresources and webhook.mutates):
        raise Untranslatable(
            f"subresources={list(webhook.subresources)}: only a validating webhook of status or scale is translated"
        )
    translated = translate_function(webhook)
    if not translated.findings and not translated.changes:
        raise Untranslatable("it reports no findings and changes no field")
    if webhook.mutates:
        _check_order(webhook, translated, earlier)
    return translated


def _check_order(
    webhook: Admission[Any],
    translated: TranslatedFunction,
    earlier: list[tuple[Admission[Any], TranslatedFunction | None]],
) -> None:
    """Raise Untranslatable if a function depends on an earlier one.

    Policies run before webhooks, and in no defined order.
    """
    for other, before in earlier:
        if not other.mutates or other.resource.resource != webhook.resource.resource:
            continue
        if before is None:
            raise Untranslatable(
                f"policies run before webhooks, and {other.name} runs before it and stays one"
            )
        mine, theirs = translated.reads | translated.writes, before.reads | before.writes
        if any(overlaps(one, two) for one in translated.writes for two in theirs) or any(
            overlaps(one, two) for one in mine for two in before.writes
        ):
            raise Untranslatable(
                f"policies have no defined order, and {other.name} uses the same fields before it"
            )


def _kept(endpoint: WebhookEndpoint, error: Untranslatable) -> KeptWebhook:
    file, line = source_of(endpoint.webhook)
    try:
        shown = str(Path(file).relative_to(Path.cwd())) if file else ""
    except ValueError:
        shown = file
    return KeptWebhook(endpoint.webhook.name, shown, error.line or line, error.why)
