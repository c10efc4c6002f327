"""For how long anyone may keep an answer: the least public part of what was asked decides, in both styles alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from diptych.api.graphql.http import Parameters
from diptych.explain.cost import cache_lines
from diptych.explain.understood import RestRequest, understand
from tests.contract.caching.kiosk import ANN, ARTICLES, ROWS, model
from tests.support.cases import cases
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

ONE = ARTICLES[1]
STRANGER = "01900000-0000-7000-8000-0000000000ff"
IN_AUTHOR = '{"author":{"name":{"eq":"Ann"}}}'
IN_MOOD = '{"author":{"mood":{"eq":"calm"}}}'
IN_NOTES = '{"notes":{"some":{"text":{"eq":"x"}}}}'
IN_TAGS = '{"tags":{"some":{"word":{"eq":"x"}}}}'

READS = [
    # what is picked
    ("{ articles { title } }", "/articles?fields=title", 60, "Article is declared public"),
    (f'{{ article(id: "{ONE}") {{ title }} }}', f"/articles/{ONE}?fields=title", 60, "Article is declared public"),
    ("{ articles { title views } }", "/articles?fields=title,views", 1, "Article.views says so"),
    ("{ articles { stock } }", "/articles?fields=stock", 0, "Article.stock says so"),
    ("{ authors { name } }", "/authors?fields=name", 120, "Author is declared public"),
    ("{ notes { text } }", "/notes?fields=text", 0, "Note is not declared public"),
    ("{ articles { __typename } }", "/articles?fields=id", 60, "Article is declared public"),
    # through relations
    ("{ articles { author { name } } }", "/articles?fields=author(name)", 60, "Article is declared public"),
    ("{ articles { author { mood } } }", "/articles?fields=author(mood)", 20, "Author.mood says so"),
    (
        "{ articles { author { articles { views } } } }",
        "/articles?fields=author(articles(views))",
        1,
        "Article.views says so",
    ),
    ("{ authors { articles { title } } }", "/authors?fields=articles(title)", 60, "Article is declared public"),
    ("{ authors { notes { text } } }", "/authors?fields=notes(text)", 0, "Note is not declared public"),
    ("{ articles { editorId } }", "/articles?fields=editorId", 40, "Article.editorId says so"),
    ("{ articles { editor { name } } }", "/articles?fields=editor(name)", 40, "Article.editorId says so"),
    ("{ articles { tags { word } } }", "/articles?fields=tags(word)", 0, "Tagging is not declared public"),
    # filters and sorts
    (
        "{ articles(where: {views: {gt: 3}}) { title } }",
        "/articles?fields=title&views[gt]=3",
        1,
        "Article.views says so",
    ),
    (
        "{ articles(orderBy: [{views: DESC}]) { title } }",
        "/articles?fields=title&sort=-views",
        1,
        "Article.views says so",
    ),
    (
        "{ articles(orderBy: [{stock: DESC}]) { title } }",
        "/articles?fields=title&sort=-stock",
        0,
        "Article.stock says so",
    ),
    (
        '{ articles(where: {author: {name: {eq: "Ann"}}}) { title } }',
        f"/articles?fields=title&where={quote(IN_AUTHOR)}",
        60,
        "Article",
    ),
    (
        '{ articles(where: {author: {mood: {eq: "calm"}}}) { title } }',
        f"/articles?fields=title&where={quote(IN_MOOD)}",
        20,
        "Author.mood",
    ),
    (
        '{ articles(where: {notes: {some: {text: {eq: "x"}}}}) { title } }',
        f"/articles?fields=title&where={quote(IN_NOTES)}",
        0,
        "Note is not",
    ),
    (
        '{ articles(where: {tags: {some: {word: {eq: "x"}}}}) { title } }',
        f"/articles?fields=title&where={quote(IN_TAGS)}",
        0,
        "Tagging is not",
    ),
    (
        '{ articles(where: {not: {or: [{title: {eq: "x"}}, {stock: {eq: 1}}]}}) { title } }',
        "/articles?fields=title&where=" + quote('{"not":{"or":[{"title":{"eq":"x"}},{"stock":{"eq":1}}]}}'),
        0,
        "Article.stock",
    ),
    # pages and counts
    (
        "{ articlesConnection { totalCount nodes { title } } }",
        "/articles?fields=title&count=exact",
        60,
        "Article is declared public",
    ),
    (
        "{ articlesConnection { edges { cursor node { views } } pageInfo { endCursor } } }",
        "/articles?fields=views",
        1,
        "Article.views",
    ),
    ("{ notesConnection { totalCount } }", "/notes?fields=id&count=exact", 0, "Note is not declared public"),
    (
        f'{{ author(id: "{ANN}") {{ articlesConnection {{ nodes {{ title }} }} }} }}',
        f"/authors/{ANN}/articles?fields=title",
        60,
        "Article",
    ),
    # computed fields
    ("{ articles { teaser } }", "/articles?fields=teaser", 60, "Article is declared public"),
    ("{ articles { heading } }", "/articles?fields=heading", 7, "Article.heading says so"),
    ("{ articles { byline } }", "/articles?fields=byline", 20, "Author.mood says so"),
    ("{ articles { length } }", "/articles?fields=length", 60, "Article is declared public"),
    ("{ articles { shown } }", "/articles?fields=shown", 1, "Article.views says so"),
    ("{ articles { fleeting } }", "/articles?fields=fleeting", 0, "Article.fleeting says so"),
    (
        '{ articles(where: {byline: {eq: "x"}}) { title } }',
        "/articles?fields=title&byline=x",
        20,
        "Author.mood says so",
    ),
    (
        "{ articles(orderBy: [{heading: ASC}]) { title } }",
        "/articles?fields=title&sort=heading",
        7,
        "Article.heading says so",
    ),
    # code of the model's own
    ("{ newestArticles { title } }", "/articles/newest?fields=title", 30, "Article.newest is declared public"),
    ("{ newestArticles { views } }", "/articles/newest?fields=views", 1, "Article.views says so"),
    ("{ newestArticles { author { mood } } }", "/articles/newest?fields=author(mood)", 20, "Author.mood says so"),
    ("{ chosenArticles { title } }", "/articles/chosen?fields=title", 0, "Article.chosen is not declared public"),
    ("{ amountArticles }", "/articles/amount", 10, "Article.amount is declared public"),
    ("{ jottedArticles { text } }", "/articles/jotted?fields=text", 0, "Note is not declared public"),
]


@pytest.fixture(scope="module")
def kiosk(new_sqlite: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, new_sqlite(), runner, ROWS) as service:
        yield service


def control(seconds: int) -> str:
    return f"public, max-age={seconds}" if seconds else "private, no-cache"


@cases(("document", "url", "seconds", "because"), READS)
def test_the_least_public_part_decides(kiosk: Service, document: str, url: str, seconds: int, because: str) -> None:
    for _ in range(3):  # cold, kept, and known
        graphql, rest = kiosk.get_query({"query": document}), kiosk.get(url)
        assert (graphql.status, rest.status) == (200, 200), (graphql.body, rest.body)
        assert graphql.headers["cache-control"] == rest.headers["cache-control"] == control(seconds)
        assert graphql.headers["vary"] == rest.headers["vary"] == "Authorization, Accept, Accept-Encoding"
        assert "etag" in graphql.headers and "etag" in rest.headers


@cases(("document", "url", "seconds", "because"), READS)
def test_explaining_says_which_part_decides(document: str, url: str, seconds: int, because: str) -> None:
    view = model.view(model.signature(model.anonymous))
    path, _, query = url.partition("?")
    for sent in (Parameters(document), RestRequest("GET", path, query)):
        (line,) = cache_lines(understand(sent, model, view))
        assert line.startswith(f"Cache  by anyone, for {seconds} s: " if seconds else "Cache  private: ")
        assert because in line


def test_several_roots_are_as_public_as_the_least_of_them(kiosk: Service) -> None:
    for document, seconds in [
        ("{ a: authors { name } b: articles { title } }", 60),
        ("{ authors { name } newestArticles { title } }", 30),
        ("{ authors { name } chosenArticles { title } }", 0),
        ("{ __typename authors { name } }", 120),
        ("{ __typename }", 0),
        ("{ __schema { queryType { name } } authors { name } }", 0),
        ('{ __type(name: "Author") { name } }', 0),
    ]:
        assert kiosk.get_query({"query": document}).headers["cache-control"] == control(seconds), document


def test_what_a_variable_leaves_out_does_not_count(kiosk: Service) -> None:
    document = "query($all: Boolean!) { articles { title stock @include(if: $all) } }"
    for everything, seconds in [(True, 0), (False, 60), (True, 0)]:
        answer = kiosk.get_query({"query": document, "variables": json.dumps({"all": everything})})
        assert answer.headers["cache-control"] == control(seconds)


def test_a_row_with_all_its_fields_is_as_public_as_the_least_of_those_that_anyone_sees(kiosk: Service) -> None:
    assert kiosk.get(f"/articles/{ONE}").headers["cache-control"] == "private, no-cache", "stock is never public"
    assert kiosk.get(f"/authors/{ANN}").headers["cache-control"] == "public, max-age=20"


@pytest.mark.parametrize(
    "url",
    ["/articles?fields=title", f"/authors/{ANN}", "/articles/newest?fields=title", "/graphql?query={articles{title}}"],
)
def test_nothing_that_was_asked_with_a_token_is_public(kiosk: Service, url: str) -> None:
    for roles in ((), ("admin",)):
        answer = kiosk.get(url, token=kiosk.token(ANN, *roles))
        assert (answer.status, answer.headers["cache-control"]) == (200, "private, no-cache")
    for header in ("Bearer nonsense", "Basic YTpi", "", "Bearer"):
        answer = kiosk.get(url, headers={"authorization": header})
        assert (answer.status, answer.headers["cache-control"]) == (401, "no-store")


@pytest.mark.parametrize(
    "url",
    [
        "/articles?fields=title",
        f"/articles/{ONE}?fields=title",
        "/articles/newest?fields=title",
        "/graphql?query={articles{title}}",
    ],
)
def test_a_preference_makes_an_answer_private(kiosk: Service, url: str) -> None:
    for preference in ("change-cursor", "cost", "return=minimal", "whatever"):
        answer = kiosk.get(url, headers={"prefer": preference})
        assert (answer.status, answer.headers["cache-control"]) == (200, "private, no-cache")


@pytest.mark.parametrize(
    "url",
    [
        "/articles?fields=title",
        f"/articles/{ONE}?fields=title",
        "/articles/newest?fields=title",
        "/graphql?query={articles{title}}",
    ],
)
def test_what_is_not_modified_says_the_same(kiosk: Service, url: str) -> None:
    first = kiosk.get(url)
    again = kiosk.get(url, headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    kept = ("cache-control", "vary", "etag")
    assert [again.headers[name] for name in kept] == [first.headers[name] for name in kept]
    assert first.headers["cache-control"].startswith("public")
    assert "content-type" not in again.headers
    head = kiosk.send("HEAD", url)
    assert (head.status, head.headers) == (200, first.headers)
    mine = kiosk.get(url, headers={"if-none-match": first.headers["etag"]}, token=kiosk.token(STRANGER))
    assert (mine.status, mine.headers["cache-control"]) == (304, "private, no-cache"), "the same bytes, for one alone"


@cases(
    ("method", "url", "status"),
    [
        ("GET", "/articles/01900000-0000-7000-8000-999999999999", 404),
        ("GET", "/articles?first=0", 400),
        ("GET", "/articles?fields=nothing", 400),
        ("GET", "/nothing", 404),
        ("PUT", "/articles", 405),
        ("GET", "/graphql?query={nothing}", 200),
        ("GET", "/graphql?query=%7B", 200),
        ("GET", "/graphql", 400),
        ("GET", '/graphql?query=mutation{likeArticle(id:"x")}', 405),
        ("OPTIONS", "/articles", 204),
        ("OPTIONS", "/graphql", 204),
        ("GET", "/articles/newest?fields=nothing", 400),
    ],
)
def test_errors_are_never_kept(kiosk: Service, method: str, url: str, status: int) -> None:
    for _ in range(2):
        answer = kiosk.send(method, url)
        assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")
        assert answer.headers["vary"] == "Authorization, Accept, Accept-Encoding"
        assert "etag" not in answer.headers


def test_post_is_never_public(kiosk: Service) -> None:
    assert kiosk.query("{ articles { title } }").headers["cache-control"] == "private, no-cache"
    liked = kiosk.send("POST", f"/articles/{ONE}/like", headers={"content-type": "application/json"})
    assert (liked.status, liked.headers["cache-control"]) == (204, "private, no-cache")


def test_changes_and_documents_are_never_public(kiosk: Service) -> None:
    assert kiosk.get("/articles/changes").headers["cache-control"] == "private, no-cache"
    assert kiosk.get("/openapi.json").headers["cache-control"] == "private, no-cache"
    assert kiosk.get("/health/live").headers["cache-control"] == "no-store"


@cases(
    ("sent", "status"),
    [
        ("{tag}", 304),
        ("W/{tag}", 304),
        ('"x", {tag}', 304),
        ('"x",{tag} , "y"', 304),
        ('"a,b", W/{tag}', 304),
        ("*", 304),
        (" * ", 304),
        ('"x"', 200),
        ("", 200),
        ('"*"', 200),
        ("W/*", 200),
        ('"x", *', 200),
        ("{bare}", 200),
        ('"a,{bare}"', 200),
        ('"{bare},a"', 200),
        ('w/"x"', 200),
        ('"x{bare}"', 200),
    ],
)
@cases(
    "url",
    ["/articles?fields=title", "/graphql?query={articles{title}}", "/articles/newest?fields=title", "/openapi.json"],
)
def test_tags_are_lists_of_quoted_text(kiosk: Service, url: str, sent: str, status: int) -> None:
    tag = kiosk.get(url).headers["etag"]
    answer = kiosk.get(url, headers={"if-none-match": sent.format(tag=tag, bare=tag.strip('"'))})
    assert answer.status == status
