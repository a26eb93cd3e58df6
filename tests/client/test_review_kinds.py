from kubewright.api.builtin import authorization_v1
from kubewright.client import Client, ClusterConfig


async def test_reviews_are_read_although_they_have_no_name(api_server: ClusterConfig) -> None:
    asked = authorization_v1.SelfSubjectAccessReview(
        spec=authorization_v1.SelfSubjectAccessReviewSpec(
            resource_attributes=authorization_v1.ResourceAttributes(verb="get", resource="pods")
        )
    )
    async with Client(api_server) as client:
        answer = await client.create(asked)
    assert answer.status.allowed
