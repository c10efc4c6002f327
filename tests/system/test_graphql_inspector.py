"""`diptych contract check` finds the breaking changes of a schema that graphql-inspector finds, and no others.

The short form tries each third kind of change.
"""

from __future__ import annotations

import json
import re

from diptych.contract.lock import changes_between, contract_of
from tests.support.effort import LONG, sampled
from tests.support.model_files import model_of
from tests.support.running import node

SHOP = """
class State(StrEnum):
    open = "open"
    closed = "closed"


class Item(Resource):
    name: Annotated[str, MaxLen(50)]
    price: int = 0
    note: str | None = None
    state: State = State.open
    parts: list[Part] = inverse("item")

    access = (grant("read", "create", "update", "delete"),)

    @action
    async def sell(self, tx: Tx, price: int, note: str | None = None) -> Item:
        return self


class Part(Resource):
    item: Item
    name: str

    access = (grant("read", "create", "update", "delete"),)
"""
CHANGES = {
    "a field is gone": ("    price: int = 0\n", ""),
    "a field is required": ("    price: int = 0\n", "    price: int\n"),
    "a field may be null": ("    price: int = 0\n", "    price: int | None = 0\n"),
    "a field may not be null": ("    note: str | None = None\n", '    note: str = ""\n'),
    "another type": ("    price: int = 0\n", '    price: str = ""\n'),
    "a wider type": ("    price: int = 0\n", "    price: float = 0.0\n"),
    "a value is gone": ('    closed = "closed"\n', ""),
    "a value is new": ('    closed = "closed"\n', '    closed = "closed"\n    lost = "lost"\n'),
    "a verb is gone": ('"update", "delete"),)\n\n    @action', '"update"),)\n\n    @action'),
    "a relation is gone": ('    parts: list[Part] = inverse("item")\n', ""),
    "an argument is gone": ("price: int, note: str | None = None)", "price: int)"),
    "an argument is required": ("price: int, note: str | None = None)", "price: int, note: str)"),
    "an argument is new": ("price: int, note: str | None = None)", "price: int, note: str | None = None, by: int = 0)"),
    "a required argument is new": ("self, tx: Tx, price: int", "self, tx: Tx, price: int, by: int"),
    "an action is gone": ("    @action\n", ""),
    "another result": ("-> Item:\n        return self", "-> None:\n        ..."),
    "a field is new": ("    price: int = 0\n", "    price: int = 0\n    more: int = 0\n"),
    "a required field is new": ("    price: int = 0\n", "    price: int = 0\n    more: int\n"),
    "a bound": ("MaxLen(50)", "MaxLen(40)"),
}
"""What is replaced in the model."""


def place(sentence: str) -> str:
    """The place that a sentence names, as graphql-inspector writes it: `Mutation.sellItem(note:)` → `….sellItem.note`."""
    found = re.search(r"(\w+\.\w+)(?:\((\w+):\))?", sentence)
    assert found is not None, sentence
    return ".".join(filter(None, found.groups()))


def test_both_find_the_same_breaking_changes() -> None:
    """Types that are gone together with all fields that lead to them are not said here, and do not count."""
    assert all(old in SHOP for old, _ in CHANGES.values())
    old = contract_of(model_of(SHOP))
    new = {name: contract_of(model_of(SHOP.replace(*CHANGES[name]))) for name in sampled(CHANGES, 3)}
    pairs = [[old["anonymous.graphql"], files["anonymous.graphql"]] for files in new.values()]
    answers = json.loads(node("inspector.mjs", given=json.dumps(pairs)))
    broken = 0
    for (name, files), changes in zip(new.items(), answers, strict=True):
        said = [str(change) for change in changes_between(old, files) if change.breaking]
        ours = {place(sentence) for sentence in said if sentence.startswith("GraphQL: ")}
        theirs = {change["path"] for change in changes if change["level"] == "BREAKING" and "." in change["path"]}
        assert ours == theirs, name
        broken += bool(theirs)
    assert broken >= (14 if LONG else 5)
