"""Handlers of CacheCluster: its children, its health, its admission."""

from typing import Any
import asyncio
import datetime

import kubernetes

from cachefarm.constants import CLUSTER_LABEL, GROUP
from cachefarm.templates import endpoint_of, memory_in_bytes, render_config, render_deployment, render_service
import kubewright as kw
from cachefarm.support import AdmissionError, adopt, kopf

LARGEST = 5


class NotReady(kw.RetryLater):
    """The cluster has no ready server yet."""


# kopf: startup (clusters.py:25)
def configure(settings: Any, **_):
    # TODO(kopf-1): kopf's settings have no counterpart: see the options of `kubewright run`
    # TODO(kopf-2): kopf.WebhookServer has no counterpart here
    raise NotImplementedError("configure: decide kopf-1, kopf-2 of MIGRATION.md")
    settings.posting.enabled = True
    settings.watching.server_timeout = 600
    settings.persistence.finalizer = f"{GROUP}/cachefarm-kopf"
    settings.admission.server = kopf.WebhookServer(addr="127.0.0.1")
    settings.admission.managed = f"auto.{GROUP}"


# kopf: startup (clusters.py:34)
async def announce(logger, **_):
    logger.info("cachefarm starts")


# kopf: cleanup (clusters.py:39)
def goodbye(logger, **_):
    logger.info("cachefarm ends")


# The children. Creating them again is an error, which is how a restart is noticed.
# kopf: create (clusters.py:45)
async def create_children(ctx: kw.Context, body, spec, name, namespace, logger, patch, **_):
    """Create the ConfigMap, the Deployment and the Service of a cluster."""
    # TODO(kopf-3): kopf called it for create only, and check_health sets status.phase as well: let one of them set it
    raise NotImplementedError("create_children: decide kopf-3 of MIGRATION.md")

    config = render_config(name, spec)
    deployment = render_deployment(name, spec)
    service = render_service(name)
    adopt(config, body)
    adopt(deployment, body)
    adopt(service, body)

    await ctx.apply(config)
    await ctx.apply(deployment)
    await ctx.apply(service)

    patch.status["phase"] = "Created"
    patch.status["endpoint"] = endpoint_of(name, namespace)
    ctx.event("Created", f"children of {name} created")
    logger.info("cluster %s has its children", name)
    return {"children": 3}


# kopf: update, create, resume (clusters.py:69)
def check_spec(spec, patch, name, **_):
    """Refuse what no retry can repair, and say so in the status."""
    replicas = spec.get("replicas", 1)
    if replicas > LARGEST:
        patch.status["message"] = f"{replicas} replicas are more than {LARGEST}"
        raise kw.TerminalError(f"cluster {name} is too large: {replicas}")
    patch.status["message"] = f"{replicas} replicas of {spec.get('memory', '64Mi')}"
    patch.status["capacityBytes"] = replicas * memory_in_bytes(spec.get("memory", "64Mi"))


# kopf: field (clusters.py:82)
def scale(old, new, name, namespace, logger, **_):
    """Scale the Deployment when the number of replicas changes."""
    # TODO(kopf-4): the reconciler gets the current state, not the change
    # TODO(kopf-5): kopf called it for field only; make it safe to repeat: `apps.patch_namespaced_deployment` (clusters.py:88)
    raise NotImplementedError("scale: decide kopf-4, kopf-5 of MIGRATION.md")
    if old is None:
        return
    apps = kubernetes.client.AppsV1Api()
    apps.patch_namespaced_deployment(name, namespace, {"spec": {"replicas": new}})
    logger.info("scaled %s from %s to %s", name, old, new)


# kopf: update (clusters.py:92)
def reconfigure(spec, name, namespace, diff, **_):
    """Write the new configuration and restart the servers."""
    # TODO(kopf-6): the reconciler gets the current state, not the change
    # TODO(kopf-7): kopf called it for update only; make it safe to repeat: `core.patch_namespaced_config_map` (clusters.py:98), `apps.patch_namespaced_deployment` (clusters.py:101), `datetime.datetime.now(datetime.UTC).isoformat` (clusters.py:99)
    raise NotImplementedError("reconfigure: decide kopf-6, kopf-7 of MIGRATION.md")
    core = kubernetes.client.CoreV1Api()
    apps = kubernetes.client.AppsV1Api()
    config = render_config(name, spec)
    core.patch_namespaced_config_map(config["metadata"]["name"], namespace, config)
    restarted = {"cache.example.com/restarted-at": datetime.datetime.now(datetime.UTC).isoformat()}
    template = {"metadata": {"annotations": restarted}}
    apps.patch_namespaced_deployment(name, namespace, {"spec": {"template": template}})
    for operation, path, before, after in diff:
        print(f"{operation} {'.'.join(path)}: {before} -> {after}")


