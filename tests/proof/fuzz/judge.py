"""What is wrong with the answers to a request, if anything.

Every answer is HTTP, has a status that the table of errors and the OpenAPI document allow, a body that is what its media type
says, and nothing that tells how it is made. It is answered as often as it asked, and the connection ends or goes on as it was
said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.proof.fuzz.answers import Answer, read_answers
from tests.proof.fuzz.foresee import Foreseen, Seen, foresee
from tests.support.running import ROOT

PROBLEM = "application/problem+json"
RESPONSE = "application/graphql-response+json"
LEGACY = "application/json"
STREAM = "text/event-stream"
KINDS = {PROBLEM, RESPONSE, LEGACY, STREAM, "text/html"}
WIRE = (400, 408, 413, 431, 503)
"""What can be answered before anyone knows what was asked; the connection ends with it."""
SOCKET = (400, 401, 403, 404, 405, 426, 503)
"""By what a WebSocket can be refused."""
UNASKED = (204, 304)
INSIDE = re.compile(
    rb"Traceback|site-packages|\.py\b|\bapsw\b|asyncpg|sqlite|psycopg|uvicorn|msgspec|graphql-core|postgres|\bpg_(?:catalog|class|temp|toast)|SQLSTATE|syntax error at or near"
    rb"|SELECT |INSERT INTO|constraint failed|violates|no such (column|table)|json_(each|quote)|object at 0x|<class '|(Key|Type|Value|Attribute)Error"
    rb"|/usr/|/tmp/|/home/"
)
_CODES = re.compile(r"^### ([A-Z_]+)\n(?:([0-9]{3})\b)?", re.MULTILINE)


def table_of_codes() -> dict[str, int | None]:
    """Every code of an error with its status, as docs/reference/errors.md has it."""
    text = (ROOT / "docs" / "reference" / "errors.md").read_text()
    return {code: int(status) if status else None for code, status in _CODES.findall(text)}


@dataclass(frozen=True)
class Fault:
    """Something wrong; faults of one kind have one cause, it is hoped."""

    kind: str
    told: str


class Judge:
    """Judges the answers of a service by its OpenAPI document, that of an admin: it has every route."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.codes = table_of_codes()
        self._paths = {path: item for path, item in document["paths"].items() if "{" not in path}
        self._templates = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", re.escape(path).replace(r"\{", "{").replace(r"\}", "}"))), item)
            for path, item in document["paths"].items()
            if "{" in path
        ]

    def judge(self, raw: bytes, came: bytes, *, ended: bool) -> Fault | None:
        """The first fault of what came for bytes that were sent; `ended` if the server closed the connection."""
        foreseen = foresee(raw)
        methods = [seen.method for seen in foreseen.requests]
        try:
            answers = read_answers(came, methods, ended=ended)
        except ValueError as error:
            return Fault("no HTTP", str(error))
        return next(self._faults(raw, foreseen, answers, ended), None)

    def judge_one(self, answer: Answer, method: str, path: str) -> Fault | None:
        """The first fault of one answer, whoever asked."""
        seen = Seen(method.encode(), path.encode(), is_whole=True)
        return next((Fault(*each) for each in self._of_answer(answer, seen, b"", is_socket=False)), None)

    def _faults(self, raw: bytes, foreseen: Foreseen, answers: list[Answer], ended: bool) -> Iterator[Fault]:
        for index, answer in enumerate(answers):
            seen = foreseen.requests[index] if index < len(foreseen.requests) else None
            is_socket = foreseen.end == "socket" and index == len(foreseen.requests) - 1
            for kind, told in self._of_answer(answer, seen, raw, is_socket):
                yield Fault(kind, f"{told}: {_brief(answer)}")
        yield from _of_count(foreseen, answers, ended)

    def _of_answer(self, answer: Answer, seen: Seen | None, raw: bytes, is_socket: bool) -> Iterator[tuple[str, str]]:
        if answer.status == 101:
            yield from self._of_frames(answer.rest)
            return
        if (
            answer.status >= 500
            and not (answer.status == 503 and answer.header(b"retry-after"))
            and answer.status != 504
        ):
            yield f"status {answer.status}", "a status that must not be"
        leaks = {found[0] for found in INSIDE.finditer(b"\n".join((answer.body, *map(b": ".join, answer.headers))))}
        if any(leak not in raw for leak in leaks) and not (
            seen and seen.path == "/openapi.json" and answer.status == 200
        ):
            yield f"inside told {min(leaks)!r}", "it tells how it is made"
        yield from _of_headers(answer)
        if answer.is_whole and answer.method != b"HEAD":
            yield from self._of_body(answer, seen)
        if is_socket and answer.status not in SOCKET:
            yield "handshake", "a handshake is not refused so"
        elif seen is not None and not is_socket and not self._is_documented(answer, seen):
            yield (
                f"undocumented {answer.status}",
                f"{seen.method.decode()} {seen.path[:80]} has no {answer.status} in its document",
            )

    def _is_documented(self, answer: Answer, seen: Seen) -> bool:
        item = self._paths.get(seen.path)
        if item is None:
            item = next((found for pattern, found in self._templates if pattern.fullmatch(seen.path)), None)
        operation = (item or {}).get(seen.method.decode("latin-1").lower())
        if (
            item is not None
            and operation is None
            and seen.method in (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS")
        ):
            return answer.status in (405, 401, 400) or (answer.closes and answer.status in WIRE)
        if operation is None or (answer.closes and answer.status in WIRE):
            return True
        return str(answer.status) in operation["responses"]

    def _of_body(self, answer: Answer, seen: Seen | None) -> Iterator[tuple[str, str]]:
        kind, status = answer.kind, answer.status
        if status in UNASKED or (status == 303 and not answer.body):
            if answer.body or kind:
                yield "body unasked", "there is nothing to say"
            return
        if kind not in KINDS:
            yield "media type", "a media type that nobody was promised"
        elif kind == STREAM:
            return
        elif kind == "text/html":
            if seen is None or not seen.path.startswith("/oauth/"):
                yield "media type", "a page, where there are none"
        else:
            yield from self._of_json(answer, seen)

    def _of_json(self, answer: Answer, seen: Seen | None) -> Iterator[tuple[str, str]]:
        try:
            body = json.loads(answer.body.decode(), parse_constant=_no_constant, object_pairs_hook=_unique)
        except ValueError as error:
            yield "no JSON", str(error)
            return
        if answer.kind == PROBLEM:
            yield from self._of_problem(answer.status, body)
        elif seen is not None and seen.path == "/graphql":
            yield from self._of_graphql(answer, body)
        elif answer.status >= 400 and (seen is None or not seen.path.startswith("/oauth/")):
            yield "error without a problem", "an error is a problem"
        elif answer.status >= 400 and not isinstance(body.get("error"), str):
            yield "OAuth error", "RFC 6749 has it that an error has its name"

    def _of_problem(self, status: int, body: Any) -> Iterator[tuple[str, str]]:
        members = {"type": str, "title": str, "status": int, "detail": str, "code": str}
        if not isinstance(body, dict) or any(not isinstance(body.get(name), kind) for name, kind in members.items()):
            yield "problem", "a problem lacks a member"
            return
        if body["code"] not in self.codes or body["status"] != status:
            yield "problem", "a code or a status that the table does not have"
        elif self.codes[body["code"]] not in (None, status) and (body["code"], status) != ("FORBIDDEN", 401):  # DELETE
            yield "problem", "the table has another status for this code"
        for each in body.get("errors", ()):
            if each.keys() != {"pointer", "message"} or not isinstance(each["pointer"], str):
                yield "problem", "an error without a pointer and a message"

    def _of_graphql(self, answer: Answer, body: Any) -> Iterator[tuple[str, str]]:
        if (
            not isinstance(body, dict)
            or not body.keys() <= {"data", "errors", "extensions"}
            or not body.keys() & {"data", "errors"}
        ):
            yield "GraphQL", "this is no response of GraphQL"
            return
        if "errors" in body:
            yield from self._of_errors(body["errors"])
        if "errors" not in body and not isinstance(body["data"], dict):
            yield "GraphQL", "there are neither data nor errors"
        if answer.kind == RESPONSE and ("data" in body) != (answer.status == 200):
            yield "GraphQL", "the status does not tell whether there are data"
        if (
            answer.kind == RESPONSE
            and "data" not in body
            and not {None, answer.status} & {self.codes.get(error["extensions"]["code"]) for error in body["errors"]}
        ):
            yield "GraphQL", "the table has another status for these codes"

    def _of_errors(self, errors: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(errors, list) or not errors:
            yield "GraphQL", "errors are a list that is not empty"
            return
        for error in errors:
            if not isinstance(error, dict) or not error.keys() <= {"message", "locations", "path", "extensions"}:
                yield "GraphQL", "an error has members that the specification does not know"
            elif not isinstance(error.get("message"), str) or error.get("extensions", {}).get("code") not in self.codes:
                yield "GraphQL", "an error without a message, or without a code of the table"
            elif "locations" in error and any(place.keys() != {"line", "column"} for place in error["locations"]):
                yield "GraphQL", "a location has a line and a column"

    def _of_frames(self, raw: bytes) -> Iterator[tuple[str, str]]:
        """Messages of a WebSocket: small, whole, unmasked; texts are messages of the protocol."""
        while len(raw) >= 2:
            first, size = raw[0], raw[1]
            start = 2 if size < 126 else 4 if size == 126 else 10
            if first & 0x70 or first & 0x0F not in (0, 1, 8, 9, 10) or size > 127:
                yield "frame", f"no frame of a server: {raw[:20]!r}"
                return
            length = size if size < 126 else int.from_bytes(raw[2:start], "big")
            payload, raw = raw[start : start + length], raw[start + length :]
            if first == 0x81 and len(payload) == length:
                message = json.loads(payload)
                if not isinstance(message, dict) or not isinstance(message.get("type"), str):
                    yield "frame", f"no message: {payload[:200]!r}"
                elif message["type"] == "error":
                    yield from self._of_errors(message["payload"])
            if any(leak[0] for leak in INSIDE.finditer(payload) if b"Error" not in leak[0]):
                yield "inside told", repr(payload[:300])


def _of_headers(answer: Answer) -> Iterator[tuple[str, str]]:
    names = [name for name, _ in answer.headers]
    if repeated := {name for name in names if names.count(name) > 1}:
        yield "header", f"{repeated} stand twice"
    cache = answer.header(b"cache-control")
    if answer.status >= 400 and b"no-store" not in cache:
        yield f"kept {answer.status} {answer.kind}", "an error may be kept by caches"
    elif not cache:
        yield "kept", "it says nothing to caches"
    if answer.status == 401 and not answer.header(b"www-authenticate"):
        yield "challenge", "a 401 without a challenge"
    if answer.status == 405 and not answer.header(b"allow"):
        yield "allow", "a 405 without the methods that are allowed"
    if answer.status == 429 and not answer.header(b"retry-after"):
        yield "retry", "a 429 that does not say when to come again"


def _of_count(foreseen: Foreseen, answers: list[Answer], ended: bool) -> Iterator[Fault]:
    """Is every request answered, and does the connection go on as it was said?"""
    last = answers[-1] if answers else None
    if any(answer.status == 101 or answer.kind == STREAM for answer in answers):  # which are left before they end
        return
    whole = sum(seen.is_whole for seen in foreseen.requests)
    wanted = whole + (foreseen.end == "broken") if foreseen.ends or foreseen.end == "broken" else 0
    if any(answer.closes for answer in answers[:-1]):
        yield Fault("after the end", f"an answer follows one that said it was the last: {list(map(_brief, answers))}")
    if last is not None and last.closes:
        if not ended:
            yield Fault("not closed", f"the connection stays, in spite of {_brief(last)}")
        return
    if len(answers) < wanted:
        yield Fault(
            "unanswered", f"{wanted} answers were to come, and {len(answers)} did: {list(map(_brief, answers))}"
        )


def _brief(answer: Answer) -> str:
    return f"{answer.status} {answer.kind} {answer.body[:300]!r}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
