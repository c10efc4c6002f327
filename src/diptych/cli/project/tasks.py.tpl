"""Tasks of a team. Tables, GraphQL, REST, documents and rules all come from this one file."""

from __future__ import annotations

from typing import Annotated

from diptych import (
    Code,
    MaxLen,
    MinLen,
    Model,
    OnDelete,
    ReadBy,
    Refusal,
    Resource,
    Role,
    Tx,
    Unique,
    Viewer,
    action,
    allow,
    grant,
    inverse,
    signed_in,
)

admin = Role("admin")


class Person(Resource, plural="people"):
    """Someone who has tasks. A token with the id of a person acts as that person."""

    name: Annotated[str, MinLen(1), MaxLen(80)]
    email: Annotated[str, Unique(), MaxLen(254), ReadBy(admin)]  # others do not know that there is such a field
    tasks: list[Task] = inverse("owner")

    access = (
        grant("read", to=signed_in),
        grant("create", "update", "delete", to=admin),
    )


class Task(Resource):
    """Something to do."""

    owner: Annotated[Person, OnDelete("cascade")]
    title: Annotated[str, MinLen(1), MaxLen(200)]
    done: bool = False
    shared: bool = False

    access = (grant("read", "create", "delete", to=admin),)

    @allow("read")
    def shared_or_own(self, viewer: Viewer) -> bool:
        """Everyone sees what is shared, signed in or not."""
        return self.shared | (self.owner.id == viewer.id)

    @allow("create", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.owner.id == viewer.id

    @action(to=signed_in)
    async def finish(self, tx: Tx) -> Task:
        """Mark a task as done. It needs the same rights as changing it."""
        if self.done:
            raise Refusal(Code.CONFLICT, "The task is done already.")
        self.done = True
        return await tx.save(self)


model = Model(Person, Task)
