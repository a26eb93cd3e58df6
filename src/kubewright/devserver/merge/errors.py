"""What keeps an apply from happening, conflicts aside."""

from kubewright.api import KubewrightError


class ApplyError(KubewrightError, ValueError):
    """A value does not match its merge schema; the message is kube-apiserver's."""
