"""Names of what is hidden: a schema, a suggestion, a wildcard or an error message tells that there is such a field.

Published for GraphQL servers in general (graphql-js #2247: "Did you mean …?" gives a schema away though introspection
is closed), KeystoneJS (CVE-2023-40027, metadata without a session) and many that show the text of a database's error.
Here a field that a role never sees is in no document of that role, and is refused with the words for a name that no
one has.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from diptych.api.reply import Reply
from diptych.errors import Refusal
from diptych.serve import handler, refusals
from diptych.serve.http.request import Request
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, ORDER, POST
from tests.contract.writes.shop import JSON_PATCH
from tests.support.in_process import Answer

EVERYTHING = (
    "{ __schema { types { name description fields { name args { name } } inputFields { name } enumValues { name } } } }"
)
SQL = (
    "select",
    "insert",
    "update ",
    "where ",
    "sqlite",
    "postgres",
    "asyncpg",
    "apsw",
    "constraint",
    "column",
    "syntax error at",
    'relation "',
    "traceback",
    ".py",
    "line ",
    "exception",
)
"""Words of a database or of a stack, as they would stand in a message."""


def test_the_schema_of_a_role_holds_no_name_that_it_never_sees(shop: Scene) -> None:
    """By introspection, at once or type by type, and in the inputs, filters and sorts as well."""
    for who, hidden, shown in (
        ("ann", "internalNote", "email"),
        ("anonymous", "email", "name"),
        ("anonymous", "internalNote", "name"),
        ("anonymous", "OrderStatus", "User"),
        ("anonymous", "createUser", "Comment"),
        ("ann", "createUser", "createPost"),
    ):
        names = json.dumps(shop.data(EVERYTHING, who=who))
        assert f'"{hidden}"' not in names and f'"{shown}"' in names, (who, hidden)
    for name in ("Order", "OrderWhere", "OrderOrder", "OrderCreate", "OrderPatch", "OrderReplace"):
        document = f'{{ __type(name: "{name}") {{ fields {{ name }} inputFields {{ name }} }} }}'
        assert "internalNote" not in json.dumps(shop.data(document, who="ann"))
        assert shop.data(document, who="anonymous") == {"__type": None}
    assert "internalNote" in json.dumps(shop.data(EVERYTHING, who="staff"))


def _resources(answer: Answer) -> bytes:
    """A document without the paths of the authorization server, which take an address of mail from anyone."""
    document = json.loads(answer.body)
    document["paths"] = {path: item for path, item in document["paths"].items() if not path.startswith("/oauth/")}
    return json.dumps(document).encode()


def test_the_openapi_document_of_a_role_holds_no_name_that_it_never_sees(shop: Scene) -> None:
    """The other document, by the same rule."""
    documents = {who: _resources(shop.rest("GET", "/openapi.json", who=who)) for who in ("anonymous", "ann", "staff")}
    assert b"internalNote" in documents["staff"]
    assert b"internalNote" not in documents["ann"] and b"email" in documents["ann"]
    assert b"internalNote" not in documents["anonymous"] and b'"email"' not in documents["anonymous"]


@pytest.mark.parametrize(
    "slip",
    [
        "internalNot",
        "internalNotes",
        "internalnote",
        "internal_note",
        "InternalNote",
        "interna1Note",
        "emai",
        "Email",
        "emails",
    ],
)
def test_no_message_suggests_a_name(shop: Scene, slip: str) -> None:
    """One letter off, in every place that takes a name: nothing in the answer that was not in the request."""
    for who in ("ann", "anonymous"):
        path = "orders" if "nter" in slip and who == "ann" else "users"
        type_ = "Order" if path == "orders" else "User"
        answers = [
            shop.rest("GET", f"/{path}?fields={slip}", who=who),
            shop.rest("GET", f"/{path}?sort={slip}", who=who),
            shop.rest("GET", f"/{path}?{slip}=x", who=who),
            shop.rest("GET", f"/{path}?where={json.dumps({slip: {'eq': 'x'}})}", who=who),
            shop.ql(f"{{ {path} {{ {slip} }} }}", who=who),
            shop.ql(f"{{ {path}(where: {{{slip}: {{eq: 1}}}}) {{ id }} }}", who=who),
            shop.ql(f"{{ {path}(orderBy: [{{{slip}: ASC}}]) {{ id }} }}", who=who),
            shop.ql(f"query($w: {type_}Where) {{ {path}(where: $w) {{ id }} }}", {"w": {slip: {"eq": "x"}}}, who=who),
            shop.ql(
                f'mutation {{ createOrder(input: {{customerId: "{ANN}", total: "1", {slip}: "x"}}) {{ id }} }}',
                who="ann",
            ),
            shop.rest("POST", "/orders", {"customerId": ANN, "total": "1", slip: "x"}, who="ann"),
        ]
        for answer in answers:
            assert answer.status in (400, 422), answer.body
            told = answer.body.replace(slip.encode(), b"")
            assert (
                b"mean" not in told.lower()
                and b"internalNote" not in told
                and b'"email' not in told
                and b"'email" not in told
            )


def test_no_message_suggests_a_root_field_or_a_type(shop: Scene) -> None:
    """Nor an argument, a fragment's type or a directive."""
    for document in (
        "{ user { id } }",
        "{ user_ { id } }",
        '{ user(ID: "x") { id } }',
        "{ ordrs { id } }",
        "{ users { ... on Userr { id } } }",
        "{ users @includ(if: true) { id } }",
        "query($w: UserWher) { users(where: $w) { id } }",
        "mutation { createUsr { id } }",
    ):
        for who in ("ann", "anonymous"):
            answer = shop.ql(document, who=who)
            assert answer.status in (400, 401) and b"mean" not in answer.body.lower(), answer.body


