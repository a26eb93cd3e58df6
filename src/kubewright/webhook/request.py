"""The request that an admission function is called with."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from kubewright.api import GroupVersionKind
from kubewright.api.identity import GroupVersionResource

Operation = Literal["create", "update", "delete", "connect"]


class User(msgspec.Struct, frozen=True, gc=False):
    """The user of a request, as the API server authenticated it."""

    name: str = msgspec.field(default="", name="username")
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = {}


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request without its objects: user, operation and resource.

    `kind` and `resource` are those of the object that the function is called with; `request_kind`, `request_resource`
    and `request_subresource` are those of the client's request, perhaps in another version. With `dry_run` nothing is
    stored.
    """

    uid: str
    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str = ""
    request_kind: GroupVersionKind
    request_resource: GroupVersionResource
    request_subresource: str = ""
    name: str = ""
    namespace: str = ""
    user: User = msgspec.field(default_factory=User)
    dry_run: bool = False
    options: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
