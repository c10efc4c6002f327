"""Documents: selections, aliases, fragments, directives, type names, connections, introspection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from diptych.errors import StartError
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN, CLEO, NOBODY, ORDER, POST, ZOE, day
from tests.support.cases import cases
from tests.support.in_process import Service

U, P = json.dumps(ANN), json.dumps(POST[1])

# a document, what anonymous gets; keys stand in this order
ANSWERS: dict[str, Any] = {
    f"{{ user(id: {U}) {{ name }} }}": {"user": {"name": "Ann"}},
    f"{{ user(id: {U}) {{ updatedAt name version id createdAt }} }}": {
        "user": {"updatedAt": day(1), "name": "Ann", "version": 3, "id": ANN, "createdAt": day(1)}
    },
    f'{{ user(id: "{NOBODY}") {{ name }} }}': {"user": None},
    '{ user(id: "x") { name } }': {"user": None},
    "{ user(id: 5) { name } }": {"user": None},
    '{ user(id: """x""") { name } }': {"user": None},
    f'{{ user(id: "{ANN.upper()}") {{ name }} }}': {"user": None},
    f'{{ b: user(id: "{BEN}") {{ n: name }} a: user(id: {U}) {{ n: name m: name }} }}': {
        "b": {"n": "Ben"},
        "a": {"n": "Ann", "m": "Ann"},
    },
    "{ users(first: 2, offset: 1) { name } }": {"users": [{"name": "Ben"}, {"name": "Cleo"}]},
    "{ users(orderBy: {name: DESC}, first: 2) { name } }": {"users": [{"name": "Zoë"}, {"name": "Cleo"}]},
    "{ users(orderBy: [{name: DESC}], first: 1) { name } }": {"users": [{"name": "Zoë"}]},
    "{ users(orderBy: [], first: 1) { name } }": {"users": [{"name": "Ann"}]},
    "{ users(where: null, orderBy: null, after: null, offset: null, first: 1) { name } }": {"users": [{"name": "Ann"}]},
    "{ usersConnection(where: null, after: null, before: null, first: 1) { nodes { name } } }": {
        "usersConnection": {"nodes": [{"name": "Ann"}]}
    },
    f"{{ post(id: {P}) {{ title comments(first: 1) {{ body author {{ name }} }} all: comments {{ id: body }} }} }}": {
        "post": {
            "title": "Alpha",
            "comments": [{"body": "nice", "author": {"name": "Ben"}}],
            "all": [{"id": "nice"}, {"id": "so-so"}, {"id": "thanks"}],
        }
    },
    "{ __typename }": {"__typename": "Query"},
    f"{{ a: __typename user(id: {U}) {{ __typename posts(first: 1) {{ t: __typename author {{ __typename }} }} }} b: __typename }}": {
        "a": "Query",
        "user": {"__typename": "User", "posts": [{"t": "Post", "author": {"__typename": "User"}}]},
        "b": "Query",
    },
    """{ usersConnection(first: 1) { __typename pageInfo { __typename hasNextPage p: hasPreviousPage }
         edges { __typename node { __typename name } } nodes { id __typename } totalCount t: totalCount } }""": {
        "usersConnection": {
            "__typename": "UserConnection",
            "pageInfo": {"__typename": "PageInfo", "hasNextPage": True, "p": False},
            "edges": [{"__typename": "UserEdge", "node": {"__typename": "User", "name": "Ann"}}],
            "nodes": [{"id": ANN, "__typename": "User"}],
            "totalCount": 4,
            "t": 4,
        }
    },
    "{ usersConnection(last: 2, orderBy: {name: ASC}) { nodes { name } } }": {
        "usersConnection": {"nodes": [{"name": "Cleo"}, {"name": "Zoë"}]}
    },
    "{ usersConnection { a: nodes { name } b: nodes { id } e: edges { x: node { name } y: node { id } } } }": {
        "usersConnection": {
            "a": [{"name": name} for name in ("Ann", "Ben", "Cleo", "Zoë")],
            "b": [{"id": id} for id in (ANN, BEN, CLEO, ZOE)],
            "e": [
                {"x": {"name": name}, "y": {"id": id}}
                for name, id in (("Ann", ANN), ("Ben", BEN), ("Cleo", CLEO), ("Zoë", ZOE))
            ],
        }
    },
    f'{{ user(id: {U}) {{ postsConnection(first: 1, where: {{title: {{ne: "x"}}}}) {{ totalCount nodes {{ title }} }} }} }}': {
        "user": {"postsConnection": {"totalCount": 2, "nodes": [{"title": "Alpha"}]}}
    },
    '{ postsConnection(where: {title: {eq: "none"}}) { totalCount nodes { id } edges { cursor } pageInfo { startCursor endCursor } } }': {
        "postsConnection": {
            "totalCount": 0,
            "nodes": [],
            "edges": [],
            "pageInfo": {"startCursor": None, "endCursor": None},
        }
    },
    # fragments
    f"{{ user(id: {U}) {{ ...F }} }} fragment F on User {{ name }}": {"user": {"name": "Ann"}},
    f"{{ user(id: {U}) {{ id ...F name }} }} fragment F on User {{ name id version }}": {
        "user": {"id": ANN, "name": "Ann", "version": 3}
    },
    f"{{ user(id: {U}) {{ ... on User {{ name }} ... {{ id }} ... @include(if: true) {{ version }} }} }}": {
        "user": {"name": "Ann", "id": ANN, "version": 3}
    },
    f"""query {{ ...Root }} fragment Root on Query {{ user(id: {U}) {{ ...A }} }}
        fragment A on User {{ ...B posts(first: 1) {{ ...C }} }} fragment B on User {{ name }}
        fragment C on Post {{ title author {{ ...B }} }}""": {
        "user": {"name": "Ann", "posts": [{"title": "Alpha", "author": {"name": "Ann"}}]}
    },
    "{ postsConnection(first: 1) { ...C } } fragment C on PostConnection { edges { ...E } pageInfo { ...I } } "
    "fragment E on PostEdge { node { title } } fragment I on PageInfo { hasNextPage }": {
        "postsConnection": {"edges": [{"node": {"title": "Alpha"}}], "pageInfo": {"hasNextPage": True}}
    },
    # merged
    f"{{ user(id: {U}) {{ name }} user(id: {U}) {{ id name }} }}": {"user": {"name": "Ann", "id": ANN}},
    f"{{ user(id: {U}) {{ posts(first: 1) {{ title }} id posts(first: 1) {{ id title }} }} ...F }} "
    f"fragment F on Query {{ user(id: {U}) {{ posts(first: 1) {{ published }} name }} }}": {
        "user": {"posts": [{"title": "Alpha", "id": POST[1], "published": True}], "id": ANN, "name": "Ann"}
    },
    "{ usersConnection(first: 1) { nodes { name } nodes { id } pageInfo { hasNextPage } pageInfo { hasPreviousPage } } }": {
        "usersConnection": {
            "nodes": [{"name": "Ann", "id": ANN}],
            "pageInfo": {"hasNextPage": True, "hasPreviousPage": False},
        }
    },
    # directives
    f"{{ user(id: {U}) {{ name @skip(if: true) id @include(if: true) version @include(if: false) }} }}": {
        "user": {"id": ANN}
    },
    f"{{ user(id: {U}) {{ id name @include(if: true) @skip(if: true) }} }}": {"user": {"id": ANN}},
    f"{{ user(id: {U}) {{ ...F @skip(if: true) id }} }} fragment F on User {{ name }}": {"user": {"id": ANN}},
    f"{{ user(id: {U}) {{ ... @skip(if: false) {{ id name @skip(if: false) }} }} }}": {
        "user": {"id": ANN, "name": "Ann"}
    },
    f"{{ a: __typename user(id: {U}) @skip(if: true) {{ id }} }}": {"a": "Query"},
    f"{{ user(id: {U}) {{ posts(first: 1) @include(if: false) {{ id }} name }} }}": {"user": {"name": "Ann"}},
    "{ __typename @skip(if: true) }": {},
    "{ users(first: 2) { id @skip(if: true) } }": {"users": [{}, {}]},
    f"{{ user(id: {U}) {{ posts(first: 1) {{ author {{ id @skip(if: true) }} }} }} }}": {
        "user": {"posts": [{"author": {}}]}
    },
    "{ usersConnection(first: 1) { nodes @skip(if: true) { id } } }": {"usersConnection": {}},
    "{ usersConnection(last: 1, orderBy: {name: ASC}) { edges { cursor @skip(if: true) } pageInfo { endCursor @skip(if: true) } } }": {
        "usersConnection": {"edges": [{}], "pageInfo": {}}
    },
    "{ users(first: 1) { ...F @skip(if: true) ...F } } fragment F on User { name }": {"users": [{"name": "Ann"}]},
    # introspection beside data
    f'{{ __schema {{ queryType {{ name }} }} user(id: {U}) {{ name }} t: __type(name: "User") {{ name kind }} }}': {
        "__schema": {"queryType": {"name": "Query"}},
        "user": {"name": "Ann"},
        "t": {"name": "User", "kind": "OBJECT"},
    },
    '{ a: __type(name: "Nope") { name } b: __type(name: "PageInfo") { ...T } } fragment T on __Type { name }': {
        "a": None,
        "b": {"name": "PageInfo"},
    },
    '{ ...S __type(name: "User") { name } } fragment S on Query { __type(name: "User") { kind } __typename }': {
        "__type": {"kind": "OBJECT", "name": "User"},
        "__typename": "Query",
    },
    # names and blanks
    "query   users{users(first:1){name}}": {"users": [{"name": "Ann"}]},
    "\ufeff{ __typename }": {"__typename": "Query"},
    "# é 😀\n{ users(first: 1,,,) { name, } , }": {"users": [{"name": "Ann"}]},
    "{ %s: __typename }" % ("a" * 300): {"a" * 300: "Query"},
    "{ users(first: 1) { %s: name } }" % ("_" * 300): {"users": [{"_" * 300: "Ann"}]},
    '{ posts(where: {title: {eq: "\\u00c9mile"}}) { id } }': {"posts": [{"id": POST[7]}]},
    '{ posts(where: {title: {eq: "\\u{C9}mile"}}) { title body } }': {
        "posts": [{"title": "Émile", "body": 'é "quoted" \\ 😀'}]
    },
    '{ posts(where: {body: {contains: "\\ud83d\\ude00"}}) { id } }': {"posts": [{"id": POST[7]}]},
    '{ posts(where: {body: {contains: """ "quoted" """}}) { id } }': {"posts": [{"id": POST[7]}]},
}


@cases("document", ANSWERS)
def test_a_document_is_answered_by_exactly_what_it_selects_in_that_order(shop: Service, document: str) -> None:
    for _ in range(3):  # cold, noted, remembered
        assert json.dumps(shop.data(document)) == json.dumps(ANSWERS[document])


def test_an_answer_is_in_utf8_and_unescaped_where_it_can_be(shop: Service) -> None:
    assert '"Zoë"'.encode() in shop.query("{ users { name } }").body


def test_nothing_runs_where_nothing_is_selected_from_the_database(shop: Service) -> None:
    before = shop.runs
    shop.data("{ __typename __schema { types { name } } users @skip(if: true) { id } }")
    assert shop.runs == before


def test_one_statement_answers_a_whole_request(shop: Service) -> None:
    shop.data("{ users { posts(first: 2) { comments(first: 2) { author { name } } } } posts { id } }")
    before = shop.runs
    shop.data("{ users { posts(first: 2) { comments(first: 2) { author { name } } } } posts { id } }")
    assert shop.runs == before + 1


# rows and fields that depend on the viewer

VIEWED = """{ users(first: 2) { name email } posts(where: {published: {eq: false}}) { title comments { body } }
              ordersConnection(orderBy: {total: DESC}, first: 2) { totalCount nodes { total } } }"""


def test_each_viewer_sees_what_it_may(shop: Service) -> None:
    assert shop.data(VIEWED, token=shop.token(ANN)) == {
        "users": [{"name": "Ann", "email": "ann@example.com"}, {"name": "Ben", "email": None}],
        "posts": [{"title": "Draft", "comments": [{"body": "note to self"}]}],
        "ordersConnection": {"totalCount": 3, "nodes": [{"total": "20.50"}, {"total": "20.50"}]},
    }
    assert shop.data(VIEWED, token=shop.token(ZOE, "admin")) == {
        "users": [{"name": "Ann", "email": "ann@example.com"}, {"name": "Ben", "email": "ben@example.com"}],
        "posts": [
            {"title": "Draft", "comments": [{"body": "note to self"}]},
            {"title": "Hidden", "comments": [{"body": "hidden too"}]},
        ],
        "ordersConnection": {"totalCount": 7, "nodes": [{"total": "99999.99"}, {"total": "20.50"}]},
    }


def test_the_same_document_is_another_one_for_another_viewer(shop: Service) -> None:
    document = "{ orders(first: 1, orderBy: {id: ASC}) { id } }"
    for _ in range(3):
        assert shop.data(document, token=shop.token(ANN)) == {"orders": [{"id": ORDER[1]}]}
        assert shop.data(document, token=shop.token(BEN)) == {"orders": [{"id": ORDER[4]}]}
        assert shop.data(document, token=shop.token(ZOE)) == {"orders": []}
        assert shop.data(document, token=shop.token(ZOE, "staff")) == {"orders": [{"id": ORDER[1]}]}
        assert shop.query(document).code == "UNAUTHENTICATED"


def test_every_type_comes_as_the_contract_says(things: Service) -> None:
    document = (
        "{ items(first: 3, offset: 1) { id text number big price ratio flag day moment mood data count parentId } }"
    )
    middle = {
        "id": "2",
        "text": "Mid",
        "number": 7,
        "big": "0",
        "price": "0.50",
        "ratio": 0.1,
        "flag": True,
        "day": "2026-01-31",
        "moment": "2026-01-31T12:00:00.000001Z",
        "mood": "calm",
        "data": {"a": 1},
        "count": 2,
        "parentId": "1",
    }
    nothing = {**dict.fromkeys(middle, None), "id": "3", "parentId": "1"}
    assert things.data(document) == {"items": [middle, nothing, {**middle, "id": "4", "parentId": "2"}]}


# introspection


def test_introspection_is_exact_for_the_role(shop: Service) -> None:
    document = '{ __type(name: "Order") { fields { name } } __schema { queryType { fields { name } } } }'
    anonymous, customer, staff = (
        shop.data(document, token=token) for token in (None, shop.token(ANN), shop.token(ANN, "staff"))
    )
    assert anonymous["__type"] is None
    roots = {field["name"] for field in anonymous["__schema"]["queryType"]["fields"]}
    of_many = ("s", "sConnection", "sGroups", "sGroupsConnection", "sSummary")
    lists = {one + word for one in ("user", "post", "comment") for word in ("", *of_many)}
    assert roots == lists | {"viewer", "node", "nodes"}
    names = {field["name"] for field in staff["__type"]["fields"]}
    assert names - {field["name"] for field in customer["__type"]["fields"]} == {"internalNote"}


def test_a_type_is_looked_up_by_the_value_of_its_variable(shop: Service) -> None:
    document = "query($n: String!) { __type(name: $n) { name } }"
    for name, found in [("User", {"name": "User"}), ("Nope", None), ("Order", None), ("Post", {"name": "Post"})] * 3:
        assert shop.data(document, {"n": name}) == {"__type": found}
    assert shop.data(document, {"n": "Order"}, token=shop.token(ANN)) == {"__type": {"name": "Order"}}


def test_a_directive_on_introspection_takes_the_default_of_its_variable(shop: Service) -> None:
    document = "query($yes: Boolean = true) { __schema @include(if: $yes) { queryType { name } } __typename }"
    whole = {"__schema": {"queryType": {"name": "Query"}}, "__typename": "Query"}
    for _ in range(2):
        assert shop.data(document) == whole
        assert shop.data(document, {"yes": False}) == {"__typename": "Query"}
        assert shop.data(document, {"yes": True}) == whole


ABOUT = (
    "{ __schema { queryType { name } } }",
    '{ __type(name: "User") { name } }',
    "{ users(first: 1) { id } __schema { description } }",
)


def test_introspection_can_be_for_some_roles(fresh: Fresh) -> None:
    service = fresh(introspection_roles=("staff",))
    staff, admin, ann = service.token(ANN, "staff"), service.token(ANN, "admin"), service.token(ANN)
    for _ in range(3):  # cold, noted, remembered: who asks first does not matter
        for token, code in ((staff, ""), (None, "UNAUTHENTICATED"), (ann, "FORBIDDEN"), (admin, "")):
            for document in ABOUT:
                answer = service.query(document, token=token)
                assert (answer.code if "errors" in answer.json() else "") == code
            openapi = service.get("/openapi.json", token=token)
            assert openapi.status == {"": 200, "UNAUTHENTICATED": 401, "FORBIDDEN": 403}[code]
            assert "data" in service.query("{ __typename users(first: 1) { __typename } }", token=token).json()


def test_introspection_can_be_for_all_who_signed_in(fresh: Fresh) -> None:
    service = fresh(introspection_roles=("signed_in",))
    assert service.query(ABOUT[0]).code == "UNAUTHENTICATED"
    assert service.get("/openapi.json").status == 401
    assert "data" in service.query(ABOUT[0], token=service.token(ANN)).json()


def test_introspection_for_a_role_that_is_none_is_refused_at_the_start(fresh: Fresh, runner: asyncio.Runner) -> None:
    with pytest.raises(StartError, match="introspection_roles has 'boss', which is no role of the model"):
        fresh(introspection_roles=("boss",))
    running = {task.get_coro().__qualname__ for task in asyncio.all_tasks(runner.get_loop())}  # type: ignore[union-attr]  # never None here
    assert "RevocationList._poll_forever" not in running


def test_introspection_can_be_closed(fresh: Fresh) -> None:
    service = fresh(introspection=False)
    for document in ("{ __schema { queryType { name } } }", '{ __typename __type(name: "User") { name } }'):
        answer = service.query(document)
        assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert service.data("{ __typename users(first: 1) { __typename } }")["__typename"] == "Query"
    assert service.get("/openapi.json").status == 404
