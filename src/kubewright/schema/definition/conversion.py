"""The conversion of a CRD: its strategy and its webhook."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.definition.webhooks import check_webhook_client
from kubewright.schema.nodes import part

_REVIEW_VERSIONS = ("v1", "v1beta1")


def check_conversion(conversion: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Report what is wrong with the conversion; paths are those of the server's internal type."""
    strategy = conversion.get("strategy", "")
    webhook = part(conversion, "webhook")
    config: dict[str, Any] | None = webhook.get("clientConfig")
    versions: list[str] = webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield problems.required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield problems.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield problems.forbidden(f"{path}.webhookClientConfig", text)
        if versions:
            yield problems.forbidden(f"{path}.conversionReviewVersions", text)
        return
    if config is None:
        yield problems.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        # The server confuses the Service's two names here, though not for admission webhooks.
        yield from check_webhook_client(config, f"{path}.webhookClientConfig", confused=True)
    yield from _review_versions(versions, f"{path}.conversionReviewVersions")


def _review_versions(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield problems.required(path)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield problems.invalid(f"{path}[{position}]", version, "duplicate version")
            continue
        for trouble in names.dns1035_label(version):
            yield problems.invalid(f"{path}[{position}]", version, trouble)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield problems.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
