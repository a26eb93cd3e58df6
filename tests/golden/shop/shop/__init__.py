"""The operator shop."""

import kubewright as kw

from shop.cart import carts

operator = kw.Operator(carts, name="shop")
