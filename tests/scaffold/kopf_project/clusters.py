"""Handlers of CacheCluster: its children, its health, its admission."""

import asyncio
import datetime

import kopf
import kubernetes

from constants import (
    CHECK_INTERVAL,
    CLUSTER_LABEL,
    CLUSTERS,
    GROUP,
    VERSION,
)
from templates import endpoint_of, memory_in_bytes, render_config, render_deployment, render_service

LARGEST = 5


class NotReady(kopf.TemporaryError):
    """The cluster has no ready server yet."""


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = True
    settings.watching.server_timeout = 600
    settings.persistence.finalizer = f"{GROUP}/cachefarm-kopf"
    settings.admission.server = kopf.WebhookServer(addr="127.0.0.1")
    settings.admission.managed = f"auto.{GROUP}"


@kopf.on.startup()
async def announce(logger, **_):
    logger.info("cachefarm starts")


@kopf.on.cleanup()
def goodbye(logger, **_):
    logger.info("cachefarm ends")


# The children. Creating them again is an error, which is how a restart is noticed.
@kopf.on.create(GROUP, VERSION, CLUSTERS)
def create_children(body, spec, name, namespace, logger, patch, **_):
    """Create the ConfigMap, the Deployment and the Service of a cluster."""
    core = kubernetes.client.CoreV1Api()
    apps = kubernetes.client.AppsV1Api()

    config = render_config(name, spec)
    deployment = render_deployment(name, spec)
    service = render_service(name)
    kopf.adopt(config)
    kopf.adopt(deployment)
    kopf.adopt(service, owner=body)

    core.create_namespaced_config_map(namespace=namespace, body=config)
    apps.create_namespaced_deployment(namespace=namespace, body=deployment)
    core.create_namespaced_service(namespace, service)

    patch.status["phase"] = "Created"
    patch.status["endpoint"] = endpoint_of(name, namespace)
    kopf.info(body, reason="Created", message=f"children of {name} created")
    logger.info("cluster %s has its children", name)
    return {"children": 3}


@kopf.on.resume(GROUP, VERSION, CLUSTERS)
@kopf.on.create(GROUP, VERSION, CLUSTERS)
@kopf.on.update(GROUP, VERSION, CLUSTERS)
def check_spec(spec, patch, name, **_):
    """Refuse what no retry can repair, and say so in the status."""
    replicas = spec.get("replicas", 1)
    if replicas > LARGEST:
        patch.status["message"] = f"{replicas} replicas are more than {LARGEST}"
        raise kopf.PermanentError(f"cluster {name} is too large: {replicas}")
    patch.status["message"] = f"{replicas} replicas of {spec.get('memory', '64Mi')}"
    patch.status["capacityBytes"] = replicas * memory_in_bytes(spec.get("memory", "64Mi"))


@kopf.on.field(GROUP, VERSION, CLUSTERS, field="spec.replicas")
def scale(old, new, name, namespace, logger, **_):
    """Scale the Deployment when the number of replicas changes."""
    if old is None:
        return
    apps = kubernetes.client.AppsV1Api()
    apps.patch_namespaced_deployment(name, namespace, {"spec": {"replicas": new}})
    logger.info("scaled %s from %s to %s", name, old, new)


@kopf.on.update(GROUP, VERSION, CLUSTERS, field="spec.config")
def reconfigure(spec, name, namespace, diff, **_):
    """Write the new configuration and restart the servers."""
    core = kubernetes.client.CoreV1Api()
    apps = kubernetes.client.AppsV1Api()
    config = render_config(name, spec)
    core.patch_namespaced_config_map(config["metadata"]["name"], namespace, config)
    restarted = {"cache.example.com/restarted-at": datetime.datetime.now(datetime.UTC).isoformat()}
    template = {"metadata": {"annotations": restarted}}
    apps.patch_namespaced_deployment(name, namespace, {"spec": {"template": template}})
    for operation, path, before, after in diff:
        print(f"{operation} {'.'.join(path)}: {before} -> {after}")


@kopf.on.create(GROUP, VERSION, CLUSTERS, labels={"tier": "gold"}, annotations={"cache.example.com/silent": kopf.ABSENT})
@kopf.on.update(GROUP, VERSION, CLUSTERS, labels={"tier": "gold"}, annotations={"cache.example.com/silent": kopf.ABSENT})
@kopf.on.resume(GROUP, VERSION, CLUSTERS, labels={"tier": "gold"}, annotations={"cache.example.com/silent": kopf.ABSENT})
async def mark_gold(body, meta: kopf.Meta, patch: kopf.Patch, logger: kopf.Logger, **_):
    """Reserve the priority of paying customers."""
    patch.status["tier"] = meta.labels["tier"]
    kopf.event(body, type="Normal", reason="Gold", message="priority reserved")
    logger.debug("gold: %s", meta.name)


