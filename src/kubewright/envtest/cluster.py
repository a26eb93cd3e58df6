"""The stand-in for kube-apiserver with `--controllers`: a whole dev cluster with the same flags."""

from pathlib import Path

from kubewright.devcluster import DevCluster
from kubewright.devserver import AuthorizationObserver
from kubewright.envtest.settings import ApiServerSettings
from kubewright.processpods import ProcessPods


def dev_cluster(
    settings: ApiServerSettings, data: Path, observer: AuthorizationObserver | None
) -> DevCluster:
    """Return the cluster, to be entered."""
    return DevCluster(
        kubernetes=settings.kubernetes,
        data=data,
        host=settings.host,
        port=settings.port,
        nodes=settings.nodes,
        pod_runner=ProcessPods(settings.commands) if settings.commands is not None else None,
        anonymous=settings.anonymous,
        credentials=settings.credentials,
        authorization_modes=settings.authorization_modes,
        authorization_observer=observer,
        enable_admission_plugins=settings.enabled_plugins,
        disable_admission_plugins=settings.disabled_plugins,
        feature_gates=settings.feature_gates,
    )
