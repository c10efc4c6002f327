"""The usual slips. Both type checkers report every line that ends in `E`, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from diptych import (
    Model, Move, Public, Resource, Role, Tx, Viewer, Weight, action, allow, computed, contains, grant, inverse, not_, query, through,
)
from tests.typing.acting import Post as Acting
from tests.typing.blog import Author, Post


class State(StrEnum):
    new = "new"
    old = "old"


class Bad(Resource, plurals="bads"):  # E
    title: str
    count: int
    author: Author
    editor: Author | None = None
    posts: list[Post] = inverse(3)  # E
    others: list[Post] = through("PostTag", "post")  # E
    published: bool = None  # E
    state: State = "new"  # E

    access = (grant("raed"),)  # E

    @allow("raed")  # E
    def a_verb_that_is_none(self, viewer: Viewer) -> bool:
        return self.title == "x"

    @allow("read", to="editor")  # E
    def a_role_as_text(self, viewer: Viewer) -> bool:
        return viewer.has("editor")  # E

    @allow("read", fields="title")  # E
    def an_unknown_option(self, viewer: Viewer) -> bool:
        return self.count == 1

    @allow("read")
    def fields_that_are_none(self, viewer: Viewer) -> bool:
        print(self.titel)  # E
        print(self.author.nickname)  # E
        print(self.editor.id)  # E
        print(self.author.posts.published)  # E
        print(viewer.name)  # E
        return self.author.id == viewer.id

    @allow("read")
    def values_of_other_types(self, viewer: Viewer) -> bool:
        print(self.title == 3)  # E
        print(self.count < "3")  # E
        print(not_(self.title))  # E
        print(contains(self.title, 3))  # E
        return self.author.id == viewer.id

    @allow("read")  # E
    def a_text(self, viewer: Viewer) -> str:
        return self.title

    @allow("read")  # E
    def nothing(self, viewer: Viewer) -> None:
        pass

    @allow("read")  # E
    def no_viewer(self) -> bool:
        return self.count == 1

    @allow("read")  # E
    async def later(self, viewer: Viewer) -> bool:
        return self.count == 1

    @computed
    def another_type(self) -> int:
        return self.title  # E

    @computed  # E
    def for_someone(self, viewer: Viewer) -> str:
        return self.title

    @computed(needs=3)  # E
    def needs_a_number(self) -> str:
        return self.title

    @computed(needs="title")  # E
    def more_than_a_row(self, viewer: Viewer) -> str:
        return self.title

    @computed(needs="title", batch=True)  # E
    @staticmethod
    def one_for_all(bads: Sequence[Bad]) -> int:
        return len(bads)

    @computed(weight="5")  # E
    def a_weight_as_text(self) -> str:
        return self.title

    @action(weight=1.5)  # E
    async def half_a_weight(self, tx: Tx) -> None:
        pass

    @action  # E
    def not_async(self, tx: Tx) -> None:
        pass

    @action  # E
    async def no_transaction(self) -> None:
        pass

    @action(to="editor")  # E
    async def for_a_text(self, tx: Tx) -> Bad:
        await tx.save("me")  # E
        await tx.get(Bad, None)  # E
        await tx.select(Bad, orderBy="title")  # E
        print(tx.viewer.name)  # E
        return await tx.get(Bad, self.id)  # E

    @query  # E
    @classmethod
    def at_once(cls, tx: Tx) -> list[Bad]:
        return []


class Kept(Resource, public="60"):  # E
    title: str

    @computed(public="5")  # E
    def loud(self) -> str:
        return self.title

    @query(public=1.5)  # E
    @classmethod
    async def usual(cls, tx: Tx) -> list[Kept]:
        return []

    @action(public=5)  # E
    async def act(self, tx: Tx) -> None:
        pass


public = Public("5")  # E
role = Role(3)  # E
implied = Role("admin", implies="editor")  # E
move = Move("new", State.old)  # E
weight = Weight("5")  # E
model = Model(Post, "Author")  # E

ann = Author(name="Ann", email="ann@example.com")
post = Post(slug="a", body="b", author=ann)
Author(name="Ann")  # E
Author("Ann", "ann@example.com")  # E
Author(name="Ann", email="ann@example.com", posts=[post])  # E
Post(slug=1, body="b", author=ann)  # E
Post(slug="a", body="b", author="Ann")  # E
Post(id="4", slug="a", body="b", author=ann)  # E
Post(slug="a", body="b", author=ann, teaser="b")  # E
post.author = "Ann"  # E
post.teaser = "b"  # E
length: int = post.teaser  # E
print(post.titel)  # E


async def call(acting: Acting, tx: Tx) -> None:
    await acting.publish()  # E
    await acting.publish(tx, note=3)  # E
    await Acting.top(tx, most=3)  # E
    acting.minutes = 3  # E
    minutes: str = acting.minutes  # E
    print(minutes)
