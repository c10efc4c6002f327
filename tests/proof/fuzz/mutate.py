"""Good requests, spoiled: as structures (parts of two are put together), as words (of JSON, GraphQL, addresses, headers), and
as bytes. All that is drawn comes from one seed.

    Mutator(corpus, Random(7)).draw()      the bytes of a request that is nearly right
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from tests.proof.fuzz import odd
from tests.proof.fuzz.corpus import Corpus
from tests.proof.fuzz.sample import Sample

Change = Callable[[Sample], Sample]
_WORDS = re.compile(r'"""|"(?:[^"\\\n]|\\.)*"|[_A-Za-z]\w*|-?\d[\w.]*|\.\.\.|\s+|.', re.DOTALL)
_PARTS = re.compile(r"%[0-9A-Fa-f]{2}|[A-Za-z0-9_-]+|.", re.DOTALL)


class Mutator:
    """Draws spoiled requests, without end."""

    def __init__(self, corpus: Corpus, random: Random) -> None:
        self.corpus = corpus
        self.random = random
        self._changes: tuple[Change, ...] = (
            self._body,
            self._body,
            self._body,
            self._address,
            self._parameter,
            self._parameter,
            self._header,
            self._header,
            self._line,
            self._framing,
            self._spliced,
        )

    def draw(self) -> bytes:
        """The bytes of one request, or of a few."""
        random, made = self.random, self.corpus.draw()
        for _ in range(random.choice((0, 0, 1, 1, 1, 1, 2, 3))):
            made = random.choice(self._changes)(made)
        raw = made.raw()
        for _ in range(random.choice((0, 0, 0, 0, 0, 1, 1, 2, 4))):
            raw = self.spoil(raw)
        return raw[:150_000]

    # bytes

    def spoil(self, raw: bytes) -> bytes:
        """A little of it flipped, put in, cut out, doubled, moved, or cut off."""
        random = self.random
        at = random.randrange(len(raw) + 1)
        end = min(len(raw), at + random.choice((1, 1, 1, 2, 4, 16, 64)))
        match random.randrange(8):
            case 0 if at < len(raw):
                return raw[:at] + bytes([raw[at] ^ 1 << random.randrange(8)]) + raw[at + 1 :]
            case 1 | 2:
                return raw[:at] + random.choice(odd.BYTES) + raw[at:]
            case 3:
                return raw[:at] + raw[end:]
            case 4:
                return raw[:end] + raw[at:]
            case 5:
                return raw[:at] + random.choice(odd.BYTES) + raw[end:]
            case 6:
                other = self.corpus.draw().raw()
                cut = random.randrange(len(other) + 1)
                return raw[:at] + other[cut : cut + random.choice((8, 40, 400))] + raw[end:]
            case 7 if random.random() < 0.3:
                return raw[:at]
        return raw

    # structures

    def _spliced(self, one: Sample) -> Sample:
        """Parts of another in the place of its own."""
        other = self.corpus.draw()
        match self.random.randrange(5):
            case 0:
                return replace(one, body=other.body, chunked=other.chunked)
            case 1:
                return replace(one, headers=other.headers)
            case 2:
                return replace(one, target=other.target)
            case 3:
                return replace(one, method=other.method)
        return replace(one, behind=one.behind + other.raw())

    def _line(self, one: Sample) -> Sample:
        match self.random.randrange(3):
            case 0:
                return replace(one, version=self.random.choice(odd.VERSIONS))
            case 1:
                return replace(
                    one,
                    target=self.random.choice(
                        (b"", b"*", b"//x/users", b"127.0.0.1:80", b"http://", one.target + b" x", b"/" + one.target)
                    ),
                )
        return replace(one, method=self.random.choice(odd.METHODS))

    def _framing(self, one: Sample) -> Sample:
        """Where the body ends, told otherwise, or wrongly."""
        size = len(one.body or b"")
        match self.random.randrange(4):
            case 0:
                return replace(
                    one,
                    chunked=self.random.choice((1, 3, 100, 70_000)) if size < 5_000 else 4_096,
                    body=one.body or b"",
                )
            case 1:
                return replace(
                    one,
                    chunked=0,
                    body=one.body or b"",
                    length=b"%d" % self.random.choice((0, size + 1, max(0, size - 1), 1 << 20, 2 << 20)),
                )
            case 2:
                return replace(
                    one,
                    chunked=0,
                    body=one.body or b"",
                    length=self.random.choice((b"-1", b"0x10", b"1 1", b"", b"\xb2", b"9" * 40)),
                )
        return replace(
            one,
            behind=self.random.choice(
                (
                    b"\r\n",
                    b"\r\n\r\n",
                    b"0\r\n\r\n",
                    b"x",
                    b"GET ",
                    b"\x16\x03\x01\x02\x00",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                )
            ),
        )

    # headers

    def _header(self, one: Sample) -> Sample:
        random, pairs = self.random, list(one.headers)
        at = random.randrange(len(pairs) + 1)
        match random.randrange(6):
            case 0 if at < len(pairs):
                del pairs[at]
            case 1 if at < len(pairs):
                pairs.insert(at, pairs[at])
            case 2 if at < len(pairs):
                name, value = pairs[at]
                pairs[at] = (name.upper() if random.random() < 0.3 else name, self.spoil(value))
            case 3:
                same = [pair for pair in odd.HEADERS if pair[0] in {name for name, _ in pairs}]
                new = random.choice(same or odd.HEADERS)
                pairs = [new if name == new[0] else (name, value) for name, value in pairs]
            case _:
                pairs.insert(at, random.choice(odd.HEADERS))
        return replace(one, headers=tuple(pairs))

    # addresses

    def _address(self, one: Sample) -> Sample:
        text = one.target.decode("latin-1")
        path, question, query = text.partition("?")
        if question and "query=" in query and self.random.random() < 0.6:
            pairs = [(name, self._document(value) if name == "query" else value) for name, value in parse_qsl(query)]
            return replace(one, target=f"{path}?{urlencode(pairs, quote_via=quote)}".encode("latin-1"))
        text = self._reworded(text, _PARTS, odd.ADDRESS)
        if self.random.random() < 0.9:  # what cannot stand in a line at all is a matter of bytes
            text = quote(text, safe="/?&=%[](){}:;,*$@!'+\"<>|^`\\-._~#")
        return replace(one, target=text.encode("utf-8"))

    def _parameter(self, one: Sample) -> Sample:
        """A parameter added, dropped, or given another value."""
        random, (path, _, query) = self.random, one.target.decode("latin-1").partition("?")
        pairs = [pair for pair in query.split("&") if pair]
        at = random.randrange(len(pairs) + 1)
        match random.randrange(4):
            case 0 if pairs:
                del pairs[at : at + 1]
            case 1 if at < len(pairs):
                pairs[at] = f"{pairs[at].partition('=')[0]}={random.choice(odd.VALUES)}"
            case _:
                pairs.insert(at, f"{random.choice(odd.PARAMETERS)}={random.choice(odd.VALUES)}")
        return replace(one, target=f"{path}?{'&'.join(pairs)}".encode("latin-1"))

    # bodies

    def _body(self, one: Sample) -> Sample:
        if not one.body:
            return self._parameter(one)
        try:
            value = json.loads(one.body)
        except ValueError:
            return replace(one, body=self.spoil(one.body))
        if isinstance(value, dict) and isinstance(value.get("query"), str) and self.random.random() < 0.6:
            value["query"] = self._document(value["query"])
        else:
            value = self._otherwise(value)
        text = json.dumps(value, ensure_ascii=self.random.random() < 0.7)
        if self.random.random() < 0.2:
            text = self._reworded(text, re.compile(r'"(?:[^"\\]|\\.)*"|[-\w.]+|.', re.DOTALL), odd.JSON_TEXTS)
        return replace(one, body=text.encode("utf-8", "surrogatepass"))

    def _document(self, text: str) -> str:
        for _ in range(self.random.choice((1, 1, 2, 5))):
            text = self._reworded(text, _WORDS, odd.GRAPHQL)
        return text

    def _otherwise(self, value: Any) -> Any:
        """A JSON value in which something else stands at one place."""
        random = self.random
        if isinstance(value, dict) and value and random.random() < 0.8:
            key = random.choice(list(value))
            match random.randrange(6):
                case 0:
                    return {name: each for name, each in value.items() if name != key}
                case 1:
                    return {
                        **value,
                        random.choice(
                            ("id", "version", "name", "", "x", "__typename", "createdAt", "status", key + " ")
                        ): random.choice(odd.JSON),
                    }
                case _:
                    return {**value, key: self._otherwise(value[key])}
        if isinstance(value, list) and value and random.random() < 0.8:
            at = random.randrange(len(value))
            return random.choice((value * 2, value[:at], [*value[:at], self._otherwise(value[at]), *value[at + 1 :]]))
        return [value] if random.random() < 0.1 else random.choice(odd.JSON)

    def _reworded(self, text: str, words: re.Pattern[str], others: tuple[str, ...]) -> str:
        """A text with a word of it replaced, put in, left out, doubled, or changed for another of its own."""
        random, parts = self.random, words.findall(text)
        at = random.randrange(len(parts) + 1)
        match random.randrange(5):
            case 0 if parts:
                parts[at : at + 1] = []
            case 1:
                parts[at:at] = parts[at : at + random.choice((1, 3, 10))] * random.choice((1, 1, 2, 40))
            case 2 if parts:
                parts[at : at + 1] = [random.choice(parts)]
            case 3:
                parts[at : at + 1] = [random.choice(others)]
            case _:
                parts.insert(at, random.choice(others))
        return "".join(parts)
