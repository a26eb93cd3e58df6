"""The manifests as a Helm chart: the same documents, with cluster-specific settings as values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubewright.api import JsonObject, kind_of
from kubewright.controller import Operator
from kubewright.generate.chart_values import ChartValue, values_of
from kubewright.generate.deployment import budget
from kubewright.generate.documents import HEADER, MARK, files_of, plain_yaml
from kubewright.generate.manifests import USUAL, Settings, names_of, parts_of
from kubewright.generate.monitoring import server_name
from kubewright.generate.names import Names
from kubewright.generate.rbac import user_roles
from kubewright.generate.templates import Template

_IMAGE = (
    '"{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}'
    '{{ else }}:{{ .Values.image.tag }}{{ end }}"'
)
_LABELS = {
    "app.kubernetes.io/managed-by": "{{ .Release.Service }}",
    "app.kubernetes.io/instance": "{{ .Release.Name | quote }}",
    "app.kubernetes.io/version": '{{ .Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}',
    "helm.sh/chart": '{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}',
}
"""The labels that Helm recommends, beside app.kubernetes.io/name, which selects the Pods."""
_MONITORING_VALUES = {
    "ServiceMonitor": "serviceMonitor",
    "PrometheusRule": "prometheusRule",
    "ConfigMap": "grafanaDashboard",
}
_SHARED_VALUES = ("crds", "userRoles")
"""Values for objects that only the chart of the first Deployment has."""
_POD_VALUES = (
    "imagePullSecrets",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Name, version and description of a chart."""

    name: str
    version: str = "0.1.0"
    description: str = ""


def helm(operator: Operator, chart: Chart, settings: Settings = USUAL) -> dict[str, str]:
    """Render a chart without a Namespace: it is installed in the namespace of the release."""
    names = names_of(operator, settings)
    parts = parts_of(
        operator,
        names,
        ("crds", "rbac", "webhooks", "deployment", "monitoring", "network"),
        # The selector is a value of the chart.
        replace(settings, replicas=1, selector=""),
    )
    values = values_of(operator, names, settings)
    if settings.name:
        values = [each for each in values if each.name not in _SHARED_VALUES]
    for_users = {role["metadata"]["name"] for role in user_roles(operator, names)}
    tree = {
        "Chart.yaml": HEADER + plain_yaml(_chart(chart)),
        "values.yaml": _values_yaml(values),
        "values.schema.json": _values_schema(values),
        "templates/NOTES.txt": _notes(operator, names, brings_crds=not settings.name),
    }
    documents = {
        f"{part}/{name}": each for part, some in parts.items() for name, each in files_of(some).items()
    }
    documents["deployment/" + next(iter(files_of([budget(names)])))] = budget(names)
    for path, document in documents.items():
        if document["kind"] == "Namespace":
            continue
        template = Template(document)
        _conditions(template, path.partition("/")[0], for_users)
        _places(template, names)
        if document["metadata"]["name"] == names.lease_role and document["kind"] == "Role":
            _place_lease(template)
        tree[f"templates/{path}"] = template.text()
    return tree


def _conditions(template: Template, part: str, for_users: set[str]) -> None:
    document = template.document
    if part == "crds":
        template.only_if(".Values.crds.install")
        keep = template.lines(
            "{{- if .Values.crds.keep }}", "annotations:", "  helm.sh/resource-policy: keep", "{{- end }}"
        )
        document["metadata"][keep] = ""
    elif part == "monitoring":
        template.only_if(f".Values.{_MONITORING_VALUES.get(document['kind'], 'serviceMonitor')}.enabled")
    elif part == "network":
        template.only_if(".Values.networkPolicy.enabled")
    elif document["kind"] == "PodDisruptionBudget":
        template.only_if("gt (int .Values.replicas) 1")
    elif document["metadata"]["name"] in for_users:
        template.only_if(".Values.userRoles.enabled")


def _places(template: Template, names: Names) -> None:
    document = template.document
    # Objects without labels, such as roles for the installer, are not selected by any tool.
    if labels := document["metadata"].get("labels"):
        labels |= {name: template.place(value) for name, value in _LABELS.items()}
    if document["kind"] == "ServiceAccount":
        document["metadata"][template.block("annotations", ".Values.serviceAccount.annotations")] = ""
    if document["kind"] == "ServiceMonitor":
        (endpoint,) = document["spec"]["endpoints"]
        endpoint["tlsConfig"]["serverName"] = template.place(server_name(names, "{{ .Release.Namespace }}"))
    if value := _MONITORING_VALUES.get(document["kind"]):
        document["metadata"]["labels"][_entries(template, f".Values.{value}.labels")] = ""
    if document["kind"] == "Deployment":
        _place_pod(template)
    template.replace(names.namespace, "{{ .Release.Namespace | quote }}")


