from collections.abc import Callable

import pytest

import kubewright as kw


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: kw.Volume("Big", "/x"), "lower case"),
        (lambda: kw.Volume("tmp", "/x"), "every operator has a volume of this name"),
        (lambda: kw.Volume("a", "x"), "must begin with a slash"),
        (lambda: kw.Volume("a", "/x", secret="s", claim="c"), "give one of secret="),
        (lambda: kw.Volume("a", "/x", claim="c", optional=True), "optional= belongs to"),
        (lambda: kw.Volume("a", "/x", size="much"), "size"),
        (lambda: kw.Workload(replicas=-1), "0 at least"),
        (lambda: kw.Workload(limits={"memory": "lots"}), r"limits\['memory'\]"),
        (lambda: kw.Workload(volumes=[kw.Volume("a", "/x"), kw.Volume("a", "/y")]), "two volumes"),
    ],
)
def test_a_mistake_is_told_where_it_is_declared(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(kw.DeclarationError, match=message):
        declare()
