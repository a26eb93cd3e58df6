"""Small completions of new objects: the class of an Ingress, a Pod's runtime class, a node that is not ready."""

from kubewright.devserver.admission.pods import is_new_pod
from kubewright.devserver.builtin.pods.resources import quantities
from kubewright.devserver.objects import JsonObject, items, meta, section
from kubewright.devserver.objects.status import quote
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
_NOT_READY = "node.kubernetes.io/not-ready"
_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class DefaultIngressClass(AdmissionPlugin):
    """Set the default IngressClass of new Ingresses without one."""

    resources: frozenset[tuple[str, str]] = frozenset({("networking.k8s.io", "ingresses")})

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set the class of a new Ingress."""
        if (
            not attributes.is_write_of("networking.k8s.io", "ingresses", "CREATE")
            or attributes.object is None
        ):
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        annotations: JsonObject = meta(attributes.object).get("annotations") or {}
        if spec.get("ingressClassName") is not None or "kubernetes.io/ingress.class" in annotations:
            return
        classes = [
            item
            for item in self._api.list("networking.k8s.io", "ingressclasses")
            if section(meta(item), "annotations").get(_DEFAULT_INGRESS) == "true"
        ]
        if classes:
            classes.sort(key=lambda item: meta(item)["name"])
            classes.sort(key=lambda item: meta(item).get("creationTimestamp", ""), reverse=True)
            spec["ingressClassName"] = meta(classes[0])["name"]


class TaintNodesByCondition(AdmissionPlugin):
    """Taint new nodes as not ready, until the node controller removes the taint."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "nodes")})

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Taint a new node."""
        if not attributes.is_write_of("", "nodes", "CREATE") or attributes.object is None:
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        taints = items(spec, "taints")
        if not any(
            taint.get("key") == _NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints
        ):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class RuntimeClasses(AdmissionPlugin):
    """Apply the overhead and scheduling of a Pod's RuntimeClass."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods")})

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Complete a new Pod."""
        if not is_new_pod(attributes) or attributes.object is None:
            return
        spec: JsonObject = attributes.object.setdefault("spec", {})
        found = self._class_of(attributes, spec)
        if found is None:
            return
        fixed = section(found, "overhead").get("podFixed")
        if fixed:
            if spec.get("overhead") and quantities(spec["overhead"]) != quantities(fixed):
                raise attributes.forbidden(_MISMATCH)
            spec["overhead"] = fixed
        scheduling = section(found, "scheduling")
        self._schedule(attributes, spec, scheduling)

    def _schedule(self, attributes: AdmissionAttributes, spec: JsonObject, scheduling: JsonObject) -> None:
        selector: JsonObject = dict(spec.get("nodeSelector") or {})
        for key, value in section(scheduling, "nodeSelector").items():
            if selector.get(key, value) != value:
                why = (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
                raise attributes.forbidden(why)
            selector[key] = value
        if selector:
            spec["nodeSelector"] = selector
        tolerations = items(spec, "tolerations")
        added = [item for item in items(scheduling, "tolerations") if item not in tolerations]
        if added:
            spec["tolerations"] = [*tolerations, *added]

    def _class_of(self, attributes: AdmissionAttributes, spec: JsonObject) -> JsonObject | None:
        name = spec.get("runtimeClassName")
        if not name:
            return None
        found = self._api.find("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise attributes.forbidden(f"pod rejected: RuntimeClass {quote(name)} not found")
        return found

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject an overhead that differs from that of the RuntimeClass."""
        if not is_new_pod(attributes) or attributes.object is None:
            return
        spec = section(attributes.object, "spec")
        found = self._class_of(attributes, spec)
        fixed = section(found or {}, "overhead").get("podFixed")
        if fixed:
            if quantities(spec.get("overhead")) != quantities(fixed):
                raise attributes.forbidden(_MISMATCH)
        elif spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise attributes.forbidden(why)
