"""Every error of Diptych, in one tree.

    DiptychError
    ├── ModelError      the model file is invalid: all its mistakes at once, for the operator
    ├── StartError      the service cannot start (settings, database): one sentence, exit status 2
    └── Refusal         a request is refused: a code, a sentence, and the paths at fault, for the client

A Refusal knows nothing of HTTP: `api/reply.py` holds the one table from code to status. A Fault says where:
its path consists of keys into the request, for example ("query", "total[gte]") or
("variables", "where", "total", "gte").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

__all__ = ["MAX_FAULTS", "Code", "DiptychError", "Fault", "Mistake", "ModelError", "Path", "Refusal", "StartError"]

Path = tuple[str | int, ...]
MAX_FAULTS = 20
"""How many faults of one request are reported."""


class Code(StrEnum):
    """The error codes that clients see, in both styles."""

    BAD_REQUEST = "BAD_REQUEST"
    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    NOT_ACCEPTABLE = "NOT_ACCEPTABLE"
    CONFLICT = "CONFLICT"
    RESUME_GAP = "RESUME_GAP"
    PRECONDITION_FAILED = "PRECONDITION_FAILED"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    RATE_LIMITED = "RATE_LIMITED"
    HEADERS_TOO_LARGE = "HEADERS_TOO_LARGE"
    TOO_DEEP = "TOO_DEEP"
    TOO_COMPLEX = "TOO_COMPLEX"
    PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
    PERSISTED_QUERY_HASH_MISMATCH = "PERSISTED_QUERY_HASH_MISMATCH"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    TIMEOUT = "TIMEOUT"


class DiptychError(Exception):
    """The root of the tree."""


class Mistake(Struct, frozen=True):
    """One mistake in a model file: which class and member, on which line, what is wrong, how to fix it."""

    where: str
    cause: str
    fix: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        spot = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.where}{spot}: {self.cause}. {self.fix}"


class ModelError(DiptychError):
    """The model is invalid; `mistakes` lists all that is wrong with it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class StartError(DiptychError):
    """The service cannot start; the message is one sentence."""


class Fault(Struct, frozen=True):
    """One fault in a request, and the path to it."""

    path: Path
    message: str


class Refusal(DiptychError):
    """A request is refused with one code; `faults` lists every path that is wrong."""

    def __init__(
        self,
        code: Code,
        message: str,
        faults: Iterable[Fault] = (),
        path: Path = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.faults = tuple(faults)
        self.path = path
        """The path in the response that is null because of it, if the request was already running."""
        self.more = more or {}
        """Further fields for programs, by name."""
