"""Computed fields that are plain Python: what they need, where they stand, and every mistake in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from diptych.compile.tables import create, wanted
from diptych.model.decimal_scalar import decimal
from diptych.model.defs import FieldDef
from diptych.model.scalars import FLOAT, INT
from tests.support.cases import cases
from tests.support.mistakes import assert_reported
from tests.support.model_files import declare, model_of, resource, seen_by

MODEL = '''
from collections.abc import Sequence

class Author(Resource):
    name: str
    posts: list[Post] = inverse("author")

class Post(Resource):
    title_line: str
    body: Annotated[str, ReadBy(staff)]
    author: Author
    access = (grant("read"),)

    @computed
    def teaser(self) -> str:
        return self.title_line[:3]

    @computed(needs="title_line")
    def words(self) -> int:
        """How many words it has."""
        return len(self.title_line.split())

    @computed(needs=("teaser", "body", "author", "id"))
    def summary(self) -> Annotated[str | None, ReadBy(staff)]:
        return f"{self.teaser} {self.author.id}"

    @computed(needs="title_line", batch=True)
    @staticmethod
    def letters(posts: Sequence[Post]) -> Sequence[int]:
        return [len(post.title_line) for post in posts]

    @computed(needs="title_line", batch=True)
    @staticmethod
    async def likes(posts: Sequence[Post]) -> list[Annotated[Decimal, Digits(4, 1)]]:
        return [Decimal(len(post.title_line)) for post in posts]
'''


def field(name: str) -> FieldDef:
    return model_of(MODEL).resources["Post"].fields[name]


def test_it_has_no_column_and_no_expression_but_a_function() -> None:
    found = field("words")
    assert (found.stored, found.column, found.computed, found.scalar) == (False, "", None, INT)
    assert (found.needs, found.batch, found.description) == (("titleLine",), False, "How many words it has.")
    assert found.python is not None
    assert found.python.__name__ == "words"


def test_it_needs_stored_and_traced_fields_and_keys() -> None:
    assert field("summary").needs == ("teaser", "body", "authorId", "id")


def test_a_batch_says_what_it_gives_for_each_row() -> None:
    letters, likes = field("letters"), field("likes")
    assert (letters.batch, letters.scalar, letters.nullable) == (True, INT, False)
    assert (likes.batch, likes.scalar) == (True, decimal(4, 1))


@pytest.mark.parametrize(("hint", "nullable"), [("Sequence[float | None]", True), ("list[float]", False)])
def test_a_batch_may_give_nulls(hint: str, nullable: bool) -> None:
    source = f"""
from collections.abc import Sequence
class A(Resource):
    name: str

    @computed(needs="name", batch=True)
    @staticmethod
    def it(rows: Sequence[A]) -> Annotated[{hint}, ReadBy(staff)]: ...
"""
    found = resource(source).fields["it"]
    assert (found.scalar, found.nullable, found.read_roles) == (FLOAT, nullable, ("staff",))


def test_it_can_be_hidden_if_what_it_needs_can_be() -> None:
    fields = model_of(MODEL.replace("Annotated[str | None, ReadBy(staff)]", "str")).resources["Post"].fields
    assert (fields["words"].hideable, fields["summary"].hideable, fields["summary"].read_roles) == (False, True, None)


def test_the_database_knows_nothing_of_it() -> None:
    model = model_of(MODEL)
    assert [*wanted(model, "sqlite")["posts"]] == [
        "id",
        "version",
        "created_at",
        "updated_at",
        "title_line",
        "body",
        "author_id",
    ]
    assert not any("words" in statement or "letters" in statement for statement in create(model, "postgres"))


def test_a_request_can_name_it_and_not_search_by_it() -> None:
    post = seen_by(model_of(MODEL), "staff").resources["Post"]
    made = {"words", "summary", "letters", "likes"}
    assert made <= post.fields.keys()
    assert post.searchable.keys() == post.fields.keys() - made


def test_who_may_not_see_what_it_needs_has_no_such_field() -> None:
    fields = seen_by(model_of(MODEL), "signed_in").resources["Post"].fields
    assert "words" in fields and "summary" not in fields


def test_a_row_computes_it_in_python() -> None:
    module = declare(MODEL)
    ann = module.Author(name="Ann")
    post = module.Post(title_line="one two", body="", author=ann)
    assert (post.words, post.letters) == (2, 7)
    with pytest.raises(AttributeError, match=r"Post\.likes is computed later, for all rows of a request"):
        _ = post.likes
    assert asyncio.run(given(module.Post.likes.function([post, post]))) == [7, 7]


async def given(of: Any) -> Any:
    return await of


def test_a_rule_about_it_makes_it_hideable() -> None:
    rule = '\n    @allow("read", field="words")\n    def rule(self, viewer):\n        return self.id == viewer.id\n'
    assert model_of(MODEL + rule).resources["Post"].fields["words"].hideable


MISTAKES = [
    """
    @computed(needs="nope")
    def it(self) -> int: ...  #! T.it: T has no field 'nope' | Name a field of this class
