"""Prints a translated request in both styles: as a GraphQL document, and as REST requests.

    { users(first: 2) { name } }        GET /users?fields=name&first=2

The two are printed from the same Asks, and each text is translated again: it is the same Ask, or it is not shown. Where
one style has a part that the other does not have, its text leaves that out and a note says so; where it cannot ask for
the rows at all, there is a sentence instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from diptych.api.filter_printer import wire_values
from diptych.api.graphql.http import Parameters
from diptych.api.graphql.nested_input import nested_input
from diptych.api.graphql.printer import print_call, print_graphql, print_mutation, print_nested, print_subscription
from diptych.api.rest.printer import (
    TOTAL,
    Printed,
    print_rest,
    print_rest_call,
    print_rest_watch,
    print_rest_write,
    sub_collection,
)
from diptych.api.rest.translate import CHANGE_FIELDS, PAGE_INFO
from diptych.ask.nodes import (
    Ask,
    Call,
    ChangePart,
    ConnectionPart,
    Edges,
    Field,
    Follow,
    Nodes,
    PageInfo,
    Pick,
    Read,
    Total,
    TypeName,
    Watch,
    Write,
)
from diptych.ask.renumber import renumbered
from diptych.ask.slots import Source
from diptych.ask.wish import CallWish, WriteWish
from diptych.errors import Refusal
from diptych.explain.understood import RestRequest, Sent, Wanted, understand
from diptych.model.model import Model
from diptych.model.naming import upper_first
from diptych.model.viewer_object import ROOT, VIEWER

_NO_REST = "REST has no request for exactly this."
_NO_GRAPHQL = "GraphQL has no document for exactly this."
_SEVERAL_NESTED = "Several nested writes in one request are not printed."
_ID = (Field("id", "id"),)
_TYPE_NAMES = "REST has no `__typename`."


class RestText(Struct, frozen=True):
    """A REST request; `note` says what of the other style it leaves out."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    note: str = ""


Sentence = str
"""Why a style has no such request."""
Document = tuple[str, Mapping[str, Any]]
"""A GraphQL document and its variables."""
Meaning = list[tuple[Ask, list[Any]]]
"""Asks with their values, as they are compared: slots numbered from 0, and no values that the server makes."""


class Twin(Struct, frozen=True):
    """A request in both styles: GraphQL has one document, REST one request for each part."""

    graphql: Document | Sentence
    rest: tuple[RestText | Sentence, ...]


def twin(wanted: Wanted, sent: Sent, model: Model) -> Twin:
    """Print a request in both styles."""
    printer = _Twins(wanted, model)
    if wanted.watch is not None:
        return printer.watch()
    if any(following for following, _ in wanted.nests):
        return printer.nested(sent)
    return printer.ops() if wanted.ops else printer.reads()


