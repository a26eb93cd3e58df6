"""Kinds, objects and histories that the property test of applies draws.

Values come from very small sets, so that managers often state the same field, with the same value or another.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from kubewright.api import JsonObject, Kind
from kubewright.api.builtin import apps_v1, core_v1, rbac_v1
from kubewright.api.kinds import kind_of

GROUP = "applies.example.com"
OURS = "ours"
OTHERS = ("theirs", "kubectl")


def _text(**more: Any) -> JsonObject:
    return {"type": "string", **more}


_ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _text(),
        "value": _text(),
        "size": {"type": "integer", "default": 1},
        "tags": {"type": "array", "items": _text(), "x-kubernetes-list-type": "set"},
        "command": {"type": "array", "items": _text()},
    },
}
_PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": _text(default="TCP"),
        "name": _text(),
    },
}
_RULE = {
    "type": "object",
    "properties": {"host": _text(), "protocol": _text(default="TCP"), "kind": _text(), "status": _text()},
}
_GROUP = {
    "type": "object",
    "properties": {"a": _text(), "b": _text(default="b"), "list": {"type": "array", "items": _text()}},
}
_SPEC_FIELDS: dict[str, JsonObject] = {
    "text": _text(),
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "port": {"x-kubernetes-int-or-string": True},
    "note": _text(nullable=True),
    "mode": _text(default="auto"),
    "nulled": _text(nullable=True, default="set"),
    "atomics": {"type": "array", "items": _text()},
    "rules": {"type": "array", "items": _RULE},
    "allow": {"type": "array", "items": _text(), "nullable": True},
    "tags": {"type": "array", "items": _text(), "x-kubernetes-list-type": "set"},
    "items": {
        "type": "array",
        "items": _ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "ports": {
        "type": "array",
        "items": _PORT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    "labels": {"type": "object", "additionalProperties": _text()},
    "choices": {"type": "object", "additionalProperties": _text(), "x-kubernetes-map-type": "atomic"},
    "groups": {"type": "object", "additionalProperties": _GROUP},
    "options": {
        "type": "object",
        "properties": {"level": {"type": "integer", "default": 3}, "name": _text()},
    },
    "reference": {
        "type": "object",
        "properties": {"name": _text(), "key": _text()},
        "x-kubernetes-map-type": "atomic",
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "ready": {"type": "integer"},
        "phase": _text(),
        "tags": _SPEC_FIELDS["tags"],
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": _text(), "status": _text(), "reason": _text()},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def definition(kind: Kind) -> JsonObject:
    """Return the definition of a drawn custom kind; all of its versions have the same schema."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": _SPEC_FIELDS}, "status": _STATUS},
    }
    versions: list[JsonObject] = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v1beta1")
    ]
    if kind.status:
        for version in versions:
            version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "plural": kind.plural,
                "singular": kind.singular,
                "listKind": kind.list_kind,
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def _custom(name: str, version: str, *, status: bool) -> Kind:
    return Kind(group=GROUP, version=version, kind=name, plural=f"{name.lower()}s", status=status)


SAMPLE = _custom("Sample", "v1", status=True)
SAMPLE_BETA = _custom("Sample", "v1beta1", status=True)
PLAIN = _custom("Plain", "v1", status=False)
PLAIN_BETA = _custom("Plain", "v1beta1", status=False)
DEFINED = (SAMPLE, PLAIN)

texts = st.sampled_from(["a", "b", ""])
names = st.sampled_from(["a", "b", "c"])
numbers = st.sampled_from([0, 1])
bits = st.booleans()
word_lists = st.lists(names, max_size=3)
word_sets = st.lists(names, max_size=3, unique=True)
word_maps = st.dictionaries(names, texts, max_size=2)


def _by(keys: tuple[str, ...], defaults: JsonObject) -> Any:
    return lambda item: tuple(item.get(key, defaults.get(key)) for key in keys)


items = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={"value": texts, "size": numbers, "tags": word_sets, "command": word_lists},
    ),
    max_size=3,
    unique_by=_by(("name",), {}),
)
ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.sampled_from([1, 2])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts},
    ),
    max_size=3,
    unique_by=_by(("port", "protocol"), {"protocol": "TCP"}),
)
rules = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"host": texts, "protocol": st.sampled_from(["TCP", "UDP"]), "kind": texts, "status": texts},
    ),
    max_size=2,
)
groups = st.dictionaries(
    names, st.fixed_dictionaries({}, optional={"a": texts, "b": texts, "list": word_lists}), max_size=2
)
loose = st.recursive(
    st.one_of(texts, numbers, bits),
    lambda inner: st.one_of(st.dictionaries(names, inner, max_size=2), st.lists(inner, max_size=2)),
    max_leaves=4,
)
templates = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("ConfigMap")},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"name": names, "labels": word_maps}),
        "data": word_maps,
    },
)
nulls = st.none()
_CUSTOM_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "count": numbers,
    "ratio": st.sampled_from([0.5, 1, 1.0]),
    "flag": bits,
    "port": st.sampled_from([1, "1", "http"]),
    "note": st.one_of(texts, nulls),
    "mode": st.sampled_from(["auto", "hand", "", None]),
    "nulled": st.sampled_from(["set", None, "a"]),
    "atomics": word_lists,
    "rules": rules,
    "allow": st.one_of(word_lists, nulls),
    "tags": word_sets,
    "items": items,
    "ports": ports,
    "labels": st.one_of(word_maps, nulls),
    "choices": word_maps,
    "groups": groups,
    "options": st.fixed_dictionaries({}, optional={"level": st.sampled_from([3, 4]), "name": texts}),
    "reference": st.fixed_dictionaries({}, optional={"name": texts, "key": texts}),
    "free": st.dictionaries(names, loose, max_size=2),
    "template": templates,
}


@st.composite
def _some(draw: st.DrawFn, values: dict[str, st.SearchStrategy[Any]], most: int) -> JsonObject:
    """Draw a few of the fields: most objects state little, and shrinking then ends with one field."""
    chosen = draw(st.lists(st.sampled_from(sorted(values)), max_size=most, unique=True))
    return {name: draw(values[name]) for name in chosen}


metadata = st.fixed_dictionaries(
    {},
    optional={
        "labels": word_maps,
        "annotations": word_maps,
        "finalizers": st.lists(st.sampled_from(["example.com/a", "example.com/b"]), max_size=2, unique=True),
    },
)
_owner = st.sampled_from(["u1", "u2"]).map(
    lambda uid: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": uid,
        "controller": uid == "u1",
    }
)
owned_metadata = st.fixed_dictionaries(
    {},
    optional={
        "labels": word_maps,
        "annotations": word_maps,
        "ownerReferences": st.lists(_owner, max_size=2, unique_by=lambda owner: owner["uid"]),
    },
)
specs = _some(_CUSTOM_VALUES, 4)
custom_objects = st.fixed_dictionaries(
    {}, optional={"metadata": st.one_of(metadata, owned_metadata), "spec": specs}
)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "ready": numbers,
        "phase": texts,
        "tags": word_sets,
        "conditions": st.lists(
            st.fixed_dictionaries({"type": names}, optional={"status": texts, "reason": texts}),
            max_size=3,
            unique_by=lambda condition: condition["type"],
        ),
    },
)
plain_objects = st.fixed_dictionaries({}, optional={"metadata": metadata, "spec": specs, "status": statuses})

_containers = st.lists(
    st.fixed_dictionaries(
        {"name": names, "image": st.sampled_from(["one", "two"])},
        optional={
            "command": word_lists,
            "env": st.lists(
                st.fixed_dictionaries({"name": names}, optional={"value": texts}),
                max_size=2,
                unique_by=_by(("name",), {}),
            ),
            "ports": st.lists(
                st.fixed_dictionaries(
                    {"containerPort": st.sampled_from([80, 81])},
                    optional={
                        "protocol": st.sampled_from(["TCP", "UDP"]),
                        "name": st.sampled_from(["x", ""]),
                    },
                ),
                max_size=2,
                unique_by=_by(("containerPort", "protocol"), {"protocol": "TCP"}),
            ),
            "resources": st.sampled_from([{}, {"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}}]),
            "securityContext": st.sampled_from([{}, {"privileged": True}]),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=_by(("name",), {}),
)
_pods = st.fixed_dictionaries(
    {"containers": _containers},
    optional={
        "initContainers": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["i", "j", "k"]), "image": st.just("one")}),
            max_size=3,
            unique_by=_by(("name",), {}),
        ),
        "nodeSelector": word_maps,
        "tolerations": st.lists(st.just({"key": "a", "operator": "Exists"}), max_size=1),
        "volumes": st.sampled_from(
            [[], [{"name": "v", "emptyDir": {}}], [{"name": "v", "emptyDir": {"medium": "Memory"}}]]
        ),
        "hostNetwork": st.sampled_from([False, None]),
    },
)
deployments = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "selector": st.just({"matchLabels": {"app": "a"}}),
                "template": st.fixed_dictionaries(
                    {"metadata": st.just({"labels": {"app": "a"}}), "spec": _pods}
                ),
            },
            optional={
                "replicas": numbers,
                "paused": bits,
                "strategy": st.sampled_from([{}, {"type": "Recreate"}, {"type": "RollingUpdate"}]),
            },
        )
    },
    optional={"metadata": owned_metadata},
)
services = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "ports": st.lists(
                    st.fixed_dictionaries(
                        {"port": st.sampled_from([80, 81])},
                        optional={"targetPort": st.sampled_from([80, "http", 8080])},
                    ).map(lambda port: {**port, "name": f"p{port['port']}"}),
                    min_size=1,
                    max_size=2,
                    unique_by=lambda port: port["port"],
                )
            },
            optional={
                "selector": word_maps,
                "type": st.sampled_from(["ClusterIP", ""]),
                "externalIPs": st.sampled_from([[], ["192.0.2.1"]]),
                "sessionAffinity": st.sampled_from(["None", ""]),
            },
        )
    },
    optional={"metadata": metadata},
)
config_maps = st.fixed_dictionaries(
    {},
    optional={
        "metadata": owned_metadata,
        "data": st.one_of(word_maps, nulls),
        "binaryData": st.dictionaries(
            st.sampled_from(["x", "y"]), st.sampled_from(["YQ==", "YQ=\n="]), max_size=2
        ),
    },
)
accounts = st.fixed_dictionaries(
    {},
    optional={
        "metadata": metadata,
        "imagePullSecrets": st.lists(
            st.fixed_dictionaries({"name": names}), max_size=3, unique_by=_by(("name",), {})
        ),
        "automountServiceAccountToken": bits,
    },
)
roles = st.fixed_dictionaries(
    {},
    optional={
        "metadata": metadata,
        "rules": st.lists(
            st.fixed_dictionaries(
                {"verbs": st.sampled_from([["get"], ["get", "list"]])},
                optional={"apiGroups": st.sampled_from([[""], ["apps"]]), "resources": st.just(["pods"])},
            ).filter(lambda rule: "apiGroups" in rule and "resources" in rule),
            max_size=2,
        ),
    },
)


