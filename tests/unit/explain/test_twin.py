"""Pairs of requests, one in each style: either gives the other's text, or a sentence that says why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.explain.twin import RestText, Twin, twin
from diptych.explain.understood import RestRequest, Sent, understand
from diptych.model.model import Model
from tests.support.cases import cases
from tests.support.model_files import model_of

ID = "01900000-0000-7000-8000-0000000000a1"
SHOP = model_of("""
class Address(Value):
    city: str
    zip: str | None = None

class Writer(Resource):
    name: Annotated[str, Unique()]
    home: Address | None = None
    posts: list[Post] = inverse("writer")
    access = (grant("read", "create", "update", "delete"),)
    search = Search("name")

class Post(Resource, trash=timedelta(days=30)):
    title: str
    price: Annotated[Decimal, Digits(12, 2)] = Decimal(0)
    extra: Json | None = None
    writer: Writer | None = None
    access = (grant("read", "create", "update", "delete"),)

    @action
    async def publish(self, tx: Tx, title: str | None = None) -> Post:
        return self

    @query
    @classmethod
    async def latest(cls, tx: Tx, limit: int = 2) -> list[Post]:
        return []
""")
PICKED = "id title"

Pair = tuple[str, dict[str, Any], tuple[Any, ...]]
PAIRS: tuple[Pair, ...] = (
    ('{ writers(first: 2, search: "zoe*") { name } }', {}, ("GET", "/writers?fields=name&search=zoe%2A&first=2")),
    (
        '{ writers(first: 2, where: {home: {city: {eq: "Oslo"}}}) { name home { city } } }',
        {},
        ("GET", '/writers?fields=name,home(city)&where={"home":{"city":{"eq":"Oslo"}}}&first=2'),
    ),
    ("{ writers(first: 1) { home { city zip } } }", {}, ("GET", "/writers?fields=home&first=1")),
    (
        '{ posts(first: 1, deleted: ONLY, where: {price: {gt: "1.50"}}) { title } }',
        {},
        ("GET", '/posts?fields=title&deleted=only&where={"price":{"gt":"1.50"}}&first=1'),
    ),
    (f'mutation {{ restorePost(id: "{ID}") {{ {PICKED} }} }}', {}, ("POST", f"/posts/{ID}/restore?fields=id,title")),
    (
        f'mutation {{ deletePost(id: "{ID}", deleted: ONLY) {{ {PICKED} }} }}',
        {},
        ("DELETE", f"/posts/{ID}?deleted=only&fields=id,title", None, {"prefer": "return=representation"}),
    ),
    (
        f'mutation {{ deletePost(id: "{ID}", ifVersion: 3) {{ id }} }}',
        {},
        ("DELETE", f"/posts/{ID}", None, {"if-match": '"3."'}),
    ),
    (
        'mutation { upsertWriter(by: name, input: {name: "Zoe"}, onConflict: KEEP) { id } }',
        {},
        ("POST", "/writers?fields=id&by=name&onConflict=keep", {"name": "Zoe"}),
    ),
    (
        'mutation { deletePosts(where: {title: {eq: "x"}}, most: 3, dryRun: true) { matched changed dryRun } }',
        {},
        ("DELETE", '/posts?where={"title":{"eq":"x"}}&most=3&dryRun=true'),
    ),
    (
        "mutation ($i: WriterCreate!) { createWriter(input: $i) { id name } }",
        {"i": {"name": "Zoe", "posts": {"create": [{"title": "First"}]}}},
        ("POST", "/writers?fields=id,name", {"name": "Zoe", "posts": {"create": [{"title": "First"}]}}),
    ),
    (
        f'mutation {{ updateWriter(id: "{ID}", patch: {{posts: {{create: [{{title: "First"}}]}}}}) {{ id }} }}',
        {},
        ("PATCH", f"/writers/{ID}?fields=id", {"posts": {"create": [{"title": "First"}]}}),
    ),
    (
        f'mutation {{ publishPost(id: "{ID}", title: "x") {{ title }} }}',
        {},
        ("POST", f"/posts/{ID}/publish?fields=title", {"title": "x"}),
    ),
    ("{ latestPosts(limit: 3) { title } }", {}, ("GET", "/posts/latest?limit=3&fields=title")),
    (
        f'mutation {{ updatePost(id: "{ID}", patch: {{extra: {{a: [1, null]}}, price: "2.00"}}) {{ id }} }}',
        {},
        ("PATCH", f"/posts/{ID}?fields=id", {"extra": {"a": [1, None]}, "price": "2.00"}),
    ),
)


def printed(sent: Sent, model: Model = SHOP) -> Twin:
    view = model.view_as("signed_in")
    return twin(understand(sent, model, view), sent, model)


def rest_request(method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None) -> RestRequest:
    path, _, query = url.partition("?")
    return RestRequest(method, path, query, body, headers or {})


@cases("document, variables, rest", PAIRS)
def test_each_gives_the_other(document: str, variables: dict[str, Any], rest: tuple[Any, ...]) -> None:
    ours, theirs = printed(Parameters(document, None, variables)), printed(rest_request(*rest))
    (text,) = ours.rest
    assert isinstance(text, RestText) and not isinstance(theirs.graphql, str), (text, theirs.graphql)
    again = printed(rest_request(text.method, text.url, text.body, text.headers))
    assert again.graphql[0] == theirs.graphql[0] or len(rest) == 4, (text, again.graphql)
    assert text.method == rest[0] and (text.body or {}) == ((rest[2] if len(rest) > 2 else None) or {})


@cases(
    "document, sentence",
    [
        ("{ postsSummary { count } }", "Numbers of rows are printed in the style in which they are asked for."),
        (f'{{ nodes(ids: ["{ID}"]) {{ id }} }}', "Rows by a list of ids are GraphQL's alone."),
        ("subscription { postChanged { kind } }", "REST shows the row of each change: select fields of it."),
        ("{ postsConnection(first: 2) { totalCount } }", "A REST list has rows: select fields of `nodes`."),
    ],
)
def test_what_one_style_cannot_say_is_a_sentence(document: str, sentence: str) -> None:
    texts = [text for text in printed(Parameters(document, None, {})).rest if isinstance(text, str)]
    assert sentence in texts, texts


def test_what_is_left_out_is_said() -> None:
    (text,) = printed(Parameters("{ posts(first: 1) { __typename title } }", None, {})).rest
    assert isinstance(text, RestText) and text.note == "REST has no `__typename`."


def test_a_text_is_a_text_whatever_is_in_it() -> None:
    """No value of a request becomes part of the grammar."""
    for value in (
        '"',
        "\\",
        '") { id } } #',
        "\u2028",
        "{}",
        "$v0",
        "&first=9",
        "%26",
        "'",
        "\n",
        "é",
        "𝕏" * 300,
    ):
        sent = Parameters(
            "query ($v: String!) { posts(first: 1, where: {title: {eq: $v}}) { id } }", None, {"v": value}
        )
        (text,) = printed(sent).rest
        assert isinstance(text, RestText)
        path, _, query = text.url.partition("?")
        document = printed(RestRequest("GET", path, query)).graphql
        assert not isinstance(document, str)
        view = SHOP.view_as("signed_in")
        assert value in understand(Parameters(document[0], None, dict(document[1])), SHOP, view).reads[1]
        assert json.dumps(text.url)