class _Twins:
    """Prints one translated request."""

    def __init__(self, wanted: Wanted, model: Model) -> None:
        self.wanted = wanted
        self.model = model

    def reads(self) -> Twin:
        wish, values = self.wanted.reads
        shown = wire_values(wish.slots, values)
        roots = [(_root(ask, self.model), ask) for ask in wish.asks]
        if len({label for label, _ in roots}) < len(roots):
            roots = [(f"{label}{number}", ask) for number, (label, ask) in enumerate(roots, 1)]
        meant = [_meaning(ask, values) for ask in wish.asks]
        document = self._document(lambda: print_graphql(roots, shown, self.model, literals=True), meant)
        return Twin(document, tuple(self._read(ask, values, shown) for ask in wish.asks))

    def _read(self, ask: Read, values: list[Any], shown: list[Any]) -> RestText | Sentence:
        notes: list[str] = []

        def printed() -> tuple[Printed, Meaning]:
            same = _for_rest(ask, notes)
            return Printed("GET", print_rest(same, shown, self.model), {}), [_meaning(same, values)]

        return self._rest(printed, notes)

    def watch(self) -> Twin:
        assert self.wanted.watch is not None
        wish, values = self.wanted.watch
        shown = wire_values(wish.slots, values)
        label = self.model.resources[wish.ask.resource].changed
        notes: list[str] = []

        def printed() -> tuple[Printed, Meaning]:
            same = _changes(wish.ask, self.model, notes)
            return Printed("GET", print_rest_watch(same, shown, self.model), {}), [_meaning(same, values)]

        document = self._document(
            lambda: print_subscription(label, wish.ask, shown, self.model, literals=True), [_meaning(wish.ask, values)]
        )
        return Twin(document, (self._rest(printed, notes),))

    def ops(self) -> Twin:
        """Writes and calls."""
        ops = self.wanted.ops
        writes = [(wish, values) for wish, values in ops if isinstance(wish, WriteWish)]
        rest = tuple(self._op(wish, values) for wish, values in ops)
        if not writes and len(ops) == 1:
            ((wish, values),) = ops
            assert isinstance(wish, CallWish)
            call = wish.ask
            meant = [_meaning(call, values, wish.sources)]
            return Twin(
                self._document(lambda: print_call(call, wire_values(wish.slots, values), self.model), meant), rest
            )
        if len(writes) < len(ops):
            return Twin("Several calls in one request are not printed.", rest)
        many = len(writes) > 1
        named = [
            (
                _write_root(wish.ask, self.model) + str(number) * many,
                _answered(wish.ask),
                wire_values(wish.slots, values),
            )
            for number, (wish, values) in enumerate(writes, 1)
        ]
        meant = [_meaning(_answered(wish.ask), values, wish.sources) for wish, values in writes]
        return Twin(self._document(lambda: print_mutation(named, self.model, literals=True), meant), rest)

    def _op(self, wish: WriteWish | CallWish, values: list[Any]) -> RestText | Sentence:
        notes: list[str] = []
        shown = wire_values(wish.slots, values)

        def printed() -> tuple[Printed, Meaning]:
            same: Write | Call = replace(wish.ask, pick=tuple(_picks(wish.ask.pick, notes)))
            text = (
                print_rest_write(same, shown, self.model)
                if isinstance(same, Write)
                else print_rest_call(same, shown, self.model)
            )
            return text, [_meaning(same, values, wish.sources)]

        return self._rest(printed, notes)

    def nested(self, sent: Sent) -> Twin:
        """A nested write: its rows are in the request itself, in the same form in both styles."""
        heads = [number for number, (_, is_part) in enumerate(self.wanted.nests) if not is_part]
        wish, values = self.wanted.ops[heads[0]]
        raw = sent.body if isinstance(sent, RestRequest) else nested_input(sent)
        if len(heads) > 1 or not isinstance(wish, WriteWish) or not isinstance(raw, dict):
            return Twin(_SEVERAL_NESTED, (_SEVERAL_NESTED,))
        write, shown = wish.ask, wire_values(wish.slots, values)
        meant = [_meaning(part.ask, bound, part.sources) for part, bound in self.wanted.ops]
        document = self._document(
            lambda: print_nested(_write_root(write, self.model), write, shown, raw, self.model), meant
        )

        def printed() -> tuple[Printed, Meaning]:
            text = print_rest_write(replace(write, values=()), shown, self.model)
            return text._replace(body=raw), meant

        return Twin(document, (self._rest(printed, []),))

    # what is printed is what is meant

    def _document(self, printed: Callable[[], tuple[str, dict[str, Any]]], meant: Meaning) -> Document | Sentence:
        try:
            text, variables = printed()
        except ValueError as error:
            return _sentence(error)
        return (text, variables) if self._means(Parameters(text, None, variables), meant) else _NO_GRAPHQL

    def _rest(self, printed: Callable[[], tuple[Printed, Meaning]], notes: Sequence[str]) -> RestText | Sentence:
        try:
            text, meant = printed()
        except ValueError as error:
            return _sentence(error)
        path, _, query = text.url.partition("?")
        sent = RestRequest(text.method, path, query, text.body, text.headers)
        return RestText(*text, note=" ".join(dict.fromkeys(notes))) if self._means(sent, meant) else _NO_REST

    def _means(self, sent: Sent, meant: Meaning) -> bool:
        """Is a text translated to these Asks and values?"""
        with suppress(Refusal):
            again = understand(sent, self.model, self.wanted.view)
            if again.watch is not None:
                wish, values = again.watch
                return [_meaning(wish.ask, values)] == meant
            reads, values = again.reads
            meanings = [_meaning(ask, values) for ask in reads.asks]
            return [*meanings, *(_meaning(op.ask, bound, op.sources) for op, bound in again.ops)] == meant
        return False


