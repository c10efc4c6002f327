"""A blog with code of its own: actions, queries, and fields that Python computes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, assert_type

from diptych import (
    Code,
    Id,
    MaxLen,
    Model,
    ReadBy,
    Refusal,
    Resource,
    Role,
    Tx,
    Unique,
    Viewer,
    Weight,
    WriteBy,
    action,
    allow,
    auto,
    computed,
    grant,
    inverse,
    query,
)

editor = Role("editor")
admin = Role("admin", implies=editor)
Slug = Annotated[str, Unique(), MaxLen(80)]


class Author(Resource):
    id: Id = auto()
    name: Annotated[str, MaxLen(80)]
    email: Annotated[str, Unique(), ReadBy(admin)]
    posts: Annotated[list[Post], Weight(3)] = inverse("author")

    access = (grant("read"),)


class Post(Resource):
    """An article."""

    slug: Slug
    body: str
    author: Annotated[Author, Weight(2)]
    published: bool = False
    review: Annotated[str | None, ReadBy(editor), WriteBy(editor)] = None

    @allow("read")
    def public_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @allow("create", "update", "delete", to=editor)
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @computed
    def teaser(self) -> str:
        return self.body[:200]

    @computed(weight=2)
    def excerpt(self) -> str:
        return self.body[:20]

    @computed(needs="body", weight=3)
    def letters(self) -> int:
        return len(self.body)

    @computed(needs="body")
    def minutes(self) -> int:
        return len(self.body.split()) // 200 + 1

    @computed(needs=("slug", "body"), batch=True)
    @staticmethod
    def words(posts: Sequence[Post]) -> Sequence[int]:
        return [len(post.body.split()) for post in posts]

    @computed(needs="slug", batch=True, weight=50)
    @staticmethod
    async def likes(posts: Sequence[Post]) -> list[float]:
        return [0.5 for _ in posts]

    @action(to=editor)
    async def publish(self, tx: Tx, note: str | None = None) -> Post:
        if self.published:
            raise Refusal(Code.CONFLICT, "It is published already.")
        self.published = True
        self.review = note
        return await tx.save(self)

    @action
    @classmethod
    async def import_feed(cls, tx: Tx, url: Annotated[str, MaxLen(200)], author_id: Id) -> list[Post]:
        author = await tx.get(Author, author_id)
        assert_type(author, Author | None)
        if author is None:
            raise Refusal(Code.BAD_USER_INPUT, "There is no such author.")
        made = await tx.trusted.save(Post(slug=url, body="", author=author))
        assert_type(made, Post)
        return [made]

    @action(to=admin, weight=0)
    async def forget(self, tx: Tx) -> None:
        await tx.delete(self)

    @query(weight=50)
    @classmethod
    async def top(cls, tx: Tx, limit: int = 10) -> list[Post]:
        return await tx.select(Post, where={"published": {"eq": True}}, order="-createdAt", first=limit)

    @query(to=editor)
    @classmethod
    async def count_words(cls, tx: Tx) -> int:
        rows = await tx.sql("SELECT count(*) FROM posts WHERE published = ?", True)
        assert_type(rows, list[tuple[Any, ...]])
        return int(rows[0][0]) if tx.viewer.has(editor) else 0


async def use(post: Post, tx: Tx) -> None:
    assert_type(post.excerpt, str)
    assert_type(post.letters, int)
    assert_type(post.minutes, int)
    assert_type(post.words, int)
    assert_type(post.likes, float)
    assert_type(await post.publish(tx), Post)
    assert_type(await post.publish(tx, note="fine"), Post)
    assert_type(await post.forget(tx), None)
    assert_type(await Post.import_feed(tx, "https://example.com", post.author.id), list[Post])
    assert_type(await Post.top(tx, limit=3), list[Post])
    bound: Callable[[Tx], Coroutine[Any, Any, int]] = Post.count_words
    assert_type(await bound(tx), int)


model = Model(Author, Post)
