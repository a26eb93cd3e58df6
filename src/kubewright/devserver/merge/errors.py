"""What keeps an apply from happening, conflicts aside."""

from kubewright.api import KubewrightError


class ApplyError(KubewrightError, ValueError):
    """A value that does not fit its merge schema; the text is what the real server says."""
