"""Options of the webhook server: how it is reached, and how long its certificates live."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

import msgspec

Reach = Literal["service", "url", "given"]
"""How the API server reaches the webhooks: through a Service, by URL, or as registered by another program such as OLM."""


class Lifetimes(msgspec.Struct, frozen=True):
    """How long certificates are valid; each is renewed when a third of its lifetime is left.

    `trust` is the time that API servers get to load a new authority, `follow` the time that replicas get to load
    a new certificate, `poll` how often replicas check for one.
    """

    authority: timedelta = timedelta(days=730)
    serving: timedelta = timedelta(days=90)
    trust: timedelta = timedelta(minutes=30)
    follow: timedelta = timedelta(minutes=30)
    poll: timedelta = timedelta(minutes=10)


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where webhooks are served and with which certificates.

    The address is `:9443`, `127.0.0.1:0` or `0` for off. `reach` is detected if it is None. `cert_dir` contains
    an existing certificate, `client_ca` the authorities of the clients that may connect. `state` is a file that keeps
    the operator's own certificates between runs by URL; without it they last as long as the process. With `ephemeral_cluster`
    the cluster is deleted with this run, so no warning is logged about what remains in it. `declared_policies` registers
    webhooks by URL with their declared failure policy, as in a cluster, in place of Ignore.
    """

    bind_address: str = ":9443"
    reach: Reach | None = None
    cert_dir: Path | None = None
    client_ca: Path | None = None
    lifetimes: Lifetimes = Lifetimes()
    state: Path | None = None
    ephemeral_cluster: bool = False
    declared_policies: bool = False