# kopf: resume, update, create (clusters.py:106)
async def mark_gold(ctx: kw.Context, body, meta: Any, patch: Any, logger: Any, **_):
    """Reserve the priority of paying customers."""
    patch.status["tier"] = meta.labels["tier"]
    ctx.event("Gold", "priority reserved")
    logger.debug("gold: %s", meta.name)


# kopf: resume, update, create (clusters.py:116)
def plan_backup(spec, patch, **_):
    """Note the schedule of the backup."""
    if "schedule" not in spec:
        raise kw.RetryLater("backup needs a schedule", after=20)
    patch.status["backup"] = spec["schedule"]


# kopf: delete (clusters.py:126)
async def say_goodbye(ctx: kw.Context, body, name, status, logger, **_):
    """Report the end; the children go with their owner."""
    ctx.warn("Deleted", f"cluster {name} ends in phase {status.get('phase')}")
    logger.info("cluster %s is going", name)


# kopf: timer (clusters.py:133)
def check_health(name, namespace, patch, logger, **_):
    """Count the servers that are ready."""
    apps = kubernetes.client.AppsV1Api()
    try:
        deployment = apps.read_namespaced_deployment(name, namespace)
    except kubernetes.client.exceptions.ApiException as error:
        if error.status == 404:
            raise NotReady(f"no Deployment {name} yet", after=5)
        raise
    ready = deployment.status.ready_replicas or 0
    patch.status["ready"] = ready
    if not ready:
        raise NotReady(f"no server of {name} is ready", after=5)
    patch.status["phase"] = "Running"


# kopf: daemon (clusters.py:150)
async def follow_metrics(stopped, name, logger, **_):
    """Poll the metrics of a cluster for as long as it exists."""
    # TODO(kopf-8): a daemon is a task of the operator's lifespan that passes its events to kw.source
    raise NotImplementedError("follow_metrics: decide kopf-8 of MIGRATION.md")
    while not stopped:
        logger.debug("polling %s", name)
        await asyncio.sleep(10)


# kopf: index (clusters.py:158)
def pods_by_cluster(labels, name, **_):
    return {labels[CLUSTER_LABEL]: name}


# kopf: timer (clusters.py:163)
def count_pods(name, patch, pods_by_cluster: Any, **_):
    """Write the number of Pods to the status."""
    # TODO(kopf-9): idle= has no counterpart
    # TODO(kopf-10): use `await ctx.list(pods_by_cluster_index, value)`: it returns the objects
    raise NotImplementedError("count_pods: decide kopf-9, kopf-10 of MIGRATION.md")
    patch.status["pods"] = len(pods_by_cluster.get(name, []))


# kopf: event (clusters.py:169)
def pod_changed(labels, status, name, logger, **_):
    """Log what happens to the servers."""
    logger.info("pod %s of %s is %s", name, labels[CLUSTER_LABEL], status.get("phase"))


# kopf: event (clusters.py:175)
def pod_gone(type, name, logger, **_):
    """Complain about servers that disappear."""
    # TODO(kopf-11): a reconcile has no event type; clean up after a deletion in a finalizer
    raise NotImplementedError("pod_gone: decide kopf-11 of MIGRATION.md")
    if type == "DELETED":
        logger.warning("pod %s is gone", name)


# kopf: validate (clusters.py:182)
def validate_size(spec, warnings: list[str], **_):
    """Reject clusters that no node can hold."""
    if memory_in_bytes(spec.get("memory", "64Mi")) > memory_in_bytes("16Gi"):
        raise AdmissionError("spec.memory: at most 16Gi", code=422)
    if spec.get("replicas", 1) > 3:
        warnings.append("more than 3 replicas")


# kopf: validate (clusters.py:191)
def validate_eviction(spec, dryrun, **_):
    """A cluster that evicts nothing needs enough memory."""
    if not dryrun and memory_in_bytes(spec.get("memory", "64Mi")) < memory_in_bytes("128Mi"):
        raise AdmissionError("spec.memory: at least 128Mi without eviction")


# kopf: mutate (clusters.py:198)
def default_labels(labels, patch, **_):
    """Give every cluster a tier."""
    if "tier" not in labels:
        patch.metadata.labels["tier"] = "standard"


def plan_backup_when(spec: Any, **_: Any) -> bool:
    """Return True if plan_backup applies to the object."""
    return bool(spec.get("backup", False))
