"""The controllers that run the handlers which came from kopf."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import kubernetes
import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1

from cachefarm.clusters import (
    announce,
    check_health,
    check_spec,
    configure,
    count_pods,
    create_children,
    default_labels,
    follow_metrics,
    goodbye,
    mark_gold,
    plan_backup,
    plan_backup_when,
    pod_changed,
    pod_gone,
    pods_by_cluster,
    reconfigure,
    say_goodbye,
    scale,
    validate_eviction,
    validate_size,
)
from cachefarm.constants import CHECK_INTERVAL
from cachefarm.kinds.cache_v1 import CacheCluster, CacheUser
from cachefarm.namespaces import count_cluster, in_steps, note_namespace, note_requested
from cachefarm.support import AdmissionError, ESSENCE, Handling, merged, overwrite, value_at
from cachefarm.users import create_account, delete_account, describe_user, replace_rules, validate_rules


CLIENT_CALLS = [
    kw.needs(apps_v1.Deployment, "get", "patch"),
    kw.needs(core_v1.ConfigMap, "patch"),
    kw.needs(core_v1.Secret, "create"),
]
"""The rights of the client library's calls in the handlers."""


def pods_by_cluster_values(pod: core_v1.Pod) -> list[str]:
    """Return the keys that kopf's index has for an object."""
    handling = Handling(pod)
    return [str(key) for key in pods_by_cluster(labels=handling.labels, name=handling.name) or {}]


pods_by_cluster_index = kw.Index(core_v1.Pod, pods_by_cluster_values)


@kw.controller(
    CacheCluster,
    owns=[apps_v1.Deployment, core_v1.ConfigMap, core_v1.Service],
    needs=[*CLIENT_CALLS],
    when=ESSENCE,
)
async def cache_clusters(cluster: CacheCluster, ctx: kw.Context) -> None:
    """Run the handlers of kopf's create, update, resume and field, in their order."""
    handling = Handling(cluster, ctx)
    await handling.run(
        "create_children",
        create_children(
            ctx=ctx,
            body=handling.body,
            spec=handling.spec,
            name=handling.name,
            namespace=handling.namespace,
            logger=handling.logger,
            patch=handling.patch,
        ),
    )
    await handling.run(
        "check_spec",
        ctx.run_sync(
            check_spec,
            spec=handling.spec,
            patch=handling.patch,
            name=handling.name,
        ),
    )
    if value_at(handling.body, "spec.replicas") is not None:
        await handling.run(
            "scale/spec.replicas",
            ctx.run_sync(
                scale,
                old=handling.undecided,
                new=value_at(handling.body, "spec.replicas"),
                name=handling.name,
                namespace=handling.namespace,
                logger=handling.logger,
            ),
        )
    if value_at(handling.body, "spec.config") is not None:
        await handling.run(
            "reconfigure/spec.config",
            ctx.run_sync(
                reconfigure,
                spec=handling.spec,
                name=handling.name,
                namespace=handling.namespace,
                diff=handling.undecided,
            ),
        )
    if handling.labels.get("tier") == "gold" and "cache.example.com/silent" not in handling.annotations:
        await handling.run(
            "mark_gold",
            mark_gold(
                ctx=ctx,
                body=handling.body,
                meta=handling.meta,
                patch=handling.patch,
                logger=handling.logger,
            ),
        )
    if plan_backup_when(spec=handling.spec):
        await handling.run("plan_backup", ctx.run_sync(plan_backup, spec=handling.spec, patch=handling.patch))
    await handling.run(
        "count_cluster",
        count_cluster(
            uid=handling.uid,
            namespace=handling.namespace,
            memo=handling.undecided,
        ),
    )
    await handling.run("in_steps", in_steps(spec=handling.spec, name=handling.name))
    await handling.finish(has_status=True)


@cache_clusters.finalizer("cache.example.com/cachefarm")
async def cache_clusters_deleted(cluster: CacheCluster, ctx: kw.Context) -> None:
    """Run the handlers of kopf's delete before the object is gone."""
    handling = Handling(cluster, ctx)
    await handling.run(
        "say_goodbye",
        say_goodbye(
            ctx=ctx,
            body=handling.body,
            name=handling.name,
            status=handling.status,
            logger=handling.logger,
        ),
    )
    await handling.finish(has_status=True)


@kw.controller(CacheCluster, name="cachecluster-check-health", when=kw.predicates.on("create"))
async def check_health_timer(cluster: CacheCluster, ctx: kw.Context) -> kw.Result:
    """Run kopf's timer `check_health`."""
    handling = Handling(cluster, ctx)
    await handling.run(
        "check_health",
        ctx.run_sync(
            check_health,
            name=handling.name,
            namespace=handling.namespace,
            patch=handling.patch,
            logger=handling.logger,
        ),
    )
    await handling.finish(has_status=True)
    return kw.Result(after=timedelta(seconds=CHECK_INTERVAL))


@kw.controller(CacheCluster, name="cachecluster-follow-metrics", when=kw.predicates.on("create"))
async def follow_metrics_daemon(cluster: CacheCluster, ctx: kw.Context) -> None:
    """Run kopf's daemon `follow_metrics`."""
    handling = Handling(cluster, ctx)
    await handling.run(
        "follow_metrics",
        follow_metrics(
            stopped=handling.undecided,
            name=handling.name,
            logger=handling.logger,
        ),
    )
    await handling.finish(has_status=True)