def _meaning(ask: Ask, values: Sequence[Any], sources: Sequence[Source] = ()) -> tuple[Ask, list[Any]]:
    same, used = renumbered(ask)
    made = {index for index, source in enumerate(sources) if source.make is not None}
    return same, [None if index in made else values[index] for index in used]


def _sentence(error: ValueError) -> Sentence:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


# reads


def _root(ask: Read, model: Model) -> str:
    resource = model.resources[ask.resource]
    if ask.resource == VIEWER:
        return ROOT
    return {"one": resource.one, "page": resource.connection}.get(ask.take, resource.many)


def _for_rest(ask: Read, notes: list[str]) -> Read:
    """The Ask that REST has for the same rows."""
    if ask.take == "one":
        below = sub_collection(ask)
        if below is not None:
            page = replace(below.read, pick=_page(below.read.pick, notes))
            return replace(ask, pick=(replace(below, read=page),))
        return replace(ask, pick=tuple(_picks(ask.pick, notes)))
    if ask.take == "list":
        return replace(ask, take="page", pick=(PAGE_INFO, Nodes("nodes", tuple(_picks(ask.pick, notes)))))
    if ask.take == "page":
        return replace(ask, pick=_page(ask.pick, notes))
    return ask


def _page(parts: tuple[Pick | ConnectionPart, ...], notes: list[str]) -> tuple[ConnectionPart, ...]:
    """The parts of a REST page with the same rows."""
    rows: list[Pick] = []
    around: list[ConnectionPart] = [PAGE_INFO]
    for part in parts:
        match part:
            case Nodes(_, pick):
                rows += pick
            case Edges(_, edges):
                notes.append("Rows of a REST page have no cursors of their own.")
                rows += [pick for edge in edges for pick in edge.pick]
            case Total():
                around.append(TOTAL)
            case TypeName():
                notes.append(_TYPE_NAMES)
            case PageInfo():
                continue
    if not rows:
        raise ValueError("a REST list has rows: select fields of `nodes`")
    return (*around, Nodes("nodes", tuple(_picks(tuple(dict.fromkeys(rows)), notes))))


def _picks(picks: tuple[Pick | ConnectionPart, ...], notes: list[str]) -> Iterator[Pick]:
    """The same fields and relations, without what REST does not have."""
    for pick in picks:
        if isinstance(pick, TypeName):
            notes.append(_TYPE_NAMES)
        elif isinstance(pick, Follow):
            yield _follow(pick, notes)
        elif not isinstance(pick, ConnectionPart):
            yield pick


def _follow(pick: Follow, notes: list[str]) -> Follow:
    read = pick.read
    if read.take != "page":
        return replace(pick, read=replace(read, pick=tuple(_picks(read.pick, notes))))
    notes.append("Inside a row, REST lists rows without their page.")
    *_, nodes = _page(read.pick, notes)
    assert isinstance(nodes, Nodes)
    label = pick.label.removesuffix("Connection") if pick.label == pick.relation + "Connection" else pick.label
    return replace(pick, label=label, read=replace(read, take="list", pick=nodes.pick))


# subscriptions and writes


def _changes(watch: Watch, model: Model, notes: list[str]) -> Watch:
    """The Watch that REST has for the same changes: all parts of each, and the row."""
    rows = [pick for part in watch.parts if part.what == "row" for pick in part.pick]
    if not rows:
        raise ValueError("REST shows the row of each change: select fields of it")
    parts = tuple(ChangePart(what, what) for what in CHANGE_FIELDS)
    row = ChangePart("row", model.resources[watch.resource].one, tuple(_picks(tuple(dict.fromkeys(rows)), notes)))
    return replace(watch, parts=(*parts, row))


def _answered(write: Write) -> Write:
    """The write with an answer, which GraphQL always has."""
    return write if write.pick or write.rows is not None else replace(write, pick=_ID)


def _write_root(write: Write, model: Model) -> str:
    resource = model.resources[write.resource]
    verb = "delete" if write.verb == "purge" else write.verb
    return verb + (write.resource if write.rows is None else upper_first(resource.many))
