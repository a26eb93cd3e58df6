"""The kinds of authentication.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.model import Model
from kubewright.api.resource import Object


class BoundObjectReference(Model, builtin=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class UserInfo(Model, builtin=True):
    extra: dict[str, list[str]] = {}
    groups: list[str] = []
    uid: str = ""
    username: str = ""


class SelfSubjectReviewStatus(Model, builtin=True):
    user_info: UserInfo = _field(default_factory=UserInfo)


class SelfSubjectReview(
    Object,
    group="authentication.k8s.io",
    version="v1",
    plural="selfsubjectreviews",
    scope="Cluster",
    status=False,
    builtin=True,
):
    status: SelfSubjectReviewStatus = _field(default_factory=SelfSubjectReviewStatus)


class TokenRequestSpec(Model, builtin=True):
    attestations: dict[str, list[str]] = {}
    audiences: list[str] = []
    bound_object_ref: BoundObjectReference | None = None
    expiration_seconds: int | None = None


class TokenRequestStatus(Model, builtin=True):
    expiration_timestamp: datetime | None = None
    token: str = ""


class TokenRequest(Object, group="authentication.k8s.io", version="v1", status=False, builtin=True):
    spec: TokenRequestSpec = _field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = _field(default_factory=TokenRequestStatus)


class TokenReviewSpec(Model, builtin=True):
    audiences: list[str] = []
    token: str


class TokenReviewStatus(Model, builtin=True):
    audiences: list[str] = []
    authenticated: bool = False
    error: str = ""
    user: UserInfo = _field(default_factory=UserInfo)


class TokenReview(
    Object,
    group="authentication.k8s.io",
    version="v1",
    plural="tokenreviews",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: TokenReviewSpec
    status: TokenReviewStatus = _field(default_factory=TokenReviewStatus)


__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]
