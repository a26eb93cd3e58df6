"""The kinds of apiextensions.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime
from typing import Any

from msgspec import field as _field

from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.resource import Object


class CustomResourceColumnDefinition(Model, builtin=True):
    description: str = ""
    format: str = ""
    json_path: str
    name: str
    priority: int = 0
    type: str


class ServiceReference(Model, builtin=True):
    name: str
    namespace: str
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model, builtin=True):
    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str | None = None


class WebhookConversion(Model, builtin=True):
    client_config: WebhookClientConfig | None = None
    conversion_review_versions: list[str]


class CustomResourceConversion(Model, builtin=True):
    strategy: str
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionNames(Model, builtin=True):
    categories: list[str] = []
    kind: str
    list_kind: str = ""
    plural: str
    short_names: list[str] = []
    singular: str = ""


class CustomResourceSubresourceScale(Model, builtin=True):
    label_selector_path: str | None = None
    spec_replicas_path: str
    status_replicas_path: str


class CustomResourceSubresources(Model, builtin=True):
    scale: CustomResourceSubresourceScale | None = None
    status: dict[str, Any] | None = None


class CustomResourceValidation(Model, builtin=True, wire_names={"openapi_v3_schema": "openAPIV3Schema"}):
    openapi_v3_schema: dict[str, Any] | None = None


class SelectableField(Model, builtin=True):
    json_path: str


class CustomResourceDefinitionVersion(Model, builtin=True):
    additional_printer_columns: list[CustomResourceColumnDefinition] = []
    deprecated: bool = False
    deprecation_warning: str | None = None
    name: str
    schema: CustomResourceValidation | None = None
    selectable_fields: list[SelectableField] = []
    served: bool
    storage: bool
    subresources: CustomResourceSubresources | None = None


class CustomResourceDefinitionSpec(Model, builtin=True):
    conversion: CustomResourceConversion | None = None
    group: str
    names: CustomResourceDefinitionNames
    preserve_unknown_fields: bool = False
    scope: str
    versions: list[CustomResourceDefinitionVersion]


class CustomResourceDefinitionCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str
    type: str


class CustomResourceDefinitionStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    accepted_names: CustomResourceDefinitionNames = _field(
        default_factory=lambda: zero(CustomResourceDefinitionNames)
    )
    conditions: list[CustomResourceDefinitionCondition] = []
    observed_generation: int = 0
    stored_versions: list[str] = []


class CustomResourceDefinition(
    Object,
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    scope="Cluster",
    short_names=["crd", "crds"],
    categories=["api-extensions"],
    status=True,
    builtin=True,
):
    spec: CustomResourceDefinitionSpec
    status: CustomResourceDefinitionStatus = _field(default_factory=CustomResourceDefinitionStatus)


class ExternalDocumentation(Model, builtin=True):
    description: str = ""
    url: str = ""


class ValidationRule(Model, builtin=True):
    field_path: str = ""
    message: str = ""
    message_expression: str = ""
    optional_old_self: bool | None = None
    reason: str | None = None
    rule: str


__all__ = [
    "CustomResourceColumnDefinition",
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionNames",
    "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus",
    "CustomResourceDefinitionVersion",
    "CustomResourceSubresourceScale",
    "CustomResourceSubresources",
    "CustomResourceValidation",
    "ExternalDocumentation",
    "SelectableField",
    "ServiceReference",
    "ValidationRule",
    "WebhookClientConfig",
    "WebhookConversion",
]
