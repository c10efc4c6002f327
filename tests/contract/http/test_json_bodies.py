"""Bodies of JSON: what is read, what is refused, and that no key may stand twice, wherever it hides."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diptych.api.graphql.http import error_reply, read_body, read_parameters
from diptych.api.json import parse_json, read_json
from diptych.api.reply import problem
from diptych.errors import Code, Refusal
from tests.support.cases import cases
from tests.support.effort import scaled
from tests.support.in_process import RESPONSE, Service

# reading

GOOD: dict[bytes, Any] = {
    b"null": None,
    b" true\r\n\t": True,
    b"0": 0,
    b"-0": 0,
    b"-0.0": -0.0,
    b"1e2": 100.0,
    b"1.5E-3": 0.0015,
    b'""': "",
    b"1e-400": 0.0,
    b"9" * 4_000: int("9" * 4_000),
    b"-" + b"9" * 400: -int("9" * 400),
    b"{}": {},
    b"[]": [],
    b'"\\u0000"': "\x00",
    b'{"\\u0000": "\\u0000"}': {"\x00": "\x00"},
    b'"\\ud83d\\ude00"': "😀",
    b'"\\/\\b\\f"': "/\b\f",
    '{"é": "東京 😀"}'.encode(): {"é": "東京 😀"},
    b'{"": {"": {"": 1}}}': {"": {"": {"": 1}}},
    b'{"a": {"b": 1}, "b": {"b": 2}}': {"a": {"b": 1}, "b": {"b": 2}},
    b'[{"a": 1}, {"a": 1}]': [{"a": 1}, {"a": 1}],
    b'{"a":1,"A":2," a":3}': {"a": 1, "A": 2, " a": 3},
    b'{"a":"b","b":"a"}': {"a": "b", "b": "a"},
    b'{"a": "x: y", "b:": ":"}': {"a": "x: y", "b:": ":"},
    b'{"a\\\\": "\\":", "a\\"": 1}': {"a\\": '":', 'a"': 1},
    b'{"a\\u003a": "\\u003A", "a\\u003b": "\\\\u003a"}': {"a:": ":", "a;": "\\u003a"},
    b"[" * 64 + b"]" * 64: None,
    b'{"a":' * 63 + b"{}" + b"}" * 63: None,
    b"[" + b"{}," * 500 + b"[]]": [{}] * 500 + [[]],
}


@cases("body", GOOD)
def test_json_is_read(body: bytes) -> None:
    found = read_json(body)
    assert found == json.loads(body) if GOOD[body] is None else found == GOOD[body]
    assert type(found) is type(json.loads(body))


# bodies that are refused, and a part of the reason
WRONG: dict[bytes, str] = {
    b"": "not complete",
    b" ": "not complete",
    b'{"a": 1': "not complete",
    b"nul": "not complete",
    b"nope": "invalid character",
    b"NaN": "(byte 0)",
    b"-Infinity": "invalid",
    b"{'a': 1}": "object keys must be strings",
    b"[1,]": "trailing comma",
    b'{"a":1,}': "trailing comma",
    b"{}{}": "trailing",
    b"01": "invalid number",
    b"1.": "invalid number",
    b"// a\n1": "(byte 0)",
    b'{"a":1 "b":2}': "expected ','",
    b'"\t"': "invalid character",
    b'"\x00"': "invalid character",
    b"\x00": "(byte 0)",
    b'"\\x"': "invalid escape",
    b"1e400": "out of range",
    b"[-1e999]": "out of range",
    b"9" * 5_000: "out of range",
    b'\xef\xbb\xbf{"a": 1}': "byte order mark",
    "{}".encode("utf-16"): "(byte 0)",
    '{"a": 1}'.encode("utf-16-le"): "object keys must be strings",
    b'"\xff"': "not UTF-8",
    '"é"'.encode("latin-1"): "not UTF-8",
    b'"\xc0\x80"': "not UTF-8",
    b'"\xed\xa0\x80"': "not UTF-8",
    b'{"\xff": 1}': "not UTF-8",
    b'"\xf4\x90\x80\x80"': "not UTF-8",
    b'"\\ud800"': "surrogate pair",
    b'"\\ud800\\u0041"': "surrogate pair",
    b'"\\udc00\\ud800"': "surrogate pair",
    b'{"\\ud800": 1}': "surrogate pair",
    b'{"\\udfff": 1}': "surrogate pair",
}


@cases("body", WRONG)
def test_what_is_not_json_is_refused_with_the_reason(body: bytes) -> None:
    with pytest.raises(Refusal, match=r"^The body is not JSON: [a-z].*\.$") as refused:
        read_json(body)
    assert refused.value.code is Code.BAD_REQUEST
    assert WRONG[body] in refused.value.message
    assert "malformed" not in refused.value.message


@cases(
    "body",
    [
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 64 + b"{}" + b"}" * 64,
        b'{"a":[' * 33 + b"]}" * 33,
        b"[" * 300 + b"]" * 300,
        b'{"":' * 900 + b"0" + b"}" * 900,
        b"[" * 10_000,
        b'{"a":' * 100_000,
        b'[{"a":1,"a":1},' + b"[" * 70 + b"]" * 71,
    ],
)
def test_json_that_is_too_deep_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal, match="nested") as refused:
        read_json(body)
    assert refused.value.code is Code.TOO_DEEP


# keys that stand twice

TWICE: dict[bytes, str] = {
    b'{"a": 1, "a": 1}': "a",
    b'{"a":1,"b":2,"a":3}': "a",
    b'{"x": [{"y": {"a": 1, "a": null}}]}': "a",
    b'[{}, {"a":{},"a":[]}]': "a",
    b'{"": 1, "": 2}': "",
    b'{"a": 1, "\\u0061": 2}': "a",
    b'{"\\n": 1, "\\u000a": 2}': "\n",
    b'{"a\\t":1,"a\\u0009":1}': "a\t",
    '{"é": 1, "\\u00e9": 2}'.encode(): "é",
    b'{"\\ud83d\\ude00": 1, "\\uD83D\\uDE00": 2}': "😀",
    b'{"\\/": 1, "/": 2}': "/",
    b'{"a" : 1, "a"\n:\t2}': "a",
    b'{":": 1, ":": 2}': ":",
    b'{":": 1, "\\u003a": 2}': ":",
    b'{"a":1,"a":2,"b":"\\u003a"}': "a",
    b'{"a":1,"a":2,"\\u003A":1}': "a",
    b'{"a":"\\u003a\\u003a","a":"::"}': "a",
    b'{"\\"": 1, "\\"": 2}': '"',
    b'{"\\\\": 1, "\\\\": ":"}': "\\",
    b'{"a": {"b": 1, "c": 2}, "a": {"b": 1}}': "a",
    b'{"a":1e3,"a":123456789012345678901234567890}': "a",
    b'{"\\u0000":1,"\\u0000":1}': "\x00",
    b'{"%s":1,"%s":2}' % (b"k" * 500_000, b"k" * 500_000): "k" * 100,
    b'{"n":%s,"n":1}' % (b"9" * 4_000): "n",
}


@cases("body", TWICE)
def test_a_key_that_stands_twice_in_one_object_is_refused_by_name(body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read_json(body)
    assert refused.value.code is Code.BAD_REQUEST
    assert refused.value.message == f"The body is not JSON: the key '{TWICE[body]}' occurs twice in one object."
    assert problem(refused.value).status == 400


class Pairs(list[tuple[str, Any]]):
    """An object as it is written, key by key."""


names = st.sampled_from(["a", "b", ":", "a:", '"', "\\", '":', "é", "😀", "", "\n", " ", "{", "\x00"])
texts = st.one_of(names, st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(st.tuples(texts, inner), max_size=5).map(Pairs)),
    max_leaves=12,
)
blanks = st.sampled_from(["", "", "", " ", "\n", "\t\r\n "])


@st.composite
def written(draw: st.DrawFn) -> tuple[str, bool]:
    """JSON in any of the ways that it can be written, and whether a key of it occurs twice in one object."""
    value = draw(values)
    twice = False

    def character(each: str) -> str:
        if draw(st.integers(0, 3)) == 0 and ord(each) < 0x10000:
            return draw(st.sampled_from([f"\\u{ord(each):04x}", f"\\u{ord(each):04X}"]))
        return json.dumps(each, ensure_ascii=draw(st.booleans()))[1:-1]

    def write(part: Any) -> str:
        nonlocal twice
        if isinstance(part, Pairs):
            twice = twice or len({key for key, _ in part}) < len(part)
            inner = ",".join(
                f"{draw(blanks)}{write(key)}{draw(blanks)}:{draw(blanks)}{write(item)}{draw(blanks)}"
                for key, item in part
            )
            return "{" + inner + draw(blanks) + "}"
        if isinstance(part, list):
            return "[" + ",".join(draw(blanks) + write(item) for item in part) + draw(blanks) + "]"
        if isinstance(part, str):
            return '"' + "".join(map(character, part)) + '"'
        return json.dumps(part)

    return write(value), twice


@pytest.mark.slow
@settings(max_examples=scaled(300), deadline=None)
@given(written())
@example(('{"b:":"","b:":"\\u003a\\u003a"}', True))
@example(('{"a":":","a":"\\u003a"}', True))
def test_a_key_twice_is_found_and_nothing_else_is_taken_for_one(case: tuple[str, bool]) -> None:
    text, twice = case
    if twice:
        with pytest.raises(ValueError, match="occurs twice"):
            parse_json(text.encode())
    else:
        assert repr(parse_json(text.encode())) == repr(json.loads(text))


PARTS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b'"a"',
    b'"a":',
    b'{"a":1',
    b"1",
    b"-",
    b".",
    b"e",
    b"E+400",
    b"9" * 30,
    b"9" * 5_000,
    b"null",
    b"tru",
    b"NaN",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"\\u0000",
    b"\\u003a",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b" ",
    b"\n",
    "é".encode(),
    b"[" * 70,
    b"]" * 70,
    b"[" * 2_000,
)


@settings(max_examples=scaled(500), deadline=None)
@given(st.one_of(st.binary(max_size=30), st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join)))
def test_whatever_comes_is_read_or_refused(body: bytes) -> None:
    """Nothing but a Refusal escapes, and both styles can tell it."""
    for read in (read_json, read_body):
        try:
            found = read(body)
        except Refusal as refusal:
            assert problem(refusal).status == 400
            assert error_reply(refusal, RESPONSE).status == 400
        else:
            assert read is read_body or repr(found) == repr(json.loads(body.decode()))


# bodies of GraphQL

OFTEN: dict[str, bytes] = {
    "query": b'{"query": "{ __typename }", "query": "{ __typename }"}',
    "variables": b'{"query": "{ __typename }", "variables": {}, "variables": null}',
    "operationName": b'{"operationName": null, "query": "{ __typename }", "operationName": null}',
    "extensions": b'{"query": "{ __typename }", "extensions": null, "extensions": {}}',
    "unknown": b'{"query": "{ __typename }", "unknown": 1, "unknown": 1}',
    "a": b'{"query": "{ a: __typename }", "variables": {"w": {"a": 1, "a": 1}}}',
    "b": b'{"query": "{ a: __typename b: __typename }", "extensions": {"a": [{"b": 1, "b": 2}]}}',
    "c": b'{"query": "{ __typename }", "unknown": {"c": 1, "c": 1}}',
}


@cases("key", OFTEN)
def test_a_graphql_request_has_every_key_once(shop: Service, key: str) -> None:
    answer = shop.post(OFTEN[key], accept=RESPONSE)
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    assert f"the key '{key}' occurs twice" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize("name", ["variables", "extensions"])
def test_a_parameter_in_a_query_string_has_every_key_once(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_parameters(f"query=x&{name}=" + quote('{"a": {"b": 1, "b": 2}}'))
    (fault,) = refused.value.faults
    assert fault.path == ("query", name)
    assert "the key 'b' occurs twice" in fault.message


def test_parameters_are_what_they_were_in_the_body() -> None:
    found = read_body(b' {"query": "q", "variables": {"a": [1, {"b": null}]}, "unknown": {"x": 1}}\n')
    assert (found.query, found.operationName, found.extensions) == ("q", None, None)
    assert found.variables == {"a": [1, {"b": None}]}
    again = read_parameters("query=q&variables=" + quote('{"a": [1, {"b": null}]}') + "&extensions=null")
    assert again == found


@cases("name", ["\\ud800", "\\udc00\\ud800", "\\u0000", "\\uffff", "é", "k" * 10_000, "\\\"'", "\\u2028"])
def test_no_name_breaks_the_answer_that_tells_of_it(shop: Service, name: str) -> None:
    for body in (
        '{"%s": 1}',
        '{"%s": 1, "%s": 1}',
        '{"query": "query($w: PostWhere) { posts(where: $w) { id } }", "variables": {"w": {"%s": 1}}}',
        '{"query": "{ __typename }", "variables": {"%s": 1, "%s": 2}}',
    ):
        answer = shop.post(body.replace("%s", name).encode(), accept=RESPONSE)
        assert 400 <= answer.status < 500, answer.body
        assert answer.json()["errors"]
