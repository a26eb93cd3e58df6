"""Writes through a subresource that has rules of its own, such as a binding or the finalizers of a namespace."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from kubewright.devserver.objects import Wire, meta
from kubewright.devserver.strategy import Endpoint, Invocation, Outcome

Prepare = Callable[[Wire, Wire], None]
"""Take into (new, old) what the subresource may change."""

# The write path asks a kind about (new, old) without the subresource; the task that writes knows it.
_writing: ContextVar[Prepare | None] = ContextVar("writing", default=None)


@contextmanager
def writing(prepare: Prepare) -> Generator[None]:
    """Let the updates of this task follow the rules of a subresource."""
    token = _writing.set(prepare)
    try:
        yield
    finally:
        _writing.reset(token)


def rules_of_part() -> Prepare | None:
    """Give the rules of the subresource that this task writes, or None for the object itself."""
    return _writing.get()


def replaced_part(group: str, plural: str, take: Callable[[Wire, Wire], None]) -> Endpoint:
    """Make an endpoint that reads an object, or replaces what `take(new, sent)` takes from the one sent."""

    async def answer(call: Invocation) -> Outcome:
        sent = call.body
        if call.verb == "get" or sent is None:
            return Outcome(call.api.get(group, plural, call.namespace, call.name))

        def claim(draft: Wire) -> None:
            """Refuse a stale writer: the revision that was sent is compared with the stored one."""
            if revision := meta(sent).get("resourceVersion"):
                meta(draft)["resourceVersion"] = revision

        with writing(lambda new, old: take(new, sent)):
            made = await call.api.update(
                group,
                plural,
                call.namespace,
                call.name,
                claim,
                subresource=call.subresource,
                user=call.user,
                dry_run=call.options.dry_run,
            )
        return Outcome(made)

    return answer
