"""The manifests as a Helm chart: the same documents, with cluster-specific settings as values."""

from dataclasses import dataclass, replace

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.deployment import anti_affinity, budget
from kubewright.generate.documents import HEADER, files_of, plain_yaml
from kubewright.generate.manifests import USUAL, Settings, parts_of
from kubewright.generate.names import Names
from kubewright.generate.rbac import user_roles
from kubewright.generate.templates import Template

_MANAGED_BY = "app.kubernetes.io/managed-by"
_IMAGE = (
    '"{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}'
    '{{ else }}:{{ .Values.image.tag }}{{ end }}"'
)
_POD_VALUES = (
    "imagePullSecrets",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "priorityClassName",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Name, version and description of a chart."""

    name: str
    version: str = "0.1.0"
    description: str = ""


def helm(operator: Operator, chart: Chart, settings: Settings = USUAL) -> dict[str, str]:
    """Render a chart without a Namespace: it is installed in the namespace of the release."""
    names = Names(operator.name)
    parts = parts_of(
        operator,
        names,
        ("crds", "rbac", "webhooks", "deployment", "monitoring", "network"),
        replace(settings, replicas=1),
    )
    for_users = {role["metadata"]["name"] for role in user_roles(operator, names)}
    tree = {
        "Chart.yaml": HEADER + plain_yaml(_chart(chart)),
        "values.yaml": _values(operator, names, settings),
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
        template.only_if(".Values.serviceMonitor.enabled")
    elif part == "network":
        template.only_if(".Values.networkPolicy.enabled")
    elif document["kind"] == "PodDisruptionBudget":
        template.only_if("gt (int .Values.replicas) 1")
    elif document["metadata"]["name"] in for_users:
        template.only_if(".Values.userRoles.enabled")


def _places(template: Template, names: Names) -> None:
    document = template.document
    if _MANAGED_BY in document["metadata"].get("labels", {}):
        document["metadata"]["labels"][_MANAGED_BY] = template.place("{{ .Release.Service }}")
    if document["kind"] == "ServiceAccount":
        document["metadata"][template.block("annotations", ".Values.serviceAccount.annotations")] = ""
    if document["kind"] == "ServiceMonitor":
        entry = "{{ $key }}: {{ $value | quote }}"
        labels = template.lines(
            "{{- range $key, $value := .Values.serviceMonitor.labels }}", entry, "{{- end }}"
        )
        document["metadata"]["labels"][labels] = ""
    if document["kind"] == "Deployment":
        _place_pod(template)
    template.replace(names.namespace, "{{ .Release.Namespace | quote }}")


def _place_pod(template: Template) -> None:
    spec = template.document["spec"]
    spec["replicas"] = template.place("{{ .Values.replicas }}")
    pod: JsonObject = spec["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = template.place(_IMAGE)
    container["imagePullPolicy"] = template.place("{{ .Values.image.pullPolicy }}")
    container["args"].append(template.lines("{{- range .Values.args }}", "- {{ . | quote }}", "{{- end }}"))
    if "env" in container:
        container["env"].append(
            template.lines("{{- with .Values.env }}", "{{- toYaml . | nindent HERE }}", "{{- end }}")
        )
    else:
        container[template.block("env", ".Values.env")] = ""
    del container["resources"]
    container[template.block("resources", ".Values.resources")] = ""
    for value in _POD_VALUES:
        pod[template.block(value, f".Values.{value}")] = ""


def _chart(chart: Chart) -> JsonObject:
    return {
        "apiVersion": "v2",
        "name": chart.name,
        "description": chart.description or f"The operator {chart.name}.",
        "type": "application",
        "version": chart.version,
        "appVersion": chart.version,
    }


def _values(operator: Operator, names: Names, settings: Settings) -> str:
    repository, digest, tag = split_image(settings.image)
    (pod,) = (
        document["spec"]["template"]["spec"]
        for document in parts_of(operator, names, ("deployment",), settings)["deployment"]
        if document["kind"] == "Deployment"
    )
    count = operator.workload.replicas if settings.replicas is None else settings.replicas
    commented: list[tuple[str, JsonObject]] = [
        (
            "The image of the operator; a digest goes before a tag.",
            {"image": {"repository": repository, "tag": tag, "digest": digest, "pullPolicy": "IfNotPresent"}},
        ),
        ("Secrets with credentials of the registry, as a Pod names them.", {"imagePullSecrets": []}),
        ("One replica works at a time; more take over when it goes.", {"replicas": count}),
        ("Further arguments of `kubewright run`.", {"args": []}),
        ("Further environment variables, as a container has them.", {"env": []}),
        ("", {"resources": pod["containers"][0]["resources"]}),
        ("Where its Pods run.", {"nodeSelector": {}, "tolerations": []}),
        ("", {"affinity": anti_affinity(names), "topologySpreadConstraints": [], "priorityClassName": ""}),
        ("", {"serviceAccount": {"annotations": {}}}),
        (
            "Install and upgrade the CRDs with the chart; keep them, and with them all objects, when it goes.",
            {"crds": {"install": True, "keep": True}},
        ),
        ("Roles for the users of the kinds, added to the cluster's own view, edit and admin.", {"userRoles": {"enabled": True}}),
        ("Needs the Prometheus operator.", {"serviceMonitor": {"enabled": False, "labels": {}}}),
        ("Metrics are for namespaces with the label metrics=enabled then.", {"networkPolicy": {"enabled": False}}),
    ]  # fmt: skip
    return HEADER + "".join(
        (f"# {comment}\n" if comment else "") + plain_yaml(value) for comment, value in commented
    )


def split_image(image: str) -> tuple[str, str, str]:
    """Split the name of an image into repository, digest and tag."""
    named, _, digest = image.partition("@")
    folder, slash, last = named.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{folder}{slash}{last}", digest, tag or "latest"
