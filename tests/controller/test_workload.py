from collections.abc import Callable

import pytest

import kubewright as kw


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: kw.packaging.Volume("Big", "/x"), "lower case"),
        (lambda: kw.packaging.Volume("tmp", "/x"), "every operator has a volume of this name"),
        (lambda: kw.packaging.Volume("a", "x"), "must begin with a slash"),
        (lambda: kw.packaging.Volume("a", "/x", secret="s", claim="c"), "give one of secret="),
        (lambda: kw.packaging.Volume("a", "/x", claim="c", optional=True), "optional= belongs to"),
        (lambda: kw.packaging.Volume("a", "/x", size="much"), "size"),
        (lambda: kw.packaging.Workload(replicas=-1), "must be 0 or more"),
        (lambda: kw.packaging.Workload(limits={"memory": "lots"}), r"limits\['memory'\]"),
        (
            lambda: kw.packaging.Workload(
                volumes=[kw.packaging.Volume("a", "/x"), kw.packaging.Volume("a", "/y")]
            ),
            "two volumes",
        ),
    ],
)
def test_an_error_is_raised_where_it_is_declared(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(kw.errors.DeclarationError, match=message):
        declare()
