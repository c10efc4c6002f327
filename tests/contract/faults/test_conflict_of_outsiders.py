"""The conflict that tells an outsider what is taken: a rule that is tested after the write comes after its unique keys.

A rule that comes back to the changed row is tested once the row is written, and a row whose unique value is taken
never is. So whoever may not make it would learn that it is taken, and by whom they may not ask: who is in a team.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diptych.testing import Api, Client, Response, serve
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

SOURCE = """
class Person(Resource):
    name: str
    access = (grant("read", "create", to=signed_in),)

class Team(Resource):
    name: str
    members: list[Member] = inverse("team")
    access = (grant("read", "create", "update", to=staff), grant("read"))

class Member(Resource):
    team: Team
    nick: str
    person: Person | None = None
    keys = (unique("team", "nick"),)
    access = (grant("create", to=signed_in), grant("read", "create", "update", to=staff))

    @allow("read", "update")
    def of_the_team(self, viewer: Viewer) -> bool:
        return some(self.team.members, lambda member: member.person.id == viewer.id)
"""


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(model_of(SOURCE), database=new_database()) as served:
        yield served


@pytest.fixture(scope="module")
def ann(api: Api) -> Client:
    return person(api, "Ann")


@pytest.fixture(scope="module")
def eve(api: Api) -> Client:
    return person(api, "Eve")


def person(api: Api, name: str) -> Client:
    return api.as_(user=api.as_("staff").post("/persons", {"name": name}).expect(201).data["id"])


@pytest.fixture
def team(api: Api, ann: Client) -> str:
    """A team with Ann in it."""
    staff = api.as_("staff")
    id = str(staff.post("/teams", {"name": "t"}).expect(201).data["id"])
    me = ann.get("/viewer").data["subject"]
    staff.post("/members", {"teamId": id, "nick": "ann", "personId": me}).expect(201)
    return id


def refused(answer: Response) -> tuple[str, bytes]:
    return answer.code, answer.body


def test_an_outsider_is_told_the_same_whether_a_value_is_taken_or_not(eve: Client, team: str) -> None:
    document = "mutation($t: ID!, $n: String!) { createMember(input: {teamId: $t, nick: $n}) { id } }"
    upsert = "/members?by=teamId_nick"
    for nick in ("ann", "bob"):
        assert eve.post("/members", {"teamId": team, "nick": nick}).expect(403).code == "FORBIDDEN", nick
        assert eve.graphql(document, {"t": team, "n": nick}).code == "FORBIDDEN", nick
        assert eve.post(upsert, {"teamId": team, "nick": nick}).expect(403).code == "FORBIDDEN", nick
        batch = {"requests": [{"method": "POST", "url": "/members", "body": {"teamId": team, "nick": nick}}]}
        assert eve.post("/batch", batch).expect(403).code == "FORBIDDEN", nick
    several = [eve.post("/members", [{"teamId": team, "nick": nick}] * 2) for nick in ("ann", "bob")]
    assert [refused(each) for each in several] == [refused(several[0])] * 2


def test_a_member_who_would_go_where_others_are_is_told_no_more(api: Api, ann: Client, team: str) -> None:
    staff = api.as_("staff")
    other = str(staff.post("/teams", {"name": "other"}).expect(201).data["id"])
    staff.post("/members", {"teamId": other, "nick": "zoe"}).expect(201)
    for nick in ("zoe", "bob"):
        mate = staff.post("/members", {"teamId": team, "nick": nick}).expect(201).data["id"]
        assert ann.patch(f"/members/{mate}", {"teamId": other}).expect(403).code == "FORBIDDEN", nick


def test_whoever_may_make_it_is_told_of_the_conflict(ann: Client, team: str) -> None:
    answer = ann.post("/members", {"teamId": team, "nick": "ann"}).expect(409)
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/teamId", "/nick"}
    made = ann.post("/members", {"teamId": team, "nick": "new"}).expect(201).data["id"]
    assert ann.patch(f"/members/{made}", {"nick": "ann"}).expect(409).code == "CONFLICT"
    assert ann.post("/members?by=teamId_nick", {"teamId": team, "nick": "ann"}).expect(200).data["nick"] == "ann"
