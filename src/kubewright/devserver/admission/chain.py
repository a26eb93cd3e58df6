"""Admission in order: first all that may change an object, then all that may only refuse it."""

from collections.abc import Sequence

from kubewright.devserver.request.admission import Admission, Operation


class AdmissionChain:
    """Ask one plugin after the other."""

    def __init__(self, plugins: Sequence[Admission]) -> None:
        self._plugins = plugins

    async def admit(self, operation: Operation) -> None:
        """Let each plugin change the object in place; once more when somebody outside has changed it."""
        for plugin in self._plugins:
            await plugin.admit(operation)
        state = operation.reinvocation
        if state.wanted and not state.second:
            state.second = True
            for plugin in self._plugins:
                await plugin.admit(operation)

    async def validate(self, operation: Operation) -> None:
        """Let each plugin refuse the write."""
        for plugin in self._plugins:
            await plugin.validate(operation)