""",
    """
    @computed(needs="user_id")
    def it(self) -> int: ...  #! T.it: 'user_id' is the key of a relation | Write needs="user"
""",
    """
    users: list[User] = inverse("t")

    @computed(needs="users")
    def it(self) -> int: ...  #! T.it: 'users' leads to many rows | Name fields of the row itself
""",
    """
    @computed(needs="flag")
    def one(self) -> int: ...

    @computed(needs="one")
    def it(self) -> int: ...  #! T.it: 'one' is computed in Python too | Name the fields that it is made of
""",
    """
    @computed(needs=3)
    def it(self) -> int: ...  #! T.it: needs=3 names no fields | Write needs="body"
""",
    """
    @computed(needs=["flag"])
    def it(self) -> int: ...  #! T.it: needs=['flag'] names no fields | Write needs="body"
""",
    """
    @computed(needs="flag")
    def it(self, tx: Tx) -> int: ...  #! T.it: it takes other things than its row | Write def it(self)
""",
    """
    @computed(needs="flag")
    async def it(self) -> int: ...  #! T.it: it is async, and called for one row after the other | Write batch=True
""",
    """
    @computed(needs="flag")
    def it(self): ...  #! T.it: a computed field does not say what it gives | Write def it(self) -> str:
""",
    """
    @computed(needs="flag")
    def it(self) -> User: ...  #! T.it: the type User has no form on the wire | Use str
""",
    """
    @computed(needs="flag")
    def it(self) -> Annotated[int, Unique()]: ...  #! T.it: Unique means nothing on a computed field | Remove it
""",
    """
    @computed(needs="flag")
    @staticmethod
    def it(rows) -> int: ...  #! T.it: it is no method of a row | Write batch=True
""",
    """
    @computed
    @staticmethod
    def it(self) -> bool:  #! T.it: it is no method of a row | Remove the decorator below @computed
        return self.flag
""",
    """
    @computed(needs="flag", batch=True)
    def it(self) -> list[int]: ...  #! T.it: a batch takes all rows of a request, and is no method of one | Write @staticmethod
""",
    """
    @computed(batch=True)
    @staticmethod
    def it(rows) -> list[int]: ...  #! T.it: a batch without needs | Write @computed(needs="…", batch=True)
""",
    """
    @computed(needs="flag", batch=True)
    @staticmethod
    def it(rows) -> int: ...  #! T.it: a batch gives a value for each row | Write -> Sequence[…]
""",
    """
    @computed(needs="flag", batch=True)
    @staticmethod
    def it(rows, tx) -> list[int]: ...  #! T.it: it takes other things than its rows | Write def it(rows: Sequence[Post])
""",
    """
    @computed(needs="flag", batch=True)
    @staticmethod
    def it(rows) -> list[bytes]: ...  #! T.it: the type bytes has no form on the wire | Use str
""",
    """
    @computed(needs="flag")
    @allow("read")
    def it(self) -> int: ...  #! T.it: @allow on a computed field | Write a rule with @allow("read", field="it")
""",
    """
    @computed(needs="flag")
    def one(self) -> bool: ...

    @computed
    def it(self) -> bool:  #! T.it: 'one' is computed in Python, after the statement; name stored fields | See docs/reference/model.md, Computed
        return self.one

    @allow("read")
    def rule(self, viewer):  #! T.rule: 'one' is computed in Python, after the statement; name stored fields | See docs/reference/model.md, Rules
        return self.one
""",
]


@cases("member", MISTAKES)
def test_a_mistake_in_a_field_that_python_computes(member: str) -> None:
    user = "class User(Resource):\n    t: T | None = None\n"
    assert_reported(f"{user}class T(Resource):\n    flag: bool\n    user: User | None = None\n{member}")
