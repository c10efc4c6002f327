"""Published faults of GraphQL servers, and of what such servers are made of, that a server like this one could have.

Each is named by its id and says what the fault was; the case is what was sent, or the same for this schema. Faults of
sockets are in `test_sockets.py`, since only there they can be sent.
"""

from __future__ import annotations

import json

from graphql import get_introspection_query

from tests.contract.http.data import ANN
from tests.proof.attacks.bombs import circle, doubling, fan, fan_out
from tests.proof.attacks.case import Case, body, by_get, chain, family, get, parameters, post, send, times, tower
from tests.proof.attacks.deep import attack, by_fragments

U = f'user(id: "{ANN}")'
Q = "{ __typename }"
MUTATION = 'mutation { deleteUser(id: "1") { id } }'


def inline(outer: int, inner: int) -> str:
    """Inline fragments, which the rule of overlapping fields does not remember, in each other."""
    return (
        f"{{ {U} {{ {times(outer, '... { posts(first: 1) { ' + times(inner, '... { author { id } }') + ' } }')} }} }}"
    )


DIRECTIVES = [
    post(
        "CVE-2022-37734 graphql-java: directives without end",
        f"query cop {{ __typename {'@aa' * 5_000} }}",
        "text",
        "TOO_COMPLEX",
        operation="cop",
    ),
    post(
        "CVE-2022-37734 graphql-java: as many as the tokens allow",
        f"{{ __typename {'@aa' * 900} }}",
        "prepass",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2023-49559 gqlparser: directives that do not exist, on a field with more inside",
        f"{{ {U} {'@aa ' * 900} {{ name }} }}",
        "prepass",
        "TOO_COMPLEX",
    ),
    post(
        "vektah/gqlparser#303: an error for each directive",
        f"{{ __typename {times(49, '@a§')} }}",
        "other",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    post(
        "GHSA-5gc2-7c65-8fq8 async-graphql: directives on everything",
        f"{{ users(first: 1) {{ {times(60, 'id @skip(if: false)')} }} }}",
        "prepass",
        "TOO_COMPLEX",
    ),
]

RECURSION = [
    post(
        "CVE-2023-28867 graphql-java: nested until the stack ends",
        "{ " + tower(600, "a { ", "b ", "} ") + "}",
        "text",
        "TOO_DEEP",
    ),
    post(
        "CVE-2026-40324 Hot Chocolate: selections in selections",
        "{ " + tower(20_000, "a{", "b", "}") + "}",
        "text",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-40324 Hot Chocolate: objects in objects",
        "{ a(b: " + tower(390, "{a: ", "1", "}") + ") }",
        "text",
        "TOO_DEEP",
    ),
    post(
        "CVE-2026-40324 Hot Chocolate: lists in lists",
        "{ a(b: " + tower(900, "[", "1", "]") + ") }",
        "text",
        "TOO_DEEP",
    ),
    post(
        "CVE-2026-40324 Hot Chocolate: types in types",
        "query($a: " + tower(900, "[", "Int", "]") + ") { a }",
        "text",
        "TOO_DEEP",
    ),
    post(
        "CVE-2022-31173 juniper: fragments in each other without end",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        "other",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    post(
        "CVE-2022-21708 graphql-go: the depth of what holds itself",
        "{ users { ...A } } fragment A on User { posts { author { ...A } } }",
        "other",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    post(
        "CVE-2026-47706 Strawberry: the depth of fragments in a circle", circle(3), "other", "GRAPHQL_VALIDATION_FAILED"
    ),
    body(
        "CVE-2024-27454 orjson: JSON nested without end",
        b'{"query":"{ __typename }","variables":{"a":' + b"[" * 500_000,
        "text",
        "TOO_DEEP",
    ),
    send(
        "CVE-2024-27454 orjson: the same as a resource",
        "POST",
        "/users",
        b"[" * 500_000 + b"]" * 500_000,
        "text",
        "TOO_DEEP",
    ).by("admin"),
]

FRAGMENTS = [
    post(
        "CVE-2025-32030 Apollo Gateway: fragments unfolded once for each spread", doubling(25), "prepass", "TOO_COMPLEX"
    ),
    post("CVE-2025-32031 Apollo Gateway: fragments that no short cut fits", fan(8, 3), "prepass", "TOO_COMPLEX"),
    post("CVE-2025-32032 Apollo Router: planning without end by named fragments", fan(9, 3), "prepass", "TOO_COMPLEX"),
    post("CVE-2025-32034 Apollo Router: nested and reused fragments", fan_out(10), "prepass", "TOO_DEEP"),
    post(
        "CVE-2025-32380 Apollo Router: fragments validated once for each spread",
        doubling(28, inside="id name"),
        "prepass",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-34573 Parse Server: fan-out in the measure of complexity itself", fan_out(25), "prepass", "TOO_DEEP"
    ),
    post("CVE-2026-30946 Parse Server: no limit at all, in the query style", attack(30), "prepass", "TOO_DEEP"),
    get(
        "CVE-2026-30946 Parse Server: no limit at all, in the resource style",
        "/users?first=100&fields=posts[first=100](comments[first=100](author(id)))",
        "other",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-43967 Absinthe: names of fragments compared each with each",
        "{ __typename } " + times(280, "fragment f§ on T { f }"),
        "text",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-43967 Absinthe: as many as are allowed",
        "{ __typename } " + times(99, "fragment f§ on T { f }"),
        "other",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    post(
        "CVE-2026-42793 Absinthe: names of a schema kept for ever",
        times(180, "type T§ { a§: Int b§: Int }"),
        "text",
        "TOO_COMPLEX",
    ),
    post(
        "GHSA-224p-v68g-5g8f graphql-armor: a fragment measured where it is first spread",
        f"{{ {U} {{ ...T {chain(['posts(first: 1)', 'comments(first: 1)', 'author', 'posts(first: 1)', 'comments(first: 1)', 'author', 'posts(first: 1)', 'author'], '...T')} }} }} "
        "fragment T on User { posts(first: 1) { comments(first: 1) { id } } }",
        "prepass",
        "TOO_DEEP",
    ),
    post(
        "GHSA-224p-v68g-5g8f graphql-armor: an operation named as introspection is",
        "query __schema " + attack(21),
        "prepass",
        "TOO_DEEP",
    ),
    post(
        "GHSA-224p-v68g-5g8f graphql-armor: a fragment named as introspection is",
        by_fragments(21).replace("F0 ", "__schema ").replace("F1 ", "__type "),
        "prepass",
        "TOO_DEEP",
    ),
    post(
        "GHSA-h9mw-h4qc-f5jf kubernetes-graphql-gateway: neither depth nor complexity",
        attack(20),
        "prepass",
        "TOO_DEEP",
    ),
]

OVERLAPS = [
    post(
        "CVE-2023-26144 graphql-js: fields that overlap through fragments",
        f"{{ {U} {{ {times(40, '...F§')} }} }} "
        + times(40, "fragment F§ on User { posts(first: 1) { id author { id } } name }"),
        "answered",
    ),
    post(
        "CVE-2026-40476 graphql-php: one field thousands of times",
        "{ " + "__typename " * 9_000 + "}",
        "text",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-40476 graphql-php: one field as often as the tokens allow",
        "{ " + "__typename " * 1_990 + "}",
        "prepass",
        "TOO_COMPLEX",
    ),
    post("GHSA-fc86-6rv6-2jpm graphql-php: inline fragments in each other", inline(13, 13), "answered"),
    post("GHSA-fc86-6rv6-2jpm graphql-php: 200 by 100 of them", inline(200, 100), "text", "TOO_COMPLEX"),
    post(
        "graphql-python/graphql-core#270: overlaps that differ in arguments",
        f"{{ {U} {{ {times(99, 'posts(first: §) { id }', 1)} }} }}",
        "other",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    post(
        "CVE-2024-39895 Directus: a field as often as it likes",
        f"{{ users(first: 1) {{ {'id ' * 1_900} }} }}",
        "prepass",
        "TOO_COMPLEX",
    ),
    post(
        "CVE-2026-35441 Directus: a dear relation under many keys",
        f"{{ {times(20, 'a§: users(first: 100) { posts(first: 40) { id } }')} }}",
        "other",
        "TOO_COMPLEX",
    ),
    post(
        "GHSA-6q22-g298-grjh Directus: a dear resolver under thousands of keys",
        f"{{ {times(1_000, 'a§: usersConnection { totalCount }')} }}",
        "text",
        "TOO_COMPLEX",
    ),
]

BATCHES = [
    parameters(
        "CVE-2026-33756 Saleor: a list of requests", [{"query": "{ users { id } }"}] * 5_000, "text", "BAD_REQUEST"
    ),
    post(
        "CVE-2026-35401 Saleor: many changes in one request",
        f"mutation {{ {times(100, 'a§: deleteUser(id: §) { id }')} }}",
        "prepass",
        "TOO_COMPLEX",
    ).by("admin"),
]

INTROSPECTION = [
    post(
        "CVE-2024-40094 graphql-java: introspection that unfolds without end",
        "{ __schema { types { " + chain(["fields", "type"] * 8, "name") + " } } }",
        "text",
        "TOO_COMPLEX",
    ),
    post("CVE-2025-53364 Parse Server: the schema of others", '{ __type(name: "OrderReplace") { name } }', "answered"),
    post("CVE-2025-53364 Parse Server: the schema for nobody holds nobody's", get_introspection_query(), "answered"),
]

FORGERY = [
    body(
        "CVE-2024-47082 Strawberry: a change by a form of several parts",
        b'--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'
        + json.dumps({"query": MUTATION}).encode()
        + b"\r\n--x--\r\n",
        "text",
        "UNSUPPORTED_MEDIA_TYPE",
        "multipart/form-data; boundary=x",
    ).by("admin"),
    body(
        "GHSA-2p3c-p3qw-69r4 graphql-upload: the same as an upload",
        b'--x\r\nContent-Disposition: form-data; name="0"; filename="a"\r\n\r\n\r\n--x--\r\n',
        "text",
        "UNSUPPORTED_MEDIA_TYPE",
        "multipart/form-data; boundary=x",
    ).by("admin"),
    body(
        "CVE-2019-12437 Silverstripe: a change that looks like plain text",
        json.dumps({"query": MUTATION}).encode(),
        "text",
        "UNSUPPORTED_MEDIA_TYPE",
        "text/plain",
    ).by("admin"),
    by_get("CVE-2019-12437 Silverstripe: a change by GET", MUTATION, "prepass", "METHOD_NOT_ALLOWED").by("admin"),
    by_get(
        "GHSA-9q82-xgwf-vj6h Apollo Server: a change by GET with a media type of its own",
        MUTATION,
        "prepass",
        "METHOD_NOT_ALLOWED",
    ).by("admin"),
]

PARTS = [
    body(
        "CVE-2020-10735 CPython: a number of very many digits",
        b'{"query":"{ __typename }","variables":{"a":' + b"1" * 900_000 + b"}}",
        "text",
        "BAD_REQUEST",
    ),
    post(
        "CVE-2020-10735 CPython: the same in a document",
        "{ users(first: " + "1" * 95_000 + ") { id } }",
        "text",
        "TOO_COMPLEX",
    ),
    get("CVE-2020-10735 CPython: the same in a URL", "/users?first=" + "1" * 60_000, "other", "BAD_REQUEST"),
    body(
        "CVE-2024-24762 python-multipart: a media type that backtracks",
        b"{}",
        "text",
        "UNSUPPORTED_MEDIA_TYPE",
        'application/x-www-form-urlencoded; !="' + "\\" * 60_000,
    ),
    body(
        "CVE-2024-24762 python-multipart: the same for JSON",
        json.dumps({"query": Q}).encode(),
        "answered",
        "",
        'application/json; !="' + "\\" * 60_000,
    ),
    body(
        "CVE-2024-53981 python-multipart: a megabyte before the first boundary",
        b"\r\n" * 500_000 + b"--x--",
        "text",
        "UNSUPPORTED_MEDIA_TYPE",
        "multipart/form-data; boundary=x",
    ),
    get(
        "CVE-2025-62727 Starlette: ranges compared each with each",
        "/users?first=1",
        "answered",
        range="bytes=" + ",".join(f"{n}-{n}" for n in range(9_000)),
    ),
    send(
        "CVE-2019-1002100 Kubernetes: a JSON Patch that copies without end",
        "PATCH",
        f"/users/{ANN}",
        [{"op": "copy", "from": "", "path": f"/a{n}"} for n in range(1_000)],
        "other",
        "BAD_USER_INPUT",
        "application/json-patch+json",
    ).by("ann"),
    send(
        "CVE-2019-1002100 Kubernetes: as many as are allowed",
        "PATCH",
        f"/users/{ANN}",
        [{"op": "copy", "from": "", "path": f"/a{n}"} for n in range(40)],
        "other",
        "PAYLOAD_TOO_LARGE",
        "application/json-patch+json",
    )
    .by("ann")
    .having_read(),
]

CASES: dict[str, Case] = family(
    "published", [*DIRECTIVES, *RECURSION, *FRAGMENTS, *OVERLAPS, *BATCHES, *INTROSPECTION, *FORGERY, *PARTS]
)
