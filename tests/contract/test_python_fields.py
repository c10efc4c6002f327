"""Fields that Python computes are like any other to a client, in both styles, and each function is called once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from diptych.ask.nodes import Field, Read
from diptych.ask.python_fields import extract
from diptych.errors import Code
from diptych.model.rules.expr import Col, Compare, Slot
from diptych.model.scalars import ID
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import HEADER, declare, seen_by
from tests.support.running import Command, NewDatabase

MODEL = '''
from collections import Counter
from collections.abc import Sequence

calls = Counter()
given = []
broken = {}

async def meeting():
    if "meet" in broken:
        await broken["meet"]()

class Writer(Resource):
    name: str
    secret: Annotated[str, ReadBy(staff)] = "x"
    born: date = date(2000, 1, 2)
    posts: list[Post] = inverse("author")

    access = (grant("read", "create", "update", "delete"),)

    @allow("read", field="secret")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @computed(needs="name")
    def initials(self) -> str:
        """The first letters."""
        calls["initials"] += 1
        return "".join(word[0] for word in self.name.split())

    @computed(needs=("name", "secret"))
    def hint(self) -> str | None:
        given.append(self.secret)
        return self.secret[:1] or None

    @computed(needs="name")
    def salary(self) -> Annotated[int, ReadBy(admin)]:
        return len(self.name)

    @computed(needs=("id", "name"), batch=True)
    @staticmethod
    async def followers(writers: Sequence[Writer]) -> Sequence[BigInt]:
        calls["followers"] += 1
        await meeting()
        return [len(writer.name) + int(writer.id[-1], 16) * 0 for writer in writers]

    @computed(needs="born")
    def birthday(self) -> date:
        return self.born.replace(year=2026)

class Post(Resource):
    title: str
    body: str = ""
    extra: Json | None = None
    ratio: float = 0.5
    author: Writer

    access = (grant("read", "create", "update", "delete"),)

    @computed
    def teaser(self) -> str:
        return self.body[:3]

    @computed(needs="body")
    def minutes(self) -> int:
        calls["minutes"] += 1
        return len(self.body.split())

    @computed(needs=("teaser", "author"), batch=True)
    @staticmethod
    def score(posts: Sequence[Post]) -> Sequence[Annotated[Decimal, Digits(6, 2)]]:
        calls["score"] += 1
        if "score" in broken:
            return broken["score"](posts)
        return [Decimal(len(post.teaser)) if post.author.id else None for post in posts]

    @computed(needs="extra", batch=True)
    @staticmethod
    async def tags(posts: Sequence[Post]) -> list[Json]:
        calls["tags"] += 1
        await meeting()
        for post in posts:
            if post.extra is not None:
                post.extra["seen"] = True
        return [[*(post.extra or ())] for post in posts]

    @action
    async def shout(self, tx: Tx) -> Post:
        self.title = self.title.upper()
        return await tx.save(self)

    @query
    @classmethod
    async def latest(cls, tx: Tx) -> list[Post]:
        return await tx.select(Post, order="-title")
'''
ANN, BEN = "00000000-0000-7000-8000-00000000000a", "00000000-0000-7000-8000-00000000000b"
POSTS = [f"00000000-0000-7000-8000-00000000001{number}" for number in range(3)]


def common(id: str) -> dict[str, Any]:
    moment = "2026-01-01T00:00:00.000000Z"
    return {"id": id, "version": 1, "createdAt": moment, "updatedAt": moment}


ROWS = {
    "Writer": [
        {**common(ANN), "name": "Ann Lee", "secret": "abc", "born": "2000-01-02"},
        {**common(BEN), "name": "Ben", "secret": "bcd", "born": "2001-03-04"},
    ],
    "Post": [
        {**common(POSTS[0]), "title": "a", "body": "one two", "extra": {"n": 1}, "ratio": 1e20, "authorId": ANN},
        {**common(POSTS[1]), "title": "b", "body": "", "extra": {}, "ratio": 0.1, "authorId": BEN},
        {
            **common(POSTS[2]),
            "title": "c",
            "body": "one two 3 ☃",
            "extra": {"z": 1, "a": 2},
            "ratio": 3,
            "authorId": ANN,
        },
    ],
}


class Told:
    """A service, and what the functions of its model noted."""

    def __init__(self, service: Service, module: ModuleType) -> None:
        self.service = service
        self.calls: dict[str, int] = module.calls
        self.given: list[str] = module.given
        self.broken: dict[str, Any] = module.broken

    def forget(self) -> None:
        for each in (self.calls, self.given, self.broken):
            each.clear()

    def rows(self, url: str, token: str | None = None) -> Any:
        return self.service.rows(url, token=token)

    def data(self, document: str, variables: Any = None, token: str | None = None) -> Any:
        return self.service.data(document, variables, token=token)

    def send(self, method: str, url: str, body: Any = None, **headers: str) -> Answer:
        raw = b"" if body is None else json.dumps(body).encode()
        kind = {"content-type": "application/json"} if body is not None else {}
        token = self.service.token(ANN)
        return self.service.send(method, url, headers={**kind, **headers}, body=raw, token=token)


@pytest.fixture(scope="module")
def opened(new_database: NewDatabase) -> Iterator[Told]:
    module = declare(MODEL)
    with (
        asyncio.Runner() as runner,
        in_process(module.built, new_database(), runner, ROWS, max_complexity=20_000) as service,
    ):
        yield Told(service, module)


@pytest.fixture
def told(opened: Told) -> Told:
    opened.forget()
    return opened


# reading


def test_a_function_has_the_whole_value_object_whatever_is_selected_of_it(database: str) -> None:
    source = """
