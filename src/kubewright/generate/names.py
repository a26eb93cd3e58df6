"""Names of a deployed operator's objects, as in kubebuilder."""

from dataclasses import dataclass

from kubewright.manager.options import metrics_secret
from kubewright.webhook import WebhookNames


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one operator's objects; all begin with the operator's name."""

    operator: str
    namespace: str = ""

    def __post_init__(self) -> None:
        if not self.namespace:
            object.__setattr__(self, "namespace", WebhookNames(self.operator).namespace)

    @property
    def account(self) -> str:
        """Return the name of the ServiceAccount."""
        return f"{self.operator}-controller-manager"

    @property
    def manager(self) -> str:
        """Return the name of the Deployment."""
        return f"{self.operator}-controller-manager"

    @property
    def metrics_service(self) -> str:
        """Return the name of the Service for metrics."""
        return f"{self.operator}-controller-manager-metrics-service"

    @property
    def metrics_secret(self) -> str:
        """Return the name of the Secret with the certificate for metrics and its CA."""
        return metrics_secret(self.metrics_service)

    @property
    def metrics_certificate_role(self) -> str:
        """Return the name of the role for writing the certificate for metrics."""
        return f"{self.operator}-metrics-certificate-role"

    @property
    def metrics_reader(self) -> str:
        """Return the name of the role for reading metrics."""
        return f"{self.operator}-metrics-reader"

    @property
    def review_role(self) -> str:
        """Return the name of the role for authorizing requests for metrics."""
        return f"{self.operator}-metrics-auth-role"

    @property
    def role(self) -> str:
        """Return the name of the role with the operator's own rules."""
        return f"{self.operator}-manager-role"

    @property
    def lease_role(self) -> str:
        """Return the name of the role for leader election."""
        return f"{self.operator}-leader-election-role"

    @property
    def webhook_role(self) -> str:
        """Return the name of the role for updating webhook registrations and certificates."""
        return f"{self.operator}-webhook-role"

    @property
    def installer(self) -> str:
        """Return the name of the roles for installing the operator."""
        return f"{self.operator}-installer"

    @property
    def monitor(self) -> str:
        """Return the name of the ServiceMonitor."""
        return f"{self.operator}-controller-manager-metrics-monitor"

    def user_role(self, kind: str, which: str) -> str:
        """Return the name of a role for users of a kind."""
        return f"{self.operator}-{kind.lower()}-{which}-role"

    @property
    def selector(self) -> dict[str, str]:
        """Return the labels that select the operator's Pods."""
        return {**self.shared, "control-plane": "controller-manager"}

    @property
    def shared(self) -> dict[str, str]:
        """Return the labels that select the operator's objects, independent of the tool that manages them."""
        return {"app.kubernetes.io/name": self.operator}

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of all objects."""
        return {**self.shared, "app.kubernetes.io/managed-by": "kubewright"}
