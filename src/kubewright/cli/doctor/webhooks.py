"""Check an operator's webhooks: are they registered where a process responds, and may you register them?"""

from collections.abc import AsyncIterator

from kubewright.api import Forbidden, NotFound
from kubewright.api.builtin import admissionregistration_v1, apiextensions_v1, core_v1
from kubewright.cli.doctor.finding import Finding, doubtful, failed, skipped
from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.webhook import WebhookNames
from kubewright.webhook.server import listens

_CONFIGURATIONS = (
    admissionregistration_v1.MutatingWebhookConfiguration,
    admissionregistration_v1.ValidatingWebhookConfiguration,
)


async def check_webhooks(client: Client, operator: Operator, target: str) -> list[Finding]:
    """Find what no webhook validates, webhooks at addresses where no process responds, and versions without conversion."""
    if not operator.webhooks:
        return []
    try:
        return [
            *_unvalidated(operator),
            *[finding async for finding in _unreachable(client, operator, target)],
            *[finding async for finding in _unconverted(client, operator, target)],
        ]
    except Forbidden as error:
        return [skipped("webhooks", str(error))]


def _unvalidated(operator: Operator) -> list[Finding]:
    return [
        doubtful(
            f"scale of {kind.resource}",
            "`kubectl scale` and autoscalers do not call the webhooks of the object: they write another resource",
            f'validate it with @kw.admission.validating_webhook(autoscaling_v1.Scale, subresources=["scale"], of={kind.kind})',
        )
        for kind in operator.webhooks.unvalidated_scales
    ]


async def _unreachable(client: Client, operator: Operator, target: str) -> AsyncIterator[Finding]:
    names = WebhookNames(operator.name)
    for kind, name in zip(_CONFIGURATIONS, (names.mutating, names.validating), strict=True):
        try:
            live = await client.get(kind, name)
        except NotFound:
            continue
        urls = {hook.client_config.url for hook in live.webhooks if hook.client_config.url}
        for url in sorted(urls):
            if not await listens(url):
                found = f"no process responds at {url}: it was registered by a run that was killed, so objects are not validated"
                yield doubtful(f"webhook {name}", found, f"run `kubewright run {target}` to take it over")
                break


async def _unconverted(client: Client, operator: Operator, target: str) -> AsyncIterator[Finding]:
    for name in operator.webhooks.converted:
        try:
            definition = await client.get(apiextensions_v1.CustomResourceDefinition, name)
        except NotFound:
            continue
        conversion, check = definition.spec.conversion, f"conversion of {name}"
        stored = next(version.name for version in definition.spec.versions if version.storage)
        remedy = f"run or deploy the operator; until then use {stored} only"
        if conversion is None or conversion.strategy != "Webhook":
            missing = f"no webhook converts: what is written in another version than {stored} loses fields"
            yield doubtful(check, missing, remedy)
            continue
        config = conversion.webhook.client_config if conversion.webhook is not None else None
        if config is not None and config.url and not await listens(config.url):
            missing = f"no process responds at {config.url}: requests in another version than {stored} fail"
            yield failed(check, missing, remedy)
        elif config is not None and config.service is not None:
            name, namespace = config.service.name, config.service.namespace
            try:
                await client.get(core_v1.Service, name, namespace)
            except NotFound:
                missing = f"Service {namespace}/{name} does not exist: requests in another version than {stored} fail"
                yield doubtful(check, missing, remedy)
