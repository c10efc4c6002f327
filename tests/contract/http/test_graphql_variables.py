"""Variables of every kind, and where their faults are."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest

from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN, POST
from tests.support.cases import cases
from tests.support.effort import scaled
from tests.support.in_process import RESPONSE, Service

# declarations, the where of posts, variables, which posts (1 2 4 5 7 8 are published)
FILTERS: list[tuple[str, str, dict[str, Any], list[int]]] = [
    ("$t: String", "{title: {eq: $t}}", {"t": "Beta"}, [2]),
    ("$t: String!", "{title: {eq: $t}}", {"t": "Beta"}, [2]),
    ('$t: String = "Beta"', "{title: {eq: $t}}", {}, [2]),
    ('$t: String = "Beta"', "{title: {eq: $t}}", {"t": "beta"}, [5]),
    ('$t: String! = "Beta"', "{title: {eq: $t}}", {}, [2]),
    ("$t: String", '{title: {eq: $t, startsWith: "A"}}', {}, [1, 4, 8]),
    ("$t: String!", "{title: {in: [$t]}}", {"t": "Beta"}, [2]),
    ('$t: String = "Beta"', "{title: {in: [$t]}}", {}, [2]),
    ("$t: String!, $u: String!", '{title: {in: [$t, "beta", $u]}}', {"t": "Beta", "u": "x"}, [2, 5]),
    ("$t: [String!]", "{title: {in: $t}}", {"t": ["Beta", "beta"]}, [2, 5]),
    ("$t: [String!]", "{title: {in: $t}}", {"t": []}, []),
    ("$t: [String!]", "{title: {in: $t}}", {"t": "Beta"}, [2]),
    ("$t: [String!]", '{title: {in: $t, eq: "Beta"}}', {}, [2]),
    ('$t: [String!] = ["Beta"]', "{title: {in: $t}}", {}, [2]),
    ('$t: [String!] = "Beta"', "{title: {in: $t}}", {}, [2]),
    ("$f: StringFilter", "{title: $f}", {"f": {"eq": "Beta"}}, [2]),
    ("$f: StringFilter", "{title: $f}", {"f": {"in": ["Beta"], "ne": "x"}}, [2]),
    ("$f: StringFilter", '{title: $f, body: {eq: "again"}}', {}, [4]),
    ("$w: PostWhere", "$w", {"w": {"title": {"eq": "Beta"}}}, [2]),
    ("$w: PostWhere", "$w", {"w": {}}, [1, 2, 4, 5, 7, 8]),
    ("$w: PostWhere", "$w", {"w": None}, [1, 2, 4, 5, 7, 8]),
    ("$w: PostWhere", "$w", {}, [1, 2, 4, 5, 7, 8]),
    ("$w: PostWhere!", "$w", {"w": {"or": [{"title": {"eq": "Beta"}}, {"not": {"published": {"eq": True}}}]}}, [2]),
    ('$w: PostWhere = {title: {eq: "Beta"}}', "$w", {}, [2]),
    ('$w: PostWhere = {title: {in: ["Beta", "beta"]}}', "$w", {}, [2, 5]),
    ('$w: PostWhere = {title: {eq: "Beta"}}', "$w", {"w": {"title": {"eq": "beta"}}}, [5]),
    ('$w: PostWhere = {title: {eq: "Beta"}}', "$w", {"w": None}, [1, 2, 4, 5, 7, 8]),
    ("$w: PostWhere!", "{and: [$w]}", {"w": {"title": {"eq": "Beta"}}}, [2]),
    ("$w: PostWhere!", '{or: [{title: {eq: "beta"}}, $w]}', {"w": {"title": {"eq": "Beta"}}}, [2, 5]),
    ("$w: [PostWhere!]", "{or: $w}", {"w": [{"title": {"eq": "Beta"}}, {"title": {"eq": "beta"}}]}, [2, 5]),
    ("$w: [PostWhere!]", "{or: $w}", {"w": []}, []),
    ("$w: [PostWhere!]", "{or: $w}", {"w": {"title": {"eq": "Beta"}}}, [2]),
    ("$w: [PostWhere!]", "{or: $w}", {"w": {}}, [1, 2, 4, 5, 7, 8]),
    ("$w: [PostWhere!]", "{and: $w}", {}, [1, 2, 4, 5, 7, 8]),
    ("$w: PostWhere", "{not: $w}", {"w": {"title": {"ne": "Beta"}}}, [2]),
    ("$w: PostWhere", '{not: $w, title: {eq: "Beta"}}', {}, [2]),
    ("$w: UserWhere", "{author: $w}", {"w": {"name": {"eq": "Cleo"}}}, [7, 8]),
    ("$w: CommentListWhere", "{comments: $w}", {"w": {"none": {}}}, [5, 7]),
    ("$w: CommentWhere", "{comments: {some: $w}}", {"w": {"body": {"eq": "me"}}}, [8]),
    ("$w: CommentWhere!", "{comments: {every: {not: {and: [$w, {}]}}}}", {"w": {}}, [5, 7]),
    ("$b: Boolean", "{body: {isNull: $b}}", {"b": True}, []),
    ("$b: Boolean", "{body: {isNull: $b}}", {"b": False}, [1, 2, 4, 5, 7, 8]),
    ("$b: Boolean = false", "{body: {isNull: $b}}", {}, [1, 2, 4, 5, 7, 8]),
    ("$b: Boolean", "{published: {eq: $b}}", {"b": True}, [1, 2, 4, 5, 7, 8]),
    ("$b: Boolean", "{published: {eq: $b}}", {"b": False}, []),
    ("$b: [Boolean!]", "{published: {in: $b}}", {"b": [False, True]}, [1, 2, 4, 5, 7, 8]),
    ("$i: ID", "{authorId: {eq: $i}}", {"i": BEN}, [4, 5]),
    ("$i: ID", "{authorId: {eq: $i}}", {"i": "x"}, []),
    ("$i: ID", "{authorId: {eq: $i}}", {"i": 5}, []),
    ("$i: [ID!]", "{authorId: {in: $i}}", {"i": [BEN, "x", 5]}, [4, 5]),
    ("$d: DateTime", "{createdAt: {gt: $d}}", {"d": "2026-01-05T00:00:00+00:00"}, [7, 8]),
    ("$n: Int", "{version: {lte: $n}}", {"n": 1}, [1, 2, 4, 5, 7, 8]),
    ("$n: Int", "{version: {lte: $n}}", {"n": 1.0}, [1, 2, 4, 5, 7, 8]),
]


@cases(("declared", "where", "variables", "numbers"), FILTERS)
def test_a_variable_in_a_filter(
    shop: Service, declared: str, where: str, variables: dict[str, Any], numbers: list[int]
) -> None:
    document = f"query({declared}) {{ posts(where: {where}, orderBy: {{id: ASC}}) {{ id }} }}"
    wanted = {"posts": [{"id": POST[number]} for number in numbers]}
    for _ in range(3):
        assert shop.data(document, variables) == wanted


# declarations, the arguments of posts, variables, which posts
PAGES: list[tuple[str, str, dict[str, Any], list[int]]] = [
    ("$n: Int", "first: $n", {"n": 2}, [1, 2]),
    ("$n: Int", "first: $n", {}, [1, 2, 4, 5, 7, 8]),
    ("$n: Int = 1", "first: $n", {}, [1]),
    ("$n: Int! = 1", "first: $n", {"n": 3}, [1, 2, 4]),
    ("$n: Int!", "first: $n, offset: $n", {"n": 2}, [4, 5]),
    ("$n: Int", "first: 1, offset: $n", {"n": None}, [1]),
    ("$n: Int", "first: 1, offset: $n", {}, [1]),
    ("$c: String", "first: 1, after: $c", {"c": None}, [1]),
    ("$c: String", "first: 1, after: $c", {}, [1]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {"o": [{"title": "DESC"}]}, [7, 5]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {"o": {"title": "DESC"}}, [7, 5]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {"o": [{"title": "ASC"}, {"id": "DESC"}]}, [8, 4]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {"o": []}, [1, 2]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {"o": None}, [1, 2]),
    ("$o: [PostOrder!]", "first: 2, orderBy: $o", {}, [1, 2]),
    ("$o: [PostOrder!] = {id: DESC}", "first: 2, orderBy: $o", {}, [8, 7]),
    ("$o: PostOrder!", "first: 2, orderBy: [{title: ASC}, $o]", {"o": {"id": "DESC"}}, [8, 4]),
    ("$d: Direction!", "first: 2, orderBy: [{title: ASC}, {id: $d}]", {"d": "DESC"}, [8, 4]),
    ("$d: Direction!", "first: 2, orderBy: [{title: ASC}, {id: $d}]", {"d": "ASC"}, [1, 4]),
    ("$d: Direction! = DESC", "first: 2, orderBy: {id: $d}", {}, [8, 7]),
    (
        "$a: Int!, $t: String, $o: [PostOrder!], $b: Boolean!",
        "first: $a, where: {title: {ne: $t}, published: {eq: $b}}, orderBy: $o",
        {"a": 2, "t": "Alpha", "o": [{"id": "DESC"}], "b": True},
        [7, 5],
    ),
]


@cases(("declared", "arguments", "variables", "numbers"), PAGES)
def test_a_variable_in_a_page_or_a_sort(
    shop: Service, declared: str, arguments: str, variables: dict[str, Any], numbers: list[int]
) -> None:
    document = f"query({declared}) {{ posts({arguments}) {{ id }} }}"
    wanted = {"posts": [{"id": POST[number]} for number in numbers]}
    for _ in range(3):
        assert shop.data(document, variables) == wanted


def test_directives_take_variables_and_their_defaults(shop: Service) -> None:
    document = """query($id: ID!, $with: Boolean = true, $without: Boolean! = false) {
                    user(id: $id) { name @include(if: $with) id @skip(if: $without) ...F @include(if: $with) }
                    __typename @skip(if: $without) }
                  fragment F on User { version }"""
    for _ in range(2):
        for given, keys in [
            ({}, ["name", "id", "version"]),
            ({"with": False}, ["id"]),
            ({"without": True}, ["name", "version"]),
            ({"with": True, "without": False}, ["name", "id", "version"]),
        ]:
            data = shop.data(document, {"id": ANN, **given})
            assert list(data["user"]) == keys
            assert ("__typename" in data) == (not given.get("without", False))


# a document, its variables, the places at fault (of graphql-core's own errors none is known)
HUGE = 10**30
WRONG: list[tuple[str, Any, list[str]]] = [
    ("query($n: Int) { posts(first: $n) { id } }", {"n": None}, ["/variables/n"]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": 0}, ["/variables/n"]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": 101}, ["/variables/n"]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": -1}, ["/variables/n"]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": HUGE}, [""]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": "5"}, [""]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": 1.5}, [""]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": True}, [""]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": [1]}, [""]),
    ("query($n: Int) { posts(first: $n) { id } }", {"n": {}}, [""]),
    ("query($n: Int!) { posts(first: $n) { id } }", {}, [""]),
    ("query($n: Int!) { posts(first: $n) { id } }", {"n": None}, [""]),
    ("query($n: Int! = 5) { posts(first: $n) { id } }", {"n": None}, [""]),
    ("query($n: Int) { posts(offset: $n) { id } }", {"n": 10_001}, ["/variables/n"]),
    ("query($n: Int) { postsConnection(last: $n) { totalCount } }", {"n": None}, ["/variables/n"]),
    ("query($n: Int) { postsConnection(first: 1, last: $n) { totalCount } }", {"n": 1}, ["/variables/n"]),
    ("query($c: String) { posts(after: $c) { id } }", {"c": "x"}, ["/variables/c"]),
    ("query($c: String) { posts(after: $c) { id } }", {"c": "\x00"}, ["/variables/c"]),
    ("query($c: String) { posts(after: $c) { id } }", {"c": 5}, [""]),
    ("query($i: ID!) { post(id: $i) { id } }", {}, [""]),
    ("query($i: ID!) { post(id: $i) { id } }", {"i": None}, [""]),
    ("query($i: ID!) { post(id: $i) { id } }", {"i": True}, [""]),
    ("query($i: ID!) { post(id: $i) { id } }", {"i": 1.5}, [""]),
    ("query($i: ID!) { post(id: $i) { id } }", {"i": ["x"]}, [""]),
    ('query($i: ID = "x") { post(id: $i) { id } }', {"i": None}, ["/variables/i"]),
    ("query($t: String) { posts(where: {title: {eq: $t}}) { id } }", {"t": None}, ["/variables/t"]),
    ("query($t: String) { posts(where: {title: {eq: $t}}) { id } }", {}, ["/posts/where/title"]),
    ("query($t: String) { posts(where: {title: {eq: $t}}) { id } }", {"t": 5}, [""]),
    ("query($t: String) { posts(where: {title: {eq: $t}}) { id } }", {"t": "a\x00"}, ["/variables/t"]),
    ("query($t: [String!]) { posts(where: {title: {in: $t}}) { id } }", {"t": None}, ["/variables/t"]),
    ("query($t: [String!]) { posts(where: {title: {in: $t}}) { id } }", {"t": [None]}, [""]),
    ("query($t: [String!]) { posts(where: {title: {in: $t}}) { id } }", {"t": ["a", 5]}, [""]),
    ("query($t: [String!]) { posts(where: {title: {in: $t}}) { id } }", {"t": ["x"] * 251}, ["/variables/t"]),
    ("query($f: StringFilter) { posts(where: {title: $f}) { id } }", {"f": None}, ["/variables/f"]),
    ("query($f: StringFilter) { posts(where: {title: $f}) { id } }", {"f": {}}, ["/variables/f"]),
    ("query($f: StringFilter) { posts(where: {title: $f}) { id } }", {"f": {"eq": None}}, ["/variables/f/eq"]),
    ("query($f: StringFilter) { posts(where: {title: $f}) { id } }", {"f": {"nope": "x"}}, [""]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": []}, [""]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": "x"}, [""]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"title": None}}, ["/variables/w/title"]),
    (
        "query($w: PostWhere) { posts(where: $w) { id } }",
        {"w": {"or": [{}, {"title": {}}]}},
        ["/variables/w/or/1/title"],
    ),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"and": None}}, ["/variables/w/and"]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"and": [None]}}, [""]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"author": None}}, ["/variables/w/author"]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"comments": {}}}, ["/variables/w/comments"]),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"version": {"eq": HUGE}}}, [""]),
    (
        "query($w: PostWhere) { posts(where: $w) { id } }",
        {"w": {"title": None, "body": {}, "createdAt": {"eq": None}}},
        ["/variables/w/title", "/variables/w/body", "/variables/w/createdAt/eq"],
    ),
    ("query($w: PostWhere) { posts(where: $w) { id } }", {"w": {"createdAt": {"eq": "now"}}}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [{}]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [{"id": "ASC", "title": "ASC"}]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [{"id": None}]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [None]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [{"id": "asc"}]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": [{"nope": "ASC"}]}, [""]),
    ("query($o: [PostOrder!]) { posts(orderBy: $o) { id } }", {"o": "id"}, [""]),
    ("query($o: PostOrder = {id: ASC}) { posts(orderBy: [$o]) { id } }", {"o": None}, ["/variables/o"]),
    ("query($d: Direction!) { posts(orderBy: {id: $d}) { id } }", {"d": "UP"}, [""]),
    ("query($d: Direction!) { posts(orderBy: {id: $d}) { id } }", {"d": None}, [""]),
    ("query($b: Boolean!) { users { id @skip(if: $b) name } }", {}, [""]),
    ("query($b: Boolean!) { users { id @skip(if: $b) name } }", {"b": "true"}, [""]),
    ("query($b: Boolean = true) { users { id @include(if: $b) name } }", {"b": None}, ["/variables/b"]),
    ("query($b: Boolean = true) { a: __typename b: __typename @skip(if: $b) }", {"b": None}, ["/variables/b"]),
    ("query($n: String!) { __type(name: $n) { name } }", {"n": 5}, [""]),
    ('query($n: String = "User") { __type(name: $n) { name } }', {"n": None}, [""]),
    ("query($s: [OrderStatus!]) { orders(where: {status: {in: $s}}) { id } }", {"s": ["PAID"]}, [""]),
    ("query($t: Decimal) { orders(where: {total: {eq: $t}}) { id } }", {"t": "1.001"}, ["/variables/t"]),
    ("query($t: Decimal) { orders(where: {total: {eq: $t}}) { id } }", {"t": 1.5}, [""]),
    ("query($t: Decimal) { orders(where: {total: {eq: $t}}) { id } }", {"t": "NaN"}, [""]),
    ("query($t: Decimal) { orders(where: {total: {eq: $t}}) { id } }", {"t": "9" * 5000}, [""]),
]


@cases(("document", "variables", "places"), WRONG)
def test_a_fault_in_a_variable_is_told(shop: Service, document: str, variables: Any, places: list[str]) -> None:
    token = shop.token(ANN)
    before = shop.runs
    for _ in range(2):
        answer = shop.query(document, variables, token=token)
        assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), answer.body
        if places != [""]:
            assert answer.places == places
        assert list(answer.json()) == ["errors"]
    assert shop.runs == before


# the same in the document itself: arguments of posts, the places at fault
WRONG_ARGUMENTS: dict[str, list[str]] = {
    "first: null": ["/posts/first"],
    "first: 0": ["/posts/first"],
    "first: 101": ["/posts/first"],
    "first: -5": ["/posts/first"],
    "offset: -1": ["/posts/offset"],
    "offset: 10001": ["/posts/offset"],
    'after: "x"': ["/posts/after"],
    'after: "\\u0000"': ["/posts/after"],
    "where: {title: null}": ["/posts/where/title"],
    "where: {title: {}}": ["/posts/where/title"],
    "where: {title: {eq: null}}": ["/posts/where/title/eq"],
    "where: {title: {in: null}}": ["/posts/where/title/in"],
    'where: {title: {eq: "\\u0000"}}': ["/posts/where/title/eq"],
    "where: {body: {isNull: null}}": ["/posts/where/body/isNull"],
    "where: {and: null}": ["/posts/where/and"],
    "where: {or: [{}, {title: {}}]}": ["/posts/where/or/1/title"],
    "where: {not: null}": ["/posts/where/not"],
    "where: {author: null}": ["/posts/where/author"],
    "where: {comments: {}}": ["/posts/where/comments"],
    "where: {comments: {some: null}}": ["/posts/where/comments/some"],
    "where: {comments: {some: {body: {}}}}": ["/posts/where/comments/some/body"],
    'first: 0, offset: -1, where: {title: {eq: "\\u0000"}}': ["/posts/where/title/eq", "/posts/first", "/posts/offset"],
    "where: {title: {}}, first: null": ["/posts/where/title", "/posts/first"],
}


@cases("arguments", WRONG_ARGUMENTS)
def test_a_fault_in_an_argument_is_told_with_its_place(shop: Service, arguments: str) -> None:
    before = shop.runs
    answer = shop.query(f"{{ posts({arguments}) {{ id }} }}")
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), answer.body
    assert answer.places == WRONG_ARGUMENTS[arguments]
    for error in answer.json()["errors"]:
        assert error["message"].endswith(f", at {'.'.join(map(str, error['extensions']['argument']))}.")
    assert shop.runs == before


def test_a_place_begins_with_the_key_of_the_field(shop: Service) -> None:
    assert shop.query("{ a: posts(first: 0) { id } }").places == ["/a/first"]


# the memory of shapes

REMEMBERED: list[tuple[str, dict[str, list[Any]]]] = [
    (
        "query($w: PostWhere, $o: [PostOrder!], $n: Int = 3) { posts(where: $w, orderBy: $o, first: $n) { id title } }",
        {
            "w": [
                None,
                {},
                [],
                {"or": []},
                {"or": {}},
                {"or": [{}]},
                {"and": []},
                {"and": {}},
                {"not": {}},
                {"title": {"eq": "Alpha"}},
                {"title": {"eq": "Beta"}},
                {"title": {"eq": None}},
                {"title": {"in": "Beta"}},
                {"title": {"in": ["Beta"]}},
                {"title": {"in": []}},
                {"title": {"in": [None]}},
                {"title": {"eq": []}},
                {"title": {}},
                {"title": []},
                {"published": {"eq": True}},
                {"published": {"eq": False}},
                {"body": {"isNull": True}},
                {"body": {"isNull": False}},
                {"body": {"isNull": 1}},
                {"version": {"eq": 1}},
                {"version": {"eq": True}},
                {"version": {"eq": 1.0}},
                {"version": {"eq": "1"}},
                {"comments": {"some": {}}},
                {"comments": {"none": {}}},
                {"comments": {"some": []}},
                {"title": {"ne": "Alpha", "gt": "B"}},
                {"title": {"gt": "B", "ne": "Alpha"}},
                {"and": [{"title": {"eq": "Alpha"}}, {"authorId": {"eq": BEN}}]},
                {"and": ["x"]},
                {"and": [[]]},
            ],
            "o": [
                None,
                [],
                [{"title": "ASC"}],
                [{"title": "DESC"}],
                {"title": "ASC"},
                {"title": "DESC"},
                {"title": "x"},
                [{"title": "ASC"}, {"id": "DESC"}],
                [{}],
                [None],
                ["title"],
            ],
            "n": [None, 1, 2, 0, 1.0, True, "1"],
        },
    ),
    (
        "query($d: Direction!, $e: Direction! = ASC) { posts(orderBy: [{published: $e}, {title: $d}]) { id } }",
        {"d": ["ASC", "DESC", "UP", None, True, ["ASC"]], "e": ["ASC", "DESC", "down", {}]},
    ),
    (
        "query($a: Boolean! = true, $b: Boolean = false) { posts(first: 1) { id title @include(if: $a) body @skip(if: $b) } }",
        {"a": [True, False, None, 0, "true"], "b": [True, False, None, []]},
    ),
    (
        'query($i: ID!, $t: String!, $l: [String!]) { post(id: $i) { id } posts(where: {title: {in: [$t, "beta"]}}) { id } '
        "c: posts(where: {title: {in: $l}}) { id } }",
        {
            "i": [POST[1], "x", 5, True, None, [], {}],
            "t": ["Alpha", "Beta", 5, None, ["Alpha"]],
            "l": [[], ["Alpha"], "Alpha", [5], None, [[]], {}],
        },
    ),
    (
        "query($n: String!, $b: Boolean!) { __type(name: $n) { name } __schema @include(if: $b) { queryType { name } } }",
        {"n": ["User", "Post", "Nope", 5], "b": [True, False, None]},
    ),
    (
        "query($c: String, $n: Int, $m: Int) { postsConnection(after: $c, first: $n, offset: $m) { nodes { id } } }",
        {"c": [None, "x", 5], "n": [None, 2, 3], "m": [None, 0, 1, "1"]},
    ),
]
ABSENT = object()


@pytest.mark.parametrize("number", range(len(REMEMBERED)))
def test_what_is_remembered_of_a_document_never_answers_another_shape(fresh: Fresh, number: int) -> None:
    """Many shapes of variables, twice, in random order: as if each were the first request of a service."""
    document, choices = REMEMBERED[number]
    random = Random(number)
    some = [
        dict(zip(choices, values, strict=True))
        for values in itertools.product(*([*each, ABSENT] for each in choices.values()))
    ]
    shapes = random.sample(some, min(len(some), scaled(200)))
    given = [{name: value for name, value in each.items() if value is not ABSENT} for each in shapes]
    service = fresh()
    first = {}
    for variables in given:
        service.forget()
        answer = service.query(document, variables)
        first[json.dumps(variables)] = (answer.status, answer.body)
    service.forget()
    for variables in random.sample(given * 3, len(given) * 3):
        answer = service.query(document, variables)
        assert (answer.status, answer.body) == first[json.dumps(variables)], variables


@pytest.mark.parametrize("lifted", ["", ', body: {ne: "x"}'])
def test_variables_of_what_is_skipped_are_checked_every_time(fresh: Fresh, lifted: str) -> None:
    document = f"""query($s: Boolean!, $t: DateTime, $n: Int, $w: UserWhere) {{
      users(first: 1) {{ name }}
      posts(where: {{createdAt: {{gt: $t}}, author: $w{lifted}}}, first: $n) @skip(if: $s) {{ id }}
    }}"""
    good = {"s": True, "t": "2026-01-01T00:00:00Z", "n": 3, "w": {"name": {"eq": "Ann"}}}
    service = fresh()
    for _ in range(3):
        assert service.data(document, good) == {"users": [{"name": "Ann"}]}
        for bad in ({"t": "x"}, {"n": "3"}, {"w": {"name": {"eq": 5}}}):
            assert service.query(document, {**good, **bad}).code == "BAD_USER_INPUT", bad


def test_what_is_remembered_of_a_url_never_answers_another_shape(fresh: Fresh) -> None:
    wheres = [*REMEMBERED[0][1]["w"], 5, "x", True]
    urls = [
        f"/posts?where={json.dumps(where)}{sort}{page}"
        for where in wheres
        for sort in ("", "&sort=title", "&sort=-title", "&sort=title,-id")
        for page in (
            "",
            "&first=2",
            "&last=2",
            "&first=x",
            "&count=exact",
            "&fields=id",
            "&body[isNull]=true",
            "&body[isNull]=false",
            "&title=Alpha",
            "&title[in]=",
            "&title[in]=Alpha,Beta",
        )
    ]
    random = Random(0)
    chosen = random.sample(urls, scaled(200))
    service = fresh()
    first = {}
    for url in chosen:
        service.forget()
        answer = service.get(url)
        first[url] = (answer.status, answer.body)
    service.forget()
    for url in random.sample(chosen * 3, len(chosen) * 3):
        answer = service.get(url)
        assert (answer.status, answer.body) == first[url], url


def test_a_token_of_other_roles_is_never_answered_from_memory(fresh: Fresh) -> None:
    service = fresh()
    document = "query($n: Int) { users(first: $n) { name posts { title } } }"
    tokens = [
        None,
        service.token(ANN),
        service.token(BEN),
        service.token(ANN, "admin"),
        service.token(ANN, scopes=["users:read"]),
    ]
    first = [service.query(document, {"n": 4}, token=token).body for token in tokens]
    assert len(set(first)) == 5
    for _ in range(3):
        assert [service.query(document, {"n": 4}, token=token).body for token in tokens] == first
    assert service.post({"query": document}, accept=RESPONSE).status == 200
