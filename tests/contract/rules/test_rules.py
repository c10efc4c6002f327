"""Rules over related rows, rules for actions, and rules that come back to the row that is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.rules.house import ANN, BEN, BLUE, LEAF, LOOP, MIDDLE, OLD, RED, TOP, ZOE, id_of
from tests.support.in_process import Answer, Service

NAMES = "{ projects { name } }"


def who(service: Service, user: str | None, *roles: str, **claims: Any) -> str:
    """A token of the tenant acme, unless told otherwise."""
    more = {"tenant": "acme", **claims}
    return service.handler.context.tokens.make(user, roles, None, 900, more)


def change(service: Service, method: str, url: str, body: Any, token: str | None) -> Answer:
    kind = {"content-type": "application/json"}
    return service.send(method, url, headers=kind, body=json.dumps(body).encode(), token=token)


def names(service: Service, token: str | None) -> list[str]:
    """The projects that a viewer sees, in both styles."""
    found = [each["name"] for each in service.rows("/projects?fields=name&count=exact", token=token)]
    assert [each["name"] for each in service.data(NAMES, token=token)["projects"]] == found
    total = service.data("{ projectsConnection { totalCount } }", token=token)
    assert total == {"projectsConnection": {"totalCount": len(found)}}
    return found


@pytest.mark.parametrize(
    ("user", "roles", "tenant", "seen"),
    [
        (ANN, (), "acme", ["Blue", "Red"]),
        (BEN, (), "acme", ["Blue"]),
        (ZOE, (), "acme", []),
        (ZOE, (), "other", ["Old"]),
        (ANN, (), "other", []),
        (ANN, ("auditor",), None, ["Blue", "Red", "Old"]),
    ],
)
def test_whoever_is_among_related_rows_sees_the_row(
    served: Service, user: str, roles: tuple[str, ...], tenant: str | None, seen: list[str]
) -> None:
    token = who(served, user, *roles, tenant=tenant)
    assert names(served, token) == seen
    ids = {"Blue": BLUE, "Red": RED, "Old": OLD}
    for name, id in ids.items():
        assert served.get(f"/projects/{id}", token=token).status == (200 if name in seen else 404)
    tasks = served.rows("/tasks?fields=project(name)", token=token) if user != ANN or not roles else []
    assert {each["project"]["name"] for each in tasks} <= set(seen)


def test_a_rule_that_can_never_hold_leaves_nothing(served: Service) -> None:
    """Without a tenant, and without a token, the comparison with the tenant is never true."""
    assert served.get("/projects", token=who(served, ANN, tenant=None)).status == 403
    assert served.get("/projects").status == 401


def test_a_field_shows_to_whom_a_related_row_says(served: Service) -> None:
    token = who(served, ANN)
    assert served.rows("/projects?fields=name,secret", token=token) == [
        {"name": "Blue", "secret": "b"},
        {"name": "Red", "secret": None},
    ]
    assert served.rows("/projects?fields=name&secret=r", token=token) == []
    assert served.rows("/projects?fields=name&secret=b", token=token) == [{"name": "Blue"}]
    query = "{ projects(where: {secret: {isNull: true}}) { name memberships { user { name } } } }"
    assert served.data(query, token=token)["projects"] == [{"name": "Red", "memberships": [{"user": {"name": "Ann"}}]}]


def test_many_values_of_a_viewer(served: Service) -> None:
    url = "/tasks?fields=kind,note"
    for kinds, notes in ((["work"], [None, "n2", "n3"]), (["work", "plan", "x"], ["n1", "n2", "n3"])):
        assert [each["note"] for each in served.rows(url, token=who(served, ANN, kinds=kinds))] == notes
    assert served.get(url, token=who(served, ANN)).status == 400, "a field that can never show does not exist"


@pytest.mark.parametrize(
    ("user", "project", "status"),
    [(ANN, BLUE, 200), (ANN, RED, 403), (BEN, BLUE, 403), (BEN, RED, 404), (ZOE, BLUE, 404)],
)
def test_whoever_leads_may_update(served: Service, user: str, project: str, status: int) -> None:
    token = who(served, user)
    assert change(served, "PATCH", f"/projects/{project}", {"name": "New"}, token).status == status
    document = f'mutation {{ updateProject(id: "{project}", patch: {{name: "Newer"}}) {{ name }} }}'
    code = {200: None, 403: "FORBIDDEN", 404: "NOT_FOUND"}[status]
    answer = served.query(document, token=token)
    assert (answer.code if "errors" in answer.json() else None) == code


def test_a_new_row_is_held_against_the_rows_that_it_refers_to(served: Service) -> None:
    body = {"kind": "work", "projectId": BLUE}
    assert change(served, "POST", "/tasks", body, who(served, BEN)).status == 201
    hidden = change(served, "POST", "/tasks", body, who(served, ZOE))
    nothing = change(served, "POST", "/tasks", {**body, "projectId": id_of(99)}, who(served, ZOE))
    assert (hidden.status, hidden.body) == (nothing.status, nothing.body)
    assert hidden.status == 409


@pytest.mark.parametrize(
    ("user", "roles", "project", "status"),
    [
        (ANN, (), BLUE, 200),
        (ANN, (), RED, 403),
        (BEN, (), BLUE, 403),
        (BEN, (), RED, 404),
        (ZOE, ("auditor",), BLUE, 403),
        (ZOE, ("auditor",), RED, 200),
        (ZOE, (), BLUE, 404),
    ],
)
def test_an_action_is_called_where_a_rule_allows_it(
    served: Service, user: str, roles: tuple[str, ...], project: str, status: int
) -> None:
    token = who(served, user, *roles)
    assert served.send("POST", f"/projects/{project}/archive", token=token).status == status
    answer = served.query(f'mutation {{ archiveProject(id: "{project}") {{ archived }} }}', token=token)
    assert answer.json().get("data") == ({"archiveProject": {"archived": True}} if status == 200 else None)
    if status != 200:
        assert answer.code == {403: "FORBIDDEN", 404: "NOT_FOUND"}[status]


def test_an_action_that_a_viewer_can_never_call_is_not_in_its_documents(served: Service) -> None:
    """Nobody without a token is among the members, so no rule can ever hold."""
    assert served.send("POST", f"/projects/{BLUE}/archive").status == 401
    assert "archive" not in json.dumps(served.get("/openapi.json").json())
    assert "archive" in json.dumps(served.get("/openapi.json", token=who(served, ANN)).json())


def test_an_action_and_its_rule_need_the_scope_to_write(served: Service) -> None:
    tokens = served.handler.context.tokens
    token = tokens.make(ANN, (), ["read"], 900, {"tenant": "acme"})
    assert served.send("POST", f"/projects/{BLUE}/archive", token=token).status == 403
    token = tokens.make(ANN, (), ["read", "projects:write"], 900, {"tenant": "acme"})
    assert served.send("POST", f"/projects/{BLUE}/archive", token=token).status == 200


# rules that come back to the row that is changed


def test_a_rule_about_the_row_two_steps_up(served: Service) -> None:
    token = who(served, ANN)
    assert change(served, "PATCH", f"/folders/{TOP}", {"locked": True}, token).status == 200
    assert change(served, "PATCH", f"/folders/{LEAF}", {"locked": True}, token).status == 403
    assert change(served, "PATCH", f"/folders/{MIDDLE}", {"locked": True}, token).status == 403
    assert change(served, "PATCH", f"/folders/{LEAF}", {"name": "x"}, token).status == 200, "it has a rule of its own"


@pytest.mark.parametrize("style", ["rest", "graphql"])
def test_a_rule_sees_the_row_as_it_becomes_also_where_it_leads_back_to_it(served: Service, style: str) -> None:
    """The folder is its own parent: once it is locked, nobody could have changed it. So nobody can lock it."""
    token = who(served, ANN)

    def update(patch: dict[str, Any]) -> int:
        if style == "rest":
            return change(served, "PATCH", f"/folders/{LOOP}", patch, token).status
        document = f'mutation($patch: FolderPatch!) {{ updateFolder(id: "{LOOP}", patch: $patch) {{ name locked }} }}'
        answer = served.query(document, {"patch": patch}, token=token)
        return 403 if "errors" in answer.json() and answer.code == "FORBIDDEN" else 200

    assert update({"locked": True}) == 403
    assert update({"name": "round"}) == 200
    assert update({"name": "square", "locked": True}) == 403
    assert served.get(f"/folders/{LOOP}?fields=name,locked,version", token=token).json() == {
        "name": "round",
        "locked": False,
        "version": 2,
    }


def test_a_ring_of_two_is_seen_as_it_becomes(served: Service) -> None:
    """Top becomes a child of leaf's parent: two steps up from top stands top itself."""
    token = who(served, ANN)
    assert change(served, "PATCH", f"/folders/{TOP}", {"parentId": MIDDLE}, token).status == 200
    assert change(served, "PATCH", f"/folders/{TOP}", {"locked": True}, token).status == 403
    assert change(served, "PATCH", f"/folders/{TOP}", {"locked": True, "parentId": None}, token).status == 200


def test_a_rule_that_asks_for_no_related_row(served: Service) -> None:
    token = who(served, ANN)
    assert served.send("DELETE", f"/folders/{TOP}", token=token).status == 401
    assert served.send("DELETE", f"/folders/{LEAF}", token=token).status == 204
    assert served.send("DELETE", f"/folders/{MIDDLE}", token=token).status == 204
