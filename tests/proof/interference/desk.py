"""A model with code of its own: actions, queries, and fields that Python computes, over rows and fields that hide.

calls(dealt, random)        a random request that runs some of it, on rows that show and on rows that do not
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from diptych import (
    Code,
    Id,
    MaxLen,
    Min,
    Model,
    ReadBy,
    Refusal,
    Resource,
    Role,
    Tx,
    Unique,
    Viewer,
    action,
    allow,
    computed,
    grant,
    inverse,
    query,
)
from diptych.model.call_defs import QueryDef
from tests.proof.interference.databases import Pairs, RequestMeasures
from tests.proof.interference.dealing import Deal, deal

editor = Role("editor")


class Writer(Resource):
    """Someone who writes."""

    name: Annotated[str, Unique()]
    phone: Annotated[str | None, ReadBy(editor)] = None
    articles: list[Article] = inverse("author")

    access = (grant("read"),)

    @allow("read", field="phone")
    def own_phone(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @computed(needs="phone")
    def dialled(self) -> str | None:
        """How the phone is called, where it shows."""
        return f"tel:{self.phone}"


class Article(Resource):
    """What someone wrote; a draft is its author's alone."""

    author: Writer
    title: str
    rank: int = 0
    published: bool = False
    review: str | None = None

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @allow("create", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @allow("read", field=("review", "rank"))
    def of_author(self, viewer: Viewer) -> bool:
        return (self.author.id == viewer.id) | viewer.has(editor)

    @computed(needs=("review", "title"), batch=True)
    @staticmethod
    def echoes(articles: Sequence[Article]) -> Sequence[str]:
        """Made of what is hidden and of what is not."""
        return [f"{each.title}: {each.review}" for each in articles]

    @action
    async def publish(self, tx: Tx, title: Annotated[str | None, MaxLen(10)] = None) -> Article:
        """Show it to everyone."""
        self.published = True
        if title is not None:
            self.title = title
        return await tx.save(self)

    @action
    async def follow(self, tx: Tx, other: Id) -> int:
        """How much further another is; whoever may not read it is told that there is none."""
        found = await tx.get(Article, other)
        if found is None:
            raise Refusal(Code.NOT_FOUND, "There is no other.")
        return len(found.title) - len(self.title)

    @action
    async def shred(self, tx: Tx) -> str:
        await tx.delete(self)
        return self.title

    @action
    @classmethod
    async def renumber(cls, tx: Tx, prefix: Annotated[str, MaxLen(3)]) -> list[Article]:
        """Everything that the caller may change, in its order."""
        mine = await tx.select(Article, where={"author": {"id": {"eq": tx.viewer.id or ""}}}, order="title")
        for each in mine:
            each.title = prefix + each.title
        return [await tx.save(each) for each in mine]

    @query
    @classmethod
    async def top(cls, tx: Tx, limit: Annotated[int, Min(1)] = 2) -> list[Article]:
        """The first by a field that hides."""
        return await tx.select(Article, order=["-rank", "title"], first=limit)

    @query
    @classmethod
    async def reviewed(cls, tx: Tx, review: str) -> int:
        """How many have this review, as far as the caller can tell."""
        return len(await tx.select(Article, where={"review": {"eq": review}}))

    @query
    @classmethod
    async def everything(cls, tx: Tx) -> list[Article]:
        """Rows that trusted code reads; the caller sees those that they may."""
        return await tx.trusted.select(Article, order="title")

    @query
    @classmethod
    async def titled(cls, tx: Tx, title: str) -> Article | None:
        """One of this title that trusted code finds, if the caller may see it."""
        found = await tx.trusted.select(Article, where={"title": {"eq": title}, "published": {"eq": True}}, first=1)
        return found[0] if found else None


model = Model(Writer, Article)
WHO = ("someone", "another", "middle")
LENGTH = 10
"""Calls between two alterations."""
PICKS = (
    "id title echoes",
    "review rank title echoes",
    "title author { name dialled phone }",
    "id author { name articles(first: 5) { title echoes rank } }",
    "__typename echoes author { articlesConnection(first: 2, orderBy: [{rank: DESC}, {review: ASC}]) "
    "{ totalCount nodes { title } pageInfo { hasNextPage endCursor } } }",
)
FIELDS = ("id,title,echoes", "*", "title,author(name,dialled,phone)", "id,author(articles[first=5](title,echoes,rank))")
Given = Mapping[str, Any]


def calls(dealt: Deal, random: Random) -> RequestMeasures:
    """A random request that runs code of the model, in either style."""
    name = random.choice(list(_CALLS))
    on_row, takes = _CALLS[name]
    secrets = dealt.secrets
    ids = [row["id"] for rows in dealt.both for row in rows["Article"]] + secrets.ids["Article"] * 2
    given = {key: _ARGUMENTS[key](dealt, random, ids) for key in takes}
    row = random.choice(ids) if on_row else None
    return (_graphql if random.randrange(2) else _rest)(name, row, given, random)


_CALLS: Mapping[str, tuple[bool, Sequence[str]]] = {
    "publish": (True, ("title",)),
    "follow": (True, ("other",)),
    "shred": (True, ()),
    "renumber": (False, ("prefix",)),
    "top": (False, ("limit",)),
    "reviewed": (False, ("review",)),
    "everything": (False, ()),
    "titled": (False, ("title",)),
}
"""What there is to call: whether it is on a row, and what it takes."""
_ARGUMENTS: Mapping[str, Callable[[Deal, Random, Sequence[str]], Any]] = {
    "title": lambda dealt, random, ids: str(random.choice(dealt.secrets.values.get(("Article", "title"), ["none"])))[
        :10
    ],
    "other": lambda dealt, random, ids: random.choice(ids),
    "prefix": lambda dealt, random, ids: random.choice(("", "a", "Z")),
    "limit": lambda dealt, random, ids: random.choice((1, 2, 5)),
    "review": lambda dealt, random, ids: str(random.choice(dealt.secrets.values.get(("Article", "review"), ["none"]))),
}


def _graphql(name: str, row: str | None, given: Given, random: Random) -> RequestMeasures:
    call = model.resources["Article"].call(name)
    variables = {**given, **({"id": row} if row else {})}
    kinds = {each.name: f"{each.scalar.name}!" for each in call.arguments} | {"id": "ID!"}
    head = ", ".join(f"${key}: {kinds[key]}" for key in variables)
    passed = ", ".join(f"{key}: ${key}" for key in variables)
    picks = f" {{ {random.choice(PICKS)} }}" if call.result.resource else ""
    kind = "query" if isinstance(call, QueryDef) else "mutation"
    document = f"{kind}{f' ({head})' if head else ''} {{ {call.root}{f'({passed})' if passed else ''}{picks} }}"
    return RequestMeasures("POST", "/graphql", json.dumps({"query": document, "variables": variables}).encode())


def _rest(name: str, row: str | None, given: Given, random: Random) -> RequestMeasures:
    call = model.resources["Article"].call(name)
    path = f"/articles/{row}/{call.segment}" if row else f"/articles/{call.segment}"
    fields = {"fields": random.choice(FIELDS)} if call.result.resource else {}
    if isinstance(call, QueryDef):
        return RequestMeasures("GET", f"{path}?{urlencode({**given, **fields}, quote_via=quote)}")
    return RequestMeasures("POST", f"{path}?{urlencode(fields, quote_via=quote)}", json.dumps(given).encode())


class Coding(Pairs):
    """One viewer runs code of the model on both databases."""

    def deal(self, random: Random) -> Deal:
        return deal(self.model, random, WHO)

    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        left = end - self.pairs
        for self.clock.step in range(min(LENGTH, left)):
            asked = calls(dealt, random)
            replies = await self.ask(asked, dealt)
            assert replies[0].status in (200, 401, 403, 404), f"{asked}\n{replies[0].body!r}"
            self.check_same(replies, dealt, asked)
            self.seen.update(["pairs", str(replies[0].status)])
