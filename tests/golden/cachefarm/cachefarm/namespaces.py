"""Handlers of Namespaces: a quota note for each, and a count of clusters."""


from typing import Any
from cachefarm.constants import GROUP, OPERATOR
from cachefarm.support import kopf

NOTE = f"{GROUP}/note"
counted: set[str] = set()


def note_requested(annotations, **_):
    """Return True if the namespace asks for a note."""
    return annotations.get(f"{GROUP}/note-requested") == "yes"


# kopf: resume, update, create (namespaces.py:21)
def note_namespace(name, patch, **_):
    """Write a note to the namespace."""
    patch.metadata.annotations[NOTE] = f"{name} is watched by {OPERATOR}"


# kopf: resume, create (namespaces.py:29)
async def count_cluster(uid, namespace, memo: Any, **_):
    """Remember the clusters of each namespace."""
    # TODO(kopf-12): there is no memory for each object: read the state, or keep it in an object of yours
    raise NotImplementedError("count_cluster: decide kopf-12 of MIGRATION.md")
    memo.namespace = namespace
    counted.add(uid)


# kopf: update (namespaces.py:37)
async def in_steps(spec, name, **_):
    """Handle each option by a handler of its own."""
    # TODO(kopf-13): kopf.register has no counterpart here
    raise NotImplementedError("in_steps: decide kopf-13 of MIGRATION.md")
    for option in spec.get("config") or {}:

        async def handle(option=option, **_):
            print(f"{name}: {option}")

        kopf.register(handle, id=option)
