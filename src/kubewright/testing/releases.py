"""The Kubernetes release that tests run on, and the marker of tests that need a newer or an older one.

`pytest --kubernetes 1.33` or the environment variable KUBEWRIGHT_KUBERNETES selects it. The plugin sets the variable,
so that all processes of a run use the same release: xdist's workers, the process of the cluster, nested runs of pytest.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from kubewright.devserver.data import BUNDLE, MINOR, RELEASE

VARIABLE = "KUBEWRIGHT_KUBERNETES"
MARK = "kubernetes"


class ReleaseError(ValueError):
    """A Kubernetes version that is unknown, not built, or not usable with the chosen server."""


def supported_releases() -> dict[str, str]:
    """Return the release that is used for each minor version, oldest first."""
    return {**BUNDLE.releases, f"1.{MINOR}": RELEASE}


def find_release(version: str) -> str:
    """Return the release for a version such as `1.33`; `1.33.2` and `v1.33.2` are that release.

    Raise ReleaseError if the minor version is not supported.
    """
    known = supported_releases()
    text = version.removeprefix("v")
    found = known.get(text, text)
    if not re.fullmatch(r"\d+\.\d+\.\d+", found) or found.rpartition(".")[0] not in known:
        raise ReleaseError(
            f"unknown Kubernetes version {version!r}: expected one of {', '.join(known)}, or a release such as {RELEASE}"
        )
    return found


def selected_release() -> str | None:
    """Return the release that KUBEWRIGHT_KUBERNETES selects, None if it is not set."""
    version = os.environ.get(VARIABLE)
    return find_release(version) if version else None


def select_release(version: str) -> None:
    """Select a release for this process and the processes that it starts."""
    os.environ[VARIABLE] = find_release(version)


def minor_of(version: str) -> tuple[int, int]:
    """Return the minor version of `1.33`, `v1.33.2` or `v1.33.2-gke.100` as numbers."""
    found = re.match(r"v?(\d+)\.(\d+)(?![\d])", version)
    if found is None:
        raise ReleaseError(f"{version!r} is not a Kubernetes version such as 1.{MINOR}")
    return int(found[1]), int(found[2])


def check_mark(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise ReleaseError unless these are the arguments of a `kubernetes` marker."""
    valid = not arguments and bool(options) and options.keys() <= {"since", "until"}
    if not valid or not all(isinstance(version, str) for version in options.values()):
        raise ReleaseError('expected @pytest.mark.kubernetes(since="1.34"), until="1.36" or both')
    for version in options.values():
        minor_of(version)


def reason_to_skip(version: str, since: str = "", until: str = "") -> str | None:
    """Return why a test does not run on a version; None if it does. `until` is the last minor version that it runs on."""
    if since and minor_of(version) < minor_of(since):
        return f"needs Kubernetes {since} or newer"
    if until and minor_of(version) > minor_of(until):
        return f"needs Kubernetes {until} or older"
    return None
