"""Which machines a VmGroup should have, and what to say of those it has."""

import hashlib
import re
import string
from collections.abc import Iterable

import kubewright as kw
from vmgroup.kinds import Phase, VmGroup, VmGroupStatus
from vmgroup.provider import Machine


def folder_of(group: VmGroup) -> str:
    """Name the folder of a group; two groups may share one, so machines are identified by name."""
    return f"{group.metadata.namespace}-{group.metadata.name}"


def machine_names(group: VmGroup) -> list[str]:
    """Name the machines there should be.

    A name follows from the group and a number, so that work that is done twice, after a crash or by two leaders,
    meets at one machine instead of making two.
    """
    prefix, uid = f"{group.metadata.name}-replica-", group.metadata.uid
    return [prefix + _letters(f"{uid}/{number}") for number in range(group.spec.replicas)]


def _letters(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(string.ascii_lowercase[byte % 26] for byte in digest[:8])


def belongs_to(group: VmGroup, machine: Machine) -> bool:
    """Return True if a machine was made for this group."""
    return re.fullmatch(rf"{re.escape(group.metadata.name)}-replica-[a-z]{{8}}", machine.name) is not None


def status_of(group: VmGroup, phase: Phase, machines: list[Machine], message: str) -> VmGroupStatus:
    """Return the status of the group; a group in error without machines has no `current_replicas`."""
    return VmGroupStatus(
        phase=phase,
        current_replicas=None if phase == "ERROR" and not machines else len(machines),
        desired_replicas=group.spec.replicas,
        last_message=message,
        conditions=[spec_applied(group, machines)],
    )


def spec_applied(group: VmGroup, machines: Iterable[Machine]) -> kw.Condition:
    """Report in a condition whether live machines match the spec: they are not rebuilt automatically."""
    wanted = (group.spec.cpu, group.spec.memory, group.spec.template)
    different = sorted(
        machine.name
        for machine in machines
        if machine.complete and (machine.cpu, machine.memory, machine.template) != wanted
    )
    return kw.Condition(
        type="SpecApplied",
        status="False" if different else "True",
        reason="MachinesDiffer" if different else "MachinesMatch",
        message=f"cpu, memory or template differ: {', '.join(different)}" if different else "",
    )
