"""What the planner of the GraphQL endpoint caches: prepared operations by document, and refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

from diptych.api.graphql.node_lookup import NodeLookup, one_answer_each
from diptych.api.reply import DocumentRefusal
from diptych.ask.measures import RequestMeasures
from diptych.engine.call import PreparedCall
from diptych.engine.read_plan import PreparedRead
from diptych.engine.watch import PreparedWatch
from diptych.engine.write_op import PreparedWrite
from diptych.lru import footprint
from diptych.policy.values import Fetch, Parse

if TYPE_CHECKING:
    from graphql import OperationType

    from diptych.api.graphql.document import Document
    from diptych.api.graphql.introspection import Answer
    from diptych.api.graphql.operation import Root

Binding = tuple[Fetch, Parse]
_KNOWN, _ENTRY, _PER_TOKEN = 1_000, 1_500, 320
"""Estimated bytes of a cached operation, of a parsed document, and of one of its tokens."""
DOCUMENT_BYTES = 24 << 10
"""Average bytes allowed for a document, with its syntax tree and its plan."""


class KnownOperation(Struct, frozen=True, eq=False):
    """A prepared operation that needs only its values, and the constant JSON between its results."""

    prepared: PreparedRead | None
    pieces: tuple[bytes, ...]
    keep: bool = True
    writes: tuple[tuple[str, PreparedWrite | PreparedCall], ...] = ()
    """The mutations to run, by response key."""
    changes: tuple[tuple[tuple[str], PreparedWrite], ...] = ()
    """The same by response path, if none of them is a custom action of the model."""
    nests: tuple[tuple[int, bool], ...] = ()
    """For each of `writes`, `WriteOp.more` and `WriteOp.part`; empty if there is no nested write among them."""
    calls: Mapping[str, PreparedCall] = field(default_factory=dict)
    """The custom queries of the model to run, by response key."""
    order: tuple[str, ...] = ()
    """The response keys of all that runs, if there are custom queries among it."""
    watch: PreparedWatch | None = None
    """The watch of a subscription; `pieces` is the JSON around a change."""
    with_change_cursor: bool = False
    """Is the last result the current position of the feed?"""
    max_age: int = 0
    """Seconds for which a shared cache may keep the response; 0 is never."""
    lookups: tuple[NodeLookup, ...] = ()
    """How the answers become one for each root field, if it has `node` or `nodes`."""
    literals: tuple[Binding, ...] | None = None
    """The values with lifted literals; None if there are literals elsewhere, so that the text is needed."""
    has_unread: bool = False
    """Are there variables that no slot parses, since what they are for is skipped? Each request checks their types."""
    is_plain: bool = False
    """Is it a query that is one statement, whose results are the response, or mutations of single rows?"""

    def __post_init__(self) -> None:
        if self.prepared is None:
            is_plain = bool(self.changes) and not self.nests
        else:
            is_plain = not (self.calls or self.with_change_cursor or self.lookups)
        force_setattr(self, "is_plain", is_plain)

    @property
    def is_deprecated(self) -> bool:
        """May the operation use deprecated parts of the API?"""
        return any(part.uses is not None for part in self.parts)

    @property
    def parts(self) -> list[PreparedRead | PreparedWatch | PreparedWrite | PreparedCall]:
        parts = (self.prepared, self.watch, *(write for _, write in self.writes), *self.calls.values())
        return [part for part in parts if part is not None]

    @property
    def size(self) -> int:
        return _KNOWN + sum(map(len, self.pieces)) + sum(part.size for part in self.parts)

    def bindings(self, count: int) -> tuple[Binding, ...] | None:
        """The values with lifted literals, if all literals of the document are among them."""
        binders = [part.binder for part in self.parts]
        if len(set[int]().union(*(binder.lifted for binder in binders))) < count:
            return None
        return tuple(binding for binder in binders for binding in binder.literals)

    def leaves_unread(self, document: Document, variables: Mapping[str, Any]) -> bool:
        """Has a variable a value that no slot parses, and that is not part of the shape of the request?"""
        read = {name for part in self.parts for source in part.binder.sources for name in source.inputs()}
        values = (
            variables.get(name) for name in document.variables if name not in read and name not in document.literal
        )
        return any(not isinstance(value, bool | None) and value not in ({}, []) for value in values)

    def chosen(self, answers: Sequence[bytes | None]) -> Sequence[bytes | None]:
        """One answer for each root field that reads."""
        return one_answer_each(self.lookups, answers) if self.lookups else answers

    def join(self, answers: Sequence[bytes | None]) -> bytes:
        """The response body."""
        pieces = self.pieces
        if len(answers) == 1:
            return b"".join((pieces[0], answers[0] or b"null", pieces[1]))
        pairs = zip(pieces, (answer or b"null" for answer in answers), strict=False)
        return b"".join([part for pair in pairs for part in pair] + [pieces[-1]])


class KnownDocument(Struct, eq=False):
    """A parsed document, with its prepared operations by shape of the variables."""

    document: Document
    measures: RequestMeasures
    """The measures of the request, as far as the text gives them."""
    reads: bool
    """Is it a query, which every method and transport accepts?"""
    known: dict[Any, KnownOperation] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return _ENTRY + self.measures.document + _PER_TOKEN * self.measures.tokens


class RefusedDocument(Struct, frozen=True, eq=False):
    """The errors of an invalid document, so that it is not validated again."""

    refusal: DocumentRefusal
    kind: OperationType | None
    """What its operation is; None if it cannot be parsed."""

    @property
    def size(self) -> int:
        return _ENTRY + footprint(self.refusal.errors)


def pieces_of(roots: Sequence[Root], meta: Answer) -> tuple[bytes, ...]:
    """The constant JSON of a response, split where the results go."""
    pieces: list[bytes] = []
    constant = b'{"data":{'
    for index, root in enumerate(roots):
        constant += b"," * (index > 0) + b'"' + root.label.encode() + b'":'
        if root.kind in ("ask", "call"):
            pieces.append(constant)
            constant = b""
        else:
            constant += root.constant or meta[root.label]
    return (*pieces, constant + b"}}")
