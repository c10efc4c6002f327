"""The versions of a row: the same in both styles and on both stores, under the rules that hold for each."""

from __future__ import annotations

from typing import Any

from tests.contract.audit.audited_model import ANN, BOB, MODEL, serving
from tests.support.in_process import Service

ALL = "id kind at actor client requestId channel operation reason roles"


def make(service: Service) -> str:
    """A post of Ann's that was a draft, was published, and was changed since, by SQL too."""
    ann = service.token(ANN)
    body = {"authorId": ANN, "title": "draft", "note": None}
    del body["note"]
    made = service.send_json("POST", "/posts", body, ann)
    assert made.status == 201, made.body
    row: str = made.json()["id"]
    for patch in ({"published": True}, {"title": "second"}):
        assert service.send_json("PATCH", f"/posts/{row}", patch, ann).status == 200
    assert service.send_json("PATCH", f"/posts/{row}", {"note": "secret"}, service.token(BOB, "admin")).status == 200
    service.execute(f"UPDATE posts SET title = 'by sql' WHERE id = '{row}'")
    return row


def both(service: Service, row: str, token: str | None, *, fields: str = "title published version") -> list[Any]:
    """The history by REST, which must be that by GraphQL."""
    role = token is not None
    names = ALL if role else "id kind at"
    rest = service.rows(
        f"/posts/{row}/history?fields={names.replace(' ', ',')},post({fields.replace(' ', ',')})", token=token
    )
    asked = f'{{ post(id: "{row}") {{ history {{ {names} post {{ {fields} }} }} }} }}'
    assert service.data(asked, token=token)["post"]["history"] == rest
    return list(rest)


def test_the_history_of_a_row_is_the_same_in_both_styles(database: str) -> None:
    with serving(database) as service:
        row = make(service)
        versions = both(service, row, service.token(BOB, "admin", "auditor"), fields="title published note version")
        shown = [
            (v["id"], v["kind"], v["channel"], v["actor"], v["post"]["title"], v["post"]["note"]) for v in versions
        ]
        assert shown == [
            ("5", "UPDATED", "sql", None, "by sql", "secret"),
            ("4", "UPDATED", "rest", BOB, "second", "secret"),
            ("3", "UPDATED", "rest", ANN, "second", None),
            ("2", "UPDATED", "rest", ANN, "draft", None),
            ("1", "CREATED", "rest", ANN, "draft", None),
        ]
        assert [int(v["id"]) for v in versions] == [v["post"]["version"] for v in versions]


def test_a_version_that_the_viewer_could_not_have_seen_is_left_out(database: str) -> None:
    with serving(database) as service:
        row = make(service)
        assert [v["id"] for v in both(service, row, None)] == ["5", "4", "3", "2"]
        assert [v["id"] for v in both(service, row, service.token(ANN))] == ["5", "4", "3", "2", "1"]


def test_who_made_a_version_is_for_the_actor_and_for_some_roles(database: str) -> None:
    with serving(database) as service:
        row = make(service)
        assert [v["actor"] for v in both(service, row, service.token(BOB))] == [None, BOB, None, None]
        assert [v["actor"] for v in both(service, row, service.token(ANN))] == [None, None, ANN, ANN, ANN]
        assert service.get(f"/posts/{row}/history?fields=actor").status == 400
        assert "actor" not in service.rows(f"/posts/{row}/history")[0]
        filtered = service.rows(f"/posts/{row}/history?actor={ANN}&fields=id", token=service.token(BOB))
        assert filtered == []


def test_hidden_fields_are_hidden_in_versions(database: str) -> None:
    with serving(database) as service:
        row = make(service)
        assert service.get(f"/posts/{row}/history?fields=post(note)", token=service.token(ANN)).status == 400
        plain = service.rows(f"/posts/{row}/history", token=service.token(ANN))
        assert all("note" not in v["post"] and "title" in v["post"] for v in plain)


def test_history_is_paginated_with_cursors(database: str) -> None:
    with serving(database) as service:
        row, token = make(service), service.token(ANN)
        seen: list[str] = []
        url = f"/posts/{row}/history?first=2&count=exact"
        while url:
            page = service.get(url, token=token).json()
            seen += [v["id"] for v in page["data"]]
            assert page["page"]["total"] == 5
            after = page["page"]["next"]
            url = f"/posts/{row}/history?first=2&count=exact&after={after}" if after else ""
        assert seen == ["5", "4", "3", "2", "1"]
        asked = "historyConnection(first: 2) { totalCount edges { cursor node { id } } pageInfo { hasNextPage } }"
        found = service.data(f'{{ post(id: "{row}") {{ {asked} }} }}', token=token)["post"]["historyConnection"]
        assert [edge["node"]["id"] for edge in found["edges"]] == ["5", "4"]
        assert found["totalCount"] == 5 and found["pageInfo"]["hasNextPage"]
        oldest = service.rows(f"/posts/{row}/history?sort=id&first=1&fields=id", token=token)
        assert oldest == [{"id": "1"}]


def test_history_is_read_only_and_only_where_it_is_declared(database: str) -> None:
    with serving(database) as service:
        row = make(service)
        assert service.send_json("POST", f"/posts/{row}/history", {}).status == 405
        assert service.send_json("PATCH", f"/posts/{row}", {"history": []}, service.token(ANN)).status == 422
        assert service.get(f"/invoices/{row}/history").status == 404
        assert service.get(f"/authors/{ANN}/history").status == 404
        assert service.query('{ post(id: "x") { historySummary { count } } }').status == 400
        assert service.get('/posts?where={"history":{"some":{}}}').status == 400
        assert service.get(f"/posts/{BOB}/history").status == 404
        assert "PostVersion" not in MODEL.resources and "PostVersion" not in [*MODEL.resources]


def test_depth_and_price_limit_history(database: str) -> None:
    with serving(database, max_depth=4, max_complexity=50) as service:
        row = make(service)
        inner = "post { history { post { history { id } } } }"
        assert service.query(f'{{ post(id: "{row}") {{ history {{ {inner} }} }} }}').code == "TOO_DEEP"
        assert service.query('{ post(id: "x") { history(first: 60) { id } } }').code == "TOO_COMPLEX"
        assert service.get(f"/posts/{row}/history?first=60").code == "TOO_COMPLEX"


def test_long_texts_that_a_change_leaves_out_are_in_every_version(database: str) -> None:
    with serving(database) as service:
        token, long = service.token(ANN), "x" * 3000
        made = service.send_json("POST", "/posts", {"authorId": ANN, "title": long}, token).json()["id"]
        for number in (True, False):
            service.send_json("PATCH", f"/posts/{made}", {"published": number}, token)
        titles = [v["post"]["title"] for v in both(service, made, token)]
        assert titles == [long] * 3
        service.send_json("PATCH", f"/posts/{made}", {"title": "short"}, token)
        assert [v["post"]["title"] for v in both(service, made, token)] == ["short", *[long] * 3]


def test_a_row_that_is_made_again_begins_anew(database: str) -> None:
    with serving(database) as service:
        row, ann = make(service), service.token(ANN)
        assert service.send("DELETE", f"/posts/{row}", token=ann).status == 204
        assert service.get(f"/posts/{row}/history", token=ann).status == 404
        false = "0" if database.startswith("sqlite") else "false"
        service.execute(
            f"INSERT INTO posts (id, author_id, title, published) VALUES ('{row}', '{ANN}', 'again', {false})"
        )
        assert [(v["id"], v["kind"], v["post"]["title"]) for v in both(service, row, ann)] == [
            ("1", "CREATED", "again")
        ]
