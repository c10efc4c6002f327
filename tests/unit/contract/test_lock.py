"""What a change of a model breaks for clients of its contract, in both styles."""

from __future__ import annotations

from functools import cache

import pytest

from diptych.contract.lock import changes_between, contract_of
from tests.support.model_files import model_of

SHOP = """
class State(StrEnum):
    open = "open"
    closed = "closed"


class Item(Resource):
    name: Annotated[str, MaxLen(50)]
    price: int = 0
    note: str | None = None
    state: State = State.open

    access = (grant("read", "create", "update", "delete"),)
"""


@cache
def contract(text: str) -> dict[str, str]:
    return contract_of(model_of(text))


def sentences(change: tuple[str, str], *, breaking: bool = True) -> list[str]:
    """What is said of a model in which a text is replaced."""
    assert change[0] in SHOP
    old, new = contract(SHOP), contract(SHOP.replace(*change))
    return [str(found) for found in changes_between(old, new) if found.breaking is breaking]


@pytest.mark.slow
def test_a_model_keeps_the_contract_that_it_made() -> None:
    again = contract_of(model_of(SHOP))
    assert again == contract(SHOP)
    assert changes_between(contract(SHOP), again) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("    price: int = 0\n", ""),
            {
                "GraphQL: Field Item.price was removed",
                "Item in responses: `price` is gone",
                "ItemCreate in requests: `price` is gone",
                "ItemWhere in requests: `price` is gone",
                "GET /items: the parameter `price` is gone",
                "GET /items, parameter `sort`: price is not taken any more",
            },
        ),
        (
            ("    price: int = 0\n", "    price: int\n"),
            {
                "GraphQL: Field ItemReplace.price changed type from Int to Int!",
                "ItemCreate in requests: `price` is required now",
            },
        ),
        (
            ("    price: int = 0\n", "    price: int | None = 0\n"),
            {"GraphQL: Field Item.price changed type from Int! to Int", "Item in responses, `price`: can be null now"},
        ),
        (
            ("    note: str | None = None\n", '    note: str = ""\n'),
            {"ItemCreate in requests, `note`: null is not taken any more"},
        ),
        (("MaxLen(50)", "MaxLen(40)"), {"ItemCreate in requests, `name`: maxLength is 40; it was 50"}),
        (
            ('    closed = "closed"\n', ""),
            {
                "GraphQL: Enum value State.closed was removed",
                "State in requests: closed is not taken any more",
            },
        ),
        (
            ('"update", "delete"', '"update"'),
            {"DELETE /items/{id}: is gone", "GraphQL: Field Mutation.deleteItem was removed"},
        ),
        (('"delete"),)', '"delete", to=staff),)'), {"/items: is gone", "GraphQL: Field Query.items was removed"}),
        (("    price: int = 0\n", "    price: str = ''\n"), {"Item in responses, `price`: can be a string now"}),
    ],
)
def test_what_breaks_is_said_in_both_styles(change: tuple[str, str], said: set[str]) -> None:
    assert said <= set(sentences(change))


@pytest.mark.parametrize(
    "change",
    [
        ("    price: int = 0\n", "    price: int = 0\n    more: int = 0\n"),
        ("MaxLen(50)", "MaxLen(60)"),
        ("class Item(Resource):\n", 'class Item(Resource):\n    """Other words."""\n\n'),
    ],
)
def test_what_only_grows_breaks_nothing(change: tuple[str, str]) -> None:
    assert sentences(change) == []


@pytest.mark.slow
def test_a_new_value_of_an_enum_is_dangerous() -> None:
    change = ('    open = "open"\n', '    open = "open"\n    lost = "lost"\n')
    assert sentences(change) == []
    assert set(sentences(change, breaking=False)) >= {
        "GraphQL: Enum value State.lost was added",
        "State in responses: can be lost now",
    }
