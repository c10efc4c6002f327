"""A model with a field of every kind, whose one rule, or one computed field, a test writes."""

from __future__ import annotations

import textwrap

from diptych.errors import ModelError
from diptych.model.defs import FieldDef
from diptych.model.rules.expr import Expr
from tests.support.model_files import declare, model_of

MODEL = """
import functools
import math
import random

class Status(StrEnum):
    new = "new"
    old = "old"

class Other(StrEnum):
    new = "new"

class Author(Resource):
    name: str
    boss: Author | None = None
    posts: list[Post] = inverse("author")

    @computed
    def short(self) -> str:
        return self.name[:3]

class Post(Resource):
    title: str
    body: str | None = None
    published: bool = False
    hidden: bool = False
    size: int = 0
    views: BigInt = 0
    score: float = 0.0
    price: Annotated[Decimal, Digits(8, 2)]
    cost: Annotated[Decimal, Digits(8, 3)]
    day: date
    placed_at: datetime
    status: Status = Status.new
    extra: Json | None = None
    author: Author
    editor: Author | None = None
    ticket: Ticket | None = None
    LIMIT = 3

    access = (grant("read", to=admin),)

class Ticket(Resource, ids="integer"):
    name: str

def helper(row, viewer):
    return row.published & (row.author.id == viewer.id)

def careless(row):
    if row.published:
        return row.hidden
    return row.published

def deeper(row):
    return careless(row)

class Tools:
    @staticmethod
    def either_of(row):
        return row.published or row.hidden
"""
RULE = """
    @allow("update")
    def rule(self, viewer: Viewer) -> bool:
"""
COMPUTED = """
    @computed
    def made(self) -> {}:
"""


def _with(member: str, body: str) -> str:
    """The model, with one more member of Post."""
    before, marker, after = MODEL.partition('    access = (grant("read", to=admin),)\n')
    return before + marker + member + textwrap.indent(body, " " * 8) + "\n" + after


def _body(text: str) -> str:
    return text if "\n" in text or text.startswith(("return", "pass", "raise")) else f"return {text}"


def rule(text: str) -> Expr:
    """The expression that the body of a rule is traced to."""
    return model_of(_with(RULE, _body(text))).resources["Post"].rules[-1].expr


def made(kind: str, text: str) -> FieldDef:
    """The computed field of a type whose body this is."""
    return model_of(_with(COMPUTED.format(kind), _body(text))).resources["Post"].fields["made"]


def refusal(text: str, kind: str = "") -> str:
    """Why the body of a rule, or of a computed field of a type, is refused."""
    built = declare(_with(COMPUTED.format(kind) if kind else RULE, _body(text))).built
    assert isinstance(built, ModelError), built
    (mistake,) = built.mistakes
    assert mistake.where == ("Post.made" if kind else "Post.rule")
    return mistake.cause