class Address(Value):
    city: str
    zip: str = ""

class Shop(Resource):
    address: Address
    access = (grant("read", "create"),)

    @computed(needs="address")
    def line(self) -> str:
        return self.address.zip + " " + self.address.city
"""
    with asyncio.Runner() as runner, in_process(declare(source).built, database, runner) as service:
        service.send_json("POST", "/shops", {"address": {"city": "Oslo", "zip": "0150"}})
        for names in ("zip", "city:zip,zip:city"):
            (row,) = service.rows(f"/shops?fields=line,address({names})")
            assert row["line"] == "0150 Oslo", names
            members = names.replace(",", " ")
            assert service.data(f"{{ shops {{ line address {{ {members} }} }} }}")["shops"] == [row]


def test_both_styles_answer_it(told: Told) -> None:
    wanted = [
        {"minutes": 2, "title": "a", "score": "3.00", "author": {"initials": "AL", "birthday": "2026-01-02"}},
        {"minutes": 0, "title": "b", "score": "0.00", "author": {"initials": "B", "birthday": "2026-03-04"}},
        {"minutes": 4, "title": "c", "score": "3.00", "author": {"initials": "AL", "birthday": "2026-01-02"}},
    ]
    assert told.data("{ posts { minutes title score author { initials birthday } } }")["posts"] == wanted
    assert told.rows("/posts?fields=minutes,title,score,author(initials,birthday)") == wanted


def test_the_keys_stand_in_the_order_of_the_selection_and_nothing_else_is_told(told: Told) -> None:
    body = told.service.query("{ posts(first: 1) { score body minutes again: minutes id } }").body
    row = f'{{"score":"3.00","body":"one two","minutes":2,"again":2,"id":"{POSTS[0]}"}}'
    assert body.decode() == f'{{"data":{{"posts":[{row}]}}}}'
    url = "/posts?first=1&fields=score,body,minutes,again:minutes,id"
    assert told.service.get(url).body.decode().startswith(f'{{"data":[{row}],"page":')


def test_nodes_of_several_types_have_them_and_each_function_is_called_once(told: Told) -> None:
    document = """query($ids: [ID!]!, $id: ID!) {
        node(id: $id) { ... on Writer { initials } }
        latestPosts { title }
        nodes(ids: $ids) { id ... on Post { minutes score } ... on Writer { followers hint } }
        posts(first: 1) { minutes }
    }"""
    nobody = ANN.replace("a", "9")
    found = told.data(document, {"ids": [POSTS[0], nobody, BEN, POSTS[2]], "id": ANN}, told.service.token(BEN))
    assert list(found) == ["node", "latestPosts", "nodes", "posts"]
    assert found["node"] == {"initials": "AL"} and [post["title"] for post in found["latestPosts"]] == ["c", "b", "a"]
    assert found["nodes"] == [
        {"id": POSTS[0], "minutes": 2, "score": "3.00"},
        None,
        {"id": BEN, "followers": "3", "hint": "b"},
        {"id": POSTS[2], "minutes": 4, "score": "3.00"},
    ]
    assert (told.calls["score"], told.calls["followers"]) == (1, 1)


def test_a_client_may_use_any_alias(told: Told) -> None:
    document = "{ posts(first: 1) { __body: title ___body: id minutes __minutes: teaser } }"
    assert told.data(document)["posts"] == [{"__body": "a", "___body": POSTS[0], "minutes": 2, "__minutes": "one"}]


def test_a_function_that_changes_what_it_gets_changes_no_answer(told: Told) -> None:
    found = told.data("{ posts { extra tags more: tags } }")["posts"]
    assert [list(row["extra"]) for row in found] == [["n"], [], ["z", "a"]]
    assert [sorted(row["tags"]) for row in found] == [["n", "seen"], ["seen"], ["a", "seen", "z"]]
    assert [row["more"] for row in found] == [row["tags"] for row in found]


def test_all_else_stays_as_the_database_wrote_it(told: Told) -> None:
    plain = told.service.query("{ posts { ratio extra title } }").body
    beside = told.service.query("{ posts { ratio extra title minutes } }").body
    for number in (2, 0, 4):
        beside = beside.replace(b',"minutes":%d' % number, b"")
    assert beside == plain


DEEP = """
query($id: ID!) {
  posts { minutes score author { followers posts { minutes score author { followers } } } }
  again: posts(first: 1) { minutes score }
  writer(id: $id) { followers }
  writersConnection { nodes { followers } edges { cursor node { followers posts { score } } } totalCount }
  none: writer(id: "nobody") { followers }
}
"""


def test_a_batch_is_called_once_whatever_the_levels_and_roots(told: Told) -> None:
    found = told.data(DEEP, {"id": ANN})
    assert found["posts"][0]["author"]["posts"][1] == {"minutes": 4, "score": "3.00", "author": {"followers": "7"}}
    assert found["again"] == [{"minutes": 2, "score": "3.00"}]
    assert found["writer"] == {"followers": "7"}
    assert found["none"] is None
    edges = found["writersConnection"]["edges"]
    assert [edge["node"] for edge in edges] == [
        {"followers": "7", "posts": [{"score": "3.00"}, {"score": "3.00"}]},
        {"followers": "3", "posts": [{"score": "0.00"}]},
    ]
    assert (told.calls["score"], told.calls["followers"]) == (1, 1)


def test_batches_that_wait_do_so_at_the_same_time(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    document = "{ posts(first: 1) { tags author { followers } } }"
    told.broken["meet"] = asyncio.Barrier(2).wait
    assert told.data(document) == {"posts": [{"tags": ["n", "seen"], "author": {"followers": "7"}}]}
    told.broken["meet"] = lambda: asyncio.wait_for(asyncio.Event().wait(), 0.01)
    assert told.service.query(document).code == "INTERNAL"
    assert "the computed field Post.tags failed" in caplog.text
    caplog.clear()


def test_a_batch_without_rows_is_not_called(told: Told) -> None:
    assert told.rows("/posts?fields=score&title=nope") == []
    assert told.service.get("/posts/nope?fields=score").status == 404
    assert "score" not in told.calls


def test_two_aliases_are_one_computation(told: Told) -> None:
    found = told.data("query($id: ID!) { writer(id: $id) { initials a: initials b: initials } }", {"id": ANN})
    assert found["writer"] == {"initials": "AL", "a": "AL", "b": "AL"}
    assert told.calls["initials"] == 1


def test_pages_lead_on(told: Told) -> None:
    first = told.service.get("/posts?first=2&fields=minutes&sort=-title&count=exact").json()
    assert [row["minutes"] for row in first["data"]] == [4, 0]
    assert first["page"]["total"] == 3
    after = told.service.get(f"/posts?first=2&fields=minutes&sort=-title&after={first['page']['next']}").json()
    assert (after["data"], after["page"]["next"]) == ([{"minutes": 2}], None)
    url = f"/writers/{ANN}/posts?first=1&fields=minutes,title"
    assert told.service.get(url).json()["data"] == [{"minutes": 2, "title": "a"}]
    assert 'rel="next"' in told.service.get(url).headers["link"]


def test_it_is_a_plain_field_of_the_resource_style(told: Told) -> None:
    answer = told.service.get(f"/posts/{POSTS[0]}")
    assert [*answer.json()][-4:] == ["teaser", "minutes", "score", "tags"]
    assert answer.json()["score"] == "3.00"
    assert answer.headers["etag"].startswith('"1.')


def test_tags_are_of_the_final_bytes(told: Told) -> None:
    url = f"/posts/{POSTS[0]}?fields=version,minutes"
    answer = told.service.get(url)
    assert answer.body == b'{"version":1,"minutes":2}'
    head = told.service.send("HEAD", url)
    assert (head.status, head.headers) == (answer.status, answer.headers)
    again = told.service.get(url, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    query = {"query": f'{{ post(id: "{POSTS[0]}") {{ minutes }} }}'}
    tag = told.service.get_query(query).headers["etag"]
    assert told.service.get_query(query, headers={"if-none-match": tag}).status == 304


# who sees it


def test_it_shows_where_all_that_it_needs_shows(told: Told) -> None:
    token = told.service.token(ANN)
    wanted = [{"name": "Ann Lee", "hint": "a"}, {"name": "Ben", "hint": None}]
    assert told.data("{ writers { name hint } }", token=token)["writers"] == wanted
    assert told.rows("/writers?fields=name,hint", token) == wanted
    assert told.given == ["abc", "abc"]
    assert told.rows("/writers?fields=hint", told.service.token(None, "staff")) == [{"hint": "a"}, {"hint": "b"}]


def test_it_does_not_exist_for_who_may_never_see_it(told: Told) -> None:
    assert told.service.query("{ writers { hint } }").code == "GRAPHQL_VALIDATION_FAILED"
    assert told.service.get("/writers?fields=hint").status == 400
    assert {"hint", "salary"}.isdisjoint(told.rows("/writers")[0])
    staff, admin = told.service.token(None, "staff"), told.service.token(None, "admin")
    assert told.service.get("/writers?fields=salary", token=staff).status == 400
    assert told.rows("/writers?fields=salary", admin) == [{"salary": 7}, {"salary": 3}]


@pytest.mark.parametrize("name", ["minutes", "score", "tags"])
def test_nothing_is_filtered_or_sorted_by_it(told: Told, name: str) -> None:
    where = {name: {"isNull": False}}
    for url in (
        f"/posts?{name}=1",
        f"/posts?sort={name}",
        f"/posts?where={json.dumps(where)}",
        f"/posts?{name}[isNull]=true",
    ):
        answer = told.service.get(url)
        assert (answer.status, answer.json()["errors"][0]["message"][:23]) == (400, f"Post has no field '{name}'"[:23])
    assert told.service.query(f"{{ posts(where: {{{name}: {{isNull: false}}}}) {{ id }} }}").status == 400
    assert told.service.query(f"{{ posts(orderBy: {{{name}: ASC}}) {{ id }} }}").status == 400
    variables = {"where": where}
    assert told.service.query("query($where: PostWhere) { posts(where: $where) { id } }", variables).status != 200


# answers to changes


def test_the_answer_to_a_change_has_it(told: Told) -> None:
    made = told.send("POST", "/posts", {"title": "new", "body": "a b c", "authorId": ANN})
    assert (made.status, made.json()["minutes"], made.json()["score"]) == (201, 3, "3.00")
    url = made.headers["location"]
    patched = told.send("PATCH", url, {"body": "a"})
    assert (patched.json()["minutes"], patched.json()["score"], patched.json()["version"]) == (1, "1.00", 2)
    assert told.send("GET", url).headers["etag"] == patched.headers["etag"]
    gone = told.send("DELETE", url, prefer="return=representation")
    assert (gone.status, gone.json()["minutes"]) == (200, 1)
    assert told.send("GET", url).status == 404


def test_put_takes_back_what_get_gave(told: Told) -> None:
    url = f"/posts/{POSTS[1]}"
    before = told.send("GET", url).json()
    put = told.send("PUT", url, before)
    assert (put.status, put.json()) == (200, {**before, "version": 2, "updatedAt": put.json()["updatedAt"]})
    masked = told.send("GET", f"/writers/{BEN}").json()
    assert masked["hint"] is None
    assert told.send("PUT", f"/writers/{BEN}", masked).status == 200
    assert told.rows("/writers?fields=secret", told.service.token(None, "staff"))[1] == {"secret": "bcd"}


def test_no_other_change_takes_it(told: Told) -> None:
    for answer in (
        told.send("PATCH", f"/posts/{POSTS[0]}", {"minutes": 3}),
        told.send("POST", "/posts", {"title": "x", "authorId": ANN, "minutes": 3}),
    ):
        assert (answer.status, answer.places) == (422, ["/minutes"])
        assert answer.json()["errors"][0]["message"] == "the field is read-only"
    patch = json.dumps([{"op": "replace", "path": "/minutes", "value": 9}]).encode()
    kind = {"content-type": "application/json-patch+json"}
    answer = told.service.send("PATCH", f"/posts/{POSTS[0]}", headers=kind, body=patch, token=told.service.token(ANN))
    assert answer.status == 422


def test_all_changes_of_a_request_share_one_call(told: Told) -> None:
    found = told.data(
        """mutation($ann: ID!) {
          a: createPost(input: {title: "m", body: "x y", authorId: $ann}) { id minutes score }
          b: createPost(input: {title: "n", body: "x", authorId: $ann}) { id author { followers } score }
          c: updateWriter(id: $ann, patch: {name: "Ann Lee"}) { followers initials }
        }""",
        {"ann": ANN},
        token=told.service.token(ANN),
    )
    assert [found["a"]["minutes"], found["a"]["score"], found["b"]["score"]] == [2, "3.00", "1.00"]
    assert (found["b"]["author"], found["c"]) == ({"followers": "7"}, {"followers": "7", "initials": "AL"})
    assert (told.calls["score"], told.calls["followers"]) == (1, 1)
    told.forget()
    many = told.send("POST", "/posts?fields=id,score", [{"title": name, "authorId": ANN} for name in "pq"])
    assert ([row["score"] for row in many.json()], told.calls["score"]) == (["0.00", "0.00"], 1)
    for row in (found["a"], found["b"], *many.json()):
        assert told.send("DELETE", f"/posts/{row['id']}").status == 204


def test_a_change_is_refused_as_ever(told: Told) -> None:
    stale = told.send("PATCH", f"/posts/{POSTS[0]}", {"title": "x"}, **{"if-match": '"9.x"'})
    assert (stale.status, told.send("PATCH", f"/posts/{ANN}", {"title": "x"}).status) == (412, 404)
    document = """mutation($ann: ID!, $nobody: ID!) {
      a: createPost(input: {title: "half", authorId: $ann}) { score }
      b: createPost(input: {title: "half", authorId: $nobody}) { score }
    }"""
    answer = told.service.query(document, {"ann": ANN, "nobody": POSTS[0]}, token=told.service.token(ANN))
    assert (answer.code, answer.json()["errors"][0]["path"]) == ("CONFLICT", ["b"])
    assert told.rows("/posts?title=half") == []
    assert "score" not in told.calls


def test_a_kept_answer_has_it_and_computes_nothing_again(told: Told) -> None:
    body = {"title": "k", "body": "a b", "authorId": ANN}
    one = told.send("POST", "/posts?fields=id,score", body, **{"idempotency-key": "once"})
    two = told.send("POST", "/posts?fields=id,score", body, **{"idempotency-key": "once"})
    assert (one.status, one.json()["score"], two.body) == (201, "3.00", one.body)
    assert (two.headers["idempotency-replayed"], told.calls["score"]) == ("true", 1)
    assert told.send("DELETE", f"/posts/{one.json()['id']}").status == 204


def test_what_code_of_the_model_gives_has_it(told: Told) -> None:
    token = told.service.token(ANN)
    rest = told.send("POST", f"/posts/{POSTS[2]}/shout?fields=title,minutes,score", {})
    assert (rest.status, rest.json()) == (200, {"title": "C", "minutes": 4, "score": "3.00"})
    document = "mutation($id: ID!) { shoutPost(id: $id) { title minutes score } }"
    assert told.data(document, {"id": POSTS[2]}, token=token)["shoutPost"] == rest.json()
    told.service.execute(f"UPDATE posts SET title = 'c' WHERE id = '{POSTS[2]}'")
    assert told.data("{ latestPosts { title score author { followers } } }", token=token)["latestPosts"] == [
        {"title": "c", "score": "3.00", "author": {"followers": "7"}},
        {"title": "b", "score": "0.00", "author": {"followers": "3"}},
        {"title": "a", "score": "3.00", "author": {"followers": "7"}},
    ]


# what goes wrong


def fail(posts: Any) -> Any:
    raise PermissionError("a secret of the model")


WRONG: list[Any] = [
    fail,
    lambda posts: [],
    lambda posts: ["1.00"] * (len(posts) + 1),
    lambda posts: "1" * len(posts),
    lambda posts: dict.fromkeys(posts, 1),
    lambda posts: ["many"] * len(posts),
    lambda posts: [1.5] * len(posts),
    lambda posts: [None] * len(posts),
    lambda posts: [post.title for post in posts],
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_goes_wrong_in_a_function_is_for_the_log(told: Told, wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    told.broken["score"] = wrong
    document = "{ posts { title author { id } score } }"
    for answer in (told.service.get("/posts?fields=score"), told.service.query(document)):
        assert (answer.code, answer.json().get("data")) == ("INTERNAL", None)
        assert b"secret" not in answer.body and b"score" not in answer.body
    assert "the computed field Post.score failed" in caplog.text
    caplog.clear()


def test_what_a_function_raises_undoes_the_change(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    told.broken["score"] = fail
    body = {"title": "lost", "authorId": ANN}
    for headers in ({}, {"idempotency-key": "lost"}):
        answer = told.send("POST", "/posts", body, **headers)
        assert (answer.status, answer.code) == (500, "INTERNAL")
    caplog.clear()
    assert told.rows("/posts?fields=id&title=lost") == []
    told.forget()
    made = told.send("POST", "/posts?fields=id", body, **{"idempotency-key": "lost"})
    assert made.status == 201
    assert told.send("DELETE", f"/posts/{made.json()['id']}").status == 204


# documents and plans


def test_a_request_without_it_takes_the_way_it_always_took(told: Told) -> None:
    engine = told.service.handler.engine
    view = engine.model.view(engine.model.signature(engine.model.viewer_as("anonymous")))
    where = Compare("eq", Col(("id",)), Slot(0, ID))

    def ready(*names: str) -> Any:
        read = Read("Post", "one", tuple(Field(name, name) for name in names), where)
        return engine.plan_reads((read,), view, {})

    assert ready("title", "body").finish is None
    assert ready("title", "minutes").finish is not None
    read = Read("Post", "one", (Field("title", "title"),), where)
    assert extract(read, engine.model.resources) == (read, None)
    assert extract(read, engine.model.resources)[0] is read


def test_the_documents_show_it_as_read_only(told: Told) -> None:
    schema = told.data("""{
      post: __type(name: "Post") { fields { name description type { kind ofType { name } } } }
      writer: __type(name: "Writer") { fields { name description } }
      where: __type(name: "PostWhere") { inputFields { name } }
      order: __type(name: "PostOrder") { inputFields { name } }
      create: __type(name: "PostCreate") { inputFields { name } }
      patch: __type(name: "PostPatch") { inputFields { name } }
      replace: __type(name: "PostReplace") { inputFields { name } }
    }""")
    fields = {field["name"]: field for field in schema["post"]["fields"]}
    assert fields["minutes"]["type"] == {"kind": "NON_NULL", "ofType": {"name": "Int"}}
    assert {"name": "initials", "description": "The first letters."} in schema["writer"]["fields"]
    for name in ("where", "order", "create", "patch"):
        assert "minutes" not in [field["name"] for field in schema[name]["inputFields"]]
    assert "minutes" in [field["name"] for field in schema["replace"]["inputFields"]]
    document = told.service.get("/openapi.json").json()
    found = document["components"]["schemas"]
    own = next(part["properties"] for part in found["Post"]["allOf"] if "properties" in part)
    assert (own["minutes"]["readOnly"], "minutes" in found["PostWhere"]["properties"]) == (
        True,
        False,
    )
    assert not [name for name in document["components"]["parameters"] if name.startswith("minutes")]


def test_it_is_nullable_if_something_that_it_needs_can_be_hidden() -> None:
    fields = seen_by(declare(MODEL).built, "staff").resources["Writer"].fields
    assert (fields["hint"].field.hideable, fields["initials"].field.hideable) == (True, False)


def test_explain_tells_what_is_python(command: Command) -> None:
    Path("blog.py").write_text(HEADER + MODEL + "\nmodel = Model(Writer, Post)\n", "utf-8")
    said = command("explain", "{ posts { minutes author { followers } again: minutes } }", "--model", "blog:model")
    assert said.returncode == 0, said.stderr
    lines = [line for line in said.stdout.splitlines() if line.startswith("Python")]
    assert lines == [
        "Python Post.minutes is computed from body, for each row",
        "Python Writer.followers is computed from id, name, once, for all rows",
    ]
    plain = command("explain", "{ posts { title } }", "--model", "blog:model")
    assert "Python" not in plain.stdout


def test_a_fault_of_the_values_is_told_before_anything_runs(told: Told) -> None:
    answer = told.send("POST", "/posts?fields=score", {"title": 3, "authorId": ANN})
    assert (answer.code, told.calls) == (Code.BAD_USER_INPUT.value, {})
