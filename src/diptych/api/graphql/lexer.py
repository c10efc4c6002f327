r'''Tokens for graphql-core's parser, found by regular expressions.

graphql-core looks at every character by itself, so that 100 kB of comments or strings cost it 40 ms, before anyone
knows what they are. Here each token, and all that is ignored before it, is found in one step. Whatever is odd (a
float, an escape that is none, a character that has no place there) is left to graphql-core, which reads that one
token in its own way, or says what is wrong with it: the tree and the errors are the same.
'''

from __future__ import annotations

import json
import re

from graphql import DocumentNode, Source, Token, TokenKind
from graphql.language.block_string import dedent_block_string_lines
from graphql.language.lexer import Lexer
from graphql.language.parser import Parser

_IGNORED = r"((?:[ \t,\n\r\ufeff]++|#[^\n\r]*+)*+)"
_BEFORE = re.compile(_IGNORED)
_ESCAPE = (
    r"""\\(?:["\\/bfnrt]|u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}"""
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\{0{0,4}[0-9a-fA-F]{1,4}\}))"
)
_NEXT = re.compile(
    _IGNORED + r"(?:(?P<name>[_A-Za-z][_0-9A-Za-z]*+)"
    r"|(?P<mark>[!$&()\[\]{}:=|@]|\.\.\.)"
    r'|(?P<block>"""(?:[^"\\]|"(?!"")|\\(?:""")?)*+""")'
    rf'|(?P<string>"(?!"")(?:[^"\\\n\r]|{_ESCAPE})*+")'
    r"|(?P<int>-?(?:0|[1-9][0-9]*+)(?![.\w])))",
    re.ASCII,
)
_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]+)\}|\\u([dD][89abAB]..)\\u(....)|\\u(....)|\\(.)")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LINES = re.compile(r"\r\n|[\n\r]")
_MARKS = {kind.value: kind for kind in TokenKind if not kind.value[0].isalpha() and kind.value[0] not in "<."}
_MARKS["..."] = TokenKind.SPREAD


def parse(text: str) -> DocumentNode:
    """Parse a document as graphql-core does. (An empty selection is no selection; what is ignored makes no tokens.)"""
    source = Source(text)
    return Parser(source, lexer=_Lexer(source), allow_empty_selection_sets=False).parse_document()


class _Lexer(Lexer):
    def __init__(self, source: Source) -> None:
        """Find all tokens up to the first odd one; what comes then is looked for when it is wanted."""
        super().__init__(source)
        body, last, at = source.body, self.token, 0
        while found := _NEXT.match(body, at):
            line = self.line, self.line_start
            start = self._skip(at, found.end(1))
            at = found.end()
            token = self._token(found, start, at)
            if token is None:
                self.line, self.line_start = line
                return
            last.next, token.prev = token, last
            last = token

    def read_next_token(self, start: int) -> Token:
        ignored = _BEFORE.match(self.source.body, start)
        start = self._skip(start, ignored.end() if ignored else start)
        found = _NEXT.match(self.source.body, start)
        token = None if found is None else self._token(found, start, found.end())
        return super().read_next_token(start) if token is None else token

    def _token(self, found: re.Match[str], start: int, end: int) -> Token | None:
        """A token that was found; None if graphql-core must say what is wrong with it."""
        kind = found.lastgroup
        column = 1 + start - self.line_start
        if kind == "name":
            return Token(TokenKind.NAME, start, end, self.line, column, found["name"])
        if kind == "mark":
            return Token(_MARKS[found["mark"]], start, end, self.line, column)
        if kind == "int":
            return Token(TokenKind.INT, start, end, self.line, column, found["int"])
        if kind == "block":
            return self._block(start, end)
        return self._string(start, end)

    def _skip(self, start: int, end: int) -> int:
        """Count the lines of a part of the text."""
        if start == end:
            return end
        body = self.source.body
        lines = body.count("\n", start, end) + body.count("\r", start, end) - body.count("\r\n", start, end)
        if lines:
            self.line += lines
            self.line_start = max(body.rfind("\n", start, end), body.rfind("\r", start, end)) + 1
        return end

    def _string(self, start: int, end: int) -> Token | None:
        value = self.source.body[start + 1 : end - 1]
        if "\\u{" in value:
            try:
                value = _ESCAPED.sub(_unescape, value)
            except ValueError:  # no character
                return None
        elif "\\" in value:  # JSON has the same escapes
            value = json.loads(f'"{value}"', strict=False)
        return self.create_token(TokenKind.STRING, start, end, value)

    def _block(self, start: int, end: int) -> Token:
        lines = [line.replace('\\"""', '"""') for line in _LINES.split(self.source.body[start + 3 : end - 3])]
        token = self.create_token(TokenKind.BLOCK_STRING, start, end, "\n".join(dedent_block_string_lines(lines)))
        self._skip(start, end)
        return token


def _unescape(found: re.Match[str]) -> str:
    """The character of an escape."""
    braced, high, low, four, short = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if short:
        return _SHORT.get(short, short)
    number = int(braced or four, 16)
    if 0xD800 <= number <= 0xDFFF:
        raise ValueError
    return chr(number)
