"""The values of a chart: defaults, comments, and the schema that Helm validates them with."""

from typing import Any, NamedTuple

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.deployment import anti_affinity, deployment, replicas_of
from kubewright.generate.manifests import Settings
from kubewright.generate.names import Names

_TEXT: JsonObject = {"type": "string"}
_SWITCH: JsonObject = {"type": "boolean"}
_TEXTS_BY_NAME: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT: JsonObject = {"type": "object"}
_OBJECTS: JsonObject = {"type": "array", "items": {"type": "object"}}


class ChartValue(NamedTuple):
    """One value at the top of values.yaml."""

    name: str
    comment: str
    default: Any
    schema: JsonObject


def values_of(operator: Operator, names: Names, settings: Settings) -> list[ChartValue]:
    """Return the values of an operator's chart, in the order of values.yaml."""
    count = replicas_of(operator) if settings.replicas is None else settings.replicas
    return [
        _image(settings.image),
        ChartValue("imagePullSecrets", "Secrets with the credentials of a registry.", [], _OBJECTS),
        ChartValue(
            "replicas",
            "One replica reconciles at a time, all of them serve webhooks.",
            count,
            {"type": "integer", "minimum": 0},
        ),
        ChartValue(
            "selector",
            "Reconcile only the objects with these labels, such as track!=canary.",
            settings.selector,
            _TEXT,
        ),
        ChartValue("args", "More arguments of `kubewright run`.", [], {"type": "array", "items": _TEXT}),
        ChartValue("env", "More environment variables of the container.", [], _OBJECTS),
        ChartValue(
            "resources", "Requests and limits of the container.", _resources(operator, names), _OBJECT
        ),
        ChartValue("podLabels", "More labels and annotations of the Pods.", {}, _TEXTS_BY_NAME),
        ChartValue("podAnnotations", "", {}, _TEXTS_BY_NAME),
        ChartValue("extraVolumes", "More volumes of the Pods, and where they are mounted.", [], _OBJECTS),
        ChartValue("extraVolumeMounts", "", [], _OBJECTS),
        ChartValue("nodeSelector", "The nodes that the Pods run on.", {}, _TEXTS_BY_NAME),
        ChartValue("tolerations", "", [], _OBJECTS),
        ChartValue("affinity", "", anti_affinity(names), _OBJECT),
        ChartValue("topologySpreadConstraints", "", [], _OBJECTS),
        ChartValue("priorityClassName", "", "", _TEXT),
        _section("serviceAccount", "", {"annotations": ({}, _TEXTS_BY_NAME)}),
        _section(
            "crds",
            "install: install and upgrade the CRDs with the chart. keep: do not delete them, and all objects of their kinds, with it.",
            {"install": (True, _SWITCH), "keep": (True, _SWITCH)},
        ),
        _section(
            "userRoles",
            "Roles for users of the kinds, aggregated to the built-in roles view, edit and admin.",
            {"enabled": (True, _SWITCH)},
        ),
        _section(
            "serviceMonitor",
            "Lets Prometheus read the metrics; requires the Prometheus operator.",
            {"enabled": (False, _SWITCH), "labels": ({}, _TEXTS_BY_NAME)},
        ),
        _section(
            "prometheusRule",
            "Alerts; requires the Prometheus operator.",
            {"enabled": (False, _SWITCH), "labels": ({}, _TEXTS_BY_NAME)},
        ),
        _section(
            "grafanaDashboard",
            "A ConfigMap with a dashboard, which the sidecar of Grafana's chart loads by its label.",
            {"enabled": (False, _SWITCH), "labels": ({}, _TEXTS_BY_NAME)},
        ),
        _section(
            "networkPolicy",
            "Allow metrics to be read only from namespaces with the label metrics=enabled.",
            {"enabled": (False, _SWITCH)},
        ),
    ]


def _section(name: str, comment: str, fields: dict[str, tuple[Any, JsonObject]]) -> ChartValue:
    return ChartValue(
        name,
        comment,
        {field: default for field, (default, _) in fields.items()},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {field: schema for field, (_, schema) in fields.items()},
        },
    )


def _image(image: str) -> ChartValue:
    repository, digest, tag = split_image(image)
    policy: JsonObject = {"enum": ["Always", "IfNotPresent", "Never"]}
    return _section(
        "image",
        "The image of the operator; a digest takes precedence over a tag.",
        {
            "repository": (repository, {"type": "string", "minLength": 1}),
            "tag": (tag, _TEXT),
            "digest": (digest, _TEXT),
            "pullPolicy": ("IfNotPresent", policy),
        },
    )


def _resources(operator: Operator, names: Names) -> JsonObject:
    rendered = deployment(operator, names, image="")
    (workload,) = (document for document in rendered if document["kind"] == "Deployment")
    return workload["spec"]["template"]["spec"]["containers"][0]["resources"]


def split_image(image: str) -> tuple[str, str, str]:
    """Split the name of an image into repository, digest and tag."""
    named, _, digest = image.partition("@")
    folder, slash, last = named.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{folder}{slash}{last}", digest, tag or "latest"
