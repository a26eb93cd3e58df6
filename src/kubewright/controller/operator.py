"""An operator as data: controllers, webhooks, a lifespan, and the settings of its Deployment."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from kubewright.api import DeclarationError, Object, kind_of, names
from kubewright.controller.declaration import Controller
from kubewright.packaging import Env, Workload
from kubewright.webhook import Admission, Authentication, Endpoints, Webhook

DEFAULT_WORKLOAD = Workload()


class Operator:
    """Declare an operator: `Operator(shells, webhooks=[sensible], lifespan=session)`.

    The lifespan is entered before the controllers start and left after they stopped; declaring,
    rendering and installing never enter it. `planning` is entered in its place by `kubewright plan`: it must
    not change external systems. `planning=contextlib.nullcontext` says that the operator changes only the cluster. `kinds` lists kinds whose CRDs the operator installs beside those that it reconciles;
    a kind that it only owns or watches, and one declared with `external=True`, is installed by another operator. `env` and `workload` describe its Deployment.
    """

    def __init__(
        self,
        *controllers: Controller[Any],
        name: str = "",
        webhooks: Sequence[Webhook] = (),
        lifespan: Callable[[], AbstractAsyncContextManager[object]] | None = None,
        env: Sequence[Env] = (),
        kinds: Sequence[type[Object]] = (),
        workload: Workload = DEFAULT_WORKLOAD,
        planning: Callable[[], AbstractAsyncContextManager[object]] | None = None,
    ) -> None:
        if not controllers and not webhooks:
            raise DeclarationError("Operator() has no controllers and no webhooks: give it at least one")
        seen: dict[str, Controller[Any]] = {}
        for controller in controllers:
            other = seen.setdefault(controller.name, controller)
            if other is not controller:
                both = f"{kind_of(other.kind).kind} and {kind_of(controller.kind).kind}"
                raise DeclarationError(
                    f'two controllers are named {controller.name!r} ({both}): give one of them name="..."'
                )
        self.controllers: tuple[Controller[Any], ...] = tuple(seen.values())
        self.webhooks: Endpoints = Endpoints(webhooks)
        self.name: str = name or _default_name(self.controllers, webhooks)
        problems = names.dns1123_subdomain(self.name)
        if problems:
            raise DeclarationError(f"operator name {self.name!r}: {problems[0]}")
        self.lifespan = lifespan
        self.planning = planning
        self.env: tuple[Env, ...] = tuple(env)
        self.workload = workload
        for kind in kinds:
            if kind_of(kind).external:
                raise DeclarationError(
                    f"kinds=[{kind.__name__}]: its CRD is installed by another project (external=True): "
                    "remove it from kinds="
                )
        own = (controller.kind for controller in self.controllers)
        converted = (cls for each in self.webhooks.versions.values() for cls in each.classes.values())
        brought = (*own, *kinds, *converted)
        self.kinds: tuple[type[Any], ...] = tuple(
            dict.fromkeys(kind for kind in brought if isinstance(kind, type) and _is_installed_here(kind))
        )
        self.webhooks.check(self.kinds)

    def __repr__(self) -> str:
        return f"Operator({', '.join(map(repr, self.controllers))}, name={self.name!r})"


def _is_installed_here(kind: type[Object]) -> bool:
    declared = kind_of(kind)
    return not (declared.builtin or declared.external)


def _default_name(controllers: Sequence[Controller[Any]], webhooks: Sequence[Webhook]) -> str:
    if controllers:
        return controllers[0].name
    first = webhooks[0]
    if isinstance(first, Authentication):
        return "authentication"
    return kind_of(first.kind if isinstance(first, Admission) else first.hub).kind.lower()