def test_a_wildcard_is_what_the_role_sees(shop: Scene) -> None:
    """`fields=*`, the default, `*` with more and `*` inside a relation hold no hidden field, nor its name with null."""
    for url in (
        "/orders",
        "/orders?fields=*",
        f"/orders/{ORDER[2]}?fields=*,x:note",
        f"/users/{ANN}?fields=*,orders(*)",
        f"/users/{ANN}/orders",
    ):
        for who, there in (("ann", False), ("staff", True)):
            answer = shop.rest("GET", url, who=who)
            assert answer.status == 200 and (b"internalNote" in answer.body) is there
    assert b"email" not in shop.rest("GET", "/users?fields=*,posts(*,author(*))", who="anonymous").body


# what goes wrong inside

CRASHES = [
    ("GET", "/users", None),
    ("GET", f"/users/{BEN}", None),
    ("GET", "/users?email[startsWith]=b", None),
    ("PATCH", f"/posts/{POST[1]}", {"title": "x"}),
    ("POST", "/posts", {"authorId": ANN, "title": "t", "body": "b"}),
    ("DELETE", f"/posts/{POST[1]}", None),
]


TOLD = 'relation "users" column "email" of ben@example.com: SELECT secret FROM users WHERE x'
"""What the text of such an error may hold."""


def crashed(shop: Scene, method: str, url: str, body: Any) -> list[Answer]:
    """The answers, in both styles, of a service whose database fails."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(TOLD)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger("diptych"), "disabled", True)
        for name in ("run", "change", "write", "session"):
            patch.setattr(shop.service.app.store, name, fail)
        return [shop.rest(method, url, body, who="ann"), shop.ql("{ users { email } }", who="ann")]


@pytest.mark.parametrize(("method", "url", "body"), CRASHES)
def test_an_error_inside_tells_nothing(shop: Scene, method: str, url: str, body: Any) -> None:
    """A failure with a secret in its text: its number goes out, its text goes to the log."""
    answers = crashed(shop, method, url, body)
    assert answers[0].status == 500 and {answer.code for answer in answers} == {"INTERNAL"}
    assert all(map(harmless, answers))


def test_with_the_text_of_errors_in_answers_they_would_tell(shop: Scene) -> None:
    """The same check with the fault planted: what was raised is added to what is said."""
    refused = refusals.refusal_reply

    def chatty(request: Request, refusal: Refusal) -> Reply:
        return refused(request, Refusal(refusal.code, f"{refusal.message} {sys.exc_info()[1]}"))

    with shop.planted(handler, "refusal_reply", chatty):
        assert not any(map(harmless, crashed(shop, "GET", "/users", None)))


def harmless(answer: Answer) -> bool:
    """No word of a database or of a stack in any message, and nobody's email."""
    text = answer.body.decode().lower()
    return not any(word in text for word in (*SQL, "@example.com"))


@pytest.mark.parametrize(
    "value",
    [
        "'",
        '"',
        "';--",
        "' OR 1=1 --",
        "\\",
        "%",
        "$1",
        "?1",
        "{}",
        "\u0000",
        "\ud7ff",
        "1e999",
        "-0",
        "NaN",
        "9" * 400,
    ],
)
def test_values_that_break_statements_elsewhere_break_none(shop: Scene, value: str) -> None:
    """As an id, a filter, a field, a sort, a cursor and a body: an answer or a refusal in plain words, never an
    error inside."""
    answers = [
        shop.ql("query($v: ID!) { post(id: $v) { id } }", {"v": value}, who="ann"),
        shop.ql("query($v: String) { posts(where: {title: {startsWith: $v}}) { id } }", {"v": value}, who="ann"),
        shop.ql("query($v: String) { posts(after: $v) { id } }", {"v": value}, who="ann"),
        shop.rest("PATCH", f"/posts/{POST[1]}", {value: value}, who="ann"),
        shop.rest(
            "PATCH",
            f"/posts/{POST[1]}",
            [{"op": "test", "path": f"/{value}", "value": value}],
            who="ann",
            kind=JSON_PATCH,
        ),
    ]
    for name in ("title", "sort", "fields", "after", "where", "first", "count", "offset", value):
        answers.append(shop.rest("GET", f"/posts?{_quoted(name)}={_quoted(value)}", who="ann"))
    answers.append(shop.rest("GET", f"/posts/{_quoted(value)}", who="ann"))
    for answer in answers:
        assert answer.status < 500 and (answer.status < 400 or harmless(answer)), answer.body


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())
