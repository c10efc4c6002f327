"""Full-text search: the same rows in both styles and on both stores, as an oracle finds them, within the rules."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from diptych.compile.fragment import Fragment
from diptych.compile.system.searching import SearchIndex
from diptych.db.postgres.store import PostgresStore
from diptych.errors import ModelError, Refusal
from diptych.model.folding import words
from diptych.model.searching import search_scalar
from diptych.policy.cost import SEARCH_PRICE
from tests.contract.test_schema_changes import fitted, report_of
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import declare, model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

SEARCHES = scaled(2_000)
SOURCE = """
class Writer(Resource):
    name: str
    posts: list[Post] = inverse("writer")
    access = (grant("read", "create", "update", "delete"),)
    search = Search("name")

class Post(Resource):
    title: str
    body: str | None = None
    secret: Annotated[str, ReadBy(staff)] = ""
    draft: bool = False
    writer: Writer | None = None
    access = (grant("create", "update", "delete"), grant("read", to=staff))
    search = Search("title", "body", "secret")

    @allow("read")
    def published(self, viewer: Viewer) -> bool:
        return not_(self.draft)

class Bare(Resource):
    name: str
    access = (grant("read", "create"),)
"""


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model_of(SOURCE), new_database(), runner) as found:
        yield found


@pytest.fixture
def empty(service: Service) -> Service:
    service.execute("DELETE FROM posts")
    service.execute("DELETE FROM writers")
    return service


def send(service: Service, method: str, url: str, body: Any, token: str | None = None) -> Answer:
    headers = {"content-type": "application/json"}
    return service.send(method, url, headers=headers, body=json.dumps(body).encode(), token=token)


def staff(service: Service) -> str:
    return service.token(None, "staff")


def add(service: Service, title: str, body: str | None = None, **more: Any) -> str:
    made = send(service, "POST", "/posts", {"title": title, "body": body, **more}, token=staff(service))
    assert made.status == 201, made.body
    return str(made.json()["id"])


def found(service: Service, search: str, more: str = "", token: str | None = None) -> list[str]:
    """The titles that both styles find."""
    rest = [row["title"] for row in service.rows(f"/posts?search={quote(search)}&fields=title{more}", token=token)]
    if not more:
        ql = service.data("query($s: String) { posts(search: $s) { title } }", {"s": search}, token=token)
        assert [row["title"] for row in ql["posts"]] == rest
    return rest


def test_every_word_must_be_there_and_case_and_accents_do_not_count(empty: Service) -> None:
    for title, body in (
        ("Déjà vu", "an old film"),
        ("Deja", "VUE d'ensemble"),
        ("Naïve", None),
        ("東京 2026", "e\u0301té"),
    ):
        add(empty, title, body)
    assert found(empty, "deja VU") == ["Déjà vu"]
    assert found(empty, "déjà vu*") == ["Déjà vu", "Deja"]
    assert found(empty, "film-vu") == ["Déjà vu"]
    assert found(empty, "nai") == [] and found(empty, "NAI*") == ["Naïve"]
    assert found(empty, "été 東*") == ["東京 2026"]
    assert found(empty, '"vu" AND (film OR x)') == []  # no syntax: all are words
    assert found(empty, "a' | :*b & !c \\ {title}: NEAR(") == []


def test_it_combines_with_filters_sorts_pages_totals_and_relations(empty: Service) -> None:
    writer = send(empty, "POST", "/writers", {"name": "Zoë"}).json()["id"]
    for n in range(5):
        add(empty, f"red {n}", "blue", writerId=writer if n % 2 else None)
    assert found(empty, "red", "&sort=-title&title[ne]=red%203") == ["red 4", "red 2", "red 1", "red 0"]
    page = empty.get("/posts?search=red&first=2&count=exact&sort=title&fields=title").json()
    assert ([row["title"] for row in page["data"]], page["page"]["total"]) == (["red 0", "red 1"], 5)
    after = page["page"]["next"]
    again = empty.get(f"/posts?search=red&first=2&sort=title&fields=title&after={after}").json()
    assert [row["title"] for row in again["data"]] == ["red 2", "red 3"]
    assert empty.get(f"/posts?search=blue&first=2&sort=title&after={after}").status == 400  # of another search
    assert [row["title"] for row in empty.rows(f"/writers/{writer}/posts?search=3")] == ["red 3"]
    rest = empty.rows("/writers?search=zoe&fields=posts[search=blue;first=1;sort=title](title)")
    ql = empty.data('{ writers(search: "ZOE") { posts(search: "blue", first: 1, orderBy: [{title: ASC}]) { title } } }')
    assert rest == ql["writers"] == [{"posts": [{"title": "red 1"}]}]
    ql = empty.data('{ postsConnection(search: "red") { totalCount nodes { title } } }')["postsConnection"]
    assert ql["totalCount"] == len(ql["nodes"]) == 5
    body = {"search": "red", "sort": "title", "first": 1, "fields": "title"}
    assert send(empty, "QUERY", "/posts", body).json()["data"] == [{"title": "red 0"}]


def test_numbers_of_rows_take_a_search(empty: Service) -> None:
    writer = send(empty, "POST", "/writers", {"name": "Zoe"}).json()["id"]
    for n in range(3):
        add(empty, f"red {n % 2}", writerId=writer)
    assert empty.get("/posts/summary?search=red%200&fields=count").json() == {"count": 2}
    assert send(empty, "QUERY", "/posts/summary", {"search": "red 0"}).json() == {"count": 2}
    assert empty.data('{ postsSummary(search: "red 0") { count } }') == {"postsSummary": {"count": 2}}
    rest = empty.rows("/posts/groups?by=title&search=0&fields=title,count")
    ql = empty.data('{ postsGroups(by: [{title: VALUE}], search: "0") { title count } }')["postsGroups"]
    assert rest == ql == [{"title": "red 0", "count": 2}]
    rest = empty.rows("/writers?fields=postsSummary[search=1](count)")
    ql = empty.data('{ writers { postsSummary(search: "1") { count } } }')["writers"]
    assert rest == ql == [{"postsSummary": {"count": 1}}]
    assert empty.get("/bares/summary?search=x").status == 400


def test_changes_of_every_writer_are_indexed(empty: Service) -> None:
    post = add(empty, "one", "two")
    assert send(empty, "PATCH", f"/posts/{post}", {"body": "three"}).status == 200
    assert (found(empty, "two"), found(empty, "three one")) == ([], ["one"])
    empty.execute(f"UPDATE posts SET title = 'four' WHERE id = '{post}'")
    assert (found(empty, "one"), found(empty, "four")) == ([], ["four"])
    assert send(empty, "DELETE", f"/posts/{post}", None).status == 204
    assert found(empty, "three") == []


def test_a_role_searches_only_what_it_sees(empty: Service) -> None:
    add(empty, "open", "x", secret="hush")
    add(empty, "hidden", "open", draft=True)
    assert found(empty, "hush") == [] and found(empty, "hush", token=staff(empty)) == ["open"]
    assert found(empty, "open") == ["open"] and found(empty, "open", token=staff(empty)) == ["open", "hidden"]
    assert found(empty, "open hush", token=staff(empty)) == ["open"] and found(empty, "open hush") == []
    anonymous, insider = (empty.get("/openapi.json", token=token).body for token in (None, staff(empty)))
    assert b"in title or body. " in anonymous and b"in title or body or secret. " in insider
    schema = empty.data('{ __type(name: "Query") { fields { name args { name description } } } }')
    args = {field["name"]: {arg["name"]: arg for arg in field["args"]} for field in schema["__type"]["fields"]}
    assert "in title or body. " in args["posts"]["search"]["description"] and "search" not in args["bares"]


def test_hidden_values_change_no_response(empty: Service) -> None:
    """Two states that differ only in hidden values answer alike."""
    visible, draft = add(empty, "shown", "words", secret="alpha"), add(empty, "draft", "gamma", draft=True)
    asked = [
        f"/posts?search={word}&count=exact&sort={sort}{more}"
        for word in ("shown", "alpha", "beta", "gamma", "delta", "word*", "a*", "b* s*")
        for sort in ("title", "-body,id")
        for more in ("", "&first=1", "&offset=1")
    ]
    before = [(answer.status, answer.body) for answer in map(empty.get, asked)]
    empty.execute(f"UPDATE posts SET secret = 'beta shown', version = version WHERE id = '{visible}'")
    empty.execute(f"UPDATE posts SET title = 'delta', body = 'shown words' WHERE id = '{draft}'")
    empty.execute(f"UPDATE posts SET version = 1 WHERE id = '{visible}'")
    fields = "&fields=title,body"
    after = [(answer.status, answer.body) for answer in map(empty.get, [url + fields for url in asked])]
    once = [answer[0] for answer in before]
    assert once == [status for status, _ in after]
    assert [len(json.loads(body)["data"]) for _, body in before] == [len(json.loads(body)["data"]) for _, body in after]
    assert [json.loads(body)["page"]["total"] for _, body in before] == [
        json.loads(body)["page"]["total"] for _, body in after
    ]


def test_a_planted_leak_is_found(empty: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching every column, also those that the role does not see, would be noticed by the tests above."""
    add(empty, "open", "x", secret="hush")
    monkeypatch.setattr("diptych.compile.where.search_scalar", lambda marks: search_scalar("abc"))
    empty.forget()
    assert found(empty, "hush") == ["open"]
    monkeypatch.undo()
    empty.forget()
    assert found(empty, "hush") == []


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("", "expected words, of letters or digits"),
        (" *** -", "expected words, of letters or digits"),
        ("a " * 17, "expected at most 16 words"),
        ("a " * 1_000, "expected at most 256 characters"),
        ("a*" * 100, "expected at most 16 words"),
        ("x" * 100_000, "expected at most 256 characters"),
    ],
)
def test_a_search_that_is_no_search_or_too_long_is_refused_before_sql(
    service: Service, search: str, message: str
) -> None:
    runs = service.runs
    if len(search) < 5_000:
        rest = service.get(f"/posts?search={quote(search)}")
        assert (rest.status, rest.json()["errors"][0]["message"]) == (400, message)
    ql = service.query("query($s: String) { posts(search: $s) { id } }", {"s": search})
    assert (ql.code, message[1:] in ql.body.decode()) == ("BAD_USER_INPUT", True), ql.body
    assert service.runs == runs


