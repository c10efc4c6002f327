"""Projects of several tenants, with members, tasks and folders: rules over related rows, viewers with a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from diptych import (
    Claims,
    Index,
    Model,
    OnDelete,
    Resource,
    Role,
    Tx,
    Viewer,
    action,
    allow,
    every,
    given,
    grant,
    inverse,
    may_read,
    none,
    not_,
    one_of,
    signed_in,
    some,
)

auditor = Role("auditor")
GROUPS: dict[str, frozenset[str]] = {}
"""The roles that another system gives to a user, at this moment."""


class Member(Viewer):
    """Belongs to a tenant, and sees some kinds of tasks."""

    tenant: str | None = None
    kinds: tuple[str, ...] = ()

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        if claims.get("tenant") == "closed":
            return None
        roles = claims.roles | GROUPS.get(claims.subject or "", frozenset())
        return cls(id=claims.subject, roles=roles, tenant=claims.get("tenant"), kinds=tuple(claims.get("kinds") or ()))


class User(Resource):
    name: str
    access = (grant("read"),)


class Project(Resource):
    name: str
    tenant: Annotated[str, Index()]
    archived: bool = False
    secret: str | None = None
    memberships: list[Membership] = inverse("project")
    tasks: list[Task] = inverse("project")

    access = (grant("read", to=auditor),)

    @allow("read")
    def member(self, viewer: Member) -> bool:
        mine = some(self.memberships, lambda each: each.user.id == viewer.id)
        return mine & (self.tenant == viewer.tenant)

    @allow("read", field="secret")
    @allow("update", "delete")
    @allow(action="archive")
    def lead(self, viewer: Member) -> bool:
        return some(self.memberships, lambda each: (each.user.id == viewer.id) & each.leads)

    @allow(action="archive", to=auditor)
    def idle(self, viewer: Member) -> bool:
        return every(self.tasks, lambda task: task.done)

    @action
    async def archive(self, tx: Tx) -> Project:
        self.archived = True
        return await tx.trusted.save(self)


class Membership(Resource):
    project: Annotated[Project, OnDelete("cascade")]
    user: Annotated[User, OnDelete("cascade")]
    leads: bool = False

    @allow("read")
    def of_project(self, viewer: Member) -> bool:
        return may_read(self.project)


class Task(Resource):
    project: Annotated[Project, OnDelete("cascade")]
    kind: str
    done: bool = False
    note: str | None = None

    @allow("read", "create", "update", "delete")
    def of_member(self, viewer: Member) -> bool:
        return may_read(self.project) & some(self.project.memberships, lambda each: each.user.id == viewer.id)

    @allow("read", field="note")
    def of_kind(self, viewer: Member) -> bool:
        return one_of(self.kind, viewer.kinds)


class Folder(Resource):
    """Leads to itself: what may be done with one depends on those above and below it."""

    name: str
    locked: bool = False
    parent: Annotated[Folder | None, OnDelete("cascade")] = None
    children: list[Folder] = inverse("parent")

    access = (grant("read", "create", to=signed_in),)

    @allow("update")
    def under_open(self, viewer: Member) -> bool:
        return not_(given(self.parent).locked) & not_(given(given(self.parent).parent).locked)

    @allow("delete")
    def empty(self, viewer: Member) -> bool:
        return none(self.children)

    @allow("update", field="name")
    def over_open(self, viewer: Member) -> bool:
        return every(self.children, lambda child: not_(given(child.parent).locked))


model = Model(User, Project, Membership, Task, Folder, viewer=Member)


def id_of(number: int) -> str:
    return f"01890000-0000-7000-8000-{number:012x}"


ANN, BEN, ZOE = map(id_of, (1, 2, 3))
BLUE, RED, OLD = map(id_of, (11, 12, 13))
TOP, MIDDLE, LEAF, LOOP = map(id_of, (31, 32, 33, 34))
_SERVER = {"version": 1, "createdAt": "2026-01-01T00:00:00.000000Z", "updatedAt": "2026-01-01T00:00:00.000000Z"}


def rows() -> Mapping[str, list[dict[str, Any]]]:
    """Ann leads Blue and is in Red; Ben is in Blue; Zoe is in Old, which is of another tenant than she is."""
    found: dict[str, list[dict[str, Any]]] = {
        "User": [{"id": ANN, "name": "Ann"}, {"id": BEN, "name": "Ben"}, {"id": ZOE, "name": "Zoe"}],
        "Project": [
            {"id": BLUE, "name": "Blue", "tenant": "acme", "archived": False, "secret": "b"},
            {"id": RED, "name": "Red", "tenant": "acme", "archived": False, "secret": "r"},
            {"id": OLD, "name": "Old", "tenant": "other", "archived": False, "secret": "o"},
        ],
        "Membership": [
            {"id": id_of(21), "projectId": BLUE, "userId": ANN, "leads": True},
            {"id": id_of(22), "projectId": BLUE, "userId": BEN, "leads": False},
            {"id": id_of(23), "projectId": RED, "userId": ANN, "leads": False},
            {"id": id_of(24), "projectId": OLD, "userId": ZOE, "leads": True},
        ],
        "Task": [
            {"id": id_of(41), "projectId": BLUE, "kind": "plan", "done": False, "note": "n1"},
            {"id": id_of(42), "projectId": BLUE, "kind": "work", "done": True, "note": "n2"},
            {"id": id_of(43), "projectId": RED, "kind": "work", "done": True, "note": "n3"},
            {"id": id_of(44), "projectId": OLD, "kind": "work", "done": True, "note": "n4"},
        ],
        "Folder": [
            {"id": TOP, "name": "top", "locked": False, "parentId": None},
            {"id": MIDDLE, "name": "middle", "locked": False, "parentId": TOP},
            {"id": LEAF, "name": "leaf", "locked": False, "parentId": MIDDLE},
            {"id": LOOP, "name": "loop", "locked": False, "parentId": LOOP},
        ],
    }
    return {name: [{**row, **_SERVER} for row in each] for name, each in found.items()}
