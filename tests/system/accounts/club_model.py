"""A model whose people sign up, and the same for invited people only."""

from __future__ import annotations

from typing import Annotated

from diptych import MaxLen, MinLen, Model, Resource, Role, SignUp, Unique, Viewer, WriteBy, allow, grant, signed_in

friend = Role("friend")


class Member(Resource):
    """Whoever has an account."""

    name: Annotated[str, MinLen(2), MaxLen(20)]
    email: Annotated[str, Unique()]
    bio: str = ""
    access = (grant("read", to=signed_in),)

    @allow("update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.id == viewer.id


class Patron(Resource):
    """Whoever has an account, with an address that nobody writes by the API."""

    name: Annotated[str, MaxLen(20)]
    email: Annotated[str, Unique(), WriteBy()]
    access = (grant("read", to=signed_in),)

    @allow("update")
    def own(self, viewer: Viewer) -> bool:
        return self.id == viewer.id


model = Model(Member, title="The Club", sign_up=SignUp(email="email", fields=("name",), roles=(friend,)))
closed = Model(Member, title="The Club")
patrons = Model(Patron, title="The Club", sign_up=SignUp(email="email", fields=("name",)))
