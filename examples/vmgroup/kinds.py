"""The kind VmGroup."""

from typing import Annotated, Literal

import kubewright as kw

Phase = Literal["RUNNING", "PENDING", "ERROR"]


class VmGroupSpec(kw.Model):
    """VmGroupSpec defines the desired state of VmGroup"""

    cpu: Annotated[int, kw.Field(optional=False, ge=1, le=4, description="CPUs of each virtual machine.")] = 0
    memory: Annotated[
        int, kw.Field(optional=False, ge=1, le=8, description="Memory of each virtual machine in GB.")
    ] = 0
    replicas: Annotated[int, kw.Field(optional=False, ge=1, description="Number of virtual machines.")] = 0
    template: Annotated[
        str, kw.Field(optional=False, description="Template the virtual machines are cloned from.")
    ] = ""


class VmGroupStatus(kw.Model):
    """VmGroupStatus defines the observed state of VmGroup"""

    phase: Annotated[Phase | None, kw.Field(description="How the group is.")] = None
    current_replicas: Annotated[int | None, kw.Field(description="Virtual machines there are.")] = None
    desired_replicas: Annotated[
        int, kw.Field(optional=False, description="Virtual machines there should be.")
    ] = 0
    last_message: Annotated[str, kw.Field(optional=False, description="What happened last.")] = ""
    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class VmGroup(
    kw.Resource[VmGroupSpec, VmGroupStatus],
    group="vm.codeconnect.vmworld.com",
    version="v1alpha1",
    short_names=["vg"],
    scale=kw.Scale(spec=".spec.replicas", status=".status.desiredReplicas"),
    columns=[
        kw.Column("Phase", ".status.phase"),
        kw.Column("Current", ".status.currentReplicas", type="integer"),
        kw.Column("Desired", ".spec.replicas", type="integer"),
        kw.Column("CPU", ".spec.cpu", type="integer"),
        kw.Column("Memory", ".spec.memory", type="integer"),
        kw.Column("Template", ".spec.template"),
        kw.Column("Last_Message", ".status.lastMessage"),
    ],
):
    """VmGroup is the Schema for the vmgroups API"""

    # The definition that this kind comes from does not require a spec; its fields are empty then, as in Go.
    spec: Annotated[VmGroupSpec, kw.Field(optional=True)] = VmGroupSpec()
