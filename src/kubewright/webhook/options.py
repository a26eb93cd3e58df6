"""How webhooks are served and reached, and how long their certificates live: choices, apart from what carries them out."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

import msgspec

Reach = Literal["service", "url", "given"]
"""How the API server gets here: through a Service, at an address, or as another program has registered it, as OLM does."""


class Lifetimes(msgspec.Struct, frozen=True):
    """How long certificates live; each is renewed when a third of its life is left.

    `trust` is the time API servers get to load a new authority, `follow` the time replicas get to take
    up a new certificate, `poll` how often they look.
    """

    authority: timedelta = timedelta(days=730)
    serving: timedelta = timedelta(days=90)
    trust: timedelta = timedelta(minutes=30)
    follow: timedelta = timedelta(minutes=30)
    poll: timedelta = timedelta(minutes=10)


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where webhooks are served and with which certificates.

    The address is `:9443`, `127.0.0.1:0` or `0` for off. `reach` is detected unless it is set. `cert_dir` holds
    an existing certificate, `client_ca` the authorities of clients that are answered. `state` is a file
    that keeps the operator's own certificates between runs by URL; otherwise they last as long as the process. A `passing`
    cluster ends with this run, so that nothing is logged about what it lacks afterwards.
    """

    bind_address: str = ":9443"
    reach: Reach | None = None
    cert_dir: Path | None = None
    client_ca: Path | None = None
    lifetimes: Lifetimes = Lifetimes()
    state: Path | None = None
    passing: bool = False
