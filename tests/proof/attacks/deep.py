"""The named attack, user → posts → comments → author → posts …, in every way in which it can be sent; pages, filters,
sorts and cursors that are too much."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.contract.http.data import ANN, BEN, POST
from tests.proof.attacks.case import STREAM, Case, by_get, chain, family, get, post, times, where_of

U = f'user(id: "{ANN}")'
ROUND = ("posts", "comments", "author")


def steps(levels: int, argument: str = "") -> list[str]:
    """The relations of the attack; the user itself is the first level."""
    names = (ROUND * levels)[: levels - 1]
    return [name + argument * (name != "author") for name in names]


def attack(levels: int, argument: str = "", root: str = U, inside: str = "id") -> str:
    return f"{{ {root} {{ {chain(steps(levels, argument), inside)} }} }}"


def by_fragments(levels: int) -> str:
    """Every level is a fragment."""
    kinds = ("User", "Post", "Comment")
    names = (ROUND * levels)[: levels - 1]
    parts = [f"fragment F{n} on {kinds[n % 3]} {{ {name} {{ ...F{n + 1} }} }}" for n, name in enumerate(names)]
    return f"{{ {U} {{ ...F0 }} }} {' '.join(parts)} fragment F{levels - 1} on {kinds[(levels - 1) % 3]} {{ id }}"


def by_connections(levels: int) -> str:
    """Through pages, whose parts are no levels."""
    inside = "id"
    for name in reversed((ROUND * levels)[: levels - 1]):
        inside = (
            f"author {{ {inside} }}"
            if name == "author"
            else f"{name}Connection(first: 1) {{ edges {{ node {{ {inside} }} }} }}"
        )
    return f"{{ {U} {{ {inside} }} }}"


def fields(levels: int, argument: str = "") -> str:
    """The same in the resource style."""
    inside = "id"
    for name in reversed((ROUND * levels)[: levels - 1]):
        inside = f"{name}{argument * (name != 'author')}({inside})"
    return f"/users/{ANN}?fields={quote(inside, safe='()[]=;,:')}"


def hops(levels: int) -> dict[str, Any]:
    """The attack as a filter of users."""
    found: dict[str, Any] = {}
    for name in reversed((ROUND * levels)[:levels]):
        found = {name: found} if name == "author" else {name: {"some": found}}
    return found


CREATE = f'createPost(input: {{authorId: "{ANN}", title: "t", body: "b"}})'

NAMED = family(
    "the named attack",
    [
        post("10 levels", attack(10, "(first: 1)"), "answered"),
        post("11 levels", attack(11, "(first: 1)"), "prepass", "TOO_DEEP"),
        post("12 levels of default pages", attack(12), "prepass", "TOO_DEEP"),
        post("21 levels", attack(21), "prepass", "TOO_DEEP"),
        post("21 levels by an admin", attack(21), "prepass", "TOO_DEEP").by("admin"),
        post("50 levels", attack(50), "prepass", "TOO_DEEP"),
        post("63 levels", attack(63), "prepass", "TOO_DEEP"),
        post("100 levels", attack(100), "text", "TOO_DEEP"),
        post("600 levels", attack(600), "text", "TOO_DEEP"),
        post("3,000 levels", attack(3_000), "text", "TOO_COMPLEX"),
        post("from all users", attack(21, root="users(first: 100)"), "prepass", "TOO_DEEP"),
        post("11 levels by fragments", by_fragments(11), "prepass", "TOO_DEEP"),
        post("21 levels by fragments", by_fragments(21), "prepass", "TOO_DEEP"),
        post("150 levels by fragments", by_fragments(150), "prepass", "TOO_DEEP"),
        post(
            "21 levels in inline fragments",
            "{ " + chain([U, *(part for step in steps(21) for part in ("...", step))], "id") + " }",
            "prepass",
            "TOO_DEEP",
        ),
        post("11 levels through pages", by_connections(11), "prepass", "TOO_DEEP"),
        post("21 levels through pages", by_connections(21), "prepass", "TOO_DEEP"),
        post(
            "21 levels, each aliased",
            "{ " + chain([U, *(f"a{n}: {step}" for n, step in enumerate(steps(21)))], "id") + " }",
            "prepass",
            "TOO_DEEP",
        ),
        post(
            "aliased as parts of a page",
            "{ "
            + chain(
                [U, *(f"{('nodes', 'edges', 'node', 'pageInfo')[n % 4]}: {step}" for n, step in enumerate(steps(21)))],
                "id",
            )
            + " }",
            "prepass",
            "TOO_DEEP",
        ),
        post(
            "in ten places at once",
            f"{{ {times(10, 'a§: ' + U + ' { ' + chain(steps(15), 'id') + ' }')} }}",
            "prepass",
            "TOO_DEEP",
        ),
        post(
            "in an operation that does not run",
            "query A { __typename } query B " + attack(21),
            "prepass",
            "TOO_DEEP",
            operation="A",
        ),
        post("with variables for pages", "query($n: Int = 100) " + attack(21, "(first: $n)"), "prepass", "TOO_DEEP"),
        post("with a word that no one has", attack(21, inside="nope"), "prepass", "TOO_DEEP"),
        by_get("11 levels by GET", attack(11), "prepass", "TOO_DEEP"),
        by_get("21 levels by GET", attack(21), "prepass", "TOO_DEEP"),
        post("21 levels as events", attack(21), "prepass", "TOO_DEEP", accept=STREAM),
        post(
            "21 levels below a change",
            "mutation { " + chain([CREATE, "author", *steps(20)], "id") + " }",
            "prepass",
            "TOO_DEEP",
        ).by("ann"),
        post(
            "21 levels below a deletion",
            "mutation { " + chain([f'deletePost(id: "{POST[1]}")', "author", *steps(20)], "id") + " }",
            "prepass",
            "TOO_DEEP",
        ).by("ann"),
        post(
            "21 levels below a subscription",
            "subscription { postChanged { post { " + chain(["author", *steps(20)], "id") + " } } }",
            "prepass",
            "TOO_DEEP",
            accept=STREAM,
        ),
        get("10 levels by fields", fields(10, "[first=1]"), "answered"),
        get("11 levels by fields", fields(11, "[first=1]"), "other", "TOO_DEEP"),
        get("21 levels by fields", fields(21), "other", "TOO_DEEP"),
        get("50 levels by fields", fields(50), "other", "TOO_DEEP"),
        get("66 levels by fields", fields(67), "text", "TOO_DEEP"),
        get("3,000 levels by fields", fields(3_000), "text", "TOO_DEEP"),
        get("21 levels by fields of a list", fields(21).replace(f"/{ANN}", ""), "other", "TOO_DEEP"),
        get(
            "21 levels by fields of changes",
            "/posts/changes?" + fields(20).partition("?")[2].replace("fields=posts(", "fields=author(posts(") + ")",
            "other",
            "TOO_DEEP",
        ),
        post(
            "9 levels by a filter",
            "query($w: UserWhere) { users(where: $w) { id } }",
            "answered",
            variables={"w": hops(9)},
        ),
        post(
            "10 levels by a filter",
            "query($w: UserWhere) { users(where: $w) { id } }",
            "other",
            "TOO_DEEP",
            {"w": hops(10)},
        ),
        post(
            "21 levels by a filter",
            "query($w: UserWhere) { users(where: $w) { id } }",
            "other",
            "TOO_DEEP",
            {"w": hops(21)},
        ),
        get("10 levels by a filter in a URL", "/users?" + where_of(hops(10)), "other", "TOO_DEEP"),
        get("21 levels by a filter in a URL", "/users?" + where_of(hops(21)), "other", "TOO_DEEP"),
    ],
)


PAGES = family(
    "page",
    [
        post(
            "100 of 100 of 100",
            f"{{ users(first: 100) {{ {chain(['posts(first: 100)', 'comments(first: 100)'], 'id')} }} }}",
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "100 of 100 of 100 by variables",
            f"query($n: Int!) {{ users(first: $n) {{ {chain(['posts(first: $n)', 'comments(first: $n)'], 'id')} }} }}",
            "other",
            "TOO_COMPLEX",
            {"n": 100},
        ),
        post(
            "default pages, four deep",
            f"{{ users {{ {chain(['posts', 'comments'], 'author { posts { id } }')} }} }}",
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "20 pages that count",
            "{ users(first: 100) { " + times(20, "a§: postsConnection(first: 1) { totalCount }") + " } }",
            "other",
            "TOO_COMPLEX",
        ),
        post(
            "nodes and edges under 15 keys",
            "{ usersConnection(first: 100) { "
            + times(14, "n§: nodes { posts(first: 3) { id } } e§: edges { node { posts(first: 3) { id } } }")
            + " } }",
            "other",
            "TOO_COMPLEX",
        ),
        post("101", "{ users(first: 101) { id } }", "other", "BAD_USER_INPUT"),
        post("of null", "{ users(first: null) { id } }", "other", "BAD_USER_INPUT"),
        post("from both ends", "{ usersConnection(first: 1, last: 1) { nodes { id } } }", "other", "BAD_USER_INPUT"),
        post("an offset beyond the limit", "{ users(offset: 10001) { id } }", "other", "BAD_USER_INPUT"),
        post("an offset below nothing", "{ users(offset: -1) { id } }", "other", "BAD_USER_INPUT"),
        get(
            "100 of 100 of 100 by fields",
            "/users?first=100&fields=posts[first=100](comments[first=100](id))",
            "other",
            "TOO_COMPLEX",
        ),
        get("101 in a URL", "/users?first=101", "other", "BAD_REQUEST"),
        get("minus one in a URL", "/users?first=-1", "other", "BAD_REQUEST"),
        get("2 to the 31st in a URL", "/users?first=2147483648", "other", "BAD_REQUEST"),
        get("5,000 digits in a URL", "/users?first=" + "9" * 5_000, "other", "BAD_REQUEST"),
        get("a float in a URL", "/users?first=1e1", "other", "BAD_REQUEST"),
        get("from both ends in a URL", "/users?first=1&last=1", "other", "BAD_REQUEST"),
        get("an offset beyond the limit in a URL", "/users?offset=10001", "other", "BAD_REQUEST"),
        get("101 inside fields", "/users?fields=posts[first=101](id)", "other", "BAD_REQUEST"),
    ],
)


def filtered(where: str) -> str:
    return f"{{ users(first: 1, where: {where}) {{ id }} }}"


def tower_of(word: str, levels: int) -> dict[str, Any]:
    """Conditions on relations in each other: users → posts → users …"""
    found: dict[str, Any] = {}
    for level in reversed(range(levels)):
        found = {"author": found} if level % 2 else {"posts": {word: found}}
    return found


BY = "query($w: UserWhere) { users(first: 1, where: $w) { id } }"

FILTERS = family(
    "filter",
    [
        post("51 terms", filtered("{or: [" + times(51, '{name: {eq: "§"}}') + "]}"), "other", "TOO_COMPLEX"),
        post("51 terms by a variable", BY, "other", "TOO_COMPLEX", {"w": {"or": [{"name": {"eq": "x"}}] * 51}}),
        post("1,600 terms by a variable", BY, "other", "TOO_COMPLEX", {"w": {"or": [{"name": {"eq": "x"}}] * 1_600}}),
        post("251 choices", filtered("{name: {in: [" + '"x" ' * 251 + "]}}"), "other", "BAD_USER_INPUT"),
        post("60 times not", filtered("{not: " * 60 + "{}" + "}" * 60), "answered"),
        post("63 times not", filtered("{not: " * 63 + "{}" + "}" * 63), "text", "TOO_DEEP"),
        post("400 times not", filtered("{not: " * 400 + "{}" + "}" * 400), "text", "TOO_DEEP"),
        post("and, or and not in turn", filtered("{and: [{or: [{not: " * 11 + "{}" + "}]}]}" * 11), "answered"),
        post("250 empty conditions", filtered("{and: [" + "{} " * 250 + "]}"), "answered"),
        post("900 empty conditions", filtered("{and: [" + "{} " * 900 + "]}"), "text", "TOO_COMPLEX"),
        post("a list of nothing", filtered("{or: []}"), "answered"),
        post("300 equal hops side by side", BY, "answered", variables={"w": {"or": [{"posts": {"some": {}}}] * 300}}),
        post("600 equal hops side by side", BY, "other", "TOO_COMPLEX", {"w": {"or": [{"posts": {"some": {}}}] * 600}}),
        post("every in none in every", BY, "other", "TOO_DEEP", {"w": tower_of("every", 12)}),
        post("none in none in none", BY, "other", "TOO_DEEP", {"w": tower_of("none", 12)}),
        post("all of it null", BY, "other", "BAD_USER_INPUT", {"w": {"and": None}}),
        post("an operator that is none", filtered('{name: {regex: "(a+)+$"}}'), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("a field that is a secret", filtered('{email: {startsWith: "a"}}'), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("6 sort keys", "{ users(orderBy: [" + "{name: ASC} " * 6 + "]) { id } }", "other", "TOO_COMPLEX"),
        post("380 sort keys", "{ users(orderBy: [" + "{id: ASC} " * 380 + "]) { id } }", "other", "TOO_COMPLEX"),
        post(
            "two keys in one", "{ users(orderBy: [{name: ASC, id: ASC}]) { id } }", "other", "GRAPHQL_VALIDATION_FAILED"
        ),
        post(
            "a sort by SQL",
            "query($o: [UserOrder!]) { users(orderBy: $o) { id } }",
            "other",
            "BAD_USER_INPUT",
            {"o": [{"name": "ASC; DROP TABLE users"}]},
        ),
        post("a cursor of 4 KB", '{ users(after: "' + "A" * 4_000 + '") { id } }', "other", "BAD_USER_INPUT"),
        post(
            "a cursor of 900 KB",
            "query($c: String) { users(after: $c) { id } }",
            "other",
            "BAD_USER_INPUT",
            {"c": "A" * 900_000},
        ),
        post("a cursor that is none", '{ users(after: "eyJpZCI6MX0=") { id } }', "other", "BAD_USER_INPUT"),
        post("a cursor of emoji", '{ users(after: "😀") { id } }', "other", "BAD_USER_INPUT"),
        post("an id of another", f'{{ post(id: "{BEN}") {{ id }} }}', "answered"),
        get("51 terms in a URL", "/users?" + where_of({"or": [{"name": {"eq": "x"}}] * 51}), "other", "TOO_COMPLEX"),
        get("251 choices in a URL", "/users?name[in]=" + ",".join("x" * 251), "other", "BAD_REQUEST"),
        get("60,000 choices in a URL", "/users?name[in]=" + "," * 60_000, "other", "BAD_REQUEST"),
        get("900 levels in a URL", "/users?where=" + quote('{"not":' * 900 + "{}" + "}" * 900), "text", "TOO_DEEP"),
        get("60,000 brackets in a URL", "/users?where=" + "[" * 60_000, "text", "TOO_DEEP"),
        get(
            "a key twice in a URL",
            "/users?where=" + quote('{"name":{"eq":"a"},"name":{"eq":"b"}}'),
            "text",
            "BAD_REQUEST",
        ),
        get("NaN in a URL", "/users?where=" + quote('{"name":{"eq":NaN}}'), "text", "BAD_REQUEST"),
        get(
            "900 levels inside fields",
            "/users?fields=posts[where=" + quote(quote('{"not":' * 900 + "{}" + "}" * 900)) + "](id)",
            "other",
            "TOO_DEEP",
        ),
        get("6 sort keys in a URL", "/users?sort=name,name,name,name,name,name", "other", "TOO_COMPLEX"),
        get("20,000 sort keys in a URL", "/users?sort=" + "id," * 20_000 + "id", "other", "TOO_COMPLEX"),
        get("a sort by SQL in a URL", "/users?sort=" + quote("id; DROP TABLE users"), "other", "BAD_REQUEST"),
        get("a sort by a secret in a URL", "/users?sort=email", "other", "BAD_REQUEST"),
        get("a cursor of 60 KB in a URL", "/users?after=" + "A" * 60_000, "other", "BAD_REQUEST"),
        get("a cursor of no place in a URL", "/users?after=AAAA", "other", "BAD_REQUEST"),
    ],
)

CASES: dict[str, Case] = NAMED | PAGES | FILTERS
