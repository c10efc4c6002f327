"""A model with a trash: what is deleted along, what refuses, what becomes null, and unique keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from diptych import Model, OnDelete, Resource, Role, Unique, Viewer, allow, grant, inverse, not_, some, through

admin = Role("admin")
MONTH = timedelta(days=30)


class User(Resource, trash=MONTH):
    """A person."""

    name: str
    posts: list[Post] = inverse("author")
    access = (grant("read", "create", "update", "delete", to=admin), grant("read"))


class Post(Resource, trash=MONTH):
    """An article."""

    author: Annotated[User, OnDelete("cascade")]
    slug: Annotated[str, Unique()]
    secret: bool = False
    comments: list[Comment] = inverse("post")
    labels: list[Label] = through("PostLabel", "post", "label")
    notes: list[Note] = inverse("post")
    orders: list[Order] = inverse("post")

    access = (grant("read", "create", "update", "delete", to=admin),)

    @allow("read")
    def not_secret(self, viewer: Viewer) -> bool:
        return not_(self.secret)

    @allow("create", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id


class Comment(Resource, ids="integer", trash=MONTH):
    """A comment, perhaps on another one."""

    post: Annotated[Post, OnDelete("cascade")]
    parent: Annotated[Comment | None, OnDelete("cascade")] = None
    by: Annotated[User | None, OnDelete("cascade")] = None
    body: str
    replies: list[Comment] = inverse("parent")
    access = (grant("read", "create", "update", "delete"),)


class Label(Resource, trash=MONTH):
    """A label."""

    name: Annotated[str, Unique()]
    posts: list[Post] = through("PostLabel", "label", "post")
    access = (grant("read", "create", "update", "delete", to=admin),)

    @allow("read")
    def in_use(self, viewer: Viewer) -> bool:
        return some(self.posts, lambda post: not_(post.secret))


class PostLabel(Resource, trash=MONTH):
    """A label of a post."""

    post: Annotated[Post, OnDelete("cascade")]
    label: Annotated[Label, OnDelete("cascade")]
    access = (grant("read", "create", "update", "delete"),)


class Note(Resource):
    """A note that outlives its post."""

    post: Annotated[Post | None, OnDelete("set null")] = None
    text: str = ""
    access = (grant("read", "create", "update", "delete"),)


class Order(Resource, trash=MONTH):
    """Something that keeps its post from being deleted."""

    post: Post
    access = (grant("read", "create", "update", "delete"),)


MODEL = Model(User, Post, Comment, Label, PostLabel, Note, Order)
