"""The ReplicaSets of a Deployment: how one is made from its template, and what it is told of the whole."""

import msgspec

from kubewright.api import Meta, to_wire
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.devcluster.hashes import short_hash
from kubewright.devcluster.rollouts import limits

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
PAST = "deployment.kubernetes.io/revision-history"
"""The revisions that a ReplicaSet stood for before it was rolled back to."""
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HISTORY = 10


def wanted_of(deployment: apps_v1.Deployment) -> int:
    """Tell how many Pods are wanted."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def history_limit(deployment: apps_v1.Deployment) -> int:
    """Tell how many ReplicaSets without Pods are kept to roll back to."""
    limit = deployment.spec.revision_history_limit
    return HISTORY if limit is None else limit


def surge_and_unavailable(deployment: apps_v1.Deployment) -> tuple[int, int]:
    """Give how many Pods more or fewer than wanted there may be in a rollout."""
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type != "RollingUpdate" or rolling is None:
        return 0, 0
    return limits(wanted_of(deployment), rolling.max_surge, rolling.max_unavailable)


def same_template(replica_set: apps_v1.ReplicaSet, template: core_v1.PodTemplateSpec) -> bool:
    """Tell whether a ReplicaSet was made from a template."""
    return _unhashed(replica_set.spec.template) == _unhashed(template)


def _unhashed(template: core_v1.PodTemplateSpec) -> core_v1.PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != HASH_LABEL}
    return msgspec.structs.replace(
        template, metadata=msgspec.structs.replace(template.metadata, labels=labels)
    )


def revision_of(replica_set: apps_v1.ReplicaSet) -> int:
    """Read the revision a ReplicaSet stands for."""
    told = replica_set.metadata.annotations.get(REVISION, "")
    return int(told) if told.isdigit() else 0


def carried_annotations(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Give the annotations that a ReplicaSet takes over."""
    left_out = (REVISION, PAST, DESIRED, MAXIMUM, LAST_APPLIED)
    return {key: value for key, value in deployment.metadata.annotations.items() if key not in left_out}


def sizes_told(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Give the annotations that tell a ReplicaSet the size of the whole."""
    wanted = wanted_of(deployment)
    return {DESIRED: str(wanted), MAXIMUM: str(wanted + surge_and_unavailable(deployment)[0])}


def replica_set_for(
    deployment: apps_v1.Deployment, collisions: int, revision: int, replicas: int
) -> apps_v1.ReplicaSet:
    """Make the ReplicaSet of a Deployment's present template."""
    spec = deployment.spec
    text = short_hash(to_wire(spec.template), collisions)
    labels = {**spec.template.metadata.labels, HASH_LABEL: text}
    template = msgspec.structs.replace(
        spec.template, metadata=msgspec.structs.replace(spec.template.metadata, labels=labels)
    )
    told = {**carried_annotations(deployment), **sizes_told(deployment), REVISION: str(revision)}
    return apps_v1.ReplicaSet(
        Meta(
            f"{deployment.metadata.name}-{text}",
            namespace=deployment.metadata.namespace,
            labels=dict(labels),
            annotations=told,
        ),
        spec=apps_v1.ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=meta_v1.LabelSelector(
                match_labels={**spec.selector.match_labels, HASH_LABEL: text},
                match_expressions=spec.selector.match_expressions,
            ),
            template=template,
        ),
    )
