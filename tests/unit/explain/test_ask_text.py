"""Asks in words: the same for both styles, and without a value."""

from __future__ import annotations

from diptych.api.graphql.http import Parameters
from diptych.demo.model import model
from diptych.explain.ask_text import ask_text
from diptych.explain.understood import RestRequest, Sent, understand
from tests.support.cases import cases

ID = "01900000-0000-7000-8000-0000000000a1"


def words(sent: Sent) -> str:
    wanted = understand(sent, model, model.trusted(True))
    asks = (*wanted.reads[0].asks, *(op.ask for op, _ in wanted.ops))
    return "; ".join(ask_text(ask, model.resources) for ask in asks)


@cases(
    ("path", "query", "document", "expected"),
    [
        (f"/posts/{ID}", "fields=title", f'{{ post(id: "{ID}") {{ title }} }}', "post where id = ?: title"),
        (
            "/posts",
            "title[contains]=secret&sort=-createdAt&fields=title,author(name)",
            '{ posts(where: {title: {contains: "secret"}}, orderBy: [{createdAt: DESC}]) { title author { name } } }',
            "posts where title contains ?, sorted by createdAt descending: title, author (name)",
        ),
        (
            "/users",
            'fields=name,posts[where={"published":{"eq":true}}](title)',
            "{ users { name posts(where: {published: {eq: true}}) { title } } }",
            "users: name, posts where published = ? (title)",
        ),
    ],
)
def test_a_read_in_either_style_has_the_same_words(path: str, query: str, document: str, expected: str) -> None:
    for sent in (RestRequest("GET", path, query), Parameters(document)):
        said = words(sent)
        assert said == expected
        assert "secret" not in said and ID not in said


def test_writes_are_named_with_their_fields() -> None:
    create = RestRequest("POST", "/users", "", {"name": "secret", "email": "secret@example.org"})
    assert words(create) == "create user: name, email"
    assert words(RestRequest("PATCH", f"/posts/{ID}", "", {"title": "secret"})) == "update post: title"
    assert words(RestRequest("DELETE", f"/posts/{ID}")) == "delete post"
