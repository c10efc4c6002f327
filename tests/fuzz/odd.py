"""Words that upset readers: of JSON, of GraphQL, of addresses, of headers, of anything."""

from __future__ import annotations

from typing import Any

BYTES = (
    b"\x00", b"\r\n", b"\n", b"\r", b"\t", b" ", b"\x7f", b"\x80", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf",
    b"%", b"%00", b"%0d%0a", b"%2f", b"%ff", b"\\", b'"', b"'", b"<", b"{", b"}", b"[", b"]", b"(", b")", b":", b";", b",", b"=", b"&", b"#",
    b"?", b"/", b"//", b"..", b"*", b"+", b"-1", b"0", b"9" * 30, b"a" * 300, b"\r\n\r\n", b"HTTP/1.1", b"GET / ", "é".encode(), "😀".encode(),
)  # fmt: skip
JSON: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63, -(2**63), 10**30, 0.1, 1e308, -0.0, "", " ", "null", "0", "1e400",
    "\x00", "é", "😀", "\u2028", "\ufeff", "'", '"', "\\", "%", "_", "a" * 500, "9" * 200, "2026-02-30T25:00:00Z", "2026-01-01", "12.345", "NaN",
    "__proto__", "__typename", "admin", [], {}, [[]], [None], {"": None}, {"eq": None}, {"in": []}, {"isNull": True}, {"and": []}, {"not": {}},
    {"or": [{"or": []}]}, {"some": {}}, {"title": {"contains": "%"}}, {"author": {"name": {"eq": "x"}}}, {"id": {"in": ["x"] * 300}},
    {"__proto__": {}}, [1] * 200,
)  # fmt: skip
JSON_TEXTS = (
    "NaN", "Infinity", "-Infinity", "1e400", "-0", "01", "1.", ".5", "+1", "0x1", "'a'", '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"',
    '"\x01"', "{,}", "[1,]", '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "nul", "/**/1", "9" * 5000, "1" + "0" * 400 + ".5", "[" * 100 + "]" * 100,
    '{"a":' * 70 + "1" + "}" * 70, "\ufeff{}", "",
)  # fmt: skip
"""JSON that Python does not write, most of it none at all."""
GRAPHQL = (
    "{", "}", "(", ")", "[", "]", "!", "$", "$x", "@", "@skip(if: true)", "@include(if: $b)", "@deprecated", "...", "... on User", "...F", ":", "=", "|",
    "&", "#", "# c\n", ",", "\ufeff", "null", "true", "-1", "0", "00", "1.5e", "1e400", "9" * 400, '"', '"""', '"""a\\"""b"""', '"\\u{110000}"',
    '"\\ud800"', '"\\u00e9"', "\x00", "\x07", "é", "😀", "query", "mutation", "subscription", "fragment F on Post { id }", "schema", "type", "extend",
    "on", "id", "__typename", "__schema", "users", "posts", "author", "where", "orderBy", "first: 101", "first: -1", "first: null", "after: null",
    "{__typename}", "{id}", "(id: 1)", "a:", "users { id }", "first: $n", "enum", "EUR", "DESC", "[[[]]]", "{a: {a: {}}}",
)  # fmt: skip
ADDRESS = (
    "%", "%0", "%zz", "%00", "%2f", "%2F..", "%5c", "%252f", "%ff", "%ed%a0%80", "%c0%ae", "..", ".", "", "//", ";", "?", "#", "&", "&&", "=", "==",
    "+", "[", "]", "[]", "[eq]", "[gte]=", "[nope]", "(", ")", "*", "**", ",", ":", "~", "^", "|", "`", "'", '"', "<>", "{}", "\\", "$", "@", "!",
    "first", "last", "after", "before", "offset", "count", "count=exact", "where", "where={}", "fields", "fields=*", "fields=id,id", "fields=author",
    "fields=author()", "fields=posts[first=1](id)", "sort", "sort=-", "sort=id,-id", "sort=title", "id", "version", "changes", "graphql",
    "openapi.json", "users", "posts", "orders", "internalNote", "email", "first=0", "first=101", "first=1e2", "first=%2B1", "first=01", "offset=10001",
    "last=1", "where=null", "where=[]", "kinds", "kinds=LEFT", "kinds=", "query", "variables", "extensions", "documentId", "operationName", "-1", "0",
    "99999999999999999999", "NaN", "true", "null", "é", "a" * 300, "(" * 70,
)  # fmt: skip
PARAMETERS = (
    "fields", "sort", "first", "last", "after", "before", "offset", "count", "where", "kinds", "id", "id[in]", "version[gt]", "title", "title[contains]",
    "body[startsWith]", "published", "createdAt[gte]", "total[lt]", "total[in]", "status", "status[ne]", "note[isNull]", "email", "internalNote", "authorId",
    "author", "name[", "name[]", "[eq]", "query", "variables", "extensions", "operationName", "documentId", "response_type", "scope", "state", "",
)  # fmt: skip
VALUES = (
    "", "%00", "a%00b", "%ED%A0%80", "%C3%A9", "%F0%9F%98%80", "%FF", "+", "%2B", "%20", "%0A", "%25", "_", "'", "%22", "\\", "*", ",", ",,", "a,b", "id", "-id", "--id",
    "id,id", "-createdAt,id", "true", "TRUE", "null", "0", "-0", "1", "-1", "01", "1.0", "1e1", "100", "101", "10000", "10001", "2147483648", "9" * 40, "NaN", "exact",
    "2026-01-31T12:00:00Z", "2026-01-31T12:00:00%2B01:00", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z", "2026-01-31", "paid", "PAID", "12.50", "12.345",
    "{}", "[]", "{%22id%22:{}}", "{%22and%22:[]}", "{%22or%22:[{}]}", "{%22not%22:{%22id%22:{%22eq%22:%22x%22}}}", "{%22title%22:{%22in%22:[]}}", "{%22x%22:1}",
    "{%22title%22:{%22eq%22:%22%5Cu0000%22}}", "{%22title%22:{%22eq%22:%22%5Cud800%22}}", "{%22version%22:{%22gt%22:1e999}}", "*,author(id)", "author(*)", "id[first=1]",
    "a:id,a:version", "posts(id)", "comments[first=1;where=%257B%257D](id)", "author(author(author(id)))", "(", ")", "a" * 3000, "%22" * 500, "CREATED", "LEFT,LEFT",
)  # fmt: skip
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-length", b"0"), (b"content-length", b"-1"), (b"content-length", b"+5"), (b"content-length", b"5, 5"), (b"content-length", b"1e3"),
    (b"content-length", b"9" * 25), (b"content-length", b"99"), (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked, identity"),
    (b"transfer-encoding", b"xchunked"), (b"transfer-encoding", b"gzip, chunked"), (b"transfer-encoding", b" chunked"), (b"host", b""),
    (b"host", b"evil.example"), (b"host", b"127.0.0.1:99999"), (b"host", b"a b"), (b"connection", b"close"), (b"connection", b"keep-alive, upgrade"),
    (b"connection", b"authorization"), (b"upgrade", b"h2c"), (b"upgrade", b"websocket"), (b"upgrade", b"TLS/1.2, h2c"), (b"expect", b"100-continue"),
    (b"expect", b"200-ok"), (b"accept", b""), (b"accept", b"*/*;q=0"), (b"accept", b"text/html"), (b"accept", b"text/event-stream"),
    (b"accept", b"application/graphql-response+json"), (b"accept", b"a/b;q=2, ;;,/"), (b"accept", b"*/*," * 200), (b"accept-encoding", b"br;q=1, gzip"),
    (b"content-type", b""), (b"content-type", b"application/json; charset=utf-16"), (b"content-type", b"text/plain"), (b"content-type", b"application/json;"),
    (b"content-type", b"application/merge-patch+json"), (b"content-type", b"application/json-patch+json"), (b"content-encoding", b"gzip"),
    (b"content-type", b"multipart/form-data; boundary=x"), (b"content-type", b"application/x-www-form-urlencoded"), (b"if-match", b"*"),
    (b"if-match", b'"1.a"'), (b"if-match", b"x"), (b"if-match", b'"' * 99), (b"if-none-match", b"*"), (b"if-none-match", b'W/"'), (b"if-none-match", b", ,"),
    (b"if-modified-since", b"Thu, 01 Jan 1970 00:00:00 GMT"), (b"if-range", b'"x"'), (b"range", b"bytes=0-1"), (b"range", b"bytes=-9" + b"9" * 30),
    (b"prefer", b"return=representation"), (b"prefer", b"return=minimal"), (b"prefer", b"change-cursor"), (b"prefer", b'a="b\\"' + b",;" * 9),
    (b"authorization", b"Bearer"), (b"authorization", b"Bearer x"), (b"authorization", b"Bearer a.b.c"), (b"authorization", b"Basic Zm9vOmJhcg=="),
    (b"authorization", b"Bearer \xff"), (b"authorization", b""), (b"authorization", b"Digest x"), (b"idempotency-key", b"k"), (b"idempotency-key", b""),
    (b"idempotency-key", b'"\\"'), (b"idempotency-key", b"x" * 300), (b"last-event-id", b"x"), (b"last-event-id", b""), (b"last-event-id", b"A" * 64),
    (b"origin", b"null"), (b"origin", b"http://evil.example"), (b"cookie", b"diptych="), (b"cookie", b";=;diptych=x;diptych=y"),
    (b"x-forwarded-for", b"'"), (b"forwarded", b"for=\"[::1]\";host=x"), (b"x-forwarded-proto", b"gopher"), (b"x-http-method-override", b"DELETE"),
    (b"sec-websocket-key", b"x"), (b"sec-websocket-version", b"7"), (b"sec-websocket-protocol", b"graphql-ws"), (b"sec-fetch-site", b"cross-site"),
    (b"x" * 500, b"y"), (b"x-long", b"y" * 9000), (b"x-a", b"\x01"), (b"x a", b"b"), (b"", b"x"), (b":method", b"GET"), (b"x-latin", b"\xe9\xff"),
    (b"x-fold", b"a\r\n b"), (b"content-length ", b"3"), (b"te", b"trailers"), (b"trailer", b"content-length"), (b"max-forwards", b"0"),
    (b"proxy-connection", b"keep-alive"), (b"http2-settings", b"!"), (b"apollo-require-preflight", b"1"), (b"x-apollo-operation-name", b"\x7f"),
)  # fmt: skip
METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"PROPFIND", b"QUERY", b"get", b"GETT", b"", b"M-SEARCH", b"PRI", b"SOURCE")
VERSIONS = (b"HTTP/1.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/1.1 ", b"http/1.1", b"", b"HTTP/11", b"HTTP/1.", b"ICE/1.0", b"RTSP/1.0")
