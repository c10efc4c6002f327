"""A regular expression of Python → one that means the same wherever OpenAPI is read, or nothing.

JSON Schema searches where `Pattern` matches from beginning to end, and languages differ in what `\\s`, `.` and `\\d`
are. So these are written out, groups lose their names, and the whole is held at both ends:

    [^@\\s]+@[^@\\s]+     →     ^([^@\\t-\\r …\\u0000]+@[^@\\t-\\r …\\u0000]+)$

No text has a NUL, so what matches almost anything does not match that. What has no portable form (a look ahead, a
flag, a back-reference, `\\w`) gives None: then the document says it in words.
"""

from __future__ import annotations

import re

_SPACE = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Characters that `\\s` matches in Python."""
_NUL = r"\u0000"
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
"""Characters that every dialect lets one escape."""
_CONTROLS = frozenset("tnrfv")
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_COUNT = re.compile(r"\{(?!\})(\d*)(,?)(\d*)\}", re.ASCII)
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")


class _Strange(Exception):
    """There is no portable form of the expression."""


def portable(regex: str) -> str | None:
    """A Python regular expression that must match a whole text, as a pattern of JSON Schema; None if there is none."""
    try:
        return f"^({_Writer(regex).written()})$"
    except _Strange:
        return None


class _Writer:
    def __init__(self, regex: str) -> None:
        self.text = regex
        self.at = 0

    def written(self) -> str:
        parts = []
        while self.at < len(self.text):
            parts.append(self._part())
        return "".join(parts)

    def _take(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def _part(self) -> str:
        match self.text[self.at]:
            case "(":
                if not self._match(_GROUP):
                    raise _Strange
                return "("
            case "{":
                return self._count()
        match sign := self._take():
            case "\\":
                return self._escape(r"[{}]", r"[^{}" + _NUL + "]")
            case ".":
                return rf"[^\n{_NUL}]"
            case "[":
                return self._class()
            case "]" | "}" | "/":
                return "\\" + sign
            case "*" | "+" | "?" if self.text[self.at : self.at + 1] == "+":
                raise _Strange
        return sign

    def _count(self) -> str:
        """A repetition count, or a literal brace."""
        match = self._match(_COUNT)
        if not match:
            return "\\" + self._take()
        if self.text[self.at : self.at + 1] == "+":
            raise _Strange
        return f"{{{match[1] or 0}{match[2]}{match[3]}}}"

    def _escape(self, space: str, other: str) -> str:
        """An escape sequence; the two templates are for `\\s` and `\\S`, if they are possible here."""
        if code := self._match(_CODE):
            return self._literal(chr(int(code[1] or code[2] or code[3], 16)))
        sign = self._take()
        if sign == "s":
            return space.format(_SPACE)
        if sign == "S" and other:
            return other.format(_SPACE)
        if sign in _CONTROLS:
            return "\\" + sign
        if sign.isalnum() and sign.isascii():
            raise _Strange
        return self._literal(sign)

    @staticmethod
    def _literal(sign: str) -> str:
        if sign in _SYNTAX:
            return "\\" + sign
        return f"\\u{ord(sign):04x}" if ord(sign) < 0x20 or sign in "-&~" else sign

    def _class(self) -> str:
        """A set of characters."""
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        members: list[str] = []
        while not members or self.text[self.at] != "]":
            sign = self._take()
            if sign in "-&~|" and self.text[self.at] == sign:
                raise _Strange
            members.append(self._escape("{}", "") if sign == "\\" else "\\" + sign if sign in "[]/" else sign)
        self.at += 1
        inner = "".join(members)
        if inner.endswith("-"):
            inner = inner[:-1] + r"\-"
        return f"[^{inner}{_NUL}]" if negated else f"[{inner}]"
