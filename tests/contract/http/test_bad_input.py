"""What an adversary sends: always the right refusal, on both stores, and never a 500."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import RESPONSE, Service, encoded

DEEP = 10_000
GOOD = '{ "query": "{ items { id } }" }'
WHERE = "query($w: ItemWhere) { items(where: $w) { id } }"


def body(variables: str, query: str = WHERE) -> bytes:
    """A body whose variables are written by hand."""
    return f'{{"query": {json.dumps(query)}, "variables": {variables}}}'.encode()


def nested(levels: int, inner: str = '{"id": {"eq": "1"}}') -> str:
    """{"not": {"not": … }}"""
    return '{"not":' * levels + inner + "}" * levels


# bodies of POST /graphql, status and code
BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "BAD_REQUEST"),
    "a blank": (b" ", 400, "BAD_REQUEST"),
    "NUL": (b"\x00", 400, "BAD_REQUEST"),
    "cut off": (GOOD.encode()[:-3], 400, "BAD_REQUEST"),
    "two values": (GOOD.encode() * 2, 400, "BAD_REQUEST"),
    "an array": (f"[{GOOD}]".encode(), 400, "BAD_REQUEST"),
    "UTF-16": (GOOD.encode("utf-16"), 400, "BAD_REQUEST"),
    "Latin-1": ('{"query": "{ items { id } } # é"}'.encode("latin-1"), 400, "BAD_REQUEST"),
    "an overlong encoding": (b'{"query": "\xc0\x80"}', 400, "BAD_REQUEST"),
    "an encoded surrogate": (b'{"query": "\xed\xa0\x80"}', 400, "BAD_REQUEST"),
    "beyond Unicode": (b'{"query": "\xf4\x90\x80\x80"}', 400, "BAD_REQUEST"),
    "a lone surrogate in the query": (b'{"query": "{ items { id } } # \\ud800"}', 400, "BAD_REQUEST"),
    "a lone surrogate in a variable": (body('{"w": {"text": {"eq": "\\ud800"}}}'), 400, "BAD_REQUEST"),
    "surrogates in the wrong order": (body('{"w": {"text": {"eq": "\\udc00\\ud800"}}}'), 400, "BAD_REQUEST"),
    "a lone surrogate in a key": (body('{"w": {"\\ud800": 1}}'), 400, "BAD_REQUEST"),
    "a raw control character": (body('{"w": {"text": {"eq": "\n"}}}'), 400, "BAD_REQUEST"),
    "NUL in a variable": (body('{"w": {"text": {"eq": "\\u0000"}}}'), 422, "BAD_USER_INPUT"),
    "NUL in a key": (body('{"w": {"\\u0000": {"eq": 1}}}'), 422, "BAD_USER_INPUT"),
    "NUL in the name of a variable": (body('{"\\u0000": 1}'), 200, ""),
    "NaN": (body('{"w": {"ratio": {"eq": NaN}}}'), 400, "BAD_REQUEST"),
    "Infinity": (body('{"w": {"ratio": {"eq": -Infinity}}}'), 400, "BAD_REQUEST"),
    "1e400": (body('{"w": {"ratio": {"eq": 1e400}}}'), 400, "BAD_REQUEST"),
    "1e-400": (body('{"w": {"ratio": {"eq": 1e-400}}}'), 200, ""),
    "1e308": (body('{"w": {"ratio": {"lt": 1e308}}}'), 200, ""),
    "an int for a float": (body('{"w": {"ratio": {"lt": 12345678901234567890}}}'), 200, ""),
    "400 digits for a float": (body('{"w": {"ratio": {"lt": %s}}}' % ("9" * 400)), 422, "BAD_USER_INPUT"),
    "5,000 digits": (body('{"w": {"number": {"eq": %s}}}' % ("9" * 5_000)), 400, "BAD_REQUEST"),
    "4,000 digits": (body('{"w": {"number": {"eq": %s}}}' % ("9" * 4_000)), 422, "BAD_USER_INPUT"),
    "4,000 digits for an id": (body('{"w": {"id": {"eq": %s}}}' % ("9" * 4_000)), 200, ""),
    "4,000 digits for a big int": (body('{"w": {"big": {"eq": %s}}}' % ("9" * 4_000)), 422, "BAD_USER_INPUT"),
    "4,000 digits for a decimal": (body('{"w": {"price": {"eq": %s}}}' % ("9" * 4_000)), 422, "BAD_USER_INPUT"),
    "2**31": (body('{"w": {"number": {"eq": 2147483648}}}'), 422, "BAD_USER_INPUT"),
    "2**63": (body('{"w": {"big": {"eq": "9223372036854775808"}}}'), 422, "BAD_USER_INPUT"),
    "2**63 - 1": (body('{"w": {"big": {"eq": "9223372036854775807"}}}'), 200, ""),
    "2**63 as an id": (body('{"w": {"id": {"eq": "9223372036854775808"}}}'), 200, ""),
    "2**64 as an id, a number": (body('{"w": {"id": {"in": [18446744073709551616, 1]}}}'), 200, ""),
    "-0.0": (body('{"w": {"ratio": {"gt": -0.0}}}'), 200, ""),
    "64 levels": (body(f'{{"w": {nested(60)}}}'), 200, ""),
    "65 levels": (body(f'{{"w": {nested(61)}}}'), 400, "TOO_DEEP"),
    "300 levels": (body(f'{{"w": {nested(300)}}}'), 400, "TOO_DEEP"),
    "900 levels": (body(f'{{"w": {nested(900)}}}'), 400, "TOO_DEEP"),
    "10,000 levels": (body(f'{{"w": {nested(DEEP)}}}'), 400, "TOO_DEEP"),
    "10,000 brackets": (b"[" * DEEP, 400, "BAD_REQUEST"),
    "10,000 brackets in a variable": (body('{"w": ' + "[" * DEEP + "]" * DEEP + "}"), 400, "TOO_DEEP"),
    "300 brackets in a value": (body('{"w": {"text": {"eq": %s}}}' % ("[" * 300 + "]" * 300)), 400, "TOO_DEEP"),
    "100,000 brackets, never closed": (body('{"w": ' + "[" * 100_000), 400, "TOO_DEEP"),
    "deep extensions": (
        b'{"query": "{ __typename }", "extensions": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}",
        400,
        "TOO_DEEP",
    ),
    "many brackets side by side": (body('{{"w": {{"and": [{}]}}}}'.format(",".join(["{}"] * 300))), 200, ""),
    "a very long string": (body('{"w": {"text": {"eq": "%s"}}}' % ("x" * 900_000)), 200, ""),
    "a very long string to find": (
        body('{"w": {"text": {"contains": "%s"}}}' % ("é" * 400_000)),
        422,
        "BAD_USER_INPUT",
    ),
    "the longest string to find": (body('{"w": {"text": {"contains": "%s"}}}' % ("é" * 256)), 200, ""),
    "too many choices": (
        body('{{"w": {{"text": {{"in": {}}}}}}}'.format(json.dumps(["x"] * 251))),
        422,
        "BAD_USER_INPUT",
    ),
    "very many choices": (
        body('{{"w": {{"text": {{"in": {}}}}}}}'.format(json.dumps(["x"] * 100_000))),
        400,
        "TOO_COMPLEX",
    ),
    "very many filters": (body('{{"w": {{"and": [{}]}}}}'.format(",".join(["{}"] * 50_000))), 400, "TOO_COMPLEX"),
    "very many filters in filters": (
        body('{{"w": {{"and": [{}]}}}}'.format(",".join(['{"or":[{},{},{},{}]}'] * 2_000))),
        400,
        "TOO_COMPLEX",
    ),
    "very many keys": (
        body('{{"w": {{{}}}}}'.format(",".join(f'"k{n}": 1' for n in range(50_000)))),
        400,
        "TOO_COMPLEX",
    ),
    "very many variables": (body("{{{}}}".format(",".join(f'"k{n}": 1' for n in range(9_000)))), 200, ""),
    "more variables than may be": (
        body("{{{}}}".format(",".join(f'"k{n}": 1' for n in range(50_000)))),
        400,
        "TOO_COMPLEX",
    ),
    "the same key often": (
        body('{{"w": {{{}}}}}'.format(",".join(['"text": {"eq": "x"}'] * 5_000))),
        400,
        "BAD_REQUEST",
    ),
    "proto": (body('{"w": {"__proto__": {"eq": 1}}}'), 422, "BAD_USER_INPUT"),
    "dunder": (body('{"w": {"__class__": {"eq": 1}}}'), 422, "BAD_USER_INPUT"),
    "SQL": (body(json.dumps({"w": {"text": {"eq": "'; DROP TABLE items; --"}}})), 200, ""),
    "a placeholder": (body(json.dumps({"w": {"text": {"in": ["?1", "$1", ":a", "{0}", "%s"]}}})), 200, ""),
    "a query of blanks": (json.dumps({"query": " " * 1000}).encode(), 400, "GRAPHQL_PARSE_FAILED"),
    "a huge query": (json.dumps({"query": "{ items { id } } #" + "x" * 200_000}).encode(), 400, "TOO_COMPLEX"),
    "a query of braces": (json.dumps({"query": "{" * 50_000}).encode(), 400, "TOO_COMPLEX"),
    "a query of quotes": (json.dumps({"query": '"' * 50_000}).encode(), 400, "TOO_COMPLEX"),
    "a query of backslashes": (json.dumps({"query": '"' + "\\" * 50_000}).encode(), 400, "TOO_COMPLEX"),
    "a query of a long name": (json.dumps({"query": "{ " + "a" * 90_000 + " }"}).encode(), 400, "TOO_COMPLEX"),
    "an operation name without end": (
        json.dumps({"query": "{ items { id } }", "operationName": "x" * 500_000}).encode(),
        400,
        "GRAPHQL_VALIDATION_FAILED",
    ),
}


@cases("name", BODIES)
def test_a_body_is_refused_with_its_code_or_answered(things: Service, name: str) -> None:
    sent, status, code = BODIES[name]
    for _ in range(2):
        answer = things.post(sent, accept=RESPONSE)
        assert answer.status == status, answer.body[:500]
        if code:
            assert answer.code == code
        else:
            assert "errors" not in answer.json()


# documents
VALUES = {
    "text": ['"\\u0000"', "5", "true", "null", "[null]", "{}", "a", "1e400", "[[[[]]]]", '"' + "x" * 5000 + '"'],
    "number": ['"7"', "2147483648", "-2147483649", "1.0", "1e3", "true", "9" * 5_000, "a", "[[]]"],
    "big": ['"9223372036854775808"', "1.5", '"1e3"', '"x"', "true", '""', "9" * 5_000, '" 1"', '"+1"', '"٣"'],
    "price": [
        '"0.505"',
        '"10000.00"',
        '"NaN"',
        '"Infinity"',
        '"1e2"',
        "0.5",
        '""',
        "9" * 5_000,
        '"-"',
        '"1,5"',
        '"0x1"',
    ],
    "ratio": ['"0.1"', "1e400", "-1e400", "true", '"NaN"', "1e99999", "9" * 5_000, "NaN"],
    "flag": ['"true"', "1", "0", "TRUE", '"t"', "yes"],
    "day": [
        '"2026-02-30"',
        '"today"',
        '"infinity"',
        '"-infinity"',
        '"epoch"',
        '"10000-01-01"',
        '"0000-01-01"',
        "20260101",
        '"2026-01-31T00:00:00Z"',
        '"٢٠٢٦-01-01"',
    ],
    "moment": [
        '"now"',
        '"infinity"',
        '"2026-01-01"',
        '"2026-01-01T00:00:00"',
        '"2026-01-01T00:00:60Z"',
        "1767225600",
        '"0000-12-31T00:00:00Z"',
        '"9999-12-31T23:59:59.999999-00:01"',
        '"2026-01-01T00:00:00+24:00"',
        '"2026-01-01T00:00:00.0000001Z"',
        '"2026-01-01 00:00:00 UTC"',
        '"+2026-01-01T00:00:00Z"',
    ],
    "mood": ['"calm"', "CALM", "nope", "5", "true", "__proto__"],
    "id": ["true", "1.5", "[1.5]", "{}", "a", "1e3"],
}


@cases(("name", "value"), [(name, value) for name, values in VALUES.items() for value in values])
def test_a_value_that_only_one_database_would_take_is_taken_by_none(things: Service, name: str, value: str) -> None:
    before = things.runs
    for op in ("eq", "in"):
        answer = things.query(f"{{ items(where: {{{name}: {{{op}: {value}}}}}) {{ id }} }}")
        refused = [(400, "GRAPHQL_VALIDATION_FAILED"), (422, "BAD_USER_INPUT"), (400, "TOO_COMPLEX")]
        assert (answer.status, answer.code) in refused, answer.body[:500]
    assert things.runs == before


IDS = [
    "0",
    "-1",
    '"01"',
    '"1 "',
    '" 1"',
    '"1.0"',
    '"١"',
    '"0x1"',
    '"1e0"',
    '"9223372036854775808"',
    '""',
    '"\\u0000"',
    '"null"',
    '"' + "9" * 4000 + '"',
    "-9223372036854775809",
    "18446744073709551616",
]


@cases("id", IDS)
def test_an_absurd_id_names_nothing(things: Service, shop: Service, id: str) -> None:
    document = "{ item(id: ID) { id } items(where: {id: {eq: ID}}) { id } }".replace("ID", id)
    assert things.data(document) == {"item": None, "items": []}
    document = "{ user(id: ID) { id } users(where: {id: {in: [ID, 1]}}) { id } }".replace("ID", id)
    assert shop.data(document) == {"user": None, "users": []}
    if id.startswith('"'):
        assert things.get(f"/items/{quote(json.loads(id), safe='')}x").status == 404


def test_an_id_of_very_many_digits_is_no_failure(things: Service) -> None:
    for digits in (4_000, 4_096):
        assert things.query("{ item(id: %s) { id } }" % ("9" * digits)).status in (200, 422)
    assert things.query("{ item(id: %s) { id } }" % ("9" * 5_000)).code == "TOO_COMPLEX"


DOCUMENTS: dict[str, tuple[str, list[str]]] = {
    "a filter of 5,000 levels": (
        "{ items(where: %s) { id } }" % ("{not: " * 5_000 + "{}" + "}" * 5_000),
        ["TOO_COMPLEX"],
    ),
    "a filter of 600 levels": (
        "{ items(where: %s) { id } }" % ("{not: " * 600 + "{}" + "}" * 600),
        ["TOO_DEEP", "TOO_COMPLEX"],
    ),
    "a filter of 62 levels": ("{ items(where: %s) { id } }" % ("{not: " * 60 + "{}" + "}" * 60), [""]),
    "a filter of 63 levels": ("{ items(where: %s) { id } }" % ("{not: " * 63 + "{}" + "}" * 63), ["TOO_DEEP"]),
    "lists in lists": ("{ items(where: {text: {in: %s}}) { id } }" % ("[" * 600 + "]" * 600), ["TOO_DEEP"]),
    "types in types": ("query($a: {}Int{}) {{ __typename }}".format("[" * 600, "]" * 600), ["TOO_DEEP"]),
    "a default in lists": ("query($a: [Int] = {}1{}) {{ __typename }}".format("[" * 600, "]" * 600), ["TOO_DEEP"]),
    "selections of 5,000 levels": ("{ items { parent " * 1 + "{ parent " * 5_000 + "}" * 5_002, ["TOO_COMPLEX"]),
    "inline fragments in each other": ("{ " + "... { " * 600 + "__typename " + "} " * 600 + "}", ["TOO_DEEP"]),
    "inline fragments, fewer": ("{ " + "... { " * 60 + "__typename " + "} " * 60 + "}", [""]),
    "fragments in a circle": (
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        ["GRAPHQL_VALIDATION_FAILED"],
    ),
    "a fragment in itself": (
        "{ items { ...A } } fragment A on Item { children { ...A } }",
        ["GRAPHQL_VALIDATION_FAILED"],
    ),
    "a raw NUL": ('{ items(where: {text: {eq: "\x00"}}) { id } }', ["GRAPHQL_PARSE_FAILED", "BAD_USER_INPUT"]),
    "a raw control character": ('{ items(where: {text: {eq: "\x01"}}) { id } }', ["", "GRAPHQL_PARSE_FAILED"]),
    "a lone surrogate": ('{ items(where: {text: {eq: "\\ud800"}}) { id } }', ["GRAPHQL_PARSE_FAILED"]),
    "a lone surrogate in braces": ('{ items(where: {text: {eq: "\\u{d800}"}}) { id } }', ["GRAPHQL_PARSE_FAILED"]),
    "a surrogate pair": ('{ items(where: {text: {eq: "\\ud83d\\ude00"}}) { id } }', [""]),
    "half a pair": ('{ items(where: {text: {eq: "\\ud83d\\u0061"}}) { id } }', ["GRAPHQL_PARSE_FAILED"]),
    "500 variables": (
        "query({}) {{ __typename }}".format(" ".join(f"$v{n}: Int" for n in range(400))),
        ["TOO_COMPLEX"],
    ),
    "100 variables": (
        "query({}) {{ __typename }}".format(" ".join(f"$v{n}: Int" for n in range(100))),
        ["GRAPHQL_VALIDATION_FAILED"],
    ),
    "a huge block string": ('{ items(where: {text: {eq: """%s"""}}) { id } }' % ("\n" * 5_000), ["TOO_COMPLEX"]),
    "a huge int of a page": (
        "{ items(first: %s) { id } }" % ("9" * 4_000),
        ["GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT"],
    ),
    "a huge float of a page": ("{ items(first: 1e400) { id } }", ["GRAPHQL_VALIDATION_FAILED"]),
    "many operations": (" ".join(f"query Q{n} {{ __typename }}" for n in range(390)), ["TOO_COMPLEX"]),
    "several operations": (" ".join(f"query Q{n} {{ __typename }}" for n in range(100)), ["GRAPHQL_VALIDATION_FAILED"]),
    "many unused fragments": (
        "{ __typename } " + " ".join(f"fragment F{n} on Item {{ id }}" for n in range(280)),
        ["TOO_COMPLEX"],
    ),
    "unused fragments": (
        "{ __typename } " + " ".join(f"fragment F{n} on Item {{ id }}" for n in range(99)),
        ["GRAPHQL_VALIDATION_FAILED"],
    ),
    "the same conflict often": (
        "{{ {} }}".format(" ".join(f"items(first: {n}) {{ id }}" for n in range(1, 100))),
        ["GRAPHQL_VALIDATION_FAILED"],
    ),
    "a schema": ("schema { query: Q } type Q { a: Int }", ["GRAPHQL_VALIDATION_FAILED"]),
    "an extension": ("extend type Query { a: Int } { __typename }", ["GRAPHQL_VALIDATION_FAILED"]),
    "@defer": ("{ ... @defer { items { id } } }", ["GRAPHQL_VALIDATION_FAILED"]),
    "@stream": ("{ items @stream { id } }", ["GRAPHQL_VALIDATION_FAILED"]),
    "a reserved alias": ("{ __x: items(first: 1) { __y: id } }", [""]),
    "keys of Python": ("{ items(first: 1) { __class__: id __dict__: text } }", [""]),
    "keys of JavaScript": ("{ __proto__: items(first: 1) { constructor: id } }", [""]),
}


@cases("name", DOCUMENTS)
def test_a_document_is_refused_with_its_code_or_answered(things: Service, name: str) -> None:
    document, codes = DOCUMENTS[name]
    for _ in range(2):
        answer = things.query(document)
        if answer.status == 200:
            assert "" in codes and "errors" not in answer.json(), answer.body[:300]
        else:
            assert answer.status < 500 and answer.code in codes, answer.body[:500]


# URLs of the resource style
URLS: dict[str, tuple[str, int, str]] = {
    "10,000 levels of where": ("/items?where=" + quote(nested(DEEP)), 400, "TOO_DEEP"),
    "300 levels of where": ("/items?where=" + quote(nested(300)), 400, "TOO_DEEP"),
    "65 levels of where": ("/items?where=" + quote(nested(63)), 400, "TOO_DEEP"),
    "64 levels of where": ("/items?where=" + quote(nested(62)), 200, ""),
    "10,000 brackets": ("/items?where=" + "[" * DEEP, 400, "TOO_DEEP"),
    "300 brackets": ("/items?where=" + "[" * 300 + "]" * 300, 400, "TOO_DEEP"),
    "10,000 levels inside fields": (f"/items?fields=children[where={quote(quote(nested(DEEP)))}](id)", 400, "TOO_DEEP"),
    "300 levels inside fields": (f"/items?fields=children[where={quote(quote(nested(300)))}](id)", 400, "TOO_DEEP"),
    "10,000 levels of fields": ("/items?fields=" + "parent(" * DEEP + "id" + ")" * DEEP, 400, "TOO_DEEP"),
    "65 levels of fields": ("/items?fields=" + "parent(" * 65 + "id" + ")" * 65, 400, "TOO_DEEP"),
    "brackets never closed": ("/items?fields=" + "parent(" * 60, 400, "BAD_REQUEST"),
    "a lone surrogate": ("/items?text=%ED%A0%80", 400, "BAD_REQUEST"),
    "a lone surrogate in a name": ("/items?%ED%A0%80=1", 400, "BAD_REQUEST"),
    "a lone surrogate in where": ("/items?where=" + quote('{"text":{"eq":"\\ud800"}}'), 400, "BAD_REQUEST"),
    "a lone surrogate in fields": ("/items?fields=%ED%A0%80", 400, "BAD_REQUEST"),
    "a lone surrogate, twice encoded": ("/items?fields=children[where=%25ED%25A0%2580](id)", 400, "BAD_REQUEST"),
    "a lone surrogate in a sort": ("/items?sort=%ED%A0%80", 400, "BAD_REQUEST"),
    "a lone surrogate in a cursor": ("/items?after=%ED%A0%80", 400, "BAD_REQUEST"),
    "NUL": ("/items?text=%00", 400, "BAD_REQUEST"),
    "NUL in a name": ("/items?%00=1", 400, "BAD_REQUEST"),
    "NUL in where": ("/items?where=" + quote('{"text":{"eq":"\\u0000"}}'), 400, "BAD_REQUEST"),
    "NUL in a key of where": ("/items?where=" + quote('{"\\u0000":{"eq":"x"}}'), 400, "BAD_REQUEST"),
    "NUL in fields": ("/items?fields=%00", 400, "BAD_REQUEST"),
    "NUL in a sort": ("/items?sort=%00", 400, "BAD_REQUEST"),
    "NUL in a cursor": ("/items?before=%00", 400, "BAD_REQUEST"),
    "not UTF-8": ("/items?text=%FF%FE", 400, "BAD_REQUEST"),
    "raw bytes": ("/items?text=\xe9", 400, "BAD_REQUEST"),
    "NaN in where": ("/items?where=" + quote('{"ratio":{"eq":NaN}}'), 400, "BAD_REQUEST"),
    "1e400 in where": ("/items?where=" + quote('{"ratio":{"eq":1e400}}'), 400, "BAD_REQUEST"),
    "5,000 digits in where": ("/items?where=" + quote('{"number":{"eq":%s}}' % ("9" * 5_000)), 400, "BAD_REQUEST"),
    "4,000 digits in where": ("/items?where=" + quote('{"big":{"eq":%s}}' % ("9" * 4_000)), 400, "BAD_REQUEST"),
    "5,000 digits": ("/items?big=" + "9" * 5_000, 400, "BAD_REQUEST"),
    "5,000 digits of a float": ("/items?ratio=" + "9" * 5_000, 400, "BAD_REQUEST"),
    "400 digits of a float": ("/items?ratio=" + "9" * 400, 400, "BAD_REQUEST"),
    "an exponent without end": ("/items?ratio=1e" + "9" * 5_000, 400, "BAD_REQUEST"),
    "5,000 digits of a decimal": ("/items?price=" + "0" * 5_000, 200, ""),
    "5,000 digits of an id": ("/items?parentId=" + "9" * 5_000, 200, ""),
    "a very long text": ("/items?text=" + "x" * 500_000, 200, ""),
    "very many choices": ("/items?text[in]=" + "," * 100_000, 400, "BAD_REQUEST"),
    "very many parameters": ("/items?" + "&".join(f"p{n}=1" for n in range(250)), 400, "BAD_REQUEST"),
    "more parameters than may be": ("/items?" + "&".join(f"p{n}=1" for n in range(5_000)), 400, "TOO_COMPLEX"),
    "very many sort keys": ("/items?sort=" + ",".join(["id"] * 5_000), 400, "TOO_COMPLEX"),
    "very many fields": ("/items?fields=" + ",".join(f"a{n}:id" for n in range(2_000)), 400, "TOO_COMPLEX"),
    "very many relations": (
        "/items?first=1&fields=" + ",".join(f"a{n}:parent(id)" for n in range(2_000)),
        400,
        "TOO_COMPLEX",
    ),
    "31 aliases": ("/items?fields=" + ",".join(f"a{n}:id" for n in range(31)), 400, "TOO_COMPLEX"),
    "30 aliases": ("/items?fields=" + ",".join(f"a{n}:id" for n in range(30)), 200, ""),
    "31 aliases on several levels": (
        "/items?fields=" + ",".join(f"a{n}:parent(b{n}:id)" for n in range(16)),
        400,
        "TOO_COMPLEX",
    ),
    "101 items": ("/items?fields=" + ",".join(["id"] * 101), 400, "TOO_COMPLEX"),
    "100 items": ("/items?fields=" + ",".join(["id"] * 100), 400, "BAD_REQUEST"),
    "30 relations": ("/items?first=1&fields=" + ",".join(f"a{n}:parent(id,parent(id))" for n in range(30)), 200, ""),
    "a cursor without end": ("/items?after=" + "A" * 100_000, 400, "BAD_REQUEST"),
    "a path without end": ("/items/" + "1" * 100_000, 404, "NOT_FOUND"),
    "very many segments": ("/items" + "/1" * 10_000, 404, "NOT_FOUND"),
    "a path of NUL": ("/\x00", 404, "NOT_FOUND"),
    "a path of a surrogate": ("/items/%ED%A0%80/children", 404, "NOT_FOUND"),
    "SQL in a value": ("/items?text=" + quote("'; DROP TABLE items; --"), 200, ""),
    "SQL in a name": ("/items?" + quote("text'; --") + "=1", 400, "BAD_REQUEST"),
    "SQL in a sort": ("/items?sort=" + quote("id; DROP TABLE items"), 400, "BAD_REQUEST"),
    "SQL in an alias": ("/items?fields=" + quote("a'||'b:id"), 400, "BAD_REQUEST"),
    "a name of Python": ("/items?__class__=1", 400, "BAD_REQUEST"),
    "the slot of the path": ("/items?%7Bid%7D=1", 400, "BAD_REQUEST"),
}


@cases("name", URLS)
def test_a_url_is_refused_with_its_code_or_answered(things: Service, name: str) -> None:
    url, status, code = URLS[name]
    for _ in range(2):
        answer = things.get(url)
        assert answer.status == status, answer.body[:500]
        if code:
            assert (answer.code, answer.kind) == (code, "application/problem+json")


def test_a_url_with_very_many_faults_does_not_tell_them_all(things: Service) -> None:
    answer = things.get("/items?" + "&".join(f"p{n}=1" for n in range(250)))
    assert len(answer.json()["errors"]) == 20


@cases(
    "value",
    [
        "'",
        "''",
        '"',
        "\\",
        "\\\\",
        "%",
        "_",
        "\n",
        "\r\n",
        "\t",
        "\x01",
        "\x7f",
        "\u2028",
        "\ufeff",
        "\uffff",
        "😀",
        "\U0010ffff",
        "$1",
        "?1",
        ":x",
        "{0}",
        "{}",
        "--",
        "/*",
        ";",
        "NULL",
        "a\\'b",
    ],
)
def test_every_text_is_a_value_and_nothing_else(things: Service, shop: Service, value: str) -> None:
    for op in ("eq", "ne", "contains", "startsWith", "lt", "in"):
        given = [value] if op == "in" else value
        rows = things.rows("/items?" + encoded(where={"text": {op: given}}, fields="id"))
        data = things.data("query($w: ItemWhere) { items(where: $w) { id } }", {"w": {"text": {op: given}}})
        assert data["items"] == rows
        assert [row["id"] for row in rows] == expected(op, value)
    assert shop.rows(f"/posts?authorId={quote(ANN + value, safe='')}") == []


def expected(op: str, value: str) -> list[str]:
    texts: dict[str, Any] = {"1": "A%b", "2": "Mid", "3": None, "4": "Mid", "5": "é_z"}
    tests: dict[str, Callable[[Any], bool]] = {
        "eq": lambda text: text == value,
        "ne": lambda text: text != value,
        "contains": lambda text: text is not None and value in text,
        "startsWith": lambda text: text is not None and text.startswith(value),
        "lt": lambda text: text is not None and text < value,
        "in": lambda text: text == value,
    }
    return [id for id, text in texts.items() if tests[op](text)]
