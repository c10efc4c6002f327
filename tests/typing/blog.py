"""A blog. Tables, GraphQL, REST, documents and rules all come from this one file."""

from __future__ import annotations

from typing import Annotated

from diptych import (
    MaxLen,
    Model,
    ReadBy,
    Resource,
    Role,
    Unique,
    Viewer,
    WriteBy,
    allow,
    computed,
    grant,
    inverse,
)

editor = Role("editor")
admin = Role("admin", implies=editor)
Slug = Annotated[str, Unique(), MaxLen(80)]  # a reusable field type


class Author(Resource):
    name: Annotated[str, MaxLen(80)]
    email: Annotated[str, Unique(), ReadBy(admin)]  # a field rule
    posts: list[Post] = inverse("author")  # to many

    access = (
        grant("read"),  # anyone may read every row
        grant("create", "update", "delete", to=admin),
    )


class Post(Resource):
    """An article."""  # shown in GraphQL and OpenAPI

    slug: Slug
    body: str
    author: Author  # to one: the type is a resource
    published: bool = False
    review: Annotated[str | None, ReadBy(editor), WriteBy(editor)] = None

    access = (grant("read", "create", "update", "delete", to=editor),)

    @allow("read")  # a row rule: traced once, becomes SQL
    def public_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @computed  # traced: becomes SQL
    def teaser(self) -> str:
        return self.body[:200]


model = Model(Author, Post)  # diptych dev blog:model
