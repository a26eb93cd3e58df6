"""Dev clusters of earlier Kubernetes releases."""

import pytest

import kubewright as kw
from kubewright.api.builtin import apps_v1, batch_v1, core_v1, meta_v1
from kubewright.client import Client
from kubewright.devcluster import DevCluster
from kubewright.devserver import KubernetesRelease
from kubewright.testing import eventually


@pytest.mark.parametrize("version", KubernetesRelease.known())
async def test_workloads_run_in_each_release(version: str) -> None:
    async with DevCluster(kubernetes=version) as cluster, Client(cluster.config) as client:
        assert (await client.server_version()).git_version.startswith(f"v{version}.")
        labels = {"app": "web"}
        spec = core_v1.PodSpec(containers=[core_v1.Container(name="web", image="web")])
        template = core_v1.PodTemplateSpec(metadata=kw.Meta(labels=labels), spec=spec)
        await client.create(
            apps_v1.Deployment(
                metadata=kw.Meta(name="web", namespace="default"),
                spec=apps_v1.DeploymentSpec(
                    selector=meta_v1.LabelSelector(match_labels=labels), template=template
                ),
            )
        )
        once = core_v1.PodSpec(
            containers=[core_v1.Container(name="a", image="a", command=["true"])], restart_policy="Never"
        )
        await client.create(
            batch_v1.Job(
                metadata=kw.Meta(name="once", namespace="default"),
                spec=batch_v1.JobSpec(template=core_v1.PodTemplateSpec(spec=once)),
            )
        )

        async def done() -> bool:
            deployment = await client.get(apps_v1.Deployment, "web", "default")
            job = await client.get(batch_v1.Job, "once", "default")
            return deployment.status.available_replicas == 1 and job.status.succeeded == 1

        await eventually(done, timeout=30)