@kw.controller(
    CacheCluster,
    name="cachecluster-count-pods",
    needs=[kw.needs(core_v1.Pod, "get", "list", "watch")],
    when=kw.predicates.on("create"),
)
async def count_pods_timer(cluster: CacheCluster, ctx: kw.Context) -> kw.Result:
    """Run kopf's timer `count_pods`."""
    handling = Handling(cluster, ctx)
    await handling.run(
        "count_pods",
        ctx.run_sync(
            count_pods,
            name=handling.name,
            patch=handling.patch,
            pods_by_cluster=handling.undecided,
        ),
    )
    await handling.finish(has_status=True)
    return kw.Result(after=timedelta(seconds=300))


@kw.controller(core_v1.Pod, name="pod-events", selector=kw.Selector(labels="cache.example.com/cluster"))
async def pods_events(pod: core_v1.Pod, ctx: kw.Context) -> None:
    """Run the handlers of kopf's events."""
    handling = Handling(pod, ctx)
    await handling.run(
        "pod_changed",
        ctx.run_sync(
            pod_changed,
            labels=handling.labels,
            status=handling.status,
            name=handling.name,
            logger=handling.logger,
        ),
    )
    await handling.run(
        "pod_gone",
        ctx.run_sync(
            pod_gone,
            type=handling.undecided,
            name=handling.name,
            logger=handling.logger,
        ),
    )
    await handling.finish(has_status=True)


@kw.controller(core_v1.Namespace, needs=[kw.needs(core_v1.Namespace, "patch")], when=ESSENCE)
async def namespaces(namespace: core_v1.Namespace, ctx: kw.Context) -> None:
    """Run the handlers of kopf's create, update, resume and field, in their order."""
    handling = Handling(namespace, ctx)
    if note_requested(annotations=handling.annotations):
        await handling.run("note_namespace", ctx.run_sync(note_namespace, name=handling.name, patch=handling.patch))
    await handling.finish(has_status=True)


@kw.controller(CacheUser, when=ESSENCE)
async def cache_users(user: CacheUser, ctx: kw.Context) -> None:
    """Run the handlers of kopf's create, update, resume and field, in their order."""
    handling = Handling(user, ctx)
    await handling.run(
        "create_account",
        ctx.run_sync(
            create_account,
            body=handling.body,
            spec=handling.spec,
            name=handling.name,
            namespace=handling.namespace,
            retry=handling.undecided,
            logger=handling.logger,
        ),
    )
    await handling.run("describe_user", ctx.run_sync(describe_user, spec=handling.spec, patch=handling.patch))
    await handling.run(
        "replace_rules",
        ctx.run_sync(
            replace_rules,
            spec=handling.spec,
            name=handling.name,
            old=handling.undecided,
            new=handling.undecided,
        ),
    )
    await handling.finish(has_status=True)


@cache_users.finalizer("cache.example.com/cachefarm")
async def cache_users_deleted(user: CacheUser, ctx: kw.Context) -> None:
    """Run the handlers of kopf's delete before the object is gone."""
    handling = Handling(user, ctx)
    await handling.run(
        "delete_account",
        ctx.run_sync(
            delete_account,
            name=handling.name,
            spec=handling.spec,
            logger=handling.logger,
        ),
    )
    await handling.finish(has_status=True)


@kw.admission.validating_webhook(CacheCluster)
def validate_size_webhook(cluster: CacheCluster) -> list[kw.admission.Problem]:
    """Run the handler of kopf's validate."""
    handling = Handling(cluster)
    warnings: list[str] = []
    try:
        validate_size(spec=handling.spec, warnings=warnings)
    except AdmissionError as error:
        return [kw.admission.denied(str(error)), *map(kw.admission.warning, warnings)]
    return [kw.admission.warning(text) for text in warnings]


@kw.admission.validating_webhook(CacheCluster, on=["update"])
def validate_eviction_webhook(cluster: CacheCluster, old: CacheCluster | None, request: kw.admission.AdmissionRequest) -> list[kw.admission.Problem]:
    """Run the handler of kopf's validate."""
    handling = Handling(cluster)
    warnings: list[str] = []
    if value_at(handling.body, "spec.eviction") == "none":
        try:
            validate_eviction(spec=handling.spec, dryrun=request.dry_run)
        except AdmissionError as error:
            return [kw.admission.denied(str(error)), *map(kw.admission.warning, warnings)]
    return [kw.admission.warning(text) for text in warnings]


@kw.admission.mutating_webhook(CacheCluster)
def default_labels_webhook(cluster: CacheCluster) -> None:
    """Run the handler of kopf's mutate."""
    handling = Handling(cluster)
    default_labels(labels=handling.labels, patch=handling.patch)
    overwrite(cluster, merged(handling.body, handling.patch))


@kw.admission.validating_webhook(CacheUser, on=["create"])
async def validate_rules_webhook(user: CacheUser) -> list[kw.admission.Problem]:
    """Run the handler of kopf's validate."""
    handling = Handling(user)
    warnings: list[str] = []
    try:
        await validate_rules(spec=handling.spec)
    except AdmissionError as error:
        return [kw.admission.denied(str(error)), *map(kw.admission.warning, warnings)]
    return [kw.admission.warning(text) for text in warnings]


@asynccontextmanager
async def lifespan() -> AsyncGenerator[None, None]:
    """Run the handlers of kopf's startup and cleanup."""
    handling = Handling({})
    kubernetes.config.load_config()
    await asyncio.to_thread(configure, settings=handling.undecided)
    await announce(logger=handling.logger)
    yield
    await asyncio.to_thread(goodbye, logger=handling.logger)


operator = kw.Operator(
    cache_clusters,
    check_health_timer,
    follow_metrics_daemon,
    count_pods_timer,
    pods_events,
    namespaces,
    cache_users,
    name="cachefarm",
    webhooks=[validate_size_webhook, validate_eviction_webhook, default_labels_webhook, validate_rules_webhook],
    lifespan=lifespan,
)
