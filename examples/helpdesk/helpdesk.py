"""A help desk: organisations whose customers report tickets, and whose agents solve them.

    diptych dev helpdesk:model --database sqlite:///helpdesk.db

Who may do what is decided by memberships: someone can be an agent of one organisation and a customer of another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from diptych import (
    Code,
    Counter,
    Example,
    Fault,
    MaxLen,
    MinLen,
    Model,
    Move,
    OnDelete,
    Pattern,
    Refusal,
    Resource,
    Search,
    States,
    Tx,
    Unique,
    Viewer,
    WriteBy,
    action,
    allow,
    auto,
    check,
    computed,
    from_viewer,
    given,
    index,
    inverse,
    is_null,
    may_read,
    not_,
    now,
    one_of,
    signed_in,
    some,
    through,
    unique,
)


class Level(StrEnum):
    """What a member is in an organisation."""

    customer = "customer"
    agent = "agent"
    owner = "owner"


class State(StrEnum):
    """The state of a ticket: open → waiting ⇄ open → solved → closed; a solved ticket can be opened again."""

    open = "open"
    waiting = "waiting"
    solved = "solved"
    closed = "closed"


class Priority(StrEnum):
    """How urgent a ticket is."""

    low = "low"
    normal = "normal"
    high = "high"


def is_owner(organisation: Organisation, viewer: Viewer) -> bool:
    """Does the viewer own the organisation?"""
    return some(organisation.memberships, lambda member: (member.user.id == viewer.id) & (member.level == Level.owner))


def is_agent(organisation: Organisation, viewer: Viewer) -> bool:
    """Does the viewer answer the tickets of the organisation, as an agent or an owner?"""
    return some(
        organisation.memberships,
        lambda member: (member.user.id == viewer.id) & one_of(member.level, Level.agent, Level.owner),
    )


class User(Resource):
    """A person, who is visible to members of the same organisations."""

    name: Annotated[str, MinLen(1), MaxLen(80), Example("Ann")]
    email: Annotated[str, Unique(), MaxLen(254), Pattern(r"[^@\s]+@[^@\s]+")]
    memberships: list[Membership] = inverse("user")
    tickets: list[Ticket] = inverse("reporter")

    @allow("read", "update")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @allow("read")
    def colleague(self, viewer: Viewer) -> bool:
        return some(
            self.memberships, lambda own: some(own.organisation.memberships, lambda other: other.user.id == viewer.id)
        )


class Organisation(Resource):
    """A company with a help desk of its own."""

    name: Annotated[str, MinLen(1), MaxLen(80), Example("Acme")]
    memberships: list[Membership] = inverse("organisation")
    projects: list[Project] = inverse("organisation")
    labels: list[Label] = inverse("organisation")

    @allow("read")
    def member(self, viewer: Viewer) -> bool:
        return some(self.memberships, lambda member: member.user.id == viewer.id)

    @allow("update", "delete")
    def owner(self, viewer: Viewer) -> bool:
        return is_owner(self, viewer)

    @action(to=signed_in)
    @classmethod
    async def found(cls, tx: Tx, name: Annotated[str, MinLen(1), MaxLen(80)]) -> Organisation:
        """Found an organisation, and own it."""
        founder = await tx.get(User, tx.viewer.id or "")
        if founder is None:
            raise Refusal(Code.FORBIDDEN, "Only a user can own an organisation.")
        organisation = await tx.trusted.save(Organisation(name=name))
        await tx.trusted.save(Membership(organisation=organisation, user=founder, level=Level.owner))
        return organisation

    @allow(action="invite")
    def by_an_owner(self, viewer: Viewer) -> bool:
        return is_owner(self, viewer)

    @action
    async def invite(self, tx: Tx, email: Annotated[str, MaxLen(254)], level: Level = Level.customer) -> Membership:
        """Make someone a member, whom the owner cannot see before."""
        users = await tx.trusted.select(User, where={"email": {"eq": email}})
        if not users:
            raise Fault("email", "nobody has this address")
        return await tx.trusted.save(Membership(organisation=self, user=users[0], level=level))


class Membership(Resource):
    """What a user is in an organisation."""

    organisation: Annotated[Organisation, OnDelete("cascade")]
    user: Annotated[User, OnDelete("cascade")]
    level: Level = Level.customer

    keys = (unique("organisation", "user"),)

    @allow("read")
    def of_own_organisation(self, viewer: Viewer) -> bool:
        return may_read(self.organisation)

    @allow("create", "update", "delete")
    def by_an_owner(self, viewer: Viewer) -> bool:
        return is_owner(self.organisation, viewer)

    @allow("delete")
    def leave(self, viewer: Viewer) -> bool:
        return (self.user.id == viewer.id) & (self.level != Level.owner)


class Project(Resource):
    """A product that tickets are about."""

    organisation: Annotated[Organisation, OnDelete("cascade")]
    name: Annotated[str, MinLen(1), MaxLen(80), Example("Website")]
    tickets: list[Ticket] = inverse("project")

    keys = (unique("organisation", "name"),)

    @allow("read")
    def of_own_organisation(self, viewer: Viewer) -> bool:
        return may_read(self.organisation)

    @allow("create", "update", "delete")
    def by_an_owner(self, viewer: Viewer) -> bool:
        return is_owner(self.organisation, viewer)


class Ticket(Resource):
    """A question or a problem. Customers see their own tickets, agents all of their organisation."""

    project: Annotated[Project, OnDelete("cascade")]
    number: Annotated[int, Counter("project")] = auto()
    title: Annotated[str, MinLen(1), MaxLen(200), Example("The page is empty")]
    body: Annotated[str, MaxLen(20_000)] = ""
    reporter: Annotated[User, WriteBy()] = from_viewer()
    assignee: Annotated[User | None, OnDelete("set null")] = None
    state: Annotated[
        State,
        States(
            Move(State.open, State.waiting, to=signed_in),
            Move(State.waiting, State.open, to=signed_in),
            Move(State.open, State.solved, to=signed_in),
            Move(State.waiting, State.solved, to=signed_in),
            Move(State.solved, State.open, to=signed_in),
            Move(State.solved, State.closed, to=signed_in),
        ),
    ] = State.open
    priority: Priority = Priority.normal
    due: datetime | None = None
    asked: Annotated[list[Annotated[str, MaxLen(40)]], MaxLen(10)] = []
    """What the reporter was asked for: a log, a picture."""
    comments: list[Comment] = inverse("ticket")
    links: list[TicketLabel] = inverse("ticket")
    labels: list[Label] = through("TicketLabel", "ticket", "label")

    keys = (index("project", "state"),)
    search = Search("title", "body")

    @computed
    def overdue(self) -> bool:
        """Is it due, and not solved?"""
        return (given(self.due) < now()) & one_of(self.state, State.open, State.waiting)

    @check("An urgent ticket has a date by which it is due.")
    def urgent_is_due(self) -> bool:
        return (self.priority != Priority.high) | not_(is_null(self.due))

    @allow("read")
    def own(self, viewer: Viewer) -> bool:
        return self.reporter.id == viewer.id

    @allow("create")
    def by_a_member(self, viewer: Viewer) -> bool:
        return may_read(self.project) & (self.reporter.id == viewer.id)

    @allow("read", "update", "delete")
    def by_an_agent(self, viewer: Viewer) -> bool:
        return is_agent(self.project.organisation, viewer)

    @allow("update", field="state")
    def by_the_reporter(self, viewer: Viewer) -> bool:
        return self.reporter.id == viewer.id

    @action
    async def take(self, tx: Tx) -> Ticket:
        """Assign it to oneself."""
        if self.assignee is not None:
            raise Refusal(Code.CONFLICT, "Someone has it already.")
        self.assignee = await tx.get(User, tx.viewer.id or "")
        return await tx.save(self)

    @action
    async def postpone(self, tx: Tx, by: timedelta) -> Ticket:
        """Set the date by which it is due to a later one."""
        self.due = (self.due or self.created_at) + by
        return await tx.save(self)


class Label(Resource):
    """A word by which tickets are listed."""

    organisation: Annotated[Organisation, OnDelete("cascade")]
    name: Annotated[str, MinLen(1), MaxLen(40), Example("billing")]
    tickets: list[Ticket] = through("TicketLabel", "label", "ticket")

    keys = (unique("organisation", "name"),)

    @allow("read")
    def of_own_organisation(self, viewer: Viewer) -> bool:
        return may_read(self.organisation)

    @allow("create", "update", "delete")
    def by_an_agent(self, viewer: Viewer) -> bool:
        return is_agent(self.organisation, viewer)


class TicketLabel(Resource):
    """That a ticket has a label."""

    ticket: Annotated[Ticket, OnDelete("cascade")]
    label: Annotated[Label, OnDelete("cascade")]

    keys = (unique("ticket", "label"),)

    @allow("read")
    def of_a_ticket(self, viewer: Viewer) -> bool:
        return may_read(self.ticket)

    @allow("create", "delete")
    def by_an_agent(self, viewer: Viewer) -> bool:
        return is_agent(self.ticket.project.organisation, viewer) & (
            self.label.organisation.id == self.ticket.project.organisation.id
        )


class Comment(Resource):
    """An answer; internal ones are for agents only."""

    ticket: Annotated[Ticket, OnDelete("cascade")]
    author: Annotated[User, WriteBy()] = from_viewer()
    body: Annotated[str, MinLen(1), MaxLen(5_000)]
    internal: bool = False

    @allow("read", "create")
    def public(self, viewer: Viewer) -> bool:
        return not_(self.internal) & may_read(self.ticket)

    @allow("read", "create", "delete")
    def by_an_agent(self, viewer: Viewer) -> bool:
        return is_agent(self.ticket.project.organisation, viewer)

    @allow("update")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id


model = Model(
    User,
    Organisation,
    Membership,
    Project,
    Ticket,
    Label,
    TicketLabel,
    Comment,
    user=User,
    title="Help desk",
    description="Organisations whose customers report tickets, and whose agents solve them.",
)
