"""What becomes of a Pod: it runs, unless its annotation says otherwise."""

from enum import StrEnum

from kubewright.api.builtin import core_v1

ANNOTATION = "kubewright.dev/fate"


class Fate(StrEnum):
    """The lives a Pod of the dev cluster may have.

    `FAIL` and `CRASH_LOOP` are the same to a container (it ends with 1); the restart policy makes the difference.
    `UNHEALTHY` fails the liveness probe, where there is one. `SLOW` takes its time to pull the image.
    """

    RUN = "run"
    SUCCEED = "succeed"
    FAIL = "fail"
    CRASH_LOOP = "crash-loop"
    OUT_OF_MEMORY = "out-of-memory"
    IMAGE_MISSING = "image-missing"
    NEVER_READY = "never-ready"
    UNHEALTHY = "unhealthy"
    SLOW = "slow"


_KNOWN = frozenset(Fate)


def fate_of(pod: core_v1.Pod) -> Fate:
    """Read a Pod's fate; a Job's Pod ends well, any other runs on. A word nobody knows counts as none."""
    told = pod.metadata.annotations.get(ANNOTATION, "")
    if told in _KNOWN:
        return Fate(told)
    of_job = any(owner.kind == "Job" and owner.controller for owner in pod.metadata.owner_references)
    return Fate.SUCCEED if of_job else Fate.RUN
