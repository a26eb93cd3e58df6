"""Webhooks that judge writes: all at once, and one objection is enough."""

import asyncio

from kubewright.devserver.admission.hooks import Hook, Hooks, failure
from kubewright.devserver.admission.matching import is_configuration
from kubewright.devserver.admission.reviews import denial
from kubewright.devserver.expressions import Situation
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.webhook_client import CallFailed


class ValidatingWebhooks:
    """Let webhooks refuse writes."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def admit(self, operation: Operation) -> None:
        """Change nothing."""

    async def validate(self, operation: Operation) -> None:
        """Ask all webhooks that the write concerns; the first objection in their order is told."""
        hooks = self._hooks.all()
        if not hooks or is_configuration(operation):
            return
        concerned: list[tuple[Hook, Situation]] = []
        for hook in hooks:
            situation = await self._hooks.situation(hook, operation)
            if situation is not None:
                concerned.append((hook, situation))
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(hook, situation)) for hook, situation in concerned]
        for task in asked:
            if (objection := task.result()) is not None:
                raise objection

    async def _ask(self, hook: Hook, situation: Situation) -> StatusError | None:
        try:
            verdict = await self._hooks.call(hook, situation, mutating=False)
        except CallFailed as error:
            return None if hook.forgiving else failure(hook, error)
        return None if verdict.allowed else denial(hook.name, verdict.result)
