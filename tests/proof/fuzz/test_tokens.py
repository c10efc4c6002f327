"""Our tokens against graphql-core's: the same tree with the same places, or the same error at the same place."""

from __future__ import annotations

import itertools
import re
from typing import Any

import graphql
from graphql import GraphQLError, Lexer, Source, TokenKind
from graphql.utilities import ast_to_dict
from hypothesis import given
from hypothesis import strategies as st

from diptych.api.graphql.measure import measure_text
from diptych.api.graphql.parser import parse_ordinary
from diptych.api.graphql.tokens import parse_tokens, tokenize
from diptych.ask.measures import Limits, RequestMeasures
from diptych.model.declare.roles import Viewer
from tests.proof.fuzz import odd
from tests.proof.fuzz.corpus import DOCUMENTS, WATCH
from tests.proof.fuzz.ground import PERSISTED
from tests.proof.fuzz.spoiled import THOROUGH, jumbled, spoiled

STRINGS = (
    '"',
    '""',
    '"""',
    '""""',
    '"""""',
    '""""""',
    "\\",
    '\\"',
    '\\"""',
    '\\\\"""',
    "\\n",
    "\\u00e9",
    "\\u{1F600}",
    "\\u{0000041}",
    "\\u{}",
    "\\u{110000}",
    "\\u{D800}",
    "\\uD83D\\uDE00",
    "\\uD83D",
    "\\uDE00",
    "\\uD83Dx",
    "\\u12",
    "\\x",
    "\\/",
    "\n",
    "\r",
    "\r\n",
    "  ",
    "\t",
    "a",
    "é",
    "😀",
    "\x00",
    "\x0b",
    "\x0c",
    "\x1f",
    "\x7f",
    "\x85",
    "\xa0",
    "\u3000",
    "\u2028",
    "\ufeff",
    "#",
    ",",
    "{a(b:",
    ")}",
    "1",
    "-",
    "-1",
    "01",
    "1.0",
    "1e5",
    "1.e",
    "0x1",
    "1a",
    "1_",
    "-0",
    "..",
    "...",
    ".",
)
IGNORED = (
    " ",
    "\t",
    ",",
    "\n",
    "\r",
    "\r\n",
    "\n\r",
    "\ufeff",
    "# c\n",
    "#\r",
    "#é\r\n",
    ",,\r\n\r\n",
    "\x0b",
    "\x0c",
    "\xa0",
    "\u2028 ",
    "\x85",
    " # x",
)
NUMBERS = ("-", "0", "1", "9" * 30, ".", "e", "E", "+", "_", "a", "é", " ", ",", '"', "{a(b:", ")}", "(", "$", "...")
GOOD = (
    *DOCUMENTS,
    WATCH,
    PERSISTED,
    '{a(b: """\n  x\n\n    y \\"""\r\n  """, c: "\\u00e9\\n", d: -1.5e10, e: [1, {f: $g}]) @h}',
)


def outcome(read: Any, text: str) -> tuple[object, ...]:
    """What becomes of a text: its tree with all places, or what is wrong and where."""
    try:
        tree = read(text)
    except GraphQLError as error:
        return error.message, error.positions, error.locations
    except Exception as error:
        return (type(error).__name__,)
    return ast_to_dict(tree, locations=True), [repr(token) for token in tokens_of(tree)]


def tokens_of(tree: graphql.DocumentNode) -> list[graphql.Token]:
    """The tokens that the tree was made of; comments are none."""
    assert tree.loc is not None
    found, token = [], tree.loc.start_token
    while token is not None:
        if token.kind is not TokenKind.COMMENT:
            found.append(token)
        token = token.next  # type: ignore[assignment]  # never None before the end
    return found


def by_tokens(text: str) -> graphql.DocumentNode:
    return parse_tokens(text, tokenize(text, 10**6))


def by_core(text: str) -> graphql.DocumentNode:
    return graphql.parse(text, allow_empty_selection_sets=False)


def hold(text: str) -> None:
    expected = outcome(by_core, text)
    assert outcome(by_tokens, text) == expected
    ordinary = parse_ordinary(text, tokenize(text, 10**6))
    assert ordinary is None or ast_to_dict(ordinary, locations=True) == expected[0]


@THOROUGH
@given(st.sampled_from(GOOD) | spoiled(GOOD, odd.GRAPHQL + STRINGS))
def test_a_spoiled_document_is_the_same_to_both(text: str) -> None:
    hold(text)


@THOROUGH
@given(jumbled(odd.GRAPHQL + STRINGS))
def test_jumbled_words_are_the_same_to_both(text: str) -> None:
    hold(text)


@THOROUGH
@given(st.lists(st.sampled_from(STRINGS), max_size=10).map("".join))
def test_strings_are_the_same_to_both(text: str) -> None:
    hold(f'{{a(b: "{text}")}}')
    hold(f'{{a(b: """{text}""")}}')


@THOROUGH
@given(
    st.sampled_from(GOOD),
    st.lists(st.sampled_from(IGNORED), min_size=1, max_size=6),
    st.sampled_from(("", " ^", " a", " }", "$")),
)
def test_what_is_ignored_is_the_same_to_both(text: str, between: list[str], behind: str) -> None:
    spaces = itertools.cycle(between)
    hold("".join(next(spaces) if part == " " else part for part in re.split("( )", text)) + behind)


@THOROUGH
@given(st.lists(st.sampled_from(NUMBERS), max_size=8).map("".join))
def test_numbers_are_the_same_to_both(text: str) -> None:
    hold(f"{{a(b: {text})}}")


@THOROUGH
@given(spoiled(GOOD, odd.GRAPHQL + STRINGS) | jumbled(STRINGS))
def test_what_is_measured_is_what_there_is(text: str) -> None:
    """Tokens, their nesting and the longest string, of whatever graphql-core takes for tokens."""
    asked = RequestMeasures("graphql", Viewer())
    try:
        bytes(text, "utf-8")
        tokens = _tokens(text)
    except (GraphQLError, UnicodeEncodeError):
        return
    measure_text(text, Limits(tokens=10**6, document=10**6), asked)
    assert asked.tokens == len(tokens)
    depth = deepest = 0
    for token in tokens:
        depth += (token.kind.value in "{([") - (token.kind.value in "})]")
        deepest = max(deepest, depth)
    if isinstance(outcome(by_core, text)[0], dict):  # it is a document
        assert asked.nesting == deepest


def _tokens(text: str) -> list[graphql.Token]:
    lexer = Lexer(Source(text))
    found = []
    while (token := lexer.advance()).kind is not TokenKind.EOF:
        found.append(token)
    return found
