"""Attacks in the resource style: paths, query strings, `fields`, bodies and patches, and headers that are floods."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.contract.http.data import ANN, POST
from tests.proof.attacks.case import STREAM, Case, family, get, post, send

ME = f"/users/{ANN}"
PATCH = "application/json-patch+json"


PATHS = family(
    "path",
    [
        get(name, url, "other", "NOT_FOUND").having_read()  # an ill-formed id is a value that no row has
        for name, url in {
            "an encoded slash": f"/users%2F{ANN}",
            "an encoded slash behind": f"{ME}%2Fposts",
            "dots": f"{ME}/../{ANN}",
            "encoded dots": "/users/%2e%2e/graphql",
            "dots encoded twice": "/users/%252e%252e/graphql",
            "two slashes": "//users",
            "two slashes inside": f"/users//{ANN}",
            "a slash behind": "/users/",
            "NUL": "/users/%00",
            "a path of NUL": "/users%00.json",
            "a backslash": "/users\\..\\graphql",
            "a matrix parameter": "/users;admin=true",
            "upper case": "/USERS",
            "a letter encoded": "/gr%61phql",
            "a surrogate": "/users/%ED%A0%80",
            "overlong": "/users/%C0%AE%C0%AE/",
            "SQL": "/users/" + quote("1' OR '1'='1"),
            "a file": "/users/..%2f..%2fetc%2fpasswd",
            "60 KB of an id": "/users/" + "1" * 60_000,
            "30,000 segments": "/users" + "/x" * 30_000,
            "what belongs to Python": "/__class__/__init__",
            "a field of a user": f"{ME}/email",
            "an operation of the query style": "/createUser",
        }.items()
    ],
)


QUERIES = family(
    "query string",
    [
        get("a parameter twice", "/users?first=1&first=100", "text", "BAD_REQUEST"),
        get("a parameter twice, once encoded", "/users?first=1&%66irst=100", "text", "BAD_REQUEST"),
        get("8,000 parameters", "/users?" + "&".join(f"p{n}=1" for n in range(8_000)), "text", "TOO_COMPLEX"),
        get("250 parameters", "/users?" + "&".join(f"p{n}=1" for n in range(250)), "other", "BAD_REQUEST"),
        get("10,000 of one parameter", "/users?" + "&".join(["p=1"] * 10_000), "text", "TOO_COMPLEX"),
        get("10,000 filters that are known", "/users?" + "&".join(["name=x"] * 10_000), "text", "TOO_COMPLEX"),
        get("60,000 ampersands", "/users?" + "&" * 60_000, "text", "TOO_COMPLEX"),
        get(
            "every filter on one field",
            "/orders?" + "&".join(f"total[{op}]={n}" for n, op in enumerate(["gte", "gt", "lte", "lt", "ne", "eq"])),
            "answered",
        ).by("admin"),
        get("a value of 60 KB", "/users?name=" + "x" * 60_000, "answered"),
        get("a value encoded twice", "/users?name=%2527%2520OR%25201%253D1", "answered"),
        get("half an escape", "/users?name=%4", "text", "BAD_REQUEST"),
        get("an escape that is none", "/users?name=%zz", "text", "BAD_REQUEST"),
        get("not UTF-8", "/users?name=%FF%FE", "text", "BAD_REQUEST"),
        get("overlong UTF-8", "/users?name=%C0%A7", "text", "BAD_REQUEST"),
        get("a surrogate", "/users?name=%ED%A0%80", "text", "BAD_REQUEST"),
        get("NUL", "/users?name=%00", "other", "BAD_REQUEST"),
        get("a semicolon", "/users?name=a;first=100", "answered"),
        get("a name of 60 KB", "/users?" + "x" * 60_000 + "=1", "other", "BAD_REQUEST"),
        get("brackets in brackets", "/users?name[[[[eq]]]]=x", "other", "BAD_REQUEST"),
        get("an operator of another language", "/users?name[$ne]=x", "other", "BAD_REQUEST"),
        get("a name of JavaScript", "/users?__proto__[admin]=1", "other", "BAD_REQUEST"),
        get("a secret", "/users?email[startsWith]=a", "other", "BAD_REQUEST"),
        get("SQL", "/users?name=" + quote("'; DROP TABLE users; --"), "answered"),
        get("SQL in a name", "/users?" + quote("name'; --") + "=x", "other", "BAD_REQUEST"),
        get("a count that is none", "/users?count=all", "other", "BAD_REQUEST"),
    ],
)


FIELDS = family(
    "fields",
    [
        get("30 aliases", "/users?fields=" + ",".join(f"a{n}:id" for n in range(30)), "answered"),
        get("31 aliases", "/users?fields=" + ",".join(f"a{n}:id" for n in range(31)), "text", "TOO_COMPLEX"),
        get(
            "31 aliases on several levels",
            "/posts?fields=" + ",".join(f"a{n}:author(b{n}:id)" for n in range(16)),
            "text",
            "TOO_COMPLEX",
        ),
        get("6,000 aliases", "/users?fields=" + ",".join(f"a{n}:id" for n in range(6_000)), "text", "TOO_COMPLEX"),
        get("101 items", "/users?fields=" + ",".join(["id"] * 101), "text", "TOO_COMPLEX"),
        get("20,000 items", "/users?fields=" + ",".join(["id"] * 20_000), "text", "TOO_COMPLEX"),
        get("an item twice", "/users?fields=id,id", "other", "BAD_REQUEST"),
        get("everything a hundred times", "/users?fields=" + ",".join("*" * 100), "other", "BAD_REQUEST"),
        get(
            "90 times everything, in each other",
            "/posts?fields=" + ",".join(["author(*)"] * 90),
            "other",
            "BAD_REQUEST",
        ),
        get("64 opening brackets", "/posts?fields=" + "author(" * 64, "text", "BAD_REQUEST"),
        get("10,000 opening brackets", "/posts?fields=" + "author(" * 10_000, "text", "TOO_DEEP"),
        get("brackets that close too often", "/posts?fields=author(id)" + ")" * 10_000, "text", "BAD_REQUEST"),
        get("arguments that never end", "/users?fields=posts[first=1" + ";first=1" * 10_000, "text", "BAD_REQUEST"),
        get("7,000 arguments", "/users?fields=posts[" + "first=1;" * 7_000 + "first=1](id)", "other", "BAD_REQUEST"),
        get("an argument that is none", "/users?fields=posts[drop=1](id)", "other", "BAD_REQUEST"),
        get("an alias of SQL", "/users?fields=" + quote("a'||'b:id"), "text", "BAD_REQUEST"),
        get("an alias of 60 KB", "/users?fields=" + "x" * 60_000 + ":id", "text", "TOO_COMPLEX"),
        get("a secret", "/users?fields=id,password", "other", "BAD_REQUEST"),
        get(
            "dear within the depth",
            "/users?first=100&fields=" + ",".join(f"a{n}:posts[first=100](id)" for n in range(30)),
            "other",
            "TOO_COMPLEX",
        ),
        get(
            "of one",
            f"{ME}?fields=" + ",".join(f"a{n}:posts[first=100](comments[first=100](id))" for n in range(15)),
            "other",
            "TOO_COMPLEX",
        ),
    ],
)


def operations(count: int, operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation] * count


DOUBLE = [{"op": "copy", "from": "", "path": f"/x{n}"} for n in range(25)]

BODIES = family(
    "change",
    [
        send("a patch that copies itself into itself", "PATCH", ME, DOUBLE, "other", "PAYLOAD_TOO_LARGE", PATCH)
        .by("ann")
        .having_read(),
        send(
            "100 copies of the whole",
            "PATCH",
            ME,
            operations(100, {"op": "copy", "from": "", "path": "/a"}),
            "other",
            "TOO_DEEP",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "101 operations",
            "PATCH",
            ME,
            operations(101, {"op": "test", "path": "/name", "value": "Ann"}),
            "other",
            "BAD_USER_INPUT",
            PATCH,
        ).by("ann"),
        send(
            "20,000 operations",
            "PATCH",
            ME,
            operations(20_000, {"op": "test", "path": "/name", "value": 1}),
            "text",
            "TOO_COMPLEX",
            PATCH,
        ).by("ann"),
        send(
            "100 tests that fail",
            "PATCH",
            ME,
            operations(100, {"op": "test", "path": "/name", "value": "x"}),
            "other",
            "CONFLICT",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "a pointer of 100,000 steps",
            "PATCH",
            ME,
            [{"op": "remove", "path": "/a" * 100_000}],
            "other",
            "BAD_USER_INPUT",
            PATCH,
        ).by("ann"),
        send(
            "100 pointers of 1,600 steps",
            "PATCH",
            ME,
            operations(100, {"op": "test", "path": "/name" * 1_600, "value": 1}),
            "other",
            "BAD_USER_INPUT",
            PATCH,
        ).by("ann"),
        send(
            "100 pointers of 60 steps",
            "PATCH",
            ME,
            operations(100, {"op": "test", "path": "/name" * 60, "value": 1}),
            "other",
            "CONFLICT",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "an index of 100,000 digits",
            "PATCH",
            ME,
            [{"op": "add", "path": "/" + "9" * 100_000, "value": 1}],
            "other",
            "BAD_USER_INPUT",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "escapes that are none", "PATCH", ME, [{"op": "remove", "path": "/~2"}], "other", "BAD_USER_INPUT", PATCH
        ).by("ann"),
        send(
            "a move into itself",
            "PATCH",
            ME,
            [{"op": "move", "from": "/a", "path": "/a/b"}],
            "other",
            "BAD_USER_INPUT",
            PATCH,
        ).by("ann"),
        send(
            "the prototype",
            "PATCH",
            ME,
            [{"op": "add", "path": "/__proto__/admin", "value": True}],
            "other",
            "CONFLICT",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "the whole replaced",
            "PATCH",
            ME,
            [{"op": "replace", "path": "", "value": []}],
            "other",
            "BAD_USER_INPUT",
            PATCH,
        )
        .by("ann")
        .having_read(),
        send(
            "a patch 900 levels deep",
            "PATCH",
            ME,
            b'[{"op":"add","path":"/name","value":' + b"[" * 900 + b"]" * 900 + b"}]",
            "text",
            "TOO_DEEP",
            PATCH,
        ).by("ann"),
        send(
            "a merge 900 levels deep",
            "PATCH",
            ME,
            b'{"name":' + b'{"a":' * 900 + b"1" + b"}" * 901,
            "text",
            "TOO_DEEP",
            "application/merge-patch+json",
        ).by("ann"),
        send(
            "a merge 60 levels deep",
            "PATCH",
            ME,
            b'{"name":' + b'{"a":' * 60 + b"1" + b"}" * 61,
            "other",
            "BAD_USER_INPUT",
            "application/merge-patch+json",
        )
        .by("ann")
        .having_read(),
        send(
            "a merge of 9,000 members",
            "PATCH",
            ME,
            {f"k{n}": n for n in range(9_000)},
            "other",
            "BAD_USER_INPUT",
            "application/merge-patch+json",
        ).by("ann"),
        send(
            "a merge of 50,000 members",
            "PATCH",
            ME,
            {f"k{n}": n for n in range(50_000)},
            "text",
            "TOO_COMPLEX",
            "application/merge-patch+json",
        ).by("ann"),
        send("101 at once", "POST", "/users", [{"name": "x", "email": "x@x"}] * 101, "other", "BAD_USER_INPUT").by(
            "admin"
        ),
        send("25,000 at once", "POST", "/users", [{"name": "x", "email": "x@x"}] * 25_000, "text", "TOO_COMPLEX").by(
            "admin"
        ),
        send(
            "100 that are wrong", "POST", "/users", [{"name": 1, "email": 2, "x": 3}] * 100, "other", "BAD_USER_INPUT"
        ).by("admin"),
        send("a key twice", "POST", "/users", b'{"name":"a","email":"a@a","name":"b"}', "text", "BAD_REQUEST").by(
            "admin"
        ),
        send(
            "a pattern that backtracks", "POST", "/users", {"name": "x", "email": "@" * 250}, "other", "BAD_USER_INPUT"
        ).by("admin"),
        send(
            "a text of a megabyte",
            "POST",
            "/users",
            {"name": "x" * 1_000_000, "email": "a@a"},
            "other",
            "BAD_USER_INPUT",
        ).by("admin"),
        send("more than a megabyte", "POST", "/users", b" " * 1_100_000, "text", "PAYLOAD_TOO_LARGE").by("admin"),
        send("NUL", "POST", "/users", {"name": "a\x00b", "email": "a@a"}, "other", "BAD_USER_INPUT").by("admin"),
        send(
            "what only the service may write",
            "POST",
            "/users",
            {"name": "x", "email": "a@a", "id": ANN, "version": 9},
            "other",
            "BAD_USER_INPUT",
        ).by("admin"),
        send("by one who may not", "POST", "/users", b"[" * 1_000, "text", "TOO_DEEP"),
        send(
            "a form", "POST", "/users", b"name=x", "text", "UNSUPPORTED_MEDIA_TYPE", "application/x-www-form-urlencoded"
        ).by("admin"),
        send(
            "plain text",
            "POST",
            "/users",
            {"name": "x", "email": "a@a"},
            "text",
            "UNSUPPORTED_MEDIA_TYPE",
            "text/plain",
        ).by("admin"),
        send("a method that there is not", "TRACE", "/users", b"", "text", "METHOD_NOT_ALLOWED"),
        send(
            "a method by a header", "POST", ME, b"{}", "text", "METHOD_NOT_ALLOWED", x_http_method_override="DELETE"
        ).by("admin"),
    ],
)

FLOOD = ",".join(f"text/x{n}" for n in range(10_000))
KEY = {"name": "x", "email": "x@x"}

HEADERS = family(
    "header",
    [
        get("10,000 media types", "/users?first=1", "text", "NOT_ACCEPTABLE", accept=FLOOD),
        post("10,000 media types in the query style", "{ __typename }", "text", "NOT_ACCEPTABLE", accept=FLOOD),
        get(
            "the right media type behind 10,000",
            "/users?first=1",
            "text",
            "NOT_ACCEPTABLE",
            accept=FLOOD + ",application/json",
        ),
        get("a quality of 60 KB", "/users?first=1", "answered", accept="application/json;q=0.500;a=" + "1" * 60_000),
        get(
            "60 KB of spaces in a media type",
            "/users?first=1",
            "text",
            "NOT_ACCEPTABLE",
            accept="a/b" + " " * 60_000 + "x;",
        ),
        get(
            "60 KB of semicolons in a media type",
            "/users?first=1",
            "text",
            "NOT_ACCEPTABLE",
            accept="a/b" + ";q" * 30_000,
        ),
        get("10,000 preferences", "/users?first=1", "answered", prefer=",".join(f"a{n}=1" for n in range(10_000))),
        get("a preference that never closes", "/users?first=1", "answered", prefer='a="' + "\\" * 60_000),
        get("60 KB of quotation marks as a preference", "/users?first=1", "answered", prefer='"' * 60_000),
        get("10,000 tags", "/users?first=1", "answered", if_none_match=", ".join(f'"{n}.x"' for n in range(10_000))),
        get("60 KB of a tag that never closes", "/users?first=1", "answered", if_none_match='W/"' + "x" * 60_000),
        send(
            "10,000 tags to match",
            "PATCH",
            ME,
            {"name": "x"},
            "other",
            "PRECONDITION_FAILED",
            if_match=", ".join(f'"{n}.x"' for n in range(1_000, 11_000)),
        )
        .by("ann")
        .having_read(),
        send(
            "60 KB of tags that are none",
            "PATCH",
            ME,
            {"name": "x"},
            "other",
            "PRECONDITION_FAILED",
            if_match='"' + "," * 60_000,
        )
        .by("ann")
        .having_read(),
        send(
            "60 KB of a tag to match that never closes",
            "PATCH",
            ME,
            {"name": "x"},
            "other",
            "PRECONDITION_FAILED",
            if_match=' ,W/"x"' * 8_000 + '"',
        )
        .by("ann")
        .having_read(),
        send("a key of 256 characters", "POST", "/users", KEY, "other", "BAD_REQUEST", idempotency_key="k" * 256).by(
            "admin"
        ),
        send("a key of 60 KB", "POST", "/users", KEY, "other", "BAD_REQUEST", idempotency_key='"' + "\\\\" * 30_000).by(
            "admin"
        ),
        send("a key beyond ASCII", "POST", "/users", KEY, "other", "BAD_REQUEST", idempotency_key="clé").by("admin"),
        get("a token of 60 KB", "/users?first=1", "text", "UNAUTHENTICATED", authorization="Bearer " + "x" * 60_000),
        get(
            "a token of 30,000 parts",
            "/users?first=1",
            "text",
            "UNAUTHENTICATED",
            authorization="Bearer " + "x." * 30_000,
        ),
        get(
            "a token that names no algorithm",
            "/users?first=1",
            "text",
            "UNAUTHENTICATED",
            authorization="Bearer eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.eyJzdWIiOiIxIn0.",
        ),
        get("30,000 schemes", "/users?first=1", "text", "UNAUTHENTICATED", authorization="Bearer " * 8_000),
        get("another scheme", "/users?first=1", "text", "UNAUTHENTICATED", authorization="Basic YWRtaW46YWRtaW4="),
        post(
            "a token of 60 KB in the query style",
            "{ __typename }",
            "text",
            "UNAUTHENTICATED",
            authorization="Bearer " + "x" * 60_000,
        ),
        send(
            "7,000 charsets",
            "POST",
            "/users",
            KEY,
            "text",
            "UNSUPPORTED_MEDIA_TYPE",
            "application/json; " + "charset " * 7_000 + "=utf-16",
        ).by("admin"),
        get("a cursor of 60 KB where none is taken", "/posts/changes", "answered", last_event_id="A" * 60_000),
        get(
            "a cursor of 60 KB for a stream",
            "/posts/changes",
            "other",
            "BAD_REQUEST",
            accept=STREAM,
            last_event_id="A" * 60_000,
        ).having_read(),
        get(
            "another host",
            "/users?first=1",
            "answered",
            host="evil.example",
            x_forwarded_host="evil.example",
            forwarded="for=_x;host=evil.example",
        ),
        get(
            "another path", f"/posts/{POST[3]}", "other", "NOT_FOUND", x_original_url="/admin", x_rewrite_url="/admin"
        ).having_read(),
    ],
)

CASES: dict[str, Case] = PATHS | QUERIES | FIELDS | BODIES | HEADERS
