"""Settings of an operator's Deployment: environment, volumes, replicas, resources."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubewright.api import ConfigError, DeclarationError, Quantity, QuantityError, names

__all__ = ["Env", "Volume", "Workload"]

SCRATCH = "tmp"
"""The volume that every operator has, because its root file system is read-only."""


class Env(msgspec.Struct, frozen=True):
    """An environment variable of the operator's container: a value, or a key of a Secret or ConfigMap.

    `Env("TOKEN", secret="provider-token", required=True, description="token of the accounts service")`. `kubewright run`
    does not start while a `required` variable is unset or empty, and `kubewright doctor` reports it; both show its
    `description`. `optional` lets the Pod start without the Secret or ConfigMap.

    All of it, `value` too, is set in the generated Deployment only. `kubewright run` and `kw.run` on your machine set no variable:
    export it in your shell, or give a default where you read it, `os.environ.get("REGION", "eu")`.
    """

    name: str
    value: str = ""
    secret: str = ""
    config_map: str = ""
    key: str = ""
    optional: bool = False
    required: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        given = [text for text in (self.value, self.secret, self.config_map) if text]
        if len(given) > 1:
            raise DeclarationError(f"Env({self.name!r}): give one of value=, secret=, config_map=")
        if self.key and not (self.secret or self.config_map):
            raise DeclarationError(f"Env({self.name!r}): key= belongs to secret= or config_map=")
        if self.required and self.optional:
            raise DeclarationError(f"Env({self.name!r}): give one of required=True, optional=True")
        if self.required and self.value:
            raise DeclarationError(f"Env({self.name!r}): required=True has no effect with value=")

    @property
    def purpose(self) -> str:
        """Return the purpose of the variable and where a deployed operator reads it from."""
        kind, source = ("Secret", self.secret) if self.secret else ("ConfigMap", self.config_map)
        origin = (
            f"a deployed operator takes it from {kind} {source}, key {self.key or self.name}"
            if source
            else ""
        )
        return "; ".join(filter(None, (self.description, origin)))


def missing_env(declared: Iterable[Env], environment: Mapping[str, str]) -> list[Env]:
    """Return the required variables that are unset or empty in an environment."""
    return [variable for variable in declared if variable.required and not environment.get(variable.name)]


def check_env(declared: Iterable[Env], environment: Mapping[str, str]) -> None:
    """Raise ConfigError if an environment lacks required variables."""
    if missing := missing_env(declared, environment):
        lines = [
            f"environment variable {one.name} is not set{f' ({one.purpose})' if one.purpose else ''}"
            for one in missing
        ]
        raise ConfigError("; ".join(lines))


class Volume(msgspec.Struct, frozen=True):
    """A volume in the operator's container: a Secret, a ConfigMap, a claim, or an empty directory.

    `Volume("vcenter", "/etc/vcenter", secret="vcenter-login")`. `size` limits an empty directory. Secrets
    and ConfigMaps are read-only in any case.
    """

    name: str
    path: str
    secret: str = ""
    config_map: str = ""
    claim: str = ""
    size: str = ""
    read_only: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        what = f"Volume({self.name!r})"
        if troubles := names.dns1123_label(self.name):
            raise DeclarationError(f"{what}: {troubles[0]}")
        if self.name == SCRATCH:
            raise DeclarationError(
                f"{what}: every operator has a volume of this name, at /tmp: choose another"
            )
        if not self.path.startswith("/"):
            raise DeclarationError(f"{what}: path={self.path!r} must begin with a slash")
        if len([text for text in (self.secret, self.config_map, self.claim, self.size) if text]) > 1:
            raise DeclarationError(f"{what}: give one of secret=, config_map=, claim=, size=")
        if self.optional and not (self.secret or self.config_map):
            raise DeclarationError(f"{what}: optional= belongs to secret= or config_map=")
        if self.size:
            _check_quantity(what, "size", self.size)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the operator's Deployment: `Workload(replicas=2, limits={"memory": "1Gi"})`.

    Without `replicas` there is one, or two if the API server refuses writes while the operator's webhooks are away
    (`failurePolicy: Fail`, or conversions). `args` follow those that every operator is run with, and are options of
    `kubewright run`. `requests` and `limits` replace the defaults resource by resource; an empty text removes one. There
    is no CPU limit by default: it would throttle the operator when it has most to do.
    """

    replicas: int | None = None
    args: Sequence[str] = ()
    volumes: Sequence[Volume] = ()
    requests: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    limits: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.replicas is not None and self.replicas < 0:
            raise DeclarationError(f"Workload(replicas={self.replicas}): must be 0 or more")
        taken: set[str] = set()
        for volume in self.volumes:
            if volume.name in taken:
                raise DeclarationError(f"Workload(volumes=...): two volumes are named {volume.name!r}")
            taken.add(volume.name)
        for word in ("requests", "limits"):
            for resource, amount in getattr(self, word).items():
                if amount:
                    _check_quantity("Workload", f"{word}[{resource!r}]", amount)


def _check_quantity(what: str, where: str, text: str) -> None:
    try:
        Quantity(text)
    except QuantityError as error:
        raise DeclarationError(f"{what}: {where}: {error}") from None
