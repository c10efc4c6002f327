"""Bodies that are no request: JSON that is none, or too much; several requests in one; other media types."""

from __future__ import annotations

import json

from tests.proof.attacks.case import Case, body, by_get, family, parameters, post

Q = "{ __typename }"
REQUEST = json.dumps({"query": Q}).encode()


def around(variables: bytes) -> bytes:
    """A request with these bytes as its variables."""
    return b'{"query":"{ __typename }","variables":' + variables + b"}"


JSON = family(
    "json",
    [
        body("nothing", b"", "text", "BAD_REQUEST"),
        body("white space", b" " * 1_000_000, "text", "BAD_REQUEST"),
        body("null", b"null", "text", "BAD_REQUEST"),
        body("a text", b'"{ __typename }"', "text", "BAD_REQUEST"),
        body("a number", b"1", "text", "BAD_REQUEST"),
        body("an empty object", b"{}", "text", "BAD_REQUEST"),
        body("not complete", b'{"query": "{ __ty', "text", "BAD_REQUEST"),
        body("more behind it", REQUEST + b"x", "text", "BAD_REQUEST"),
        body("another behind it", REQUEST + REQUEST, "text", "BAD_REQUEST"),
        body("NUL behind it", REQUEST + b"\x00", "text", "BAD_REQUEST"),
        body("a comment", b"/* */" + REQUEST, "text", "BAD_REQUEST"),
        body("a comma too many", REQUEST[:-1] + b",}", "text", "BAD_REQUEST"),
        body("single quotes", b"{'query': '{ __typename }'}", "text", "BAD_REQUEST"),
        body("a byte order mark", b"\xef\xbb\xbf" + REQUEST, "text", "BAD_REQUEST"),
        body("UTF-16", REQUEST.decode().encode("utf-16"), "text", "BAD_REQUEST"),
        body("UTF-16 without a mark", REQUEST.decode().encode("utf-16-le"), "text", "BAD_REQUEST"),
        body("UTF-32", REQUEST.decode().encode("utf-32"), "text", "BAD_REQUEST"),
        body("Latin-1", b'{"query": "{ __typename } # \xe9"}', "text", "BAD_REQUEST"),
        body("overlong UTF-8", b'{"query": "{ __typename } # \xc0\xaf"}', "text", "BAD_REQUEST"),
        body("a surrogate in UTF-8", b'{"query": "{ __typename } # \xed\xa0\x80"}', "text", "BAD_REQUEST"),
        body("a control character in a text", b'{"query": "{ __typename }\x01"}', "text", "BAD_REQUEST"),
        body("a line end in a text", b'{"query": "{ __typename }\n"}', "text", "BAD_REQUEST"),
        body("half a surrogate pair", b'{"query": "{ __typename } # \\ud800"}', "text", "BAD_REQUEST"),
        body("NaN", around(b'{"a": NaN}'), "text", "BAD_REQUEST"),
        body("Infinity", around(b'{"a": -Infinity}'), "text", "BAD_REQUEST"),
        body("1e400", around(b'{"a": 1e400}'), "text", "BAD_REQUEST"),
        body("100,000 digits", around(b'{"a": ' + b"9" * 100_000 + b"}"), "text", "BAD_REQUEST"),
        body("an exponent of 100,000 digits", around(b'{"a": 1e' + b"9" * 100_000 + b"}"), "text", "BAD_REQUEST"),
        body("zeros in front", around(b'{"a": 01}'), "text", "BAD_REQUEST"),
        body("the query twice", b'{"query": "{ __typename }", "query": "{ users { id } }"}', "text", "BAD_REQUEST"),
        body(
            "the query twice, once escaped",
            b'{"query": "{ __typename }", "qu\\u0065ry": "{ users { id } }"}',
            "text",
            "BAD_REQUEST",
        ),
        body("a key twice", around(b'{"a": 1, "a": 2}'), "text", "BAD_REQUEST"),
        body("a key twice, far inside", around(b'{"a": [{"b": {"c": 1, "d": ":", "c": 2}}]}'), "text", "BAD_REQUEST"),
        body("a key twice, beside hidden colons", around(b'{"a": "\\u003a", "a": "::"}'), "text", "BAD_REQUEST"),
        body(
            "a key of 100 KB twice",
            around(b'{"' + b"x" * 100_000 + b'": 1, "' + b"x" * 100_000 + b'": 1}'),
            "text",
            "BAD_REQUEST",
        ),
        body(
            "4,000 keys twice",
            around(b"{" + b",".join(b'"k%d":1,"k%d":1' % (n, n) for n in range(4_000)) + b"}"),
            "text",
            "BAD_REQUEST",
        ),
        body(
            "20,000 keys twice",
            around(b"{" + b",".join(b'"k%d":1,"k%d":1' % (n, n) for n in range(20_000)) + b"}"),
            "text",
            "TOO_COMPLEX",
        ),
        body("a million colons", json.dumps({"query": Q, "variables": {"a": ":" * 1_000_000}}).encode(), "answered"),
        body("150,000 hidden colons", around(b'{"a": "' + b"\\u003a" * 150_000 + b'"}'), "answered"),
        body("100,000 opening brackets", around(b'{"a":' + b"[" * 100_000), "text", "TOO_DEEP"),
        body("a million opening brackets", b"[" * 1_000_000, "text", "BAD_REQUEST"),
        body("100,000 levels of objects", around(b'{"a":' * 100_000), "text", "TOO_DEEP"),
        body("300 levels", around(b'{"a":' * 300 + b"1" + b"}" * 300), "text", "TOO_DEEP"),
        body("900 levels", around(b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"), "text", "TOO_DEEP"),
        body(
            "65 levels of extensions",
            b'{"query":"{ __typename }","extensions":' + b'{"a":' * 65 + b"1" + b"}" * 65 + b"}",
            "text",
            "TOO_DEEP",
        ),
        body(
            "900 levels of what nobody asks for",
            b'{"query":"{ __typename }","more":' + b"[" * 900 + b"]" * 900 + b"}",
            "answered",
        ),
        body("9,000 items", around(b'{"a": [' + b"0," * 9_000 + b"0]}"), "answered"),
        body("500,000 items", around(b'{"a": [' + b"0," * 500_000 + b"0]}"), "text", "TOO_COMPLEX"),
        body("200,000 empty objects", around(b'{"a": [' + b"{}," * 200_000 + b"{}]}"), "text", "TOO_COMPLEX"),
        body(
            "a text of a million commas",
            json.dumps({"query": Q, "variables": {"a": "," * 1_000_000}}).encode(),
            "answered",
        ),
        body("more than a mebibyte", around(b'{"a": "' + b"x" * 1_100_000 + b'"}'), "text", "PAYLOAD_TOO_LARGE"),
        body("a mebibyte of backslashes", around(b'{"a": "' + b"\\\\" * 500_000 + b'"}'), "answered"),
        body(
            "keys of JavaScript",
            b'{"query": "{ __typename }", "__proto__": {"query": 1}, "constructor": {"prototype": {}}}',
            "answered",
        ),
        parameters("a query that is a number", {"query": 1}, "text", "BAD_REQUEST"),
        parameters("a query that is a list", {"query": [Q]}, "text", "BAD_REQUEST"),
        parameters("a query that is an object", {"query": {"query": Q}}, "text", "BAD_REQUEST"),
        parameters("a query that is null", {"query": None}, "text", "BAD_REQUEST"),
        parameters("variables that are a list", {"query": Q, "variables": [1]}, "text", "BAD_REQUEST"),
        parameters("variables that are a text", {"query": Q, "variables": "{}"}, "text", "BAD_REQUEST"),
        parameters("an operation that is a list", {"query": Q, "operationName": ["A"]}, "text", "BAD_REQUEST"),
        parameters("extensions that are a text", {"query": Q, "extensions": "x"}, "text", "BAD_REQUEST"),
    ],
)


BATCHES = family(
    "batch",
    [
        body("one", b"[" + REQUEST + b"]", "text", "BAD_REQUEST"),
        body("none", b"[]", "text", "BAD_REQUEST"),
        body("a thousand", b"[" + b",".join([REQUEST] * 1_000) + b"]", "text", "BAD_REQUEST"),
        body("in lists", b"[[[" + REQUEST + b"]]]", "text", "BAD_REQUEST"),
        parameters("of changes", [{"query": 'mutation { deleteUser(id: "1") { id } }'}] * 10, "text", "BAD_REQUEST").by(
            "admin"
        ),
        parameters("as an object of numbers", {"0": {"query": Q}, "1": {"query": Q}}, "text", "BAD_REQUEST"),
        body("by lines", REQUEST + b"\n" + REQUEST, "text", "BAD_REQUEST"),
    ],
)

MUTATION = json.dumps({"query": 'mutation { deleteUser(id: "1") { id } }'}).encode()
MULTIPART = (
    b'--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'
    + MUTATION
    + b'\r\n--x\r\nContent-Disposition: form-data; name="map"\r\n\r\n{}\r\n--x--\r\n'
)


MEDIA = family(
    "media",
    [
        body("a form", b"query=mutation", "text", "UNSUPPORTED_MEDIA_TYPE", "application/x-www-form-urlencoded").by(
            "admin"
        ),
        body("plain text", MUTATION, "text", "UNSUPPORTED_MEDIA_TYPE", "text/plain").by("admin"),
        body(
            "plain text that names JSON", MUTATION, "text", "UNSUPPORTED_MEDIA_TYPE", "text/plain; application/json"
        ).by("admin"),
        body("several parts", MULTIPART, "text", "UNSUPPORTED_MEDIA_TYPE", "multipart/form-data; boundary=x").by(
            "admin"
        ),
        body("no type", MUTATION, "text", "UNSUPPORTED_MEDIA_TYPE", "").by("admin"),
        body("two types", MUTATION, "text", "UNSUPPORTED_MEDIA_TYPE", "application/json, text/plain").by("admin"),
        body("application/graphql", b"{ __typename }", "text", "UNSUPPORTED_MEDIA_TYPE", "application/graphql"),
        body("another charset", REQUEST, "text", "UNSUPPORTED_MEDIA_TYPE", "application/json; charset=utf-16"),
        body("a charset of 7 bits", REQUEST, "text", "UNSUPPORTED_MEDIA_TYPE", "application/json; charset=utf-7"),
        by_get("a change by GET", 'mutation { deleteUser(id: "1") { id } }', "prepass", "METHOD_NOT_ALLOWED").by(
            "admin"
        ),
        by_get(
            "a change by GET, named",
            'query A { __typename } mutation B { deleteUser(id: "1") { id } }',
            "prepass",
            "METHOD_NOT_ALLOWED",
            operationName="B",
        ).by("admin"),
        by_get("a subscription by GET", "subscription { postChanged { rowId } }", "prepass", "NOT_ACCEPTABLE"),
        by_get("another parameter by GET", Q, "text", "BAD_REQUEST", method="POST"),
        by_get("variables by GET that are no object", Q, "text", "BAD_REQUEST", variables="[1]"),
        by_get(
            "variables by GET, 900 levels deep", Q, "text", "TOO_DEEP", variables='{"a":' + "[" * 900 + "]" * 900 + "}"
        ),
        by_get("variables by GET with a key twice", Q, "text", "BAD_REQUEST", variables='{"a":1,"a":2}'),
        post(
            "a change with a cookie",
            'mutation { deleteUser(id: "1") { id } }',
            "other",
            "UNAUTHENTICATED",
            cookie="session=admin",
        ),
    ],
)

CASES: dict[str, Case] = JSON | BATCHES | MEDIA
