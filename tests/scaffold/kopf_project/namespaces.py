"""Handlers of Namespaces: a quota note for each, and a count of clusters."""

import kopf

from constants import GROUP, OPERATOR, VERSION

NOTE = f"{GROUP}/note"
counted: set[str] = set()


def note_requested(annotations, **_):
    """Return True if the namespace asks for a note."""
    return annotations.get(f"{GROUP}/note-requested") == "yes"


@kopf.on.login()
def login(**kwargs):
    return kopf.login_via_client(**kwargs)


@kopf.on.create("", "v1", "namespaces", when=note_requested)
@kopf.on.update("", "v1", "namespaces", when=note_requested)
@kopf.on.resume("", "v1", "namespaces", when=note_requested)
def note_namespace(name, patch, **_):
    """Write a note to the namespace."""
    patch.metadata.annotations[NOTE] = f"{name} is watched by {OPERATOR}"


@kopf.on.create(GROUP, VERSION, "cacheclusters")
@kopf.on.resume(GROUP, VERSION, "cacheclusters")
async def count_cluster(uid, namespace, memo: kopf.Memo, **_):
    """Remember the clusters of each namespace."""
    memo.namespace = namespace
    counted.add(uid)


@kopf.on.update(GROUP, VERSION, "cacheclusters")
async def in_steps(spec, name, **_):
    """Handle each option by a handler of its own."""
    for option in spec.get("config") or {}:

        async def handle(option=option, **_):
            print(f"{name}: {option}")

        kopf.register(handle, id=option)
