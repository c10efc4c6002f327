"""Every change in the audit log has its actor, whichever way it came; and its reason, where the model asks for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diptych.ask.act import Act, acting
from tests.contract.audit.audited_model import ANN, BOB, MODEL, entries, serving
from tests.support.in_process import Answer, Service

CREATE = "mutation ($a: ID!, $t: String!) { createPost(input: {authorId: $a, title: $t}) { id } }"
INVOICE = "mutation { createInvoice(input: {total: 1}) { id } }"


def actors_of(service: Service, title: str) -> list[dict[str, Any]]:
    return [entry["actor"] for entry in entries(service) if (entry["new"] or entry["old"]).get("title") == title]


def create(service: Service, title: str, token: str | None, **headers: str) -> Answer:
    sent = {"content-type": "application/json", **headers}
    body = json.dumps({"authorId": ANN, "title": title}).encode()
    answer = service.send("POST", "/posts", headers=sent, body=body, token=token)
    assert answer.status == 201, answer.body
    return answer


def test_the_actor_of_a_request_is_recorded_without_its_token(database: str) -> None:
    with serving(database) as service:
        token = service.token(ANN, "admin")
        create(service, "rest", token, **{"x-request-id": "r-1"})
        (actor,) = actors_of(service, "rest")
        assert actor == {
            "channel": "rest",
            "user": ANN,
            "client": "diptych-cli",
            "token": actor["token"],
            "roles": ["admin"],
            "request": "r-1",
        }
        assert 8 <= len(actor["token"]) < 40 and actor["token"] not in ("", token)


def test_every_channel_is_told_apart(database: str) -> None:
    with serving(database) as service:
        ann, bob = service.token(ANN, "admin"), service.token(BOB, "admin")
        row = create(service, "a", ann).json()["id"]
        service.data(CREATE, {"a": ANN, "t": "b"}, token=bob)
        step = {"method": "POST", "url": "/posts", "body": {"authorId": ANN, "title": "c"}}
        assert service.send_json("POST", "/batch", {"requests": [step]}, bob).status == 200
        assert service.send_json("POST", f"/posts/{row}/publish", {}, ann).status == 200
        service.data(f'mutation {{ publishPost(id: "{row}") {{ id }} }}', token=bob)
        service.execute("UPDATE posts SET title = 'd' WHERE title = 'c'")
        assert service.send_json("PATCH", f"/posts/{row}", {"title": "e"}, ann).status == 200
        assert service.send("DELETE", f"/posts/{row}", token=bob).status == 204
        told = [
            (entry["kind"], entry["actor"]["channel"], entry["actor"].get("user"), entry["actor"].get("operation"))
            for entry in entries(service)
        ]
        assert told == [
            ("CREATED", "rest", ANN, None),
            ("CREATED", "graphql", BOB, None),
            ("CREATED", "batch", BOB, None),
            ("UPDATED", "action", ANN, "publishPost"),
            ("UPDATED", "action", ANN, "publishPost"),
            ("UPDATED", "action", BOB, "publishPost"),
            ("UPDATED", "sql", None, None),
            ("UPDATED", "rest", ANN, None),
            ("DELETED", "rest", BOB, None),
        ]


def test_rows_that_go_with_another_one_have_the_actor_of_its_deletion(database: str) -> None:
    with serving(database) as service:
        create(service, "a", service.token(ANN))
        assert service.send("DELETE", f"/authors/{ANN}", token=service.token(BOB)).status == 204
        kinds = [(entry["kind"], entry["actor"].get("user")) for entry in entries(service)]
        assert kinds == [("CREATED", ANN), ("DELETED", BOB)]


def test_many_rows_of_one_request_have_one_actor_and_refused_ones_none(database: str) -> None:
    with serving(database) as service:
        bob = service.token(BOB, "admin")
        rows = [{"authorId": ANN, "title": f"m{index}"} for index in range(3)]
        assert service.send_json("POST", "/posts", rows, bob).status == 201
        assert service.send_json("POST", "/posts", [*rows, {"authorId": "x", "title": "n"}], bob).status == 409
        service.execute(
            "INSERT INTO posts (id, author_id, title, published) "
            f"SELECT '{BOB}', id, 'sql', {_FALSE[database[:6]]} FROM authors WHERE name = 'Bob'"
        )
        create(service, "after", service.token(ANN))
        users = [(entry["new"]["title"], entry["actor"].get("user")) for entry in entries(service)]
        assert users == [("m0", BOB), ("m1", BOB), ("m2", BOB), ("sql", None), ("after", ANN)]


_FALSE = {"sqlite": "0", "postgr": "false"}


def test_a_job_and_a_command_say_who_they_act_for(database: str) -> None:
    with serving(database) as service:
        row = create(service, "a", service.token(ANN)).json()["id"]

        async def job() -> None:
            with acting(Act("job", user=BOB, operation="nightly")):
                session = await service.app.store.session()
                try:
                    await session.rows("UPDATE posts SET title = 'job' WHERE id = $1", (row,))
                    await session.commit()
                finally:
                    await session.end()

        service.runner.run(job())
        assert actors_of(service, "job")[-1] == {"channel": "job", "user": BOB, "operation": "nightly"}


REASONS = (
    ("rest", {"change-reason": "a typo"}),
    ("graphql", {"change-reason": "a typo"}),
    ("graphql", {"extensions": "a typo"}),
    ("batch", {"change-reason": "a typo"}),
)


@pytest.mark.parametrize(("way", "sent"), REASONS)
def test_a_reason_is_recorded_and_a_required_one_must_be_sent(way: str, sent: dict[str, str], database: str) -> None:
    with serving(database) as service:
        token = service.token(ANN)
        missing, given = (ask(service, way, token, headers) for headers in ({}, sent))
        assert (missing.status, missing.code) == (400, "BAD_REQUEST"), missing.body
        assert b"Change-Reason" in missing.body
        assert given.status in (200, 201), given.body
        (entry,) = entries(service, resource="invoices")
        assert entry["actor"]["reason"] == "a typo"


def ask(service: Service, way: str, token: str, headers: dict[str, str]) -> Answer:
    if way in ("rest", "batch"):
        create = {"total": 1}
        step: Any = {"requests": [{"method": "POST", "url": "/invoices", "body": create}]} if way == "batch" else create
        path = "/batch" if way == "batch" else "/invoices"
        return service.send(
            "POST",
            path,
            headers={"content-type": "application/json", **headers},
            body=json.dumps(step).encode(),
            token=token,
        )
    if "extensions" in headers:
        return service.post({"query": INVOICE, "extensions": {"changeReason": headers["extensions"]}}, token=token)
    return service.post({"query": INVOICE}, token=token, headers=headers)


def test_an_action_needs_the_reason_of_its_resource(database: str) -> None:
    with serving(database) as service:
        headers = {"content-type": "application/json", "change-reason": "paid in cash"}
        made = service.send("POST", "/invoices", headers=headers, body=b'{"total":2}')
        path = f"/invoices/{made.json()['id']}/pay"
        refused = service.send("POST", path, headers={"content-type": "application/json"}, body=b"{}")
        assert (refused.status, refused.code) == (400, "BAD_REQUEST")
        assert service.send("POST", path, headers=headers, body=b"{}").status == 200
        assert [entry["actor"]["reason"] for entry in entries(service)] == ["paid in cash"] * 2


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x01b"])
def test_a_reason_that_is_no_line_of_text_is_refused(reason: str, database: str) -> None:
    with serving(database) as service:
        answer = service.send(
            "POST",
            "/invoices",
            headers={"content-type": "application/json", "change-reason": reason},
            body=b'{"total":2}',
        )
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_masked_values_are_in_no_entry(database: str) -> None:
    with serving(database) as service:
        body = {"authorId": ANN, "title": "t", "code": "hunter2"}
        assert service.send_json("POST", "/posts", body, service.token(ANN)).status == 201
        (entry,) = entries(service)
        assert "hunter2" not in json.dumps(entry) and entry["masked"] == ["code"] and entry["new"]["title"] == "t"
        assert MODEL.audited["posts"].masked == ("code",)
