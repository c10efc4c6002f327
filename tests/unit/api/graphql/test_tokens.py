"""Tokens that are easily taken for others: the tree with its places, or the error and where it is, are graphql-core's own.

(Random ones are in `tests/proof/fuzz/test_tokens.py`.)
"""

from __future__ import annotations

import gc
import re
from functools import partial
from typing import Any

import pytest
from graphql import DocumentNode, GraphQLError, Lexer, Token, TokenKind
from graphql import parse as parse_by_core
from graphql.utilities import ast_to_dict

from diptych.api.graphql import parser, tokens
from tests.support.cases import cases

VALUES = {
    "zero": "0",
    "a zero before a number": "01",
    "minus zero": "-0",
    "minus": "-",
    "minus and a name": "-a",
    "a number and a name": "1a",
    "a number and _": "1_",
    "a number and a letter beyond ASCII": "1é",
    "a long number": "9" * 400,
    "a float": "-1.5e+10",
    "a float without digits": "1.",
    "an exponent without digits": "1e",
    "two numbers": "[1-1 2.5-1]",
    "a number and a spread": "1...",
    "hexadecimal": "0x1",
    "nothing in a string": '""',
    "three quotes": '"""',
    "four quotes": '""""',
    "nothing in a block": '""""""',
    "seven quotes": '"""""""',
    "a block that ends by a quote": '"""a\\""""',
    "a quote at the end of a block": '"""a" """',
    "a block of lines": '"""\n  a\n\n    b\r\n  c\r"""',
    "a block with its own end in it": '"""a\\"""b"""',
    "a backslash in a block": '"""\\n \\u0041 \\\\"""',
    "every escape": r'"\" \\ \/ \b \f \n \r \t \u0041"',
    "an escape that is none": r'"\x"',
    "half an escape": r'"\u00"',
    "a braced escape": r'"\u{1F600} \u{0} \u{000041}"',
    "an empty braced escape": r'"\u{}"',
    "a braced escape that is too large": r'"\u{110000}"',
    "a braced surrogate": r'"\u{D800}"',
    "a pair": r'"\uD83D\uDE00"',
    "half a pair": r'"\uD83D"',
    "the other half": r'"\uDE00"',
    "halves the wrong way round": r'"\uDE00\uD83D"',
    "half a pair and another escape": r'"\uD83D\u0041"',
    "a pair beside a braced one": r'"\uD83D\uDE00\u{41}"',
    "a line end in a string": '"a\nb"',
    "another line end": '"a\rb"',
    "a string that does not end": '"a',
    "a block that does not end": '"""a',
    "a tab in a string": '"a\tb"',
    "a NUL in a string": '"a\0b"',
    "a line separator in a string": '"a\u2028b"',
    "a comment in a string": '"# {"',
    "beyond the BMP": '"😀"',
    "quotes of the other kind": "'a'",
    "marks that are none": "%",
    "two points": "..",
    "a point": ".",
    "a name beyond ASCII": "é",
    "a control character": "\x07",
    "a byte order mark": "\ufeff1",
    "a keyword": "true",
    "a variable": "$a",
    "a variable without a name": "$",
    "a comment": '1 # é """ {\r\n',
    "commas": ",,1,,",
    "a question mark": "?",
    "nothing": "",
}


def outcome(read: Any, text: str) -> object:
    try:
        return ast_to_dict(read(text), locations=True)
    except GraphQLError as error:
        return error.message, error.positions, error.locations


def by_tokens(text: str) -> DocumentNode:
    return tokens.parse_tokens(text, tokens.tokenize(text, 1_000))


@cases("name", VALUES)
def test_a_value_is_the_same_to_both(name: str) -> None:
    for text in (f"{{a(b: {VALUES[name]})}}", f"#\r\n\r{{ a(b: [{VALUES[name]} 2])\n}}", VALUES[name]):
        assert outcome(by_tokens, text) == outcome(
            lambda given: parse_by_core(given, allow_empty_selection_sets=False), text
        )


def test_behind_an_odd_token_the_others_are_linked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """graphql-core reads one token itself: the float."""
    read: list[Token] = []
    by_core = Lexer.read_next_token

    def reading(self: Lexer, start: int) -> Token:
        read.append(by_core(self, start))
        return read[-1]

    monkeypatch.setattr(Lexer, "read_next_token", reading)
    by_tokens("{ a(b: 1, c: 1.5, # 2.5\n d: 2) { e } } # f\n")
    assert [token.value for token in read] == ["1.5"]


def test_tokens_that_were_not_found_are_read_by_graphql_core() -> None:
    text = "{ a(b: 1.5) { c } }"
    found = tokens.tokenize(text, 1_000)
    for most in range(len(found)):
        assert outcome(partial(tokens.parse_tokens, tokens=found[:most]), text) == outcome(parse_by_core, text)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("_LINES", re.compile("\n")),
        ("unquote", lambda text: text[1:-1]),
        ("_MARKS", {"?": TokenKind.AMP, **tokens._MARKS}),
    ],
)
def test_a_fault_in_the_tokens_is_seen(part: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, part, wrong)
    texts = [f"{{a(b: {value})}}" for value in VALUES.values()]
    assert any(outcome(by_tokens, text) != outcome(parse_by_core, text) for text in texts)


@pytest.mark.slow
@cases(
    "text", ["{ users { name } }", "{ users(where: {ratio: {eq: 1.5}}) { name } }", '{ user(id: """x""") { name } }']
)
def test_a_tree_is_no_reference_cycle(text: str) -> None:
    """It may be cached for long, and is freed by its reference count."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for parse in (parser.parse, tokens.parse_tokens):
            assert parse(text, tokens.tokenize(text, 1_000)).definitions
        gc.collect()
        left = {type(each).__name__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not left & {"Token", "DocumentNode", "FieldNode", "Location", "_Location", "Lexer", "_Lexer"}
