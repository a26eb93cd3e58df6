# Written by `kubewright create types`: change the CRDs, then run the command again.
# ruff: noqa: D205, D212, D400, D415, E501, ERA001, RUF001, RUF002, RUF003, RUF100
# fmt: off
"""The kinds of cache.example.com/v1, which another project installs."""

from typing import Annotated, Any, Literal

import kubewright as kw


class CacheClusterSpec(kw.Model):
    """The desired servers."""

    replicas: Annotated[int | None, kw.Field(default=1, ge=0, int64=True)] = None
    """Number of servers."""
    version: Annotated[str | None, kw.Field(default="7.2")] = None
    image: str | None = None
    memory: Annotated[str | None, kw.Field(default="64Mi", pattern="^[0-9]+(Ki|Mi|Gi)?$")] = None
    eviction: Annotated[Literal["lru", "lfu", "none"] | None, kw.Field(default="lru")] = None
    config: dict[str, str] | None = None
    backup: bool | None = None
    schedule: str | None = None


class CacheUserSpec(kw.Model):
    """`spec` of CacheUser."""

    cluster: str
    rules: list[str] | None = None
    retain: bool | None = None


class CreateAccount(kw.Model):
    """`status.create_account` of CacheUser."""

    account: str | None = None


class CacheUserStatus(kw.Model):
    """`status` of CacheUser."""

    rules: Annotated[int | None, kw.Field(int64=True)] = None
    summary: str | None = None
    create_account: Annotated[CreateAccount | None, kw.Field(name="create_account")] = None


class CacheCluster(
    kw.Object,
    group="cache.example.com",
    version="v1",
    plural="cacheclusters",
    short_names=["cc"],
    external=True,
):
    """A group of cache servers behind one address."""

    spec: Annotated[CacheClusterSpec, kw.Field(optional=False)] = CacheClusterSpec()
    status: Annotated[dict[str, Any] | None, kw.Field(preserve_unknown_fields=True)] = None


class CacheUser(
    kw.Resource[CacheUserSpec, CacheUserStatus],
    group="cache.example.com",
    version="v1",
    plural="cacheusers",
    external=True,
):
    """An account in a cache cluster."""

    spec: Annotated[CacheUserSpec, kw.Field(optional=True)]


__all__ = [
    "CacheCluster",
    "CacheClusterSpec",
    "CacheUser",
    "CacheUserSpec",
    "CacheUserStatus",
    "CreateAccount",
]
