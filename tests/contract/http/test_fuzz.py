"""Requests that are nearly right, by the thousand if wanted: whatever comes, it is answered, and never by a 500.

FUZZ=100 make test ARGS=tests/contract/http/test_fuzz.py
"""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.http.data import ANN, BEN, POST
from tests.proof.fuzz.spoiled import spoiled, thorough
from tests.support.in_process import RESPONSE, Service, encoded

MANY = thorough(15, 50)
URLS = (
    f"/users/{ANN}?fields=name,recent:posts[first=5;sort=-createdAt](title,comments(author(name),body))",
    f"/users/{BEN}/posts?title[ne]=x&sort=-title,createdAt&first=2&offset=1&count=exact&fields=*,author(id)",
    "/posts?published=true&body[contains]=a%25b&createdAt[gte]=2026-01-01T00:00:00Z&version[in]=1,2&last=3",
    "/comments?"
    + encoded(where={"or": [{"post": {"title": {"in": ["a", "b"]}}}, {"not": {"body": {"isNull": True}}}]}),
    "/posts?after=W10&before=x&where=%7B%7D&fields=comments[where=%257B%257D](id)",
)
DOCUMENTS = (
    "query Q($n: Int = 2, $w: PostWhere, $b: Boolean!) { posts(first: $n, where: $w) { ...F @include(if: $b) } } "
    "fragment F on Post { id author { name } comments(first: 1, orderBy: [{body: DESC}]) { body } }",
    '{ a: user(id: "x") { __typename } usersConnection(last: 2, where: {name: {in: ["Ann", "Ben"]}, or: []}) '
    "{ totalCount pageInfo { hasNextPage endCursor } edges { cursor node { posts { title } } } } }",
    '{ __schema { queryType { name } } __type(name: "User") { fields { name args { name type { ofType { name } } } } } }',
)
PARTS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ";",
    "=",
    "&",
    "%",
    "%00",
    "%25",
    "%ED%A0%80",
    "+",
    "'",
    '"',
    "\\",
    "*",
    "$",
    "@",
    "!",
    "...",
    "#",
    "null",
    "true",
    "-1",
    "0",
    "99999999999",
    "1e400",
    "é",
    "\x00",
    "\ud7ff",
    "😀",
    " ",
    "\n",
    "first",
    "where",
    "id",
    "not",
    "some",
    "isNull",
    "__typename",
    "@skip(if: true)",
    "fragment",
    "\ufeff",
    "9" * 400,
)


@pytest.mark.slow
def test_a_spoiled_url_is_answered(shop: Service) -> None:
    tokens = (None, shop.token(ANN), shop.token(BEN, "admin"))

    @MANY
    @given(spoiled(URLS, PARTS), st.sampled_from(tokens))
    def answered(url: str, token: str | None) -> None:
        answer = shop.get(quote(url, safe="/?&=%[](){}:;,*$@!'+\"<>|^`\\ -._~"), token=token)
        assert answer.status in (200, 400, 401, 404), (url, answer.body)

    answered()


def test_a_spoiled_document_is_answered(shop: Service) -> None:
    tokens = (None, shop.token(ANN), shop.token(BEN, "admin"))
    variables = st.fixed_dictionaries({}, optional={"n": odd(), "w": odd(), "b": st.one_of(st.booleans(), odd())})

    @MANY
    @given(st.one_of(st.sampled_from(DOCUMENTS), spoiled(DOCUMENTS, PARTS)), variables, st.sampled_from(tokens))
    def answered(document: str, given: object, token: str | None) -> None:
        answer = shop.query(document, given, token=token)
        assert answer.status in (200, 400, 401, 403, 422), (document, given, answer.body)
        assert ("data" in answer.json()) == (answer.status == 200)

    answered()


def test_a_spoiled_body_is_answered(shop: Service) -> None:
    whole = tuple(json.dumps({"query": document, "variables": {"b": True}}) for document in DOCUMENTS)

    @MANY
    @given(st.one_of(spoiled(whole, PARTS).map(str.encode), st.binary(max_size=50)))
    def answered(body: bytes) -> None:
        answer = shop.post(body, accept=RESPONSE)
        assert answer.status in (200, 400, 401, 422), (body, answer.body)

    answered()


def odd() -> st.SearchStrategy[object]:
    """Any JSON, with names that mean something now and then."""
    names = st.sampled_from(
        ("title", "eq", "in", "and", "or", "not", "comments", "some", "author", "isNull", "id", "version", "x")
    )
    texts = st.one_of(
        st.sampled_from((POST[1], "Alpha", "", "\x00", "😀")), st.text(st.characters(codec="utf-8"), max_size=5)
    )
    plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
    return st.recursive(
        plain, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3))
    )
