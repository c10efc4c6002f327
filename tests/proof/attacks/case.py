"""An attack, as data: what is sent, by whom, and what it must be answered.

    post("31 aliases", "{ users { a1: id … } }", "prepass", "TOO_COMPLEX")

A refusal says where it must happen at the latest, since the later it comes, the more it has cost:

    text      before anything is parsed: the size, the JSON, the look at the text
    prepass   before anything is validated: the one walk over what was parsed
    other     before any SQL, unless `reads` says that a row has to be looked at first
    answered  not refused at all: it looks like an attack, and is fine
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

Where = Literal["text", "prepass", "other", "answered"]
Who = Literal["nobody", "ann", "admin"]
Headers = Mapping[str, str]

RESPONSE = "application/graphql-response+json"
STREAM = "text/event-stream"
STATUS = {
    "": 200,
    "BAD_REQUEST": 400,
    "GRAPHQL_PARSE_FAILED": 400,
    "GRAPHQL_VALIDATION_FAILED": 400,
    "TOO_DEEP": 400,
    "TOO_COMPLEX": 400,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "NOT_ACCEPTABLE": 406,
    "CONFLICT": 409,
    "PRECONDITION_FAILED": 412,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "BAD_USER_INPUT": 422,
    "PERSISTED_QUERY_HASH_MISMATCH": 400,
}
"""The contract's own table, written once more, so that a slip in the service's is seen."""


@dataclass(frozen=True)
class Case:
    """One attack. `reads`: a row is looked at before it can be refused."""

    name: str
    where: Where
    code: str
    method: str
    url: str
    headers: Headers = field(default_factory=dict)
    body: bytes = b""
    who: Who = "nobody"
    reads: bool = False
    status: int = 200

    @property
    def streams(self) -> bool:
        """Is it to be answered by events? Such an answer is always 200, and what refuses it is an event."""
        return self.headers.get("accept") == STREAM

    def by(self, who: Who) -> Case:
        """The same, sent by someone else."""
        return replace(self, who=who)

    def having_read(self) -> Case:
        """The same, refused when a row was looked at."""
        return replace(self, reads=True)

    def answering(self, status: int) -> Case:
        """The same with a status of its own."""
        return replace(self, status=status)


# the query style


def body(name: str, sent: bytes, where: Where, code: str = "", kind: str = "application/json", **headers: str) -> Case:
    """A POST to /graphql with these bytes."""
    given = {"content-type": kind, "accept": RESPONSE, **_named(headers)}
    return Case(name, where, code, "POST", "/graphql", given, sent, status=STATUS[code])


def parameters(name: str, sent: Any, where: Where, code: str = "", **headers: str) -> Case:
    """The same with a value as JSON."""
    found = body(name, json.dumps(sent).encode(), where, code, **headers)
    return found.answering(200) if found.streams else found


def post(
    name: str,
    document: str,
    where: Where,
    code: str = "",
    variables: Any = None,
    operation: Any = None,
    **headers: str,
) -> Case:
    """A document by POST. (A surrogate half in it is sent as JSON escapes it.)"""
    sent: dict[str, Any] = {"query": document}
    sent |= {"variables": variables} if variables is not None else {}
    sent |= {"operationName": operation} if operation is not None else {}
    return parameters(name, sent, where, code, **headers)


def by_get(name: str, document: str, where: Where, code: str = "", **more: str) -> Case:
    """A document by GET."""
    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in {"query": document, **more}.items())
    return Case(name, where, code, "GET", f"/graphql?{query}", {"accept": RESPONSE}, status=STATUS[code])


# the resource style


def get(name: str, url: str, where: Where, code: str = "", **headers: str) -> Case:
    """A GET of a resource."""
    return Case(name, where, code, "GET", url, _named(headers), status=STATUS[code])


def send(
    name: str,
    method: str,
    url: str,
    sent: Any,
    where: Where,
    code: str = "",
    kind: str = "application/json",
    **headers: str,
) -> Case:
    """A change of a resource; bytes go as they are, anything else as JSON."""
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    return Case(name, where, code, method, url, {"content-type": kind, **_named(headers)}, raw, status=STATUS[code])


def _named(headers: Headers) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


# parts of documents


def times(count: int, text: str, start: int = 0) -> str:
    """A text so many times; `§` in it is its number."""
    return " ".join(text.replace("§", str(number)) for number in range(start, start + count))


def tower(levels: int, opening: str, inside: str, closing: str) -> str:
    """Something inside itself, so many levels deep."""
    return opening * levels + inside + closing * levels


def where_of(value: Any) -> str:
    """A filter as a parameter of a URL."""
    return "where=" + quote(json.dumps(value), safe="")


def chain(steps: Sequence[str], inside: str) -> str:
    """Fields in each other, the first outermost."""
    for step in reversed(steps):
        inside = f"{step} {{ {inside} }}"
    return inside


def family(name: str, cases: Iterable[Case]) -> dict[str, Case]:
    """The cases of a family, by name; none stands twice."""
    found: dict[str, Case] = {}
    for case in cases:
        full = f"{name}: {case.name}"
        assert full not in found, f"{full} stands twice"
        found[full] = replace(case, name=full)
    return found
