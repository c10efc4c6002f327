"""How a declared name becomes a name on the wire, in a path and in a table.

>>> camel("placed_at"), snake("OrderLine"), plural("category")
('placedAt', 'order_line', 'categories')
"""

from __future__ import annotations

import re

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def camel(name: str) -> str:
    """`placed_at` → `placedAt`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def snake(name: str) -> str:
    """`OrderLine` → `order_line`."""
    return _HUMP.sub("_", name).lower()


def plural(word: str) -> str:
    """The regular English plural; a model can give its own."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return word + "s"


def lower_first(name: str) -> str:
    """`OrderLine` → `orderLine`."""
    return name[:1].lower() + name[1:]


def upper_first(name: str) -> str:
    """`orderLines` → `OrderLines`."""
    return name[:1].upper() + name[1:]