@kopf.on.create(GROUP, VERSION, CLUSTERS, when=lambda spec, **_: spec.get("backup", False))
@kopf.on.update(GROUP, VERSION, CLUSTERS, when=lambda spec, **_: spec.get("backup", False))
@kopf.on.resume(GROUP, VERSION, CLUSTERS, when=lambda spec, **_: spec.get("backup", False))
def plan_backup(spec, patch, **_):
    """Note the schedule of the backup."""
    if "schedule" not in spec:
        raise kopf.TemporaryError("backup needs a schedule", delay=20)
    patch.status["backup"] = spec["schedule"]


@kopf.on.delete(GROUP, VERSION, CLUSTERS)
def say_goodbye(body, name, status, logger, **_):
    """Report the end; the children go with their owner."""
    kopf.warn(body, reason="Deleted", message=f"cluster {name} ends in phase {status.get('phase')}")
    logger.info("cluster %s is going", name)


@kopf.timer(GROUP, VERSION, CLUSTERS, interval=CHECK_INTERVAL, initial_delay=5)
def check_health(name, namespace, patch, logger, **_):
    """Count the servers that are ready."""
    apps = kubernetes.client.AppsV1Api()
    try:
        deployment = apps.read_namespaced_deployment(name, namespace)
    except kubernetes.client.exceptions.ApiException as error:
        if error.status == 404:
            raise NotReady(f"no Deployment {name} yet", delay=5)
        raise
    ready = deployment.status.ready_replicas or 0
    patch.status["ready"] = ready
    if not ready:
        raise NotReady(f"no server of {name} is ready", delay=5)
    patch.status["phase"] = "Running"


@kopf.daemon(GROUP, VERSION, CLUSTERS)
async def follow_metrics(stopped, name, logger, **_):
    """Poll the metrics of a cluster for as long as it exists."""
    while not stopped:
        logger.debug("polling %s", name)
        await asyncio.sleep(10)


@kopf.index("pods", labels={CLUSTER_LABEL: kopf.PRESENT})
def pods_by_cluster(labels, name, **_):
    return {labels[CLUSTER_LABEL]: name}


@kopf.timer(GROUP, VERSION, CLUSTERS, interval=300, idle=60)
def count_pods(name, patch, pods_by_cluster: kopf.Index, **_):
    """Write the number of Pods to the status."""
    patch.status["pods"] = len(pods_by_cluster.get(name, []))


@kopf.on.event("pods", labels={"cache.example.com/cluster": kopf.PRESENT})
def pod_changed(labels, status, name, logger, **_):
    """Log what happens to the servers."""
    logger.info("pod %s of %s is %s", name, labels[CLUSTER_LABEL], status.get("phase"))


@kopf.on.event("pods", labels={"cache.example.com/cluster": kopf.PRESENT})
def pod_gone(type, name, logger, **_):
    """Complain about servers that disappear."""
    if type == "DELETED":
        logger.warning("pod %s is gone", name)


@kopf.on.validate(GROUP, VERSION, CLUSTERS)
def validate_size(spec, warnings: list[str], **_):
    """Reject clusters that no node can hold."""
    if memory_in_bytes(spec.get("memory", "64Mi")) > memory_in_bytes("16Gi"):
        raise kopf.AdmissionError("spec.memory: at most 16Gi", code=422)
    if spec.get("replicas", 1) > 3:
        warnings.append("more than 3 replicas")


@kopf.on.validate(GROUP, VERSION, CLUSTERS, operations=["UPDATE"], field="spec.eviction", value="none")
def validate_eviction(spec, dryrun, **_):
    """A cluster that evicts nothing needs enough memory."""
    if not dryrun and memory_in_bytes(spec.get("memory", "64Mi")) < memory_in_bytes("128Mi"):
        raise kopf.AdmissionError("spec.memory: at least 128Mi without eviction")


@kopf.on.mutate(GROUP, VERSION, CLUSTERS)
def default_labels(labels, patch, **_):
    """Give every cluster a tier."""
    if "tier" not in labels:
        patch.metadata.labels["tier"] = "standard"
