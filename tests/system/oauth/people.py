"""A model whose users have fields that are named as claims, and others."""

from __future__ import annotations

from typing import Annotated

from diptych import Model, ReadBy, Resource, Role, Viewer, allow, computed

boss = Role("boss")


class Person(Resource):
    given_name: str
    family_name: Annotated[str, ReadBy(boss)]
    nickname: str | None = None
    picture: str | None = None
    birthdate: str = ""
    secret: str = ""
    locale: int = 1

    @allow("read")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @computed
    def preferred_username(self) -> str:
        return self.given_name


model = Model(Person)
