"""What type checkers know of a model: the type of every field, relation and computed field."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, assert_type
from uuid import UUID

from diptych import (
    BigInt,
    Claims,
    Digits,
    Id,
    JobResource,
    JobState,
    JobTx,
    Json,
    Min,
    Model,
    Move,
    OnDelete,
    Public,
    Resource,
    Retry,
    States,
    Tx,
    Value,
    Viewer,
    WriteBy,
    action,
    allow,
    auto,
    computed,
    contains,
    either,
    every,
    from_viewer,
    given,
    grant,
    inverse,
    is_null,
    may_read,
    none,
    not_,
    now,
    one_of,
    query,
    signed_in,
    some,
    through,
    today,
)
from tests.typing.blog import Author, Post, admin, model


class Tier(StrEnum):
    basic = "basic"
    gold = "gold"


class Place(Value):
    city: str
    zip: str | None = None


class Task(Resource):
    author: Annotated[Author, WriteBy()] = from_viewer()
    due: datetime = now() + timedelta(days=7)
    day: date = today()
    at: time = time(8, 30)
    lasts: timedelta = timedelta(hours=1)
    key: UUID | None = None
    tags: list[str] = []  # noqa: RUF012  # a row gets a copy
    place: Place = Place(city="Oslo")

    @computed
    def overdue(self) -> bool:
        return self.due < now()

    @computed
    def age(self) -> timedelta:
        return now() - self.due

    @allow("read")
    def near(self, viewer: Viewer) -> bool:
        return contains(self.tags, "vip") & (self.place.city == "Oslo") & (self.due > now() - timedelta(days=7))

    @action
    async def move(self, tx: Tx, to: Place, tags: list[str]) -> list[str]:
        assert_type(self.place.zip, str | None)
        self.place, self.tags = Place(city=to.city), tags
        return (await tx.save(self)).tags


class Tag(Resource, public=timedelta(minutes=1)):
    id: Id = auto()
    name: Annotated[str, Public(5)]
    access = (grant("read"),)

    @computed(public=5)
    def loud(self) -> str:
        return self.name + "!"

    @computed(needs="name", public=0)
    def length(self) -> int:
        return len(self.name)

    @query(public=30)
    @classmethod
    async def usual(cls, tx: Tx) -> list[Tag]:
        return await tx.select(Tag)

    @action(background=True, attempts=3, retry=(ConnectionError,), to=admin)
    @classmethod
    async def load(cls, tx: JobTx, url: str) -> int:
        assert_type(tx.attempt, int)
        await tx.checkpoint({"url": url})
        raise Retry("later", after=1.5)

    @action(background=True)
    async def rename(self, tx: Tx) -> Tag:
        return await tx.save(self)

    @every("day at 03:30", roles=(admin,))
    @classmethod
    async def sweep(cls, tx: JobTx) -> None:
        tx.progress(0.5, "half")


class Chore(JobResource):
    access = (grant("read", to=admin),)

    @allow("read")
    def own(self, viewer: Viewer) -> bool:
        return (self.owner == viewer.id) & (self.state == JobState.failed)


class PostTag(Resource, plural="post-tags", public=60):
    tag: Tag
    article: Article


class Member(Viewer):
    tenant: str | None = None
    teams: tuple[Id, ...] = ()

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        assert_type(claims.subject, str | None)
        return cls(id=claims.subject, roles=claims.roles | {"x"}, tenant=claims.get("tenant"))


class Article(Resource, ids="integer"):
    title: str
    subtitle: str | None = None
    views: BigInt = 0
    extra: Json | None = None
    price: Annotated[Decimal, Digits(8, 2), Min(0)] = Decimal("0.00")
    tier: Annotated[Tier, States(Move(Tier.basic, Tier.gold, to=admin))] = Tier.basic
    author: Annotated[Author, OnDelete("cascade")]
    editor: Annotated[Author | None, OnDelete("set null")] = None
    tags: list[Tag] = through("PostTag", "article", "tag")
    links: list[PostTag] = inverse("article")

    access = (grant("create", to=signed_in),)

    @allow("read")
    @allow("update", to=admin)
    def everything(self, viewer: Viewer) -> bool:
        seen = is_null(self.subtitle) | contains(self.title, "draft") | may_read(self.author)
        mine = (self.author.id == viewer.id) & (given(self.editor).id != viewer.id)
        return not_(seen) & mine & one_of(self.tier, Tier.basic, Tier.gold) & viewer.has(admin)

    @allow("read", field="price")
    def costly(self, viewer: Viewer) -> bool:
        return (self.price >= Decimal("9.99")) & (self.created_at < datetime(2026, 1, 1, tzinfo=UTC))

    @allow("update", field="title")
    @allow(action="polish", to=admin)
    def tagged(self, viewer: Member) -> bool:
        named = some(self.tags, lambda tag: (tag.name == viewer.tenant) & one_of(tag.id, viewer.teams))
        return (named & every(self.links, lambda link: some(link.article.tags))) | none(
            self.links, lambda link: may_read(link.tag)
        )

    @action
    async def polish(self, tx: Tx) -> Article:
        return await tx.save(self)

    @computed
    def level(self) -> Tier:
        return either(self.views > 100, Tier.gold, Tier.basic)

    @computed
    def heading(self) -> str | None:
        return self.title + ": " + given(self.subtitle)[:20]


def use(post: Post, article: Article) -> None:
    assert_type(post.teaser, str)
    assert_type(post.author.email, str)
    assert_type(post.author.posts[0].review, str | None)
    assert_type(post.id, str)
    assert_type(post.version, int)
    assert_type(post.created_at, datetime)
    assert_type(article.level, Tier)
    assert_type(article.views, int)
    assert_type(article.editor, Author | None)
    assert_type(article.tags, list[Tag])
    assert_type(article.tags[0].loud, str)
    assert_type(article.tags[0].length, int)


def make() -> None:
    ann = Author(name="Ann", email="ann@example.com")
    use(Post(slug="a", body="b", author=ann), Article(title="t", author=ann))


assert_type(model, Model)
everything = Model(Author, Post, Article, Tag, PostTag, viewer=Member)
assert_type(Member(tenant="a").tenant, str | None)
