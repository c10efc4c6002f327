"""What reads text from outside, by itself: whatever comes, it reads it or refuses it, agrees with those who read the same
elsewhere, and takes a time that grows with the text and no faster."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from diptych.api.graphql import http as graphql_http
from diptych.api.graphql.measure import measure_text
from diptych.api.json import parse_json
from diptych.api.media import content_type, negotiate
from diptych.api.query_string import Item, filter_name, parse_fields, parse_query
from diptych.api.rest.precondition import idempotency_key, preferences, versions
from diptych.ask.change_cursor import ChangeCursors, FeedPosition
from diptych.ask.cursor import seal, unseal
from diptych.ask.measures import Limits, RequestMeasures
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.scalars import DATETIME, INT, STRING
from diptych.serve.http.request import not_modified
from tests.proof.fuzz import odd
from tests.proof.fuzz.spoiled import ODD, THOROUGH, jumbled, spoiled
from tests.support.cases import cases

KEY = b"k" * 32
SCALARS = (STRING, INT, DATETIME)
CURSOR = seal(KEY, '["a",1,"2026-01-01T00:00:00.000000Z"]')
BOOKMARKS = ChangeCursors(KEY, "00" * 8)
BOOKMARK = BOOKMARKS.seal(FeedPosition(7, 9))
FIELDS = (
    "name,recent:posts[first=5;sort=-createdAt](title,comments(author(name),body))",
    "*",
    "id,*,a:b",
    "posts[where=%7B%7D](id)",
    "a(b(c(d)))",
)
QUERIES = (
    "title[ne]=x&sort=-title,createdAt&first=2&offset=1&count=exact&fields=*,author(id)",
    "a=b%20c+d&e=%C3%A9&f",
    "where=%7B%22a%22%3A%7B%7D%7D",
    "&&a==b&",
)
JSONS = (
    '{"a": [1, -2.5e3, true, null, "x\\u00e9\\n"], "b": {"c": {}}, "d": []}',
    '[1, {"a": "b:c", "\\u003a": ":"}]',
    '"x"',
    "12",
    "[[[[1]]]]",
    '{"query": "{a}", "variables": {"a": 1}, "operationName": null, "extensions": {}}',
    '{"a": 1, "b": {"c": 1, "c": 2}}',
    '{"a": 1, "\\u0061": 2}',
    '[{"a:b": ":", "a:b": 1}]',
    '{"\\u003a": 1, ":": 2}',
    "[" * 64 + "]" * 64,
    "[" * 65 + "]" * 65,
    '{"a":' * 64 + "1" + "}" * 64,
    "[{}]",
)
ACCEPTS = (
    "application/json",
    "text/html, application/json;q=0.9, */*;q=0.1",
    "application/graphql-response+json; charset=utf-8",
    "*/*;q=0, a/b",
)
TAGS = ('"1.abc"', 'W/"1.abc", "2.x" , "y"', "*", '"x","y"')
PREFERS = ("return=minimal; x=1, wait=5", 'return="representation", change-cursor', "a;b;c, d=", "handling=lenient")
KEYS = ('"8e03978e"', "8e03978e-40d5", '"a\\"b"')
TYPES = ("application/json", "application/json; charset=utf-8", 'application/json;charset="UTF-8"; x=y', "text/plain")
OFFERS = ("application/json", "application/graphql-response+json", "text/event-stream")


# cursors


def one_changed(text: str) -> st.SearchStrategy[str]:
    """The text with another character at one place."""
    places, others = st.integers(0, len(text) - 1), st.sampled_from("Aaz09-_=+/ \n%")
    return st.builds(lambda at, new: text[:at] + new + text[at + 1 :], places, others)


@THOROUGH
@given(one_changed(CURSOR) | spoiled((CURSOR,)) | jumbled() | st.text(max_size=80))
def test_only_what_was_sealed_is_unsealed(text: str) -> None:
    try:
        found = unseal(KEY, text, SCALARS)
    except ValueError:
        assert text != CURSOR
    else:
        assert found == unseal(KEY, CURSOR, SCALARS)
        assert urlsafe_b64decode(text + "==") == urlsafe_b64decode(CURSOR + "=="), "not one bit of it is another"


@THOROUGH
@given(one_changed(BOOKMARK) | spoiled((BOOKMARK,)) | jumbled() | st.text(max_size=80))
def test_only_a_bookmark_is_opened(text: str) -> None:
    try:
        found = BOOKMARKS.open(text)
    except ValueError:
        assert text != BOOKMARK
    else:
        assert (text, found) == (BOOKMARK, FeedPosition(7, 9))


# the resource style


def written(items: tuple[Item, ...]) -> str:
    """The text of `fields`."""
    return ",".join(map(_written, items))


def _written(item: Item) -> str:
    name = item.name if item.label == item.name else f"{item.label}:{item.name}"
    arguments = ";".join(f"{key}={''.join(f'%{byte:02X}' for byte in value.encode())}" for key, value in item.arguments)
    return (
        name + (f"[{arguments}]" if item.bracketed else "") + ("" if item.inner is None else f"({written(item.inner)})")
    )


@THOROUGH
@given(spoiled(FIELDS, odd.ADDRESS) | jumbled(odd.ADDRESS))
def test_fields_are_read_as_they_are_written(text: str) -> None:
    try:
        items = parse_fields(text)
    except Refusal:
        return
    kept = parse_fields(written(items))
    assert written(kept) == written(items)
    assert text.count("(") >= sum(each.inner is not None for each in items)


@THOROUGH
@given(spoiled(QUERIES, odd.ADDRESS) | jumbled(odd.ADDRESS))
def test_parameters_are_those_that_others_read(text: str) -> None:
    try:
        found = parse_query(text)
    except Refusal:
        return
    assert list(found.items()) == parse_qsl(
        text, keep_blank_values=True, strict_parsing=False, errors="strict", separator="&"
    )
    for name in found:
        with suppress(Refusal):
            filter_name(name)


# JSON


def strict(text: bytes) -> Any:
    """What Python reads, where nothing stands twice and every number is one; else a ValueError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def constant(name: str) -> None:
        raise ValueError

    def number(text: str) -> float:
        found = float(text)
        if found in (float("inf"), float("-inf")):
            raise ValueError
        return found

    found = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=constant, parse_float=number)
    json.dumps(found, ensure_ascii=False).encode()  # no lone surrogates
    return found


