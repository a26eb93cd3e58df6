"""Checks of an operator's setup: CRDs, permissions, webhook certificates, Deployment."""

import os
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
from kubewright.cli.doctor.rights import check_rights, namespaces_of, questions
from kubewright.cli.doctor.webhooks import check_webhooks
from kubewright.cli.documents import diff
from kubewright.cli.migrate.storage import older_versions
from kubewright.client import Client
from kubewright.controller import Operator, rules_for
from kubewright.generate import Names, crds
from kubewright.packaging import missing_env
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
    """Check an operator's CRDs, permissions, webhooks and Deployment, limited to its namespaces."""
    deployed = await _as_deployed(client, operator)
    running = questions(
        (*rules_for(operator), *webhook_rules(operator.name, operator.webhooks)),
        namespaces_of(operator, namespaces),
    )
    return [
        *_environment(operator),
        *await _definitions(client, operator, target),
        await check_rights(
            client,
            "rights to run",
            running,
            f"apply the RBAC rules that `kubewright manifests {target} --only rbac` prints and bind them to your user",
        ),
        *await _rights_to_register(client, operator, target),
        await check_rights(
            client,
            "rights to install",
            questions(INSTALLING),
            f"ask an administrator to apply the output of `kubewright manifests {target} --installer YOU`",
        ),
        await _certificates(client, deployed, target),
        *await check_webhooks(client, deployed, target),
        await _deployment(client, operator, target),
    ]


def _environment(operator: Operator) -> list[Finding]:
    """Check the required environment variables, which `kubewright run` on this machine needs."""
    required = [variable for variable in operator.env if variable.required]
    if not required:
        return []
    if missing := missing_env(required, os.environ):
        return [
            doubtful(
                f"environment variable {one.name}",
                f"is not set{f' ({one.purpose})' if one.purpose else ''}",
                f"set {one.name} before `kubewright run`",
            )
            for one in missing
        ]
    return [well("environment", f"{', '.join(variable.name for variable in required)} set")]


async def _rights_to_register(client: Client, operator: Operator, target: str) -> list[Finding]:
    """Check the permissions to register webhooks, which only `kubewright run` outside the cluster needs."""
    rules = registration_rules(operator.name, operator.webhooks)
    if not rules:
        return []
    remedy = f"apply the output of `kubewright manifests {target} --only rbac --webhook-reach url`"
    return [await check_rights(client, "rights to run outside the cluster", questions(rules), remedy)]


async def _definitions(client: Client, operator: Operator, target: str) -> list[Finding]:
    findings: list[Finding] = []
    for definition in crds(operator):
        name = definition["metadata"]["name"]
        try:
            findings.append(await _definition(client, definition, target))
        except KubewrightError as error:
            findings.append(failed(f"crd {name}", str(error), "ask for permission to read CRDs"))
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
        detail = "; ".join(f"{item['reason']}: {item['message']}" for item in conditions.values())
        return failed(check, f"is not served: {detail}", "fix the reported condition")
    if breaking := [change for change in compare(live, definition) if change.affected == "stored objects"]:
        detail = f"differs from the code and breaks stored objects: {breaking[0]}"
        return failed(check, detail, f"see all changes with `{install} --dry-run=server`")
    try:
        (definition,) = await with_live_conversions(client, [definition])
        planned = await client.apply(
            definition, field_manager=FIELD_MANAGER, kind=CUSTOM_RESOURCE_DEFINITION, dry_run=True
        )
    except Forbidden:
        return skipped(check, "is served; not compared with the code: that needs permission to patch CRDs")
    if _changed(live, planned):
        return doubtful(check, "is served, but differs from the code", install)
    if others := older_versions(live):
        detail = f"is served; objects may still be stored in {', '.join(others)}"
        return doubtful(check, detail, f"kubewright migrate storage {target}")
    return well(check, "is served and matches the code")


def _changed(live: JsonObject, planned: JsonObject) -> bool:
    # Labels depend on the tool that installed the CRD, and the conversion webhook on where the operator runs.
    spec = {name: value for name, value in planned["spec"].items() if name != "conversion"}
    old = {name: value for name, value in live["spec"].items() if name != "conversion"}
    return any(diff("", live | {"spec": old}, live | {"spec": spec}))


async def _as_deployed(client: Client, operator: Operator) -> Operator:
    """Return the operator without the webhooks that policies replace in its Deployment, if there is one."""
    names = Names(operator.name)
    try:
        found = await client.get(apps_v1.Deployment, names.manager, names.namespace)
    except (NotFound, Forbidden):
        return operator
    given = {argument for container in found.spec.template.spec.containers for argument in container.args}
    replaced = [
        endpoint.name
        for endpoint in operator.webhooks.admissions
        if f"--without-webhook={endpoint.name}" in given
    ]
    return operator.without_webhooks(replaced)


async def _certificates(client: Client, operator: Operator, target: str) -> Finding:
    check, names = "webhook certificates", WebhookNames(operator.name)
    if not operator.webhooks:
        return skipped(check, "the operator has no webhooks")
    try:
        secret = await client.get(core_v1.Secret, names.secret, Names(operator.name).namespace)
        registered = await _registered(client, operator, names)
        if any(config.url for config in registered):
            return skipped(
                check, "the webhooks are registered by URL: their server manages its own certificates"
            )
        certificate = x509.load_pem_x509_certificate(secret.data["tls.crt"])
    except NotFound:
        return skipped(check, "the operator is not deployed here")
    except Forbidden as error:
        return skipped(check, str(error))
    except (KeyError, ValueError):
        remedy = f"delete the Secret {names.secret}: the operator creates a new one"
        return failed(check, f"Secret {names.secret} has no valid certificate", remedy)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left < EXPIRES_SOON:
        detail = f"expire on {certificate.not_valid_after_utc:%Y-%m-%d} and were not renewed"
        return failed(
            check,
            detail,
            f"check that the operator is running, or run `kubewright deploy {target} --image ...`",
        )
    if any(config.ca_bundle != secret.data.get("ca.crt") for config in registered):
        return failed(
            check, "the webhook configurations have another CA bundle", "restart the operator to update them"
        )
    return well(check, f"valid until {certificate.not_valid_after_utc:%Y-%m-%d}, trusted by the API server")


async def _registered(client: Client, operator: Operator, names: WebhookNames) -> list[_ClientConfig]:
    """Read the client configuration of each registered webhook."""
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
        return skipped(check, f"the operator is not deployed: run `kubewright deploy {target} --image ...`")
    except Forbidden as error:
        return skipped(check, str(error))
    if any(item.type == "Available" and item.status == "True" for item in found.status.conditions):
        return well(check, f"{names.namespace}/{names.manager} is available")
    why = hindrance(found, await pods_of(client, found))
    return failed(check, f"{names.namespace}/{names.manager}: {why}", "check its Pods")