class Subject(NamedTuple):
    """A kind in the versions that it can be applied in, and what may be desired of it."""

    kinds: tuple[Kind, ...]
    objects: st.SearchStrategy[JsonObject]
    statuses: st.SearchStrategy[JsonObject] | None = None


SUBJECTS = (
    Subject((SAMPLE, SAMPLE, SAMPLE, SAMPLE_BETA), custom_objects, statuses),
    Subject((PLAIN, PLAIN, PLAIN_BETA), plain_objects),
    Subject((kind_of(apps_v1.Deployment),), deployments),
    Subject((kind_of(core_v1.Service),), services),
    Subject((kind_of(core_v1.ConfigMap),), config_maps),
    Subject((kind_of(core_v1.ServiceAccount),), accounts),
    Subject((kind_of(rbac_v1.Role),), roles),
)


class Step(NamedTuple):
    """One step of an object's history; `document` is what is applied, or merged into the object."""

    action: str
    kind: Kind
    document: JsonObject
    manager: str = ""
    subresource: str = ""


class History(NamedTuple):
    """What happens to one object; the first step creates it."""

    subject: Subject
    steps: list[Step]

    def __repr__(self) -> str:
        lines = (
            f"  {step.action} {step.manager} {step.kind.api_version} {step.subresource} {step.document}"
            for step in self.steps
        )
        return f"{self.subject.kinds[0].kind}\n" + "\n".join(lines)


ACTIONS = (
    "ours",
    "ours",
    "ours",
    "again",
    "again",
    "apply",
    "apply",
    "merge",
    "merge",
    "restart",
    "forget",
    "status",
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history of one object, in which several managers write and ours decides again and again."""
    subject = draw(st.sampled_from(SUBJECTS))
    drawn: list[JsonObject] = []

    def document() -> JsonObject:
        # Often one that was stated before: by us or by another manager.
        if drawn and draw(st.integers(0, 2)) == 0:
            return draw(st.sampled_from(drawn))
        drawn.append(draw(subject.objects))
        return drawn[-1]

    def step(action: str) -> Step:
        kind = draw(st.sampled_from(subject.kinds))
        if action in ("status", "forget", "restart", "again"):
            if action != "status" or subject.statuses is None:
                return Step("again" if action == "status" else action, kind, {})
            state = draw(subject.statuses)
            writer = draw(st.sampled_from((OURS, OURS, "theirs", "merge")))
            if writer == OURS:
                return Step("ours", kind, {"status": state}, OURS, "status")
            return Step(
                "merge" if writer == "merge" else "apply", kind, {"status": state}, "theirs", "status"
            )
        if action == "ours":
            return Step("ours", kind, document(), OURS)
        if action == "merge":
            return Step("merge", kind, document(), draw(st.sampled_from((*OTHERS, OURS))))
        return Step("apply", kind, document(), draw(st.sampled_from(OTHERS)))

    actions = draw(st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=12))
    return History(subject, [step(draw(st.sampled_from(("ours", "apply")))), *map(step, actions)])