@THOROUGH
@given(
    spoiled(JSONS, (*odd.JSON_TEXTS, *ODD)) | jumbled((*odd.JSON_TEXTS, "{", "}", "[", "]", ":", ",", '"a"', '"', "1"))
)
def test_json_is_what_it_is_to_others(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    try:
        found = parse_json(raw)
    except (ValueError, Refusal):
        found = None
        refused = True
    else:
        refused = False
    try:
        wanted = strict(raw)
    except (ValueError, RecursionError):
        assert refused
    else:
        deep = _depth(wanted) > 64
        long = max(map(len, "".join(each if each.isdigit() else " " for each in text).split()), default=0) > 300
        assert refused == deep or long, text  # a number that is too long may be refused, or be a float
        if not refused and not long:
            assert found == wanted


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(_depth, inside), default=0)


# headers


@THOROUGH
@given(spoiled(ACCEPTS) | jumbled((*ODD, "*/*", "application/", "json", "q=1", ";")))
def test_what_is_accepted_was_on_offer(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    assert negotiate(raw, OFFERS) in (None, *OFFERS)
    kind, charset = content_type(raw)
    assert isinstance(kind, str) and isinstance(charset, str)


@THOROUGH
@given(spoiled(TAGS) | jumbled((*ODD, '"', '"1.x"', "W/", ",", "*")))
def test_only_a_tag_that_was_sent_is_met(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    assert not not_modified(raw, b'"zz"') or b'"zz"' in raw or raw.strip() == b"*"
    found = versions(raw, None)
    assert found is None or all(number == -1 or f'"{number}.'.encode() in raw for number in found)


@THOROUGH
@given(spoiled(PREFERS) | spoiled(KEYS) | jumbled((*ODD, '"', ";", "=", "return=minimal")))
def test_preferences_and_keys_are_read_or_ignored(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    assert all(each == each.lower() for each in preferences(raw))
    try:
        key = idempotency_key(raw)
    except Refusal:
        return
    assert key is not None and 0 < len(key) <= 255 and key.isascii() and key.isprintable()


# time


def _quietly(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def quiet(raw: bytes) -> None:
        with suppress(Refusal, ValueError):
            read(raw)

    return quiet


READERS: dict[str, Callable[[bytes], Any]] = {
    "accept": lambda raw: negotiate.__wrapped__(raw, OFFERS),
    "content type": content_type.__wrapped__,
    "if-match": lambda raw: versions(raw, None),
    "if-none-match": lambda raw: not_modified(raw, b'"zz"'),
    "prefer": preferences.__wrapped__,
    "idempotency-key": idempotency_key,
    "query": lambda raw: parse_query(raw.decode("latin-1")),
    "fields": lambda raw: parse_fields(raw.decode("latin-1")),
    "json": parse_json,
    "graphql body": graphql_http.read_body,
    "graphql text": lambda raw: measure_text(
        raw.decode("latin-1"), Limits(document=10**7), RequestMeasures("graphql", Viewer())
    ),
    "cursor": lambda raw: unseal(KEY, raw.decode("latin-1"), SCALARS),
}
PIECES = (
    "a",
    " ",
    ",",
    ";",
    '"',
    "\\",
    '\\"',
    "=",
    "a=",
    "a,",
    '"a",',
    'W/"',
    "q=0.1;",
    "*/*,",
    "a/b;q=",
    "%",
    "%20",
    "&",
    "a&",
    "(",
    "a(",
    "a[",
    "[",
    "]",
    "{",
    '{"a":',
    "[1,",
    "1",
    "-",
    "1-",
    ".",
    "...",
    '"""',
    '""',
    "#",
    "\t",
    "\n",
    "\r",
    "é",
    "é,",
    "0",
    "9",
    "1e",
    "\\u003a",
    '"\\u003a",',
    "a:b,",
    "a[b=c;",
    "-1 ",
    '"\\"',
)


@cases("name", READERS)
def test_time_grows_with_the_text_and_no_faster(name: str) -> None:
    read = _quietly(READERS[name])
    slow = {}
    for piece in PIECES:
        small, large = ((piece * size)[:size].encode() for size in (8_000, 64_000))
        if (took := _seconds(read, large)) > 0.04:  # what is fast needs no second look
            ratio = min(_seconds(read, large) for _ in range(3)) / max(
                1e-4, min(_seconds(read, small) for _ in range(3))
            )
            if ratio > 24:  # 8 if it grows with the text, 64 if with its square
                slow[piece] = (round(took, 3), round(ratio))
    assert not slow


def _seconds(read: Callable[[bytes], Any], raw: bytes) -> float:
    start = time.thread_time()
    read(raw)
    return time.thread_time() - start
