"""A kiosk: articles that anyone may keep for a while, and what is nobody else's business, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from diptych import (
    MaxLen,
    Model,
    Public,
    ReadBy,
    Resource,
    Role,
    Tx,
    Viewer,
    action,
    allow,
    computed,
    grant,
    inverse,
    query,
    signed_in,
    through,
)

admin = Role("admin")
ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"


class Author(Resource, public=timedelta(minutes=2)):
    name: Annotated[str, MaxLen(80)]
    email: Annotated[str, ReadBy(admin)] = ""
    mood: Annotated[str, Public(20)] = "calm"
    articles: list[Article] = inverse("author")
    notes: list[Note] = inverse("owner")

    access = (grant("read"), grant("create", "update", "delete", to=admin))

    @allow("read", field="email")
    def own_address(self, viewer: Viewer) -> bool:
        return self.id == viewer.id


class Article(Resource, public=60):
    author: Author
    editor: Annotated[Author | None, Public(40)] = None
    title: Annotated[str, MaxLen(80)]
    body: str = ""
    published: bool = True
    views: Annotated[int, Public(1)] = 0
    stock: Annotated[int, Public(0)] = 0
    review: Annotated[str | None, ReadBy(admin), Public(0)] = None
    tags: list[Tag] = through("Tagging", "article", "tag")
    notes: list[Note] = inverse("article")

    access = (grant("create", "update", "delete", to=admin),)

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id) | viewer.has(admin)

    @computed
    def teaser(self) -> str:
        return self.body[:10]

    @computed(public=7)
    def heading(self) -> str:
        return self.title + "!"

    @computed
    def byline(self) -> str:
        return self.title + " by " + self.author.mood

    @computed(needs="body")
    def length(self) -> int:
        return len(self.body)

    @computed(needs=("title", "views"), batch=True)
    @staticmethod
    def shown(articles: Sequence[Article]) -> Sequence[str]:
        return [f"{each.title} ({each.views})" for each in articles]

    @computed(needs="title", public=0)
    def fleeting(self) -> str:
        return self.title.upper()

    @query(public=30)
    @classmethod
    async def newest(cls, tx: Tx) -> list[Article]:
        return await tx.select(Article, order="-createdAt", first=2)

    @query
    @classmethod
    async def chosen(cls, tx: Tx) -> list[Article]:
        return await tx.select(Article, first=1)

    @query(public=10)
    @classmethod
    async def amount(cls, tx: Tx) -> int:
        return len(await tx.select(Article, first=100))

    @query(public=10)
    @classmethod
    async def jotted(cls, tx: Tx) -> list[Note]:
        return await tx.select(Note, first=1)

    @action
    async def like(self, tx: Tx) -> None:
        self.views += 1
        await tx.trusted.save(self)


class Tag(Resource, public=60):
    word: str

    access = (grant("read"), grant("create", to=admin))


class Tagging(Resource):
    """Who tagged what is not public, and so is nothing that is found through it."""

    article: Article
    tag: Tag

    access = (grant("read"), grant("create", to=admin))


class Note(Resource):
    """What someone noted for themselves."""

    owner: Author
    article: Article | None = None
    text: str
    shared: bool = False

    access = (grant("create", to=signed_in), grant("read", "update", "delete", to=admin))

    @allow("read", "update")
    def own(self, viewer: Viewer) -> bool:
        return self.owner.id == viewer.id

    @allow("read")
    def one_of_all(self, viewer: Viewer) -> bool:
        return self.shared


model = Model(Author, Article, Tag, Tagging, Note)

_TIMES = {"version": 1, "createdAt": "2026-01-01T00:00:00.000000Z", "updatedAt": "2026-01-01T00:00:00.000000Z"}


def _id(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012}"


ARTICLES = [_id(100 + number) for number in range(8)]
"""The last two are Ann's and Bob's drafts."""
ROWS: dict[str, list[dict[str, Any]]] = {
    "Author": [
        {"id": ANN, "name": "Ann", "email": "ann@example.org", "mood": "calm", **_TIMES},
        {"id": BOB, "name": "Bob", "email": "bob@example.org", "mood": "wild", **_TIMES},
    ],
    "Article": [
        {
            "id": id,
            "authorId": (ANN, BOB)[number % 2],
            "title": f"Article {number}",
            "body": "word " * number,
            "published": number < 6,
            "views": number,
            "stock": 1,
            "review": f"review {number}",
            **_TIMES,
        }
        for number, id in enumerate(ARTICLES)
    ],
    "Tag": [{"id": _id(200), "word": "sport", **_TIMES}],
    "Tagging": [{"id": _id(300), "articleId": ARTICLES[0], "tagId": _id(200), **_TIMES}],
    "Note": [
        {"id": _id(400), "ownerId": ANN, "text": "only Ann's", "shared": False, **_TIMES},
        {"id": _id(401), "ownerId": BOB, "text": "only Bob's", "shared": False, **_TIMES},
        {"id": _id(402), "ownerId": BOB, "articleId": ARTICLES[1], "text": "everyone's", "shared": True, **_TIMES},
    ],
}
