"""How webhooks are reached and how long their certificates live: choices, apart from what carries them out."""

from datetime import timedelta
from typing import Literal

import msgspec

Reach = Literal["service", "url", "given"]
"""How the API server gets here: through a Service, at an address, or as somebody else has arranged, as OLM does."""


class Lifetimes(msgspec.Struct, frozen=True):
    """How long certificates live; each is renewed when a third of its life is left.

    `trust` is the time API servers get to learn of a new authority, `follow` the time replicas get to take
    up a new certificate, `poll` how often they look.
    """

    authority: timedelta = timedelta(days=730)
    serving: timedelta = timedelta(days=90)
    trust: timedelta = timedelta(minutes=30)
    follow: timedelta = timedelta(minutes=30)
    poll: timedelta = timedelta(minutes=10)
