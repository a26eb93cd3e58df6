"""Kinds that are questions: created, answered, and never stored."""

import pytest

from kubewright.api.builtin import authorization_v1
from kubewright.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_reviews_are_read_although_they_have_no_name(client: Client) -> None:
    asked = authorization_v1.SelfSubjectAccessReview(
        spec=authorization_v1.SelfSubjectAccessReviewSpec(
            resource_attributes=authorization_v1.ResourceAttributes(verb="get", resource="pods")
        )
    )
    answer = await client.create(asked)
    assert answer.status.allowed
