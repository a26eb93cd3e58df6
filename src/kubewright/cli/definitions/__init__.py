"""An operator's CRDs in a cluster: `install`, `uninstall`, and checks whether a change breaks stored objects."""

from kubewright.cli.definitions.compatibility import check_compatible, kind_in, live_definition
from kubewright.cli.definitions.installation import (
    FIELD_MANAGER,
    install_one,
    unconverted,
    wait_established,
    with_live_conversions,
)
from kubewright.cli.definitions.removal import InstallError, clear_url_webhooks, converted_by_url

__all__ = [
    "FIELD_MANAGER",
    "InstallError",
    "check_compatible",
    "clear_url_webhooks",
    "converted_by_url",
    "install_one",
    "kind_in",
    "live_definition",
    "unconverted",
    "wait_established",
    "with_live_conversions",
]
