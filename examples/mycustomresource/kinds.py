"""The kind MyCustomResource."""

from typing import Annotated

import kubewright as kw


class FriendSpec(kw.Model):
    """MyCustomResourceSpec defines the desired state of MyCustomResource"""

    name: Annotated[
        str, kw.Field(optional=False, description="Name of the friend MyCustomResource is looking for")
    ] = ""


class FriendStatus(kw.Model):
    """MyCustomResourceStatus defines the observed state of MyCustomResource"""

    healthy: Annotated[
        bool | None,
        kw.Field(
            name="Healthy", description="Healthy will be set to true if MyCustomResource found a friend"
        ),
    ] = None


class MyCustomResource(kw.Resource[FriendSpec, FriendStatus], group="poc.test.domain", version="v1"):
    """MyCustomResource is the Schema for the MyCustomResources API"""

    # The definition that this kind comes from does not require a spec; its fields are empty then, as in Go.
    spec: Annotated[FriendSpec, kw.Field(optional=True)] = FriendSpec()
