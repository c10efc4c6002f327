"""A deleted row and no row answer alike: two databases that differ in deleted rows alone, asked by all but their owners.

The planted leaks forget the condition in one place each, and must be noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from diptych.model.defs import ResourceDef
from diptych.model.view import View
from diptych.testing import Api, Client, serve
from tests.contract.writes.trash_model import MODEL, Comment, Label, Order, Post, PostLabel, User
from tests.support.running import NewDatabase

_QUERY = """{
  users(orderBy: [{name: ASC}]) { name posts { slug comments { body post { slug } } labels { name } }
    postsConnection { totalCount nodes { slug } } postsSummary { count } }
  none: users(where: {posts: {none: {slug: {startsWith: "a"}}}}) { name }
  some: posts(where: {comments: {some: {body: {contains: "e"}}}}, orderBy: [{comments: {count: DESC}}]) { slug }
  every: posts(where: {labels: {every: {name: {eq: "x"}}}}) { slug }
  count: posts(where: {comments: {count: {gte: 1}}}) { slug }
  labels { name posts { slug } } ordersSummary { count }
}"""
_PATHS = (
    "/posts?count=exact&fields=slug,comments(body)",
    "/labels?fields=name",
    "/comments?fields=body,post(slug)&sort=body",
    "/posts/summary?fields=count",
    "/post-labels?count=exact&fields=post(slug)",
    "/users?fields=name,posts[sort=slug](slug)&sort=name",
)


def fill(api: Api, *, extra: bool) -> str:
    """Rows of two users; with `extra`, also some that are deleted again. Returns the id of one of these, or of none."""
    boss = api.as_("admin")
    ann = api.make(User, name="Ann")
    bob = api.make(User, name="Bob")
    post = api.make(Post, author=ann, slug="b")
    api.make(Comment, post=post, body="seen")
    if not extra:
        return "0198f0c2-0000-7000-8000-000000000000"
    label = api.make(Label, name="x")
    gone = api.make(Post, author=bob, slug="a")
    api.make(PostLabel, post=gone, label=label)
    api.make(PostLabel, post=post, label=label)
    api.make(Comment, post=gone, body="hidden e")
    extra_comment = api.make(Comment, post=post, body="hidden e")
    order = api.make(Order, post=gone)
    for path in (f"/orders/{order.id}", f"/comments/{extra_comment.id}", f"/posts/{gone.id}", f"/labels/{label.id}"):
        boss.delete(path).expect(204)
    return gone.id


def answers(api: Api, client: Client, gone: str) -> list[Any]:
    """What a caller can learn, without ids."""
    found: list[Any] = [client.graphql(_QUERY).json()]
    found += [client.get(path).json() for path in _PATHS]
    found += [client.get(f"/posts/{gone}").json(), client.get(f"/posts/{gone}/comments").json()]
    found.append(client.graphql(f'{{ node(id: "{gone}") {{ id }} post(id: "{gone}") {{ slug }} }}').json())
    signed_in = api.as_("signed_in", user=gone)
    for url, body in ((f"/posts/{gone}", {"slug": "z"}), (f"/posts/{gone}", {"secret": True})):
        found.append(signed_in.patch(url, body).json())
    found += [signed_in.delete(f"/posts/{gone}{more}").json() for more in ("", "?deleted=only")]
    found.append(signed_in.post(f"/posts/{gone}/restore").json())
    found.append(client.post("/notes", {"postId": gone}).json())
    found.append(client.post("/comments", {"postId": gone, "body": "b"}).json())
    author = next(row["id"] for row in api.as_("admin").get("/users?name=Ann").data)
    made = api.as_("admin").post("/posts?fields=slug", {"slug": "a", "authorId": author})
    found.append((made.status, made.json()))
    return found


@contextmanager
def served(new_database: NewDatabase) -> Iterator[tuple[Api, Api]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(serve(MODEL, database=new_database())) for _ in range(2))
        yield one, other


def differences(new_database: NewDatabase) -> list[tuple[Any, Any]]:
    with served(new_database) as (one, other):
        there = answers(one, one.anonymous, fill(one, extra=True))
        absent = answers(other, other.anonymous, fill(other, extra=False))
    return [pair for pair in zip(there, absent, strict=True) if pair[0] != pair[1]]


def test_a_deleted_row_and_no_row_answer_alike(new_database: NewDatabase) -> None:
    assert differences(new_database) == []


def _rule(view: View, name: str) -> Any:
    if name not in view._read:
        view._read[name] = view.rule(view.model[name], "read")
    return view._read[name]


@contextmanager
def _forgets_references() -> Iterator[None]:
    with patch.object(View, "_read_rule", _rule):
        MODEL.views.clear()
        yield
    MODEL.views.clear()


@contextmanager
def _forgets_relations() -> Iterator[None]:
    """The condition is forgotten where a relation is followed or counted."""
    real = View._relations

    def relations(view: View, resource: ResourceDef, readable: Any) -> Any:
        found = real(view, resource, readable)
        return {name: replace(way, known=view._read_rule(way.relation.target)) for name, way in found.items()}

    with patch.object(View, "_relations", relations):
        MODEL.views.clear()
        yield
    MODEL.views.clear()


@pytest.mark.parametrize("leak", [_forgets_references, _forgets_relations])
def test_planted_leaks_are_noticed(new_sqlite: NewDatabase, leak: Any) -> None:
    with leak():
        assert differences(new_sqlite)
