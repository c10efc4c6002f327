"""The rules of the help desk, tested through the API by those who use it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from helpdesk import Label, Level, Membership, Organisation, Project, Ticket, User

from diptych.testing import Api, Client


@dataclass
class Desk:
    """Acme, with a project, an owner, an agent and two customers; and someone of another organisation."""

    api: Api
    acme: Organisation
    website: Project
    olga: Client
    agnes: Client
    carl: Client
    chris: Client
    eve: Client
    agent: User

    def report(self, caller: Client, title: str, **more: Any) -> dict[str, Any]:
        """A new ticket, as its reporter sees it."""
        body = {"projectId": self.website.id, "title": title, **more}
        row: dict[str, Any] = caller.post("/tickets", body).expect(201).data
        return row


@pytest.fixture
def desk(api: Api) -> Desk:
    def user(name: str) -> User:
        return api.make(User, name=name, email=f"{name.lower()}@example.org")

    def caller(user: User) -> Client:
        return api.as_("signed_in", user=user.id)

    acme, umbrella = (api.make(Organisation, name=name) for name in ("Acme", "Umbrella"))
    olga, agnes, carl, chris, eve = (user(name) for name in ("Olga", "Agnes", "Carl", "Chris", "Eve"))
    for member, level in (
        (olga, Level.owner),
        (agnes, Level.agent),
        (carl, Level.customer),
        (chris, Level.customer),
    ):
        api.make(Membership, organisation=acme, user=member, level=level)
    api.make(Membership, organisation=umbrella, user=eve, level=Level.owner)
    website = api.make(Project, organisation=acme, name="Website")
    return Desk(api, acme, website, caller(olga), caller(agnes), caller(carl), caller(chris), caller(eve), agnes)


def test_an_organisation_is_founded_with_its_owner(desk: Desk) -> None:
    made = desk.carl.post("/organisations/found", {"name": "Carl & Co"}).expect(200).data
    listed = desk.carl.get("/memberships?fields=level,organisation(name)&sort=createdAt").data
    assert made["name"] == "Carl & Co"
    assert listed[-1] == {"level": "owner", "organisation": {"name": "Carl & Co"}}
    desk.carl.post("/projects", {"organisationId": made["id"], "name": "Van"}).expect(201)
    desk.carl.post("/projects", {"organisationId": desk.acme.id, "name": "Van"}).expect(403)


def test_owners_invite_people_whom_they_cannot_see(desk: Desk) -> None:
    invite = f"/organisations/{desk.acme.id}/invite"
    assert desk.olga.post(invite, {"email": "eve@example.org"}).expect(200).data["level"] == "customer"
    refused = desk.olga.post(invite, {"email": "nobody@example.org"}).expect(422)
    assert refused.json()["errors"] == [{"pointer": "/email", "message": "nobody has this address"}]
    desk.agnes.post(invite, {"email": "eve@example.org"}).expect(403)


def test_a_ticket_comes_with_comments_and_is_found_by_its_words(desk: Desk) -> None:
    comments = {"create": [{"body": "Since Monday."}, {"body": "Still."}]}
    ticket = desk.report(desk.carl, "The café page is empty", comments=comments)
    desk.report(desk.carl, "The bill is wrong")
    rows = desk.agnes.get("/tickets?search=CAFE page*&fields=number,commentsSummary(count)").data
    assert rows == [{"number": ticket["number"], "commentsSummary": {"count": 2}}]
    internal = {"projectId": desk.website.id, "title": "Hm", "comments": {"create": [{"body": "x", "internal": True}]}}
    desk.carl.post("/tickets", internal).expect(403)
    assert len(desk.api.all(Ticket)) == 2  # all or nothing


def test_the_dashboard_counts_what_one_may_see(desk: Desk) -> None:
    for caller in (desk.carl, desk.carl, desk.chris):
        desk.report(caller, "Help")
    counts = "/tickets/groups?by=state&fields=state,count"
    assert desk.agnes.get(counts).data == [{"state": "open", "count": 3}]
    assert desk.carl.get(counts).data == [{"state": "open", "count": 2}]
    assert desk.eve.get(counts).data == []


def test_members_are_unique_in_an_organisation(desk: Desk) -> None:
    new = {"organisationId": desk.acme.id, "userId": desk.agent.id}
    refused = desk.olga.post("/memberships", new).expect(409)
    assert [fault["pointer"] for fault in refused.json()["errors"]] == ["/organisationId", "/userId"]
    promoted = desk.olga.post("/memberships?by=organisationId_userId&fields=level", {**new, "level": "owner"})
    assert promoted.expect(200).data == {"level": "owner"}
    desk.agnes.post("/memberships", {**new, "level": "customer"}).expect(409)


def test_tickets_are_numbered_in_their_project(desk: Desk) -> None:
    numbers = [desk.report(desk.carl, title)["number"] for title in ("One", "Two", "Three")]
    other = desk.api.make(Project, organisation=desk.acme, name="Shop")
    first = desk.carl.post("/tickets", {"projectId": other.id, "title": "In the shop"}).data
    assert numbers == [1, 2, 3] and first["number"] == 1


def test_customers_see_their_own_tickets_and_agents_all(desk: Desk) -> None:
    desk.report(desk.carl, "Carl's")
    desk.report(desk.chris, "Chris's")
    seen = "/tickets?sort=number&fields=title"
    assert [ticket["title"] for ticket in desk.carl.get(seen).data] == ["Carl's"]
    assert [ticket["title"] for ticket in desk.agnes.get(seen).data] == ["Carl's", "Chris's"]
    assert desk.eve.get(seen).data == [] and desk.api.anonymous.get(seen).status == 401
    assert desk.carl.graphql("{ tickets { title } }").data == {"tickets": [{"title": "Carl's"}]}


def test_the_reporter_is_the_user_who_creates_the_ticket(desk: Desk) -> None:
    ticket = desk.report(desk.carl, "Mine")
    own = desk.carl.get("/viewer?fields=user(id)").data["user"]["id"]
    assert ticket["reporterId"] == own
    forged = {"projectId": desk.website.id, "title": "Theirs", "reporterId": desk.agent.id}
    desk.carl.post("/tickets", forged).expect(403)
    desk.eve.post("/tickets", {"projectId": desk.website.id, "title": "Not mine"}).expect(409)


def test_states(desk: Desk) -> None:
    path = f"/tickets/{desk.report(desk.carl, 'It is broken')['id']}"
    desk.agnes.patch(path, {"state": "closed"}).expect(409)
    assert desk.agnes.patch(path, {"state": "solved"}).expect(200).data["state"] == "solved"
    assert desk.carl.patch(path, {"state": "open"}).expect(200).data["state"] == "open"
    desk.carl.patch(path, {"title": "It is still broken"}).expect(403)


def test_internal_comments_are_for_agents(desk: Desk) -> None:
    ticket = desk.report(desk.carl, "Help")["id"]
    desk.agnes.post("/comments", {"ticketId": ticket, "body": "We are on it."}).expect(201)
    desk.agnes.post("/comments", {"ticketId": ticket, "body": "Not again.", "internal": True}).expect(201)
    desk.carl.post("/comments", {"ticketId": ticket, "body": "Psst", "internal": True}).expect(403)
    seen = f"/tickets/{ticket}?fields=comments(body)"
    assert desk.carl.get(seen).data == {"comments": [{"body": "We are on it."}]}
    assert len(desk.agnes.get(seen).data["comments"]) == 2


def test_overdue_tickets_are_found_and_come_first(desk: Desk) -> None:
    late = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    desk.report(desk.carl, "Late", due=late, priority="high")
    desk.report(desk.carl, "Soon")
    rows = desk.agnes.get("/tickets?overdue=true&fields=title,overdue").data
    assert rows == [{"title": "Late", "overdue": True}]
    missing = desk.carl.post("/tickets", {"projectId": desk.website.id, "title": "Now!", "priority": "high"})
    assert missing.expect(422).json()["errors"][0]["message"] == "an urgent ticket has a date by which it is due"


def test_an_agent_takes_a_ticket_once(desk: Desk) -> None:
    path = f"/tickets/{desk.report(desk.carl, 'Take me')['id']}"
    assert desk.agnes.post(f"{path}/take", {}).expect(200).data["assigneeId"] == desk.agent.id
    desk.olga.post(f"{path}/take", {}).expect(409)
    postponed = desk.agnes.post(f"{path}/postpone", {"by": "P2D"}).expect(200).data
    assert datetime.fromisoformat(postponed["due"]) - datetime.fromisoformat(postponed["createdAt"]) == timedelta(2)


def test_labels_stay_in_their_organisation(desk: Desk) -> None:
    ticket = desk.report(desk.carl, "The bill is wrong")["id"]
    bill = desk.api.make(Label, organisation=desk.acme, name="billing")
    foreign = desk.api.make(
        Label, organisation=desk.api.all(Organisation, where={"name": {"eq": "Umbrella"}})[0], name="x"
    )
    desk.agnes.post("/ticket-labels", {"ticketId": ticket, "labelId": bill.id}).expect(201)
    desk.agnes.post("/ticket-labels", {"ticketId": ticket, "labelId": foreign.id}).expect(409)
    desk.carl.post("/ticket-labels", {"ticketId": ticket, "labelId": bill.id}).expect(403)
    rows = desk.agnes.get('/tickets?where={"labels":{"some":{"name":{"eq":"billing"}}}}&fields=title,labels(name)').data
    assert rows == [{"title": "The bill is wrong", "labels": [{"name": "billing"}]}]


def test_the_rules_in_words(desk: Desk) -> None:
    assert desk.api.rules(Ticket, "read", as_="anonymous") == "never"
    assert desk.api.rules(User, "delete", as_="signed_in") == "never"