def test_where_there_is_no_search(service: Service) -> None:
    assert service.get("/bares?search=x").json()["errors"] == [
        {"pointer": "/query/search", "message": "Bare has no search"}
    ]
    assert service.query('{ bares(search: "x") { id } }').code == "GRAPHQL_VALIDATION_FAILED"
    assert service.get("/posts/changes?search=x").status == 400
    with pytest.raises(Refusal, match="search"):
        service.follow('subscription { postChanged(search: "x") { kind } }')


def test_it_has_a_price(service: Service) -> None:
    urls = ("/posts?first=5", "/posts?first=5&search=x")
    costs = [service.get(url, headers={"prefer": "cost"}).headers["cost"] for url in urls]
    plain, searched = (int(cost.removeprefix("price=").partition(",")[0]) for cost in costs)
    assert searched - plain == SEARCH_PRICE


def test_both_stores_use_the_index(empty: Service) -> None:
    if not isinstance(empty.app.store, PostgresStore):
        return  # SQLite has no other way to match
    index = SearchIndex(empty.handler.engine.model.resources["Post"], "postgres")
    empty.execute(
        "INSERT INTO posts (id, title, draft, secret) SELECT gen_random_uuid(), 'word' || n, false, '' "
        "FROM generate_series(1, 3000) n"
    )
    empty.execute("ANALYZE posts")
    words = index.words(lambda column: Fragment(f't."{column}"')).text
    plan = Outside(empty.handler.config.database).sql(
        f"EXPLAIN SELECT t.id FROM posts t WHERE ({words}) @@ $1::text::tsquery AND NOT t.draft ORDER BY t.id LIMIT 10",
        "('aword7'|'bword7')",
    )
    assert any(index.name in line for (line,) in plan), plan


