"""VmGroup: virtual machines of an external system, with a scale subresource."""

from vmgroup.controller import operator
from vmgroup.kinds import VmGroup, VmGroupSpec, VmGroupStatus

__all__ = ["VmGroup", "VmGroupSpec", "VmGroupStatus", "operator"]
