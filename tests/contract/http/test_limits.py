"""Depth and price, in both styles, before any SQL; and the limits of a document, a filter and a sort."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import Answer, Service, encoded

U = json.dumps(ANN)

# the price, a document, the same in the resource style where it has one
PRICES: list[tuple[int, str, str]] = [
    (1, f"{{ user(id: {U}) {{ id name }} }}", f"/users/{ANN}"),
    (2, f"{{ a: user(id: {U}) {{ id }} b: user(id: {U}) {{ id }} }}", ""),
    (20, "{ users { id } }", "/users"),
    (10, "{ users(first: 10) { id name version __typename } }", "/users?first=10"),
    (10, "{ usersConnection(last: 10) { nodes { id } } }", "/users?last=10"),
    (30, "{ users(first: 10) { id } posts { id } __typename }", ""),
    (20, "{ posts(first: 10) { author { name } } }", "/posts?first=10&fields=author(name)"),
    (60, "{ users(first: 10) { posts(first: 5) { id } } }", "/users?first=10&fields=posts[first=5](id)"),
    (
        70,
        "{ users(first: 10) { posts(first: 5) { id } a: posts(first: 1) { id } } }",
        "/users?first=10&fields=posts[first=5](id),a:posts[first=1](id)",
    ),
    (110, "{ users(first: 10) { posts { id } } }", "/users?first=10&fields=posts(id)"),
    (
        2_220,
        "{ users { name posts { title comments { body } } } }",
        "/users?fields=name,posts(title,comments(body))",
    ),
    (
        4_220,
        "{ users { name posts { title comments { body author { name } } } } }",
        "/users?fields=name,posts(title,comments(body,author(name)))",
    ),
    (11, f"{{ user(id: {U}) {{ postsConnection {{ nodes {{ id }} }} }} }}", ""),
    (21, "", f"/users/{ANN}/posts"),
    (
        111,
        f"{{ user(id: {U}) {{ posts(first: 10) {{ comments(first: 5) {{ author {{ name }} }} }} }} }}",
        f"/users/{ANN}?fields=posts[first=10](comments[first=5](author(name)))",
    ),
    (11, f"{{ user(id: {U}) {{ postsConnection(first: 10) {{ nodes {{ id }} }} }} }}", f"/users/{ANN}/posts?first=10"),
    (
        31,
        f"{{ user(id: {U}) {{ postsConnection(first: 10) {{ totalCount nodes {{ id }} }} }} }}",
        f"/users/{ANN}/posts?first=10&count=exact",
    ),
    (
        30,
        "{ usersConnection(first: 10) { totalCount nodes { id } pageInfo { endCursor } } }",
        "/users?first=10&count=exact",
    ),
    (10, "{ usersConnection(first: 10) { edges { cursor } } }", ""),
    (10, "{ usersConnection(first: 10) { edges { cursor node { id } } nodes { name } } }", ""),
    (30, "{ usersConnection(first: 10) { nodes { id } edges { node { posts(first: 2) { id } } } } }", ""),
    (40, "{ usersConnection(first: 10) { nodes { posts(first: 3) { id } } edges { node { id } } } }", ""),
    (20, "{ usersConnection(first: 10) { a: nodes { id } b: nodes { id } } }", ""),
    (20, "{ usersConnection(first: 10) { edges { a: node { id } b: node { id } } } }", ""),
    (
        20,
        '{ posts(first: 10, where: {author: {name: {eq: "x"}}}) { id } }',
        "/posts?first=10&" + encoded(where={"author": {"name": {"eq": "x"}}}),
    ),
    (
        40,
        "{ posts(first: 10, where: {author: {posts: {some: {}}}, not: {comments: {some: {}}}}) { id } }",
        "/posts?first=10&" + encoded(where={"author": {"posts": {"some": {}}}, "not": {"comments": {"some": {}}}}),
    ),
    (
        160,
        "{ users(first: 10) { posts(first: 5, where: {comments: {some: {}}}) { id } } }",
        "/users?first=10&fields=" + quote("posts[first=5;where={}](id)".format(quote('{"comments":{"some":{}}}'))),
    ),
    (10, "{ ...A } fragment A on Query { users(first: 10) { ...B } } fragment B on User { id name }", ""),
    (
        20,
        "query($n: Int = 2) { users(first: 10) { posts(first: 1) @include(if: true) { id } posts2: posts(first: $n) @skip(if: true) { id } } }",
        "",
    ),
    (1, "{ __schema { types { name fields { name } } } users(first: 1) { id } }", ""),
]


def ask(service: Service, request: str) -> Answer:
    return service.get(request) if request.startswith("/") else service.query(request)


@pytest.mark.parametrize(("price", "document", "url"), PRICES)
def test_a_request_costs_exactly_this_in_both_styles(fresh: Fresh, price: int, document: str, url: str) -> None:
    affordable, dear = fresh(max_complexity=price), fresh(max_complexity=price - 1) if price > 1 else None
    for request in filter(None, (document, url)):
        for _ in range(3):  # cold, noted, remembered
            assert ask(affordable, request).status == 200, ask(affordable, request).body
            if dear is not None:
                answer = ask(dear, request)
                assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
                cause = f"The request could return {price} objects; {price - 1} are allowed."
                assert told(answer).removesuffix(hinted(answer)) == cause
    assert dear is None or dear.runs == 0


def told(answer: Answer) -> str:
    body = answer.json()
    return str(body["detail"] if "detail" in body else body["errors"][0]["message"])


def hinted(answer: Answer) -> str:
    """The end of the message, which names the page that would have to be smaller."""
    _, found, hint = told(answer).partition(" A `first` of at most ")
    return found + hint


def test_the_price_follows_the_variables(fresh: Fresh) -> None:
    service = fresh(max_complexity=50)
    document = "query($n: Int!, $m: Int! = 1) { users(first: $n) { posts(first: $m) { id } } }"
    for variables, fits in [
        ({"n": 25}, True),
        ({"n": 26}, False),
        ({"n": 10, "m": 4}, True),
        ({"n": 10, "m": 5}, False),
    ] * 3:
        answer = service.query(document, variables)
        assert answer.status == (200 if fits else 400)
        assert (
            service.get(f"/users?first={variables['n']}&fields=posts[first={variables.get('m', 1)}](id)").status
            == answer.status
        )


def test_the_limits_as_they_are_by_default(shop: Service) -> None:
    fits = "{ users(first: 100) { posts(first: 49) { id } } }"
    dear = "{ users(first: 100) { posts(first: 50) { id } } }"
    assert shop.query(fits).status == 200
    before = shop.runs
    assert told(shop.query(dear)) == (
        "The request could return 5100 objects; 5000 are allowed. "
        "A `first` of at most 49 on users.posts, instead of 50, would help."
    )
    assert told(shop.get("/users?first=100&fields=posts[first=50](id)")) == told(shop.query(dear))
    assert shop.runs == before


# depth


def chain(levels: int) -> tuple[str, str]:
    """user → posts → author → posts …, so many levels deep, each list of one row; in both styles."""
    words = [(f"user(id: {U})", "")] + [("posts(first: 1)", "posts[first=1]"), ("author", "author")] * levels
    document, fields = "id", "id"
    for word, field in reversed(words[1:levels]):
        document, fields = f"{word} {{ {document} }}", f"{field}({fields})"
    return f"{{ {words[0][0]} {{ {document} }} }}", f"/users/{ANN}?fields={fields}"


@pytest.mark.parametrize("levels", [1, 2, 9, 10])
def test_so_deep_is_fine(shop: Service, levels: int) -> None:
    for request in chain(levels):
        assert ask(shop, request).status == 200


@pytest.mark.parametrize("levels", [11, 12, 20, 40, 63])
def test_deeper_is_refused_before_any_sql(shop: Service, levels: int) -> None:
    before = shop.runs
    for request in chain(levels):
        answer = ask(shop, request)
        assert (answer.status, answer.code) == (400, "TOO_DEEP")
        assert told(answer) in (
            f"The request is {levels} levels deep; 10 are allowed.",
            f"The document is nested {levels + 1} levels deep; 64 are allowed.",
        )
    assert shop.runs == before


@cases("levels", [64, 65, 66, 100, 200, 300, 400, 500, 900, 5_000])
def test_very_much_deeper_is_refused_as_well(shop: Service, levels: int) -> None:
    before = shop.runs
    for request in chain(levels):
        answer = ask(shop, request)
        assert (answer.status, answer.code) in [(400, "TOO_DEEP"), (400, "TOO_COMPLEX")]
    assert shop.runs == before


@pytest.mark.parametrize("levels", [20, 60, 64, 100, 200, 240])
def test_fragments_make_nothing_less_deep(shop: Service, levels: int) -> None:
    parts = [f"fragment F{n} on User {{ posts(first: 1) {{ author {{ ...F{n + 1} }} }} }}" for n in range(levels // 2)]
    last = f"fragment F{levels // 2} on User {{ id }}"
    answer = shop.query(f"{{ user(id: {U}) {{ ...F0 }} }} {' '.join(parts)} {last}")
    assert (answer.status, answer.code) in [(400, "TOO_DEEP"), (400, "TOO_COMPLEX")], answer.body


@pytest.mark.parametrize("levels", [12, 20, 30, 60])
def test_fragments_that_double_at_every_level_are_refused_quickly(shop: Service, levels: int) -> None:
    parts = [
        f"fragment F{n} on User {{ posts(first: 1) {{ author {{ ...F{n + 1} }} }} comments(first: 1) {{ author {{ ...F{n + 1} }} }} }}"
        for n in range(levels)
    ]
    answer = shop.query(f"{{ user(id: {U}) {{ ...F0 }} }} {' '.join(parts)} fragment F{levels} on User {{ id }}")
    assert (answer.status, answer.code) in [(400, "TOO_DEEP"), (400, "TOO_COMPLEX")]


def where_chain(hops: int) -> dict[str, Any]:
    """A filter on users that follows so many relations."""
    where: dict[str, Any] = {}
    for hop in reversed(range(hops)):
        where = {"author": where} if hop % 2 else {"posts": {"some": where}}
    return where


@pytest.mark.parametrize(("hops", "fits"), [(1, True), (9, True), (10, False), (11, False), (20, False), (40, False)])
def test_a_relation_in_where_counts(shop: Service, hops: int, fits: bool) -> None:
    before = shop.runs
    where = where_chain(hops)
    document = "query($w: UserWhere) { users(where: $w, first: 1) { id } }"
    for answer in (shop.query(document, {"w": where}), shop.get("/users?first=1&" + encoded(where=where))):
        assert answer.status == (200 if fits else 400), answer.body
        if not fits:
            assert told(answer) == f"The request is {hops + 1} levels deep; 10 are allowed."
    assert (shop.runs > before) == fits


def test_the_parts_of_a_page_are_no_levels(shop: Service) -> None:
    document = f"user(id: {U}) {{ "
    for _ in range(4):
        document += "postsConnection(first: 1) { edges { node { author { "
    document = f"{{ {document} id {'} } } } ' * 4} }} }}"
    assert shop.query(document).status == 200


def test_the_depth_is_a_setting(fresh: Fresh) -> None:
    service = fresh(max_depth=3)
    assert [ask(service, request).status for request in chain(3)] == [200, 200]
    assert [ask(service, request).status for request in chain(4)] == [400, 400]


# the limits of a document, a filter and a sort: how many are allowed, a request with n of them


def aliases(number: int) -> str:
    return "{{ users(first: 1) {{ {} }} }}".format(" ".join(f"a{n}: name" for n in range(number)))


def roots(number: int) -> str:
    names = [f"a{n}: __typename" for n in range(max(number - 10, 0))]
    return "{{ {} {} }}".format(" ".join(names), " ".join(ROOTS[: min(number, 10)]))


ROOTS = [
    "__typename",
    "users(first: 1) { id }",
    "posts(first: 1) { id }",
    "comments(first: 1) { id }",
    "usersConnection(first: 1) { totalCount }",
    "postsConnection(first: 1) { totalCount }",
    "commentsConnection(first: 1) { totalCount }",
    'user(id: "x") { id }',
    'post(id: "x") { id }',
    'comment(id: "x") { id }',
]


def directives(number: int) -> str:
    return "{{ users(first: 1) {{ {} }} }}".format(" ".join(["id @include(if: true)"] * number))


def selections(number: int) -> str:
    return "{{ users(first: 1) {{ {} }} }}".format(" ".join(["id"] * number))


def text(number: int) -> str:
    return '{ users(where: {name: {eq: "%s"}}) { id } }' % ("x" * number)


def long(number: int) -> str:
    document = "{ users { id } }"
    return document + " " * (number - len(document))


def sort_keys(number: int) -> str:
    return "{{ users(orderBy: [{}]) {{ id }} }}".format(" ".join(["{name: ASC}"] * number))


def terms(number: int) -> str:
    return "{{ users(where: {{or: [{}]}}) {{ id }} }}".format(
        " ".join(f'{{name: {{eq: "{n}"}}}}' for n in range(number))
    )


def choices(number: int) -> str:
    return "{{ users(where: {{name: {{in: [{}]}}}}) {{ id }} }}".format(" ".join(['"x"'] * number))


COUNTED = [
    (30, aliases, "TOO_COMPLEX"),
    (20, roots, "TOO_COMPLEX"),
    (50, directives, "TOO_COMPLEX"),
    (100, selections, "TOO_COMPLEX"),
    (4096, text, "TOO_COMPLEX"),
    (100 * 1024, long, "TOO_COMPLEX"),
    (5, sort_keys, "TOO_COMPLEX"),
    (50, terms, "TOO_COMPLEX"),
    (250, choices, "BAD_USER_INPUT"),
]


@cases(("most", "make", "code"), COUNTED, ids=[case[1].__name__ for case in COUNTED])
def test_so_many_are_allowed_and_one_more_is_not(shop: Service, most: int, make: Any, code: str) -> None:
    assert shop.query(make(most)).status == 200, shop.query(make(most)).body
    before = shop.runs
    answer = shop.query(make(most + 1))
    assert (answer.status, answer.code) == (422 if code == "BAD_USER_INPUT" else 400, code), answer.body
    assert str(most) in told(answer) and str(most + 1) in told(answer), told(answer)
    assert shop.runs == before


def test_so_many_tokens_are_allowed_and_one_more_is_not(shop: Service) -> None:
    empty = "{{or: [{}]}}".format(" ".join(["{}"] * 240))
    fits = '{{ users(first: 1, where: {{or: [{{name: {{eq: "x"}}}} {empties} {some}]}}) {{ id }} }}'.format(
        empties=" ".join([empty] * 4), some=" ".join(["{}"] * 14)
    )
    assert shop.query(fits).status == 200, shop.query(fits).body
    answer = shop.query(fits.replace("id", "id name"))
    assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
    assert told(answer) == "The document has 2001 tokens or more; 2000 are allowed."


def test_comments_and_commas_are_no_tokens(shop: Service) -> None:
    assert shop.query("{ __typename ,,, # %s\n }" % ("x { y: " * 3_000)).status == 200


def test_the_limits_hold_through_fragments(shop: Service) -> None:
    names = " ".join(f"a{n}: name" for n in range(16))
    document = (
        f"{{ users(first: 1) {{ ...A ...B }} }} fragment A on User {{ {names} }} fragment B on User {{ {names} }}"
    )
    assert (shop.query(document).status, shop.query(document).code) == (400, "TOO_COMPLEX")
    spread = "{{ {} }}".format(
        " ".join("... {{ {} }}".format(" ".join(f"{root}" for root in ROOTS[start : start + 3])) for start in (0, 3, 6))
    )
    assert shop.query(spread).status == 200


def test_an_alias_of_an_argument_is_none(shop: Service) -> None:
    where = " ".join(f'{{name: {{eq: "{n}"}}}}' for n in range(40))
    assert shop.query(f"{{ users(where: {{or: [{where}]}}) {{ id }} }}").status == 200


def test_the_same_limits_hold_in_the_resource_style(shop: Service) -> None:
    before = shop.runs
    sorts, wide = ",".join(["name"] * 6), encoded(where={"or": [{"name": {"eq": str(n)}} for n in range(51)]})
    for url, code in {
        f"/users?sort={sorts}": "TOO_COMPLEX",
        f"/users?{wide}": "TOO_COMPLEX",
        f"/users?name[in]={','.join('x' * 251)}": "BAD_REQUEST",
        "/users?" + encoded(where={"name": {"in": ["x"] * 251}}): "BAD_REQUEST",
        f"/posts?fields=author(posts[sort={sorts.replace('name', 'title')}](id))": "TOO_COMPLEX",
    }.items():
        answer = shop.get(url)
        assert (answer.status, answer.code) == (400, code), answer.body
    assert shop.runs == before
    assert shop.get(f"/users?name[in]={','.join('x' * 250)}").status == 200


# introspection has limits of its own

STANDARD = """query IntrospectionQuery { __schema { description queryType { name kind } mutationType { name kind }
  subscriptionType { name kind } types { ...FullType } directives { name description isRepeatable locations
  args(includeDeprecated: true) { ...InputValue } } } }
fragment FullType on __Type { kind name description specifiedByURL isOneOf fields(includeDeprecated: true) { name description
  args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
  ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }"""


def test_the_standard_introspection_query_passes_for_everyone(shop: Service) -> None:
    for token in (None, shop.token(ANN), shop.token(ANN, "admin"), shop.token(ANN, scopes=[])):
        assert shop.data(STANDARD, token=token)["__schema"]["queryType"] == {"name": "Query", "kind": "OBJECT"}


def test_introspection_that_goes_round_in_circles_is_refused(shop: Service) -> None:
    inner = "name"
    for _ in range(6):
        inner = f"fields {{ type {{ {inner} }} }}"
    answer = shop.query(f"{{ __schema {{ types {{ {inner} }} }} }}")
    assert (answer.status, answer.code) in [(400, "GRAPHQL_VALIDATION_FAILED"), (400, "TOO_COMPLEX")]
