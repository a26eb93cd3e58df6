"""The kinds of authentication.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.model import Model
from kubewright.api.resource import Object


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
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]
