"""Is an operator at home in the cluster? Its CRDs, its rights, its webhooks' certificates, its Deployment."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    Forbidden,
    JsonObject,
    KubewrightError,
    NotFound,
    PolicyRule,
)
from kubewright.api.builtin import (
    admissionregistration_v1,
    apiextensions_v1,
    apps_v1,
    core_v1,
)
from kubewright.cli.definitions import live_definition, with_live_conversions
from kubewright.cli.deployment import hindrance, pods_of
from kubewright.cli.doctor.finding import Finding, doubtful, failed, skipped, well
from kubewright.cli.doctor.rights import check_rights, places_of, questions
from kubewright.cli.doctor.webhooks import check_webhooks
from kubewright.cli.documents import diff
from kubewright.client import Client
from kubewright.controller import Operator, rules_for
from kubewright.generate import Names, crds
from kubewright.schema import compare
from kubewright.webhook import WebhookNames, registration_rules, webhook_rules

INSTALLING = (
    PolicyRule(("apiextensions.k8s.io",), ("customresourcedefinitions",), ("create", "get", "patch")),
)
_ClientConfig = admissionregistration_v1.WebhookClientConfig | apiextensions_v1.WebhookClientConfig
EXPIRES_SOON = timedelta(days=7)
FIELD_MANAGER = "kubewright"


async def check_operator(
    client: Client, operator: Operator, target: str, namespaces: Sequence[str] = ()
) -> list[Finding]:
    """Look at all that one operator needs in the cluster, limited to namespaces where it is."""
    running = questions(
        (*rules_for(operator), *webhook_rules(operator.name, operator.webhooks)),
        places_of(operator, namespaces),
    )
    return [
        *await _definitions(client, operator, target),
        await check_rights(
            client, "rights to run", running, f"bind the roles of `kubewright manifests {target}`"
        ),
        *await _rights_to_register(client, operator, target),
        await check_rights(
            client,
            "rights to install",
            questions(INSTALLING),
            f"have what `kubewright manifests {target} --installer YOU` prints applied",
        ),
        await _certificates(client, operator, target),
        *await check_webhooks(client, operator, target),
        await _deployment(client, operator, target),
    ]


async def _rights_to_register(client: Client, operator: Operator, target: str) -> list[Finding]:
    """Check what only `kubewright run` outside the cluster needs: there no manifest brings the webhooks."""
    rules = registration_rules(operator.name, operator.webhooks)
    if not rules:
        return []
    remedy = f"apply what `kubewright manifests {target} --only rbac --webhook-reach url` prints"
    return [await check_rights(client, "rights to run outside the cluster", questions(rules), remedy)]


async def _definitions(client: Client, operator: Operator, target: str) -> list[Finding]:
    findings: list[Finding] = []
    for definition in crds(operator):
        name = definition["metadata"]["name"]
        try:
            findings.append(await _definition(client, definition, target))
        except KubewrightError as error:
            findings.append(failed(f"crd {name}", str(error), "ask for the right to read CRDs"))
    return findings


async def _definition(client: Client, definition: JsonObject, target: str) -> Finding:
    name = definition["metadata"]["name"]
    check, install = f"crd {name}", f"kubewright install {target}"
    live = await live_definition(client, name)
    if live is None:
        return failed(check, "is not installed", install)
    status: JsonObject = live.get("status") or {}
    conditions: dict[str, JsonObject] = {item["type"]: item for item in status.get("conditions") or ()}
    established = conditions.get("Established", {})
    if established.get("status") != "True":
        told = "; ".join(f"{item['reason']}: {item['message']}" for item in conditions.values())
        return failed(check, f"is not served: {told}", "fix what the condition says")
    if breaking := [change for change in compare(live, definition) if change.harm == "stored objects"]:
        told = f"differs from the code and breaks stored objects: {breaking[0]}"
        return failed(check, told, f"{install} --dry-run shows all of it")
    try:
        (definition,) = await with_live_conversions(client, [definition])
        planned = await client.apply(
            definition, field_manager=FIELD_MANAGER, kind=CUSTOM_RESOURCE_DEFINITION, dry_run=True
        )
    except Forbidden:
        return skipped(check, "is served; comparing it with the code takes the right to patch CRDs")
    if _changed(live, planned):
        return doubtful(check, "is served, but differs from the code", install)
    return well(check, "is served and equal to the code")


def _changed(live: JsonObject, planned: JsonObject) -> bool:
    # Which webhook converts versions is decided where the operator runs, not in its code.
    spec = {name: value for name, value in planned["spec"].items() if name != "conversion"}
    old = {name: value for name, value in live["spec"].items() if name != "conversion"}
    return any(diff("", live | {"spec": old}, planned | {"spec": spec}))


async def _certificates(client: Client, operator: Operator, target: str) -> Finding:
    check, names = "webhook certificates", WebhookNames(operator.name)
    if not operator.webhooks:
        return skipped(check, "the operator has no webhooks")
    try:
        secret = await client.get(core_v1.Secret, names.secret, Names(operator.name).namespace)
        registered = await _registered(client, operator, names)
        if any(config.url for config in registered):
            return skipped(
                check, "webhooks are asked by URL: who answers there keeps certificates of its own"
            )
        certificate = x509.load_pem_x509_certificate(secret.data["tls.crt"])
    except NotFound:
        return skipped(check, "the operator is not deployed here")
    except Forbidden as error:
        return skipped(check, str(error))
    except (KeyError, ValueError):
        remedy = f"delete the Secret {names.secret}: the operator makes a new one"
        return failed(check, f"Secret {names.secret} holds no certificate", remedy)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left < EXPIRES_SOON:
        told = f"expire on {certificate.not_valid_after_utc:%Y-%m-%d}, though the operator renews them"
        return failed(check, told, f"is the operator running? kubewright deploy {target} --image ...")
    if any(config.ca_bundle != secret.data.get("ca.crt") for config in registered):
        return failed(
            check, "the API server trusts another authority", "restart the operator: it writes its own anew"
        )
    return well(check, f"valid until {certificate.not_valid_after_utc:%Y-%m-%d}, trusted by the API server")


async def _registered(client: Client, operator: Operator, names: WebhookNames) -> list[_ClientConfig]:
    """Read how the API server asks each webhook."""
    found: list[_ClientConfig] = []
    if operator.webhooks.mutating:
        mutating = await client.get(admissionregistration_v1.MutatingWebhookConfiguration, names.mutating)
        found += [hook.client_config for hook in mutating.webhooks]
    if operator.webhooks.validating:
        validating = await client.get(
            admissionregistration_v1.ValidatingWebhookConfiguration, names.validating
        )
        found += [hook.client_config for hook in validating.webhooks]
    for name in operator.webhooks.converted:
        definition = await client.get(apiextensions_v1.CustomResourceDefinition, name)
        conversion = definition.spec.conversion
        if conversion is not None and conversion.webhook is not None:
            config = conversion.webhook.client_config
            found += [config] if config is not None else []
    return found


async def _deployment(client: Client, operator: Operator, target: str) -> Finding:
    names, check = Names(operator.name), "deployment"
    try:
        found = await client.get(apps_v1.Deployment, names.manager, names.namespace)
    except NotFound:
        return skipped(check, f"the operator is not deployed: kubewright deploy {target} --image ...")
    except Forbidden as error:
        return skipped(check, str(error))
    if any(item.type == "Available" and item.status == "True" for item in found.status.conditions):
        return well(check, f"{names.namespace}/{names.manager} is available")
    why = hindrance(found, await pods_of(client, found))
    return failed(check, f"{names.namespace}/{names.manager}: {why}", "fix what its Pods report")
