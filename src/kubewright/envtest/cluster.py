"""The stand-in for kube-apiserver with `--controllers`: a whole dev cluster with the same flags."""

from pathlib import Path

from kubewright.devcluster import DevCluster
from kubewright.envtest.settings import Settings


def dev_cluster(settings: Settings, data: Path) -> DevCluster:
    """Return the cluster, to be entered."""
    return DevCluster(
        data=data,
        host=settings.host,
        port=settings.port,
        anonymous=settings.anonymous,
        credentials=settings.credentials,
        authorization_modes=settings.authorization_modes,
        disable_admission_plugins=settings.disabled_plugins,
    )
