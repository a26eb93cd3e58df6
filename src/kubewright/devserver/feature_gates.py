"""Feature gates that a server can be started with, as kube-apiserver's flag `--feature-gates`."""

from collections.abc import Mapping

from kubewright.api.failures import ConfigError
from kubewright.devserver.data import KubernetesRelease

FEATURE_GATES: Mapping[str, int] = {"ShardedListAndWatch": 36, "WatchList": 27}
"""The gates that can be switched, with the minor version in which each appeared; others have their default."""


class FeatureGateError(ConfigError):
    """A feature gate that the server does not have, or cannot switch."""


class FeatureGates:
    """The enabled features of a release: its defaults, changed by `switched`."""

    def __init__(self, release: KubernetesRelease, switched: Mapping[str, bool]) -> None:
        for name in switched:
            if name not in FEATURE_GATES:
                raise FeatureGateError(
                    f"the feature gate {name} cannot be switched: expected {' or '.join(FEATURE_GATES)}"
                )
            if release.minor < FEATURE_GATES[name]:
                raise FeatureGateError(
                    f"unrecognized feature gate: {name}: it exists since Kubernetes 1.{FEATURE_GATES[name]}, "
                    f"and the server is {release.version}"
                )
        self._release = release
        self._switched = dict(switched)

    def enabled(self, name: str) -> bool:
        """Return True if a feature is on; raise KeyError if no release has it."""
        switched = self._switched.get(name)
        return self._release.enabled(name) if switched is None else switched


def parse_feature_gates(text: str, release: KubernetesRelease) -> dict[str, bool]:
    """Read `NAME=true,NAME=false`; raise FeatureGateError for anything else, and for gates the release cannot switch."""
    found: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in ("true", "false") or not name:
            raise FeatureGateError("expected NAME=true or NAME=false")
        found[name] = value.lower() == "true"
    FeatureGates(release, found)
    return found
