"""Several people who ask through a cache, at random, for what is theirs and what is everyone's, while it changes.

Everyone must get what the service itself would tell them. What the service says is public may be as old as anything
that it has told an anonymous viewer; all else is as it is now.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from tests.contract.caching.kiosk import ANN, ARTICLES, BOB, ROWS
from tests.support.running import PATIENCE

RESPONSE = "application/graphql-response+json"
ANNS_NOTE = ROWS["Note"][0]["id"]
DOCUMENTS = (
    "{ articles { title } }",
    "{ articles { title views } }",
    "{ authors { name email } }",
    "{ articlesConnection(first: 3) { totalCount nodes { title author { name } } pageInfo { endCursor } } }",
    f'{{ article(id: "{ARTICLES[6]}") {{ title body }} }}',
    "{ notes { text owner { name } } }",
    "{ newestArticles { title } }",
    "{ authors { name articles { title } notes { text } } }",
    "{ articles { review } }",
    "{ nothing }",
    "{",
    "query A { articles { id title } } query B { authors { name } }",
)
PATHS = (
    "/articles",
    "/articles?fields=title",
    "/articles?fields=title,views",
    "/articles?fields=title&first=2&count=exact",
    "/articles?fields=title,author(name,email)",
    *(f"/articles/{each}" for each in ARTICLES[4:]),
    *(f"/articles/{each}?fields=title,version" for each in ARTICLES[4:]),
    "/authors",
    "/authors?fields=name",
    f"/authors/{ANN}",
    f"/authors/{BOB}?fields=name,email",
    f"/authors/{ANN}/articles?fields=title",
    f"/authors/{ANN}/notes",
    "/notes",
    f"/notes/{ANNS_NOTE}",
    "/articles/newest?fields=title",
    "/articles/amount",
    "/articles?fields=review",
    "/nothing",
    "/articles?first=0",
    "/openapi.json",
    "/articles/changes?first=1&fields=title",
    "/tags",
)
WATCHED = ("/articles/changes",)
"""What is never the same twice, whoever asks: its cursors are not."""


def _named(document: str) -> str:
    digest = hashlib.sha256(document.encode()).hexdigest()
    return "/graphql?extensions=" + quote(json.dumps({"persistedQuery": {"version": 1, "sha256Hash": digest}}))


NAMED = {_named(document): document for document in DOCUMENTS[:6]}
"""Queries that are sent by their hash."""
URLS = (
    *PATHS,
    *(f"/graphql?query={quote(document)}" for document in DOCUMENTS),
    *NAMED,
    f"/graphql?operationName=B&query={quote(DOCUMENTS[-1])}",
)


Said = tuple[int, str, bytes]
"""The status, the tag and the body of an answer."""


class RequestMeasures(NamedTuple):
    """A request that a cache could mix up with another."""

    who: str
    method: str
    url: str
    accept: str


class Told(NamedTuple):
    status: int
    body: bytes
    etag: str
    control: str
    cache: str = ""

    @property
    def said(self) -> Said:
        return self.status, self.etag, self.body


class Line:
    """A connection that is kept."""

    def __init__(self, port: int, more: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._more = more

    def ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Told:
        self._connection.request(method, url, body, {**headers, **self._more})
        response = self._connection.getresponse()
        told = response.read()
        get = response.headers.get
        return Told(response.status, told, get("etag", ""), get("cache-control", ""), get("x-cache", ""))

    def close(self) -> None:
        self._connection.close()


@dataclass
class Mix:
    """Asks through the cache at one port, and knows from the service at another what may be told."""

    cache: int
    service: int
    tokens: Mapping[str, str]
    more: Mapping[str, str] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(7))
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._through, self._direct = Line(self.cache, self.more), Line(self.service, {"host": "127.0.0.1"})
        self._now: dict[RequestMeasures, Told] = {}
        self._ever: dict[tuple[str, str], set[Said]] = {}
        self._tags: dict[str, list[str]] = {}
        for url, document in NAMED.items():
            self._direct.ask("GET", f"{url}&query={quote(document)}", {})

    def run(self, requests: int, changing: int) -> str | None:
        """The first that was told wrong, of so many requests; after each so many of them, something changes."""
        for number in range(requests):
            if number % changing == changing - 1:
                self._change(number)
            if wrong := self._one():
                return wrong
        return None

    def close(self) -> None:
        self._through.close()
        self._direct.close()

    def _one(self) -> str | None:
        draw = self.random
        accept = RESPONSE if draw.random() < 0.2 else ""
        asked = RequestMeasures(
            draw.choice((*[""] * 6, *self.tokens)),
            draw.choice(("GET", "GET", "GET", "HEAD")),
            draw.choice(URLS),
            accept,
        )
        tags = self._tags.setdefault(asked.url, ['"nothing"', "*"])  # also those of answers to others
        given = {"if-none-match": draw.choice(tags)} if draw.random() < 0.3 else {}
        direct = self._direct_answer(asked)  # before: what a cache keeps of this is then known
        found = self._through.ask(asked.method, asked.url, {**self._headers(asked), **given})
        self.counts["asked"] += 1
        self.counts[found.cache] += 1
        self.counts["not modified"] += found.status == 304
        if found.etag and found.etag not in tags:
            tags.append(found.etag)
        right = self._is_right(asked, given.get("if-none-match"), direct, found)
        return None if right else f"{asked} {given}: {found}"

    def _is_right(self, asked: RequestMeasures, condition: str | None, direct: Told, found: Told) -> bool:
        if asked.who and (found.cache == "HIT" or "public" in found.control):
            return False
        if asked.url.startswith(WATCHED):
            return found.status in (direct.status, 304) and found.cache != "HIT"
        allowed = {direct.said}
        if not asked.who and "public" in found.control:
            allowed |= self._ever[asked.url, asked.accept]
        if found.status == 304:
            known = {etag for status, etag, _ in allowed if status == 200}
            return condition in ("*", found.etag) and found.etag in known and found.body == b""
        if asked.method == "HEAD":
            allowed = {(status, etag, b"") for status, etag, _ in allowed}
        return found.said in allowed

    def _headers(self, asked: RequestMeasures) -> dict[str, str]:
        token = {"authorization": f"Bearer {self.tokens[asked.who]}"} if asked.who else {}
        return {**token, **({"accept": asked.accept} if asked.accept else {})}

    def _direct_answer(self, asked: RequestMeasures) -> Told:
        key = asked._replace(method="GET")
        if key not in self._now:
            told = self._now[key] = self._direct.ask("GET", key.url, self._headers(key))
            if not key.who:
                self._ever.setdefault((key.url, key.accept), set()).add(told.said)
        return self._now[key]

    def _change(self, number: int) -> None:
        url, body = self.random.choice(
            (
                (f"/notes/{ANNS_NOTE}", {"text": f"only Ann's, {number}"}),
                (f"/articles/{ARTICLES[5]}", {"title": f"Article, {number}"}),
                (f"/articles/{ARTICLES[6]}", {"title": f"Draft, {number}", "review": f"review, {number}"}),
                (f"/articles/{ARTICLES[4]}", {"views": number, "published": number % 100 > 50}),
                (f"/authors/{BOB}", {"email": f"bob{number}@example.org"}),
            )
        )
        headers = {"authorization": f"Bearer {self.tokens['admin']}", "content-type": "application/json"}
        told = self._through.ask("PATCH", url, headers, json.dumps(body).encode())
        assert told.status == 200, told
        self.counts["changed"] += 1
        self._now.clear()
