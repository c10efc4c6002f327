"""A regular expression of Python means the same in JSON Schema, or is not told there."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.api.openapi.pattern import portable
from tests.support.cases import cases
from tests.support.effort import scaled

TAKEN = [
    r"[^@\s]+@[^@\s]+",
    r"[A-Z]{3}",
    r"a|bc",
    r"(?:ab)+c?",
    r"(?P<year>\.{2})",
    r"a.c",
    r"\S+\s?",
    r"[]a]+",
    r"[a-]",
    r"[-a]",
    r"a{,2}b",
    r"a{2,}",
    r"x{",
    r"x{}",
    r"x{,}",
    r"\x41\u0042\U00000043",
    r"[\x2d\-a]",
    r"\-\@\/",
    r"[/[]",
    r"\t[\n\r]",
    r"é+",
    r"[\]\\^]*",
    r"",
    r"a/b",
    r"\{\}",
    r"}",
    r"[ -~]+",
    r"(a|b)*",
    r"^a$",
    r"\~\&[&]",
    r"[^a]b",
    r"[.]",
]
STRANGE = [
    r"(?=a)b",
    r"(?!a)b",
    r"(?<=a)b",
    r"(?i)a",
    r"(a)\1",
    r"\w+",
    r"\d",
    r"\bword",
    r"a*+",
    r"a{2}+",
    r"(?>a)",
    r"[\w]",
    r"[\S]",
    r"\Aa\Z",
    r"(?P<a>x)(?P=a)",
]


@pytest.mark.slow
@cases("regex", TAKEN)
def test_a_pattern_matches_the_same_texts(regex: str) -> None:
    pattern = portable(regex)
    assert pattern is not None
    python = re.compile(regex)
    schema = jsonschema_rs.Draft202012Validator({"pattern": pattern})
    near = st.from_regex(python, fullmatch=True)
    letters = st.text(
        st.sampled_from("aAbBcCxé@ \t\n\x0b\x1c\x85\u2028.-/{},[]^\\~&19Z|?")
        | st.characters(exclude_categories=["Cs"]),
        max_size=6,
    )

    @given(near | letters | near.flatmap(lambda text: letters.map(lambda more: text + more)))
    @settings(max_examples=scaled(150), deadline=None, database=None)
    def agree(text: str) -> None:
        text = text.replace("\0", "")
        assert schema.is_valid(text) == bool(python.fullmatch(text)), (pattern, text)

    agree()


@cases("regex", STRANGE)
def test_what_is_not_the_same_everywhere_is_not_told(regex: str) -> None:
    re.compile(regex)
    assert portable(regex) is None


def test_no_text_has_a_nul() -> None:
    for regex in (".", r"\S", "[^a]"):
        pattern = portable(regex)
        assert pattern is not None and not jsonschema_rs.Draft202012Validator({"pattern": pattern}).is_valid("\0")