# the oracle

LETTERS = "aAáÀbBcçÇdeEéÈ\u0301\u0308ßæœøiIİı1２ ,.-_'*\"\\東京йЙЁё\u200d😀ªǅ"


def text_of(dice: random.Random, most: int) -> str:
    drawn = [
        dice.choice(LETTERS) if dice.random() < 0.9 else chr(dice.randrange(1, 0xD7FF))
        for _ in range(dice.randrange(most))
    ]
    return "".join(drawn).replace("\x00", "")


def matches(search: str, texts: list[str | None]) -> bool:
    own = {word for text in texts for word, _ in words((text or "").replace("*", " "))}
    return all(
        any(word.startswith(asked) if beginning else word == asked for word in own)
        for asked, beginning in words(search)
    )


@pytest.mark.slow
def test_random_searches_find_what_the_oracle_finds(empty: Service) -> None:
    dice = random.Random(7)
    rows = [
        {"title": f"{n} " + text_of(dice, 12), "body": text_of(dice, 30) or None, "secret": text_of(dice, 8)}
        for n in range(60)
    ]
    for start in range(0, len(rows), 20):
        made = send(empty, "POST", "/posts", rows[start : start + 20], token=staff(empty))
        assert made.status == 201, made.body
    some, compared = 0, 0
    for n in range(SEARCHES):
        row = dice.choice(rows)
        source = f"{row['title']} {row['body'] or ''} {row['secret']}"
        start = dice.randrange(len(source))
        search = source[start : start + dice.randrange(1, 9)] if dice.random() < 0.8 else text_of(dice, 6)
        search += "*" * (dice.random() < 0.4)
        if not 1 <= len(words(search)) <= 16:
            continue
        token = staff(empty) if n % 2 else None
        names = ("title", "body", "secret") if token else ("title", "body")
        want = [row["title"] for row in rows if matches(search, [row[name] for name in names])]
        got = [
            row["title"]
            for row in empty.rows(f"/posts?first=100&fields=title&search={quote(search, safe='')}", token=token)
        ]
        assert got == want, (search, names)
        compared += 1
        some += bool(want)
    assert compared > SEARCHES * 0.7 and some > SEARCHES * 0.4


