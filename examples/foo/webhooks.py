"""Admission webhooks of Foo; they handle both versions."""

from collections.abc import Iterator

import kubewright as kw
from foo.kinds import Foo

MANY = 50


@kw.admission.mutating_webhook(Foo)
def named(foo: Foo) -> None:
    """Set testString to the name of the Foo if it is missing."""
    if foo.spec.test_string is None:
        foo.spec.test_string = foo.metadata.name


@kw.admission.validating_webhook(Foo)
def sensible(foo: Foo, old: Foo | None) -> Iterator[kw.admission.Problem]:
    """Reject negative and decreasing numbers and a changed image; warn about large numbers."""
    number = foo.spec.test_num
    if number is not None and number < 0:
        yield kw.admission.invalid("spec.testNum", number, "should be greater than or equal to 0")
    if old and (number or 0) < (old.spec.test_num or 0):
        yield kw.admission.invalid("spec.testNum", number, "may not shrink")
    if old and foo.spec.image != old.spec.image:
        yield kw.admission.forbidden("spec.image", "a Pod keeps the image it was made with")
    if number is not None and number > MANY:
        yield kw.admission.warning("unusually many")
