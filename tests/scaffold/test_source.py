"""Additions to a user's own files: sure, or refused."""

import ast
import textwrap

import pytest

from kubewright.scaffold import Unclear, add_class_keyword, add_import, add_to_operator

EMPTY = '"""The operator."""\n'


def with_operator(source: str, **more: list[str]) -> str:
    given: dict[str, list[str]] = {"controllers": [], "webhooks": [], "kinds": [], **more}
    return add_to_operator(source, "shop", **given)


def test_the_first_addition_writes_the_operator() -> None:
    source = with_operator(add_import(EMPTY, "shop.cart", "carts"), controllers=["carts"])
    assert source == textwrap.dedent('''\
        """The operator."""

        import kubewright as kw

        from shop.cart import carts

        operator = kw.Operator(carts, name="shop")
        ''')


def test_a_further_addition_keeps_existing_code() -> None:
    source = textwrap.dedent('''\
        """Mine."""

        import kubewright as kw

        from shop.box import boxes
        from shop.zoo import zoos


        def operator() -> kw.Operator:
            """Declare it."""
            return kw.Operator(boxes, zoos, name="mine", env=[kw.packaging.Env("A", "1, 2, 3, 4, 5")])  # ours
        ''')
    source = add_import(source, "shop.cart", "Cart", "carts", "LIMIT")
    source = with_operator(source, controllers=["carts"], webhooks=["validated_by_all"], kinds=["Cart"])
    assert source == textwrap.dedent('''\
        """Mine."""

        import kubewright as kw

        from shop.box import boxes
        from shop.cart import LIMIT, Cart, carts
        from shop.zoo import zoos


        def operator() -> kw.Operator:
            """Declare it."""
            return kw.Operator(
                boxes,
                zoos,
                carts,
                name="mine",
                env=[kw.packaging.Env("A", "1, 2, 3, 4, 5")],
                webhooks=[validated_by_all],
                kinds=[Cart],
            )  # ours
        ''')


def test_names_are_added_to_an_existing_import() -> None:
    source = add_import("from shop.cart import carts\n", "shop.cart", "Cart")
    assert source == "from shop.cart import Cart, carts\n"


@pytest.mark.parametrize(
    "source",
    [
        "a = Operator(x)\nb = Operator(y)\n",
        "a = Operator(\n    x,  # mine\n)\n",
        "a = Operator(x, **options)\n",
        "a = Operator(x, webhooks=all_of_them())\n",
    ],
)
def test_unclear_code_is_left_to_the_author(source: str) -> None:
    with pytest.raises(Unclear):
        with_operator(source, webhooks=["validated"])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            'class A(B, group="g", version="v1"): ...\n',
            'class A(B, group="g", version="v1", stored=True): ...\n',
        ),
        (
            'class A(\n    B,\n    version="v1",\n    columns=[],\n):\n    """A."""\n',
            'class A(\n    B,\n    version="v1",\n    stored=True,\n    columns=[],\n):\n    """A."""\n',
        ),
        ('class A(B, version="v1", stored=True): ...\n', 'class A(B, version="v1", stored=True): ...\n'),
    ],
)
def test_a_class_is_given_a_keyword_once(source: str, expected: str) -> None:
    assert add_class_keyword(source, "A", "stored", "True") == expected
    ast.parse(expected)


def test_multibyte_characters_do_not_shift_columns() -> None:
    source = 'title = "Größe"; operator = Operator(a, name="ü")\n'
    assert (
        with_operator(source, controllers=["b"]) == 'title = "Größe"; operator = Operator(a, b, name="ü")\n'
    )


@pytest.mark.parametrize("sign", ["\f", "\u2028", "\x85", "\x1c"])
def test_characters_that_look_like_line_ends_do_not_shift_lines(sign: str) -> None:
    source = (
        f'"""Mine: {sign}."""\n'
        "\n"
        "import kubewright as kw\n"
        "\n"
        "from shop.box import boxes\n"
        "\n"
        "\n"
        "def operator() -> kw.Operator:\n"
        "    return kw.Operator(boxes)\n"
    )
    extended = with_operator(add_import(source, "shop.cart", "carts"), controllers=["carts"])
    assert extended == source.replace(
        "from shop.box import boxes\n", "from shop.box import boxes\nfrom shop.cart import carts\n"
    ).replace("Operator(boxes)", "Operator(boxes, carts)")
    kind = f'"""{sign}"""\n\nclass Foo(Object, version="v1"):\n    pass\n'
    assert add_class_keyword(kind, "Foo", "stored", "True") == kind.replace('"v1"', '"v1", stored=True')