# the index

PLAIN = """
class Page(Resource):
    title: str
    body: str = ""
    {}
    access = (grant("read", "create"),)
"""


def test_a_search_that_is_added_indexes_the_rows_that_are_there(database: str) -> None:
    none, one, two = (
        model_of(PLAIN.format(line)) for line in ("", 'search = Search("title")', 'search = Search("body", "title")')
    )
    outside = Outside(database)
    with asyncio.Runner() as runner, in_process(none, database, runner) as service:
        assert send(service, "POST", "/pages", {"title": "Été", "body": "Hiver"}).status == 201
    assert report_of(one, outside) == "the table pages has no search index of title."
    assert report_of(one, outside, add_columns=True) == "Made the search index of pages (title)."
    assert fitted(one, outside).done == ()
    with asyncio.Runner() as runner, in_process(one, database, runner) as service:
        assert len(service.rows("/pages?search=ete")) == 1 and service.rows("/pages?search=hiver") == []
    assert report_of(two, outside) == "the table pages has no search index of body, title."
    assert report_of(two, outside, add_columns=True) == "Made the search index of pages (body, title)."
    with asyncio.Runner() as runner, in_process(two, database, runner) as service:
        assert len(service.rows("/pages?search=hiver%20ete")) == 1
        assert send(service, "POST", "/pages", {"title": "Automne"}).status == 201
        assert len(service.rows("/pages?search=automne")) == 1
    catalogue = "sqlite_schema" if outside.is_sqlite else "(SELECT relname AS name FROM pg_class) c"
    names = {name for (name,) in outside.sql(f"SELECT name FROM {catalogue} WHERE name LIKE 'diptych_search_%'")}
    assert all(name.startswith(SearchIndex(two.resources["Page"], outside.dialect).name) for name in names)


def test_long_texts_are_indexed_as_far_as_both_stores_can(database: str) -> None:
    found = model_of(PLAIN.format('search = Search("title", "body")'))
    most = SearchIndex(found.resources["Page"], "sqlite").most
    with asyncio.Runner() as runner, in_process(found, database, runner) as service:
        body = "\U0001d400" * 300 + " " + "a" * 250 + " "
        body += " ".join(f"{n:x}\U0001d401" for n in range(most // 3))[: most - len(body) - 6] + " inner outer"
        sent = send(service, "POST", "/pages", {"title": "long", "body": body})
        assert sent.status == 201, sent.body[:200]
        assert len(service.rows("/pages?fields=id&search=inner")) == 1
        assert service.rows("/pages?fields=id&search=outer") == []
        assert len(service.rows(f"/pages?fields=id&search={'a' * 250}")) == 1
        long = quote("\U0001d400" * 256)
        assert service.rows(f"/pages?fields=id&search={long}") == []
        assert len(service.rows(f"/pages?fields=id&search={quote(chr(0x1D400) * 200)}*")) == 1


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('search = "title"', "search is no Search() of 1 to 8 different fields"),
        ("search = Search()", "search is no Search() of 1 to 8 different fields"),
        ('search = Search("title", "title")', "search is no Search() of 1 to 8 different fields"),
        ('search = Search("nobody")', "Page has no text 'nobody' to search"),
        ('size: int = 0\n    search = Search("size")', "Page has no text 'size' to search"),
        (
            'search = Search("body")\n\n    @allow("read", field="body")\n'
            '    def seen(self, viewer: Viewer) -> bool:\n        return self.title == "x"',
            "a rule hides 'body' on some rows, and a match would reveal it",
        ),
    ],
)
def test_mistakes_of_a_model_file(line: str, cause: str) -> None:
    found = declare(PLAIN.format(line)).built
    assert isinstance(found, ModelError) and cause in str(found), found
