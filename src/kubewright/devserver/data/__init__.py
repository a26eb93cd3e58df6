"""The embedded server's data bundle, and the Kubernetes release that it was generated from.

`bundle.json` is the one source of that release; `scripts/kubernetes` moves the project to another one.
"""

from pathlib import Path

import msgspec


class DataManifest(msgspec.Struct, frozen=True):
    """The contents of bundle.json."""

    kubernetes: str
    """The release that the project is built on and tested with."""
    releases: dict[str, str]
    """The release that is used for each earlier minor version."""
    sha256: dict[str, str]
    """The hash of each file of the bundle, without its compression."""


BUNDLE = msgspec.json.decode((Path(__file__).parent / "bundle.json").read_bytes(), type=DataManifest)
RELEASE = BUNDLE.kubernetes
MINOR = int(RELEASE.split(".")[1])
