"""Checks of this machine and the cluster: Python, connection, version, identity, clock."""

import platform
import sys
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version

from kubewright.api import KubewrightError
from kubewright.api.builtin import authentication_v1
from kubewright.cli.doctor.finding import Finding, doubtful, failed, skipped, well
from kubewright.client import Client, ClientResponse, ClusterConfig, ServerVersion, requests

OLDEST_PYTHON = (3, 11)
OLDEST_SERVER, NEWEST_SERVER = 31, 37
"""The minor versions of Kubernetes 1 that kubewright supports."""
TOLERATED_SKEW = 5.0
"""Seconds; both clocks are used to validate tokens and certificates."""


def check_python() -> Finding:
    """Check the Python version."""
    detail = f"{platform.python_version()} on {platform.system()}, kubewright {version('kubewright')}"
    if sys.version_info < OLDEST_PYTHON:
        return failed("python", detail, "use Python 3.11 or newer")
    return well("python", detail)


async def check_cluster(client: Client, config: ClusterConfig) -> tuple[list[Finding], bool]:
    """Check the cluster; the second value is False if it did not respond."""
    try:
        response = await client.raw(requests.get_path("/version"))
        served = await client.server_version()
    except KubewrightError as error:
        remedy = f"check the server's address, your network and credentials in {config.source}"
        return [failed("cluster", str(error), remedy)], False
    where = f"{config.server} responds, namespace {config.namespace}"
    return [
        well("cluster", where),
        _version(served),
        await _identity(client),
        _clock(response),
    ], True


def _version(served: ServerVersion) -> Finding:
    detail = f"Kubernetes {served.git_version}"
    minor = int("".join(filter(str.isdigit, served.minor)) or 0)
    if served.major == "1" and OLDEST_SERVER <= minor <= NEWEST_SERVER:
        return well("version", detail)
    known = f"1.{OLDEST_SERVER} to 1.{NEWEST_SERVER}"
    if minor < OLDEST_SERVER:
        return failed("version", detail, f"kubewright supports {known}: upgrade the cluster")
    return doubtful("version", detail, f"kubewright is tested with {known}: check for a newer kubewright")


async def _identity(client: Client) -> Finding:
    try:
        answered = await client.create(authentication_v1.SelfSubjectReview())
    except KubewrightError as error:
        return doubtful("identity", str(error), "ask for a binding to the ClusterRole system:basic-user")
    user = answered.status.user_info
    return well("identity", f"{user.username} of {', '.join(user.groups)}")


def _clock(response: ClientResponse) -> Finding:
    text = response.headers.get("Date", "")
    if not text:
        return skipped("clock", "the server sends no Date header")
    # The Date header has a resolution of one second.
    skew = (datetime.now(UTC) - parsedate_to_datetime(text)).total_seconds()
    if abs(skew) <= TOLERATED_SKEW:
        return well("clock", f"agrees with the server within {TOLERATED_SKEW:.0f} s")
    detail = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the server"
    return failed("clock", detail, "synchronize the clocks (NTP), or tokens and certificates may be rejected")
