"""The kind MyOwnShell."""

from typing import Annotated

import kubewright as kw


class ShellSpec(kw.Model):
    """MyOwnShellSpec defines the desired state of MyOwnShell"""

    size: Annotated[int, kw.Field(optional=False, ge=0, description="Number of shell pods.")] = 0


class ShellStatus(kw.Model):
    """MyOwnShellStatus defines the observed state of MyOwnShell"""

    ready: Annotated[int, kw.Field(description="Number of shell pods that are ready.")] = 0


class MyOwnShell(
    kw.Resource[ShellSpec, ShellStatus],
    group="my-first-operator.jgato.io",
    version="v1alpha1",
    columns=[kw.Column("Ready", ".status.ready", type="integer")],
):
    """Pods to open a shell in."""

    # The definition that this kind comes from does not require a spec; its fields are empty then, as in Go.
    spec: Annotated[ShellSpec, kw.Field(optional=True)] = ShellSpec()
