"""The headers of a write: which versions it may touch, what its sender prefers, and its key."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.api.reply import tag
from diptych.api.rest.precondition import NO_VERSION, idempotency_key, preferences, versions
from diptych.errors import Code, Refusal
from tests.support.cases import cases

# If-Match, and the versions that it asks for
MATCHES: dict[bytes | None, tuple[int, ...] | None] = {
    None: None,
    b"*": None,
    b" * ": None,
    b'"12.0123abcd"': (12,),
    b'W/"12.0123abcd"': (12,),
    b' "1.a" ': (1,),
    b'"0.a"': (0,),
    b'"1.a", "2.b"': (1, 2),
    b'"1.a","2.b"': (1, 2),
    b'"2.b" ,\t W/"1.a"': (2, 1),
    b'"1.a", "1.b", "1.a"': (1,),
    b', "1.a",, "2.b", ,': (1, 2),
    b'"1.a", "no-version", "0123abcd"': (1,),
    b'"2147483647.a"': (2**31 - 1,),
    b'"1.a-gzip"': (1,),
    b'"1."': (1,),
    b'"1.2.3"': (1,),
    b'"1.a,2.b"': (1,),
    b'"1.\xe9"': (1,),
    b'"x,", "3.a"': (3,),
    b'"5000000000.a", "3.a"': (3,),
    b'"0123abcd"': NO_VERSION,
    b'""': NO_VERSION,
    b'"12"': NO_VERSION,
    b'".12"': NO_VERSION,
    b'"012.a"': NO_VERSION,
    b'"00.a"': NO_VERSION,
    b'"-1.a"': NO_VERSION,
    b'"+1.a"': NO_VERSION,
    b'"1e1.a"': NO_VERSION,
    b'"2147483648.a"': NO_VERSION,
    b'"99999999999999999999.a"': NO_VERSION,
    b'"%s.a"' % (b"9" * 5_000): NO_VERSION,
    b'"x1.a"': NO_VERSION,
    b'"\xb2.a"': NO_VERSION,
    b"": NO_VERSION,
    b" ": NO_VERSION,
    b",": NO_VERSION,
    b"12.a": NO_VERSION,
    b"12": NO_VERSION,
    b'"12.a': NO_VERSION,
    b'12.a"': NO_VERSION,
    b"'12.a'": NO_VERSION,
    b'w/"12.a"': NO_VERSION,
    b'W/ "12.a"': NO_VERSION,
    b'W"12.a"': NO_VERSION,
    b"W/12.a": NO_VERSION,
    b'"1.a" "2.b"': NO_VERSION,
    b'"1.a"; "2.b"': NO_VERSION,
    b'"1.a"x': NO_VERSION,
    b'*, "1.a"': NO_VERSION,
    b'"1.a", *': NO_VERSION,
    b"**": NO_VERSION,
    b'"1.a b"': NO_VERSION,
    b'"1.a\x00"': NO_VERSION,
    b'"1.a", nope': NO_VERSION,
    b'"1.a""2.b"': NO_VERSION,
}


@cases("header", MATCHES)
def test_if_match_asks_for_versions(header: bytes | None) -> None:
    assert versions(header, None) == MATCHES[header]
    assert versions(header, b'"1.a"') == MATCHES[header]
    assert versions(header, b"*") == versions(header, b" * ") == NO_VERSION


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=100, unique=True), st.binary(), st.booleans())
def test_the_tag_of_an_answer_asks_for_its_version(numbers: list[int], body: bytes, weak: bool) -> None:
    header = b", ".join(b"W/" * weak + tag(body, number) for number in numbers)
    assert versions(header, None) == tuple(numbers)
    assert versions(tag(body), None) == NO_VERSION


def test_of_very_many_tags_the_first_hundred_count() -> None:
    header = b", ".join(b'"%d.a"' % number for number in range(150))
    assert versions(header, None) == tuple(range(100))


@given(st.one_of(st.binary(max_size=40), st.text('"W/1.9, *\t', max_size=20).map(str.encode)))
def test_any_header_is_a_condition_that_can_be_met_or_not(header: bytes) -> None:
    found = versions(header, None)
    if header.strip() == b"*":
        assert found is None
    else:
        assert found == NO_VERSION or (found and all(0 <= number < 2**31 for number in found))


# Prefer

PREFERENCES: dict[bytes | None, set[str]] = {
    None: set(),
    b"": set(),
    b" , ": set(),
    b"return=representation": {"return=representation"},
    b"return=minimal": {"return=minimal"},
    b"Return = Representation": {"return=representation"},
    b"RETURN=MINIMAL": {"return=minimal"},
    b'return="representation"': {"return=representation"},
    b"respond-async, wait=10": {"respond-async", "wait=10"},
    b"change-cursor": {"change-cursor"},
    b"foo; bar": {"foo"},
    b"foo;bar=1;baz": {"foo"},
    b'return=minimal; foo="some parameter"': {"return=minimal"},
    b'x; a="1, return=minimal", wait=5': {"x", "wait=5"},
    b'x="a,b"': {"x=a,b"},
    b'x="a\\"b", y': {'x=a"b', "y"},
    b"return=minimal, return=representation": {"return=minimal"},
    b"return, return=minimal": {"return"},
    b'foo=""': {"foo"},
    b"foo=": {"foo"},
    b"foo ;": {"foo"},
    b"=5, foo": {"foo"},
    b"a b, foo": {"foo"},
    b"(x), foo": {"foo"},
    b"return=minimal=x, foo": {"foo"},
    b"foo,,bar,": {"foo", "bar"},
    b'return=minimal, x="': {"return=minimal", "x"},
    b'"': set(),
    b"\xff, foo": {"foo"},
    b"return=min\xeemal": set(),
}


@cases("header", PREFERENCES)
def test_preferences_are_read(header: bytes | None) -> None:
    assert preferences(header) == PREFERENCES[header]


@given(st.one_of(st.binary(max_size=40), st.text('ab=;," \\', max_size=20).map(str.encode)))
def test_no_preference_is_an_error(header: bytes) -> None:
    for each in preferences(header):
        assert each == each.lower()


@cases("piece", [b'\\"', b'"', b" ", b",", b";", b"a=", b'a="', b'"x",', b"W/", b'W/"1.a" '])
def test_a_long_header_is_read_in_good_time(piece: bytes) -> None:
    for header in (
        piece * 20_000,
        b'"' + piece * 20_000,
        b'a="' + piece * 20_000,
        b'"1.a", ' + piece * 20_000 + b"\x00",
    ):
        begun = time.perf_counter()
        versions(header, None)
        preferences.__wrapped__(header)
        assert time.perf_counter() - begun < 1


# Idempotency-Key

KEYS: dict[bytes | None, str | None] = {
    None: None,
    b"a": "a",
    b"8e03978e-40d5-43e8-bc93-6894a57f9324": "8e03978e-40d5-43e8-bc93-6894a57f9324",
    b" key\t": "key",
    b'"key"': "key",
    b'"a\\"b\\\\c"': 'a"b\\c',
    b"k" * 255: "k" * 255,
    b'"%s"' % (b"k" * 255): "k" * 255,
    b'"%s"' % (b"\\\\" * 255): "\\" * 255,
    b"!~": "!~",
    b"a\\b": "a\\b",
    b"it's": "it's",
    b"a,b;c=d": "a,b;c=d",
}


@cases("header", KEYS)
def test_a_key_is_read(header: bytes | None) -> None:
    assert idempotency_key(header) == KEYS[header]


@cases(
    "header",
    [
        b"",
        b" ",
        b'""',
        b'"',
        b'"a',
        b'a"b" c',
        b'"a"b"',
        b'"a\\b"',
        b'"a\\"',
        b"a b",
        b'"a b"',
        b"one, two",
        b'"one", "two"',
        b'"a";b=1',
        b"k" * 256,
        b'"%s"' % (b"k" * 256),
        b"\xc3\xa9",
        b"a\x00b",
        b"a\x7f",
        b"a\nb",
        b"a\tb",
        b"\xa0",
    ],
)
def test_what_is_no_key_is_refused(header: bytes) -> None:
    with pytest.raises(Refusal, match="Idempotency-Key") as refused:
        idempotency_key(header)
    assert refused.value.code is Code.BAD_REQUEST
