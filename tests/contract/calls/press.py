"""A press: writers, articles and a till, with code of the model's own for the tests of calls."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Annotated

from diptych import (
    Code,
    Digits,
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
    WriteBy,
    action,
    allow,
    grant,
    inverse,
    query,
)

editor = Role("editor")
ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"
SEEN, DRAFT, BOBS = (f"01900000-0000-7000-8000-0000000001{n:02}" for n in range(3))
TILL = "01900000-0000-7000-8000-000000000200"
_TIMES = {"version": 1, "createdAt": "2026-01-01T00:00:00.000000Z", "updatedAt": "2026-01-01T00:00:00.000000Z"}


class Writer(Resource):
    """Someone who writes."""

    name: Annotated[str, Unique(), MaxLen(20)]
    articles: list[Article] = inverse("author")

    access = (grant("read"), grant("create", to=editor))


class Article(Resource):
    """What someone wrote."""

    author: Writer
    title: Annotated[str, MaxLen(20)]
    published: bool = False
    review: Annotated[str | None, ReadBy(editor), WriteBy(editor)] = None

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @allow("create", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @action
    async def publish(self, tx: Tx, title: Annotated[str | None, MaxLen(10)] = None) -> Article:
        """Show it to everyone."""
        self.published = True
        if title is not None:
            self.title = title
        return await tx.save(self)

    @action
    async def fail(self, tx: Tx) -> Article:
        self.title = "never"
        await tx.save(self)
        raise RuntimeError("the password is tiger")

    @action
    async def refuse(self, tx: Tx) -> Article:
        self.title = "never"
        await tx.save(self)
        raise Refusal(Code.CONFLICT, "Not on a Sunday.")

    @action
    async def give(self, tx: Tx, to: Id) -> Article:
        """Make it someone else's; whoever does so may not see it afterwards."""
        other = await tx.get(Writer, to)
        assert other is not None
        self.author = other
        return await tx.trusted.save(self)

    @action
    async def judge(self, tx: Tx, text: str) -> None:
        """Anyone may send a review that only editors read."""
        found = await tx.trusted.get(Article, self.id)
        assert found is not None
        found.review = text
        await tx.trusted.save(found)

    @action
    async def shred(self, tx: Tx) -> str:
        await tx.delete(self)
        return self.title

    @action(to=editor)
    @classmethod
    async def reprint(cls, tx: Tx, times: Annotated[int, Min(1)] = 1) -> list[Article]:
        """Copies of everything that the editor may read, the last title first."""
        copies = []
        for each in await tx.select(Article, where={"published": {"eq": True}}, order="-title"):
            for _ in range(times):
                copy = Article(author=each.author, title=each.title, published=True)
                copies.append(await tx.trusted.save(copy))
        return copies

    @query
    @classmethod
    async def latest(cls, tx: Tx, limit: Annotated[int, Min(1)] = 2) -> list[Article]:
        """The last by title."""
        return await tx.select(Article, order=["-title"], first=limit)

    @query
    @classmethod
    async def hidden(cls, tx: Tx) -> list[Article]:
        """Rows that trusted code reads; the caller sees those that they may."""
        return await tx.trusted.select(Article, order="title")

    @query
    @classmethod
    async def named(cls, tx: Tx, title: str) -> Article | None:
        found = await tx.select(Article, where={"title": {"eq": title}}, first=1)
        return found[0] if found else None

    @query(to=editor)
    @classmethod
    async def amount(cls, tx: Tx) -> int:
        rows = await tx.sql("SELECT count(*) FROM articles")
        return int(rows[0][0])


class Till(Resource):
    """What was taken; only code changes it."""

    total: Annotated[Decimal, Digits(12, 2)] = Decimal(0)

    access = (grant("read"),)

    @action
    async def take(self, tx: Tx, amount: Annotated[Decimal, Digits(12, 2), Min(0)]) -> Till:
        self.total += amount
        await asyncio.sleep(0)
        return await tx.trusted.save(self)

    @action
    async def wait(self, tx: Tx, seconds: float) -> Till:
        self.total += 1
        await tx.trusted.save(self)
        await asyncio.sleep(seconds)
        return self


class Note(Resource):
    """Nobody may read it; anyone may leave one."""

    text: Annotated[str, MaxLen(10)]

    @action
    @classmethod
    async def leave(cls, tx: Tx, text: Annotated[str, MaxLen(10)]) -> None:
        await tx.trusted.save(Note(text=text))


class Meddler(Resource):
    """Its query does what a query must not."""

    text: str = "as it was"

    access = (grant("read", "create"),)

    @query
    @classmethod
    async def meddle(cls, tx: Tx) -> int:
        await tx.sql("UPDATE meddlers SET text = 'x'")
        return 1


model = Model(Writer, Article, Till, Note)
meddling = Model(Meddler)
ROWS = {
    "Writer": [{"id": ANN, "name": "Ann", **_TIMES}, {"id": BOB, "name": "Bob", **_TIMES}],
    "Article": [
        {"id": SEEN, "authorId": ANN, "title": "seen", "published": True, **_TIMES},
        {"id": DRAFT, "authorId": ANN, "title": "draft", "published": False, **_TIMES},
        {"id": BOBS, "authorId": BOB, "title": "bobs", "published": False, **_TIMES},
    ],
    "Till": [{"id": TILL, "total": Decimal("0.00"), **_TIMES}],
}


class Plumber(Resource):
    """Its action runs any statement, as code of a model may."""

    access = (grant("read", "create"),)

    @action
    @classmethod
    async def run(cls, tx: Tx, text: str) -> int:
        return len(await tx.sql(text))


plumbing = Model(Plumber)
