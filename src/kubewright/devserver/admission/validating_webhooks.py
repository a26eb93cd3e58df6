"""ValidatingAdmissionWebhook: call all matching webhooks at once; one denial rejects the write."""

import asyncio

from kubewright.devserver.admission.hooks import Hook, Hooks, failure
from kubewright.devserver.admission.matching import is_configuration
from kubewright.devserver.admission.reviews import denial
from kubewright.devserver.admission.versions import VersionedAttributes
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.webhook_client import CallFailed


class ValidatingWebhooks(AdmissionPlugin):
    """Let webhooks refuse writes."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Call all webhooks that match; raise the first denial in their order."""
        hooks = self._hooks.all()
        if not hooks or is_configuration(attributes):
            return
        concerned: list[tuple[Hook, VersionedAttributes]] = []
        for hook in hooks:
            versioned = await self._hooks.matched(hook, attributes)
            if versioned is not None:
                concerned.append((hook, versioned))
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(hook, versioned)) for hook, versioned in concerned]
        for task in asked:
            if (violation := task.result()) is not None:
                raise violation

    async def _ask(self, hook: Hook, versioned: VersionedAttributes) -> StatusError | None:
        try:
            decision = await self._hooks.call(hook, versioned, mutating=False)
        except CallFailed as error:
            return None if hook.fails_open else failure(hook, error)
        return None if decision.allowed else denial(hook.name, decision.result)