def _place_lease(template: Template) -> None:
    """Allow the Lease of any selector: its name is derived from a value of the chart."""
    for rule in template.document["rules"]:
        if rule["resources"] == ["leases"] and (named := rule.pop("resourceNames", ())):
            lines = (f"- {name}" for name in named)
            rule[template.lines("{{- if not .Values.selector }}", "resourceNames:", *lines, "{{- end }}")] = (
                ""
            )


def _entries(template: Template, values: str) -> str:
    """Return a placeholder for the entries of a mapping, to be used as a key of another one."""
    entry = "{{ $key }}: {{ $value | quote }}"
    return template.lines(f"{{{{- range $key, $value := {values} }}}}", entry, "{{- end }}")


def _elements(template: Template, values: str) -> str:
    """Return a placeholder for the elements of a list, to be used as an element of another one."""
    return template.lines(f"{{{{- with {values} }}}}", "{{- toYaml . | nindent HERE }}", "{{- end }}")


def _place_pod(template: Template) -> None:
    spec = template.document["spec"]
    spec["replicas"] = template.place("{{ .Values.replicas }}")
    metadata: JsonObject = spec["template"]["metadata"]
    metadata["labels"] |= {
        name: template.place(_LABELS[name])
        for name in ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance")
    }
    metadata["labels"][_entries(template, ".Values.podLabels")] = ""
    metadata["annotations"][_entries(template, ".Values.podAnnotations")] = ""
    pod: JsonObject = spec["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = template.place(_IMAGE)
    container["imagePullPolicy"] = template.place("{{ .Values.image.pullPolicy }}")
    selector = '- {{ printf "--selector=%s" . | quote }}'
    container["args"].append(template.lines("{{- with .Values.selector }}", selector, "{{- end }}"))
    container["args"].append(template.lines("{{- range .Values.args }}", "- {{ . | quote }}", "{{- end }}"))
    if "env" in container:
        container["env"].append(_elements(template, ".Values.env"))
    else:
        container[template.block("env", ".Values.env")] = ""
    del container["resources"]
    container[template.block("resources", ".Values.resources")] = ""
    container["volumeMounts"].append(_elements(template, ".Values.extraVolumeMounts"))
    pod["volumes"].append(_elements(template, ".Values.extraVolumes"))
    for value in _POD_VALUES:
        pod[template.block(value, f".Values.{value}")] = ""
    priority = "{{- with .Values.priorityClassName }}", "priorityClassName: {{ . | quote }}", "{{- end }}"
    pod[template.lines(*priority)] = ""


def _chart(chart: Chart) -> JsonObject:
    return {
        "apiVersion": "v2",
        "name": chart.name,
        "description": chart.description or f"The operator {chart.name}.",
        "type": "application",
        "version": chart.version,
        "appVersion": chart.version,
    }


def _values_yaml(values: Sequence[ChartValue]) -> str:
    return HEADER + "".join(
        (f"# {each.comment}\n" if each.comment else "") + plain_yaml({each.name: each.default})
        for each in values
    )


def _values_schema(values: Sequence[ChartValue]) -> str:
    """Render the JSON schema with which Helm validates values, so that a misspelled one is an error."""
    properties: JsonObject = {each.name: each.schema for each in values}
    # Helm passes these to each chart that is part of another one.
    properties["global"] = {"type": "object"}
    schema: JsonObject = {
        "$comment": MARK,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    return json.dumps(schema, indent=2) + "\n"


def _notes(operator: Operator, names: Names, *, brings_crds: bool) -> str:
    """Render what Helm prints after an installation."""
    manager = f"deployment/{names.manager}"
    lines = [
        f"{{{{- /* {MARK} */ -}}}}",
        f"The operator {operator.name} is installed in namespace {{{{ .Release.Namespace }}}}.",
        "",
        "Wait until it is ready:",
        f"  kubectl -n {{{{ .Release.Namespace }}}} rollout status {manager}",
        "",
        "Read its log:",
        f"  kubectl -n {{{{ .Release.Namespace }}}} logs {manager}",
    ]
    if resources := sorted({kind_of(kind).resource for kind in operator.kinds}):
        lines += ["", "List its objects:", *(f"  kubectl get {resource} -A" for resource in resources)]
    if resources and brings_crds:
        lines += [
            "{{- if and .Values.crds.install .Values.crds.keep }}",
            "",
            "helm uninstall keeps the CustomResourceDefinitions and all objects of these kinds. Delete them with:",
            f"  kubectl delete crd {' '.join(resources)}",
            "{{- end }}",
        ]
    return "\n".join(lines) + "\n"
