"""Rules that look at other rows, so that changes of different rows stand in each other's way.

once    a user may have one, while the account is open
user    the account may be closed while the user has none, and renamed by anyone
page    may be renamed while its folder is not locked
folder  anyone locks it
post    plain: its rules look at nothing but itself
"""

from __future__ import annotations

from typing import Annotated

from diptych import Model, OnDelete, Resource, Tx, Viewer, action, allow, grant, inverse, none, not_, signed_in


class User(Resource):
    name: str
    open: bool = True
    onces: list[Once] = inverse("owner")

    access = (grant("read", "create", to=signed_in),)

    @allow("update", field="open")
    def has_none(self, viewer: Viewer) -> bool:
        return none(self.onces)

    @allow("update", field="name")
    def always(self, viewer: Viewer) -> bool:
        return self.version > 0

    @action
    async def join(self, tx: Tx) -> Once:
        return await tx.save(Once(owner=self, word="by an action"))


class Once(Resource):
    owner: Annotated[User, OnDelete("cascade")]
    word: str

    access = (grant("read", "update", to=signed_in),)

    @allow("create")
    def first(self, viewer: Viewer) -> bool:
        return self.owner.open & none(self.owner.onces)


class Folder(Resource):
    locked: bool = False
    access = (grant("read", "create", "update", to=signed_in),)


class Page(Resource):
    folder: Annotated[Folder, OnDelete("cascade")]
    title: str
    hits: int = 0

    access = (grant("read", "create", to=signed_in),)

    @allow("update", field=("title", "folder"))
    def unlocked(self, viewer: Viewer) -> bool:
        return not_(self.folder.locked)

    @allow("update", field="hits")
    def always(self, viewer: Viewer) -> bool:
        return self.version > 0


class Post(Resource):
    title: str
    owner: Annotated[User, OnDelete("cascade")]

    access = (grant("read", "create", "update", "delete", to=signed_in),)


model = Model(User, Once, Folder, Page, Post)
