"""Names of the webhook objects of an operator, as in kubebuilder."""

import msgspec


class WebhookNames(msgspec.Struct, frozen=True):
    """Names of one operator's webhook objects."""

    operator: str

    @property
    def namespace(self) -> str:
        """Return the namespace to which the operator is deployed by default."""
        return f"{self.operator}-system"

    @property
    def manager(self) -> str:
        """Return the field manager under which the operator writes its address into these objects."""
        return f"{self.operator}-webhooks"

    @property
    def mutating(self) -> str:
        """Return the name of the MutatingWebhookConfiguration."""
        return f"{self.operator}-mutating-webhook-configuration"

    @property
    def validating(self) -> str:
        """Return the name of the ValidatingWebhookConfiguration."""
        return f"{self.operator}-validating-webhook-configuration"

    @property
    def service(self) -> str:
        """Return the name of the Service."""
        return f"{self.operator}-webhook-service"

    @property
    def secret(self) -> str:
        """Return the name of the Secret with the certificates."""
        return f"{self.operator}-webhook-server-cert"
