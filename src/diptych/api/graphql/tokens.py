"""The GraphQL tokenizer: one regular expression, for the scan that measures a document and for both parsers.

    tokens = tokenize(text, limits.tokens)      matches, at most one more than the limit
    parse(text, tokens)                         the syntax tree of graphql-core

The lexer of graphql-core processes each character by itself: 100 kB of comments or strings take it 40 ms. Here a match
is a whole token, with the ignored characters before it. Uncommon tokens (a float, an escape with braces, an invalid
character) are left to graphql-core, which reads them or raises its error: trees, locations and messages are the same.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from itertools import islice

from graphql import DocumentNode, Source, Token, TokenKind
from graphql.language.block_string import dedent_block_string_lines
from graphql.language.lexer import Lexer
from graphql.language.parser import Parser

_MANY = "*+" if sys.version_info >= (3, 11, 5) else "*"
"""Before, a possessive quantifier goes on in the middle of what is repeated, if it fails there."""
# It matches everywhere, so each character is matched once: an unclosed string is a token, and so is the end. Group 1 is
# what GraphQL ignores; behind it, the scan ignores all other white space of Unicode, too.
_TOKEN = re.compile(
    r"((?:[ \t,\n\r\ufeff]++|#[^\n\r]*+)*+)(?:[\s,\ufeff]++|#[^\n\r]*+)*+(?:(?P<name>(?![0-9])\w++)"
    r"|(?P<mark>[{}()\[\]:@$]|\.\.\.)"
    r"|(?P<number>(?P<int>-?(?:0|[1-9][0-9]*+)(?![\w.]))|-?[0-9][\w.]*+(?:(?<=[eE])[+-][\w.]*+)?)"
    rf"""|(?P<block>\"""[^"\\]*+(?:(?:\\++(?:\""")?|""?(?!"))[^"\\]*+){_MANY}(?:\""")?)"""
    r"""|(?P<string>"(?:[^"\\\n\r]|\\.)*+"?)"""
    r"|(?P<other>\S)|(?P<end>))"
)
_LINES = re.compile(r"\r\n|[\n\r]")
_MARKS = {kind.value: kind for kind in TokenKind if not kind.value[0].isalpha() and kind.value[0] not in "<."}
_MARKS |= {"...": TokenKind.SPREAD, "": TokenKind.EOF}
_KINDS = {"name": TokenKind.NAME, "number": TokenKind.INT, "string": TokenKind.STRING, "block": TokenKind.BLOCK_STRING}
_json_string = json.JSONDecoder(strict=False).decode

DocumentTokens = Sequence[re.Match[str]]


def tokenize(text: str, most: int) -> DocumentTokens:
    """All tokens of a text with its end, or the first `most + 1`.

    The `lastgroup` of a token is its kind: name, mark, number, block, string, other or end.
    """
    return list(islice(_TOKEN.finditer(text), most + 1))


def parse_tokens(text: str, tokens: DocumentTokens = ()) -> DocumentNode:
    """Parse a document. graphql-core reads the tokens that are missing; an empty selection set is a syntax error."""
    source = Source(text)
    lexer = _Lexer(source, tokens)
    document = Parser(source, lexer=lexer, allow_empty_selection_sets=False).parse_document()
    token: Token | None = lexer.token
    while token is not None:  # a cached document must be no reference cycle (`cli/garbage.py`)
        token.prev, token = None, token.prev
    return document


def unquote(token: str) -> str:
    """The value of a string token. JSON has the same escapes, but for those in braces: they are a ValueError."""
    value: str = _json_string(token)
    value.encode()  # a ValueError for half of a surrogate pair
    return value


class _Lexer(Lexer):
    """A lexer whose tokens are linked in advance, up to the next uncommon one."""

    def __init__(self, source: Source, tokens: DocumentTokens) -> None:
        super().__init__(source)
        self._matches = iter(tokens)
        self._uncommon: re.Match[str] | None = None
        self._link(self.token)

    def read_next_token(self, start: int) -> Token:
        """Have graphql-core read an uncommon token; if it ends where its match does, link those that follow."""
        match, self._uncommon = self._uncommon, None
        if match is None:
            return super().read_next_token(start)
        token = super().read_next_token(match.end(1))
        if token.end == match.end():
            self._link(token)
        return token

    def _link(self, last: Token) -> None:
        for match in self._matches:
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            if start != last.end:
                self._skip(last.end, start)
            try:
                token = self._token(match, kind, start, end)
            except (KeyError, ValueError):
                self._uncommon = match
                return
            last.next, token.prev = token, last
            if kind == "end":
                return
            last = token

    def _token(self, match: re.Match[str], kind: str, start: int, end: int) -> Token:
        """The token of a match; a KeyError or ValueError if it is uncommon."""
        value, line, column = match[kind], self.line, 1 + start - self.line_start
        if match.end(1) != start:
            raise ValueError("white space that GraphQL does not ignore")
        if kind == "mark" or kind == "other" or kind == "end":
            return Token(_MARKS[value], start, end, line, column)
        if kind == "name":
            value.encode("ascii")
        elif kind == "number" and not match["int"]:
            raise ValueError("a float, or invalid")
        elif kind == "string":
            value = unquote(value)
        elif kind == "block":
            value = self._dedented(start, end)
        return Token(_KINDS[kind], start, end, line, column, value)

    def _dedented(self, start: int, end: int) -> str:
        body = self.source.body
        if end == len(body):
            raise ValueError("perhaps unclosed")
        self._skip(start, end)
        lines = [line.replace('\\"""', '"""') for line in _LINES.split(body[start + 3 : end - 3])]
        return "\n".join(dedent_block_string_lines(lines))

    def _skip(self, start: int, end: int) -> None:
        """Count the lines of a part of the text."""
        body = self.source.body
        lines = body.count("\n", start, end) + body.count("\r", start, end) - body.count("\r\n", start, end)
        if lines:
            self.line += lines
            self.line_start = max(body.rfind("\n", start, end), body.rfind("\r", start, end)) + 1
