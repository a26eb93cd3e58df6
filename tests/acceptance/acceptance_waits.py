"""What a real server does in its own time, waited for: rights that are granted, kinds that are installed."""

from typing import Unpack

from kubewright.api import ApiError, BadRequest, Invalid, JsonObject, Kind
from kubewright.api.builtin import authorization_v1
from kubewright.client import Client, WriteOptions
from kubewright.testing import eventually


async def created(client: Client, document: JsonObject, **options: Unpack[WriteOptions]) -> JsonObject:
    """Create an object as soon as the server can call its webhooks."""

    async def create() -> JsonObject | None:
        try:
            return await client.create(document, **options)
        except (Invalid, BadRequest):
            raise
        except ApiError:
            return None

    return await eventually(create)


async def may(
    client: Client,
    user: str,
    verb: str,
    resource: str,
    *,
    group: str = "",
    namespace: str = "",
    name: str = "",
) -> None:
    """Wait until a user may use a verb on a resource, or on a path that begins with a slash."""
    spec = authorization_v1.SubjectAccessReviewSpec(user=user)
    if resource.startswith("/"):
        spec.non_resource_attributes = authorization_v1.NonResourceAttributes(path=resource, verb=verb)
    else:
        spec.resource_attributes = authorization_v1.ResourceAttributes(
            group=group, resource=resource, verb=verb, namespace=namespace, name=name
        )
    review = authorization_v1.SubjectAccessReview(spec=spec)

    async def allowed() -> bool:
        return (await client.create(review)).status.allowed

    await eventually(allowed)


async def served(client: Client, kind: Kind, namespace: str = "") -> None:
    """Wait until a kind is served, which is some time after it is Established."""

    async def answered() -> bool:
        await client.list(kind, namespace=namespace)
        return True

    await eventually(answered)
