"""`diptych.testing`: a model served in process, as its owner tests it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych import Refusal
from diptych.demo.model import Order, Post, User, model
from diptych.testing import Api, serve


@pytest.fixture
def served() -> Iterator[Api]:
    with serve(model) as api:
        yield api


def test_requests_of_both_styles_as_any_role(served: Api) -> None:
    ann = served.make(User, name="Ann", email="ann@example.org")
    body = {"title": "T", "body": "B", "authorId": ann.id}
    made = served.as_("signed_in", user=ann.id).post("/posts?fields=id", body).expect(201)
    assert made.headers["location"] == f"/posts/{made.data['id']}"
    assert served.anonymous.get("/posts").data == []
    assert served.as_("admin").get("/posts?fields=title").data == [{"title": "T"}]
    found = served.anonymous.graphql("query($id: ID!) { user(id: $id) { name } }", {"id": ann.id})
    assert found.data == {"user": {"name": "Ann"}}
    refused = served.anonymous.post("/posts", body)
    assert (refused.status, refused.code) == (401, "UNAUTHENTICATED")
    assert served.anonymous.graphql("{ nope }").code == "GRAPHQL_VALIDATION_FAILED"
    stale = served.as_("admin").patch(made.headers["location"], {"title": "U"}, if_match='"7."')
    assert stale.code == "PRECONDITION_FAILED"
    assert [post.title for post in served.all(Post)] == ["T"] and served.all(Order) == []
    assert served.as_("signed_in", user=ann.id, scopes=["read"]).delete(made.headers["location"]).status == 401


def test_rules_are_told_in_words(served: Api) -> None:
    assert served.rules(Post, "read", as_="anonymous") == "published"
    assert served.rules("User", "create", as_="admin") == "always"
    assert served.rules(Order, "delete", as_="staff") == "never"
    with pytest.raises(ValueError, match="no resource Nope"):
        served.rules("Nope", "read")
    with pytest.raises(ValueError, match="Post has no fly"):
        served.rules(Post, "fly")
    with pytest.raises(ValueError, match="no role editor"):
        served.as_("editor")


def test_a_failed_expectation_shows_what_came(served: Api) -> None:
    with pytest.raises(AssertionError, match=r"GET /posts/1 answered 404, not 200: .*There is nothing here"):
        served.anonymous.get("/posts/1").expect(200)


def test_constraints_hold_for_rows_that_are_made(served: Api) -> None:
    served.make(User, name="Ann", email="ann@example.org")
    with pytest.raises(Refusal):
        served.make(User, name="Bea", email="ann@example.org")
    assert len(served.all(User)) == 1


def test_it_works_inside_a_running_event_loop_and_with_settings(tmp_path: Path) -> None:
    async def work() -> int:
        with serve(model, database=f"sqlite:///{tmp_path}/a.db", max_depth=1) as api:
            return api.anonymous.graphql("{ users { posts { title } } }").status

    assert asyncio.run(work()) == 400
