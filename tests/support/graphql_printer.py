"""Asks → a GraphQL document: the translator, backwards.

Every slot becomes a variable, typed by its scalar; the shape of the Ask (filters, sorts, aliases) is written
out. Translating the document again gives equal Asks, slot by slot.

    Read("User", "one", (Field("name", "name"),), Compare("eq", Col(("id",)), Slot(0, ID)))    and ["7"]

    query ($v0: ID!) {
      user(id: $v0) {
        name
      }
    }                                                                                        and {"v0": "7"}

A Write has slots of its own, so each of several is printed with values of its own. What the server makes, the id
of a new row, is not printed.

    Write("update", "User", Slot(0, ID), (Assign("name", Slot(1, STRING)),), pick=(Field("id", "id"),))

    mutation ($v0: ID!, $v1: String!) {
      updateUser(id: $v0, patch: {name: $v1}) {
        id
      }
    }

A Watch is a subscription.

    Watch("Post", (ChangePart("kind", "kind"),), Compare("eq", Col(("id",)), Slot(0, ID)), after=Slot(1, CURSOR))

    subscription ($v0: ID!, $v1: String!) {
      postChanged(id: $v0, after: $v1) {
        kind
      }
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from diptych.ask.nodes import (
    ChangePart,
    ConnectionPart,
    EdgePart,
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
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, Slot
from diptych.model.viewer_object import ROOT, VIEWER
from tests.support.filter_printer import Wheres, one_slot, page_slots, row_values, sort_names, watched_id

Lines = list[str]


def print_graphql(asks: Sequence[tuple[str, Read]], values: Sequence[Any], model: Model) -> tuple[str, dict[str, Any]]:
    """The document of some Asks, each with its key in the answer, and its variables."""
    printer = _Printer(model)
    body = [line for label, read in asks for line in printer.root(label, read)]
    return _document("query", body, printer.declared()), printer.variables(values)


def print_node(label: str, read: Read, values: Sequence[Any], model: Model) -> tuple[str, dict[str, Any]]:
    """The document that asks for one row by its id alone, as `node` and in a list of `nodes`, and its variables."""
    printer = _Printer(model)
    key, picks = printer._slot(one_slot(read)), _block(f"... on {read.resource}", printer._picks(read.pick))
    body = [
        *_block(_aliased(label, "node") + f"(id: {key})", picks),
        *_block(_aliased(label + "_many", "nodes") + f"(ids: [{key}, {key}])", picks),
    ]
    return _document("query", body, printer.declared()), printer.variables(values)


def print_mutation(writes: Sequence[tuple[str, Write, Sequence[Any]]], model: Model) -> tuple[str, dict[str, Any]]:
    """The document of some Writes, each with its key in the answer and its own values, and its variables."""
    body: Lines = []
    declared: list[str] = []
    variables: dict[str, Any] = {}
    first = 0
    for label, write, values in writes:
        printer = _Printer(model, first)
        body += printer.write(label, write)
        declared += printer.declared()
        variables |= printer.variables(values)
        first += len(values)
    return _document("mutation", body, declared), variables


def print_subscription(label: str, watch: Watch, values: Sequence[Any], model: Model) -> tuple[str, dict[str, Any]]:
    """The document of a Watch, with its key in the answer, and its variables."""
    printer = _Printer(model)
    body = printer.watch(label, watch)
    return _document("subscription", body, printer.declared()), printer.variables(values)


class _Printer:
    """Prints Asks, and notes the slots that they use; `first` is the number of the first variable."""

    def __init__(self, model: Model, first: int = 0) -> None:
        self.model = model
        self.first = first
        self.slots: dict[int, Slot] = {}
        self._wheres = Wheres(model, self._slot)

    def _slot(self, slot: Slot) -> str:
        self.slots[slot.index] = slot
        return "$" + self._variable(slot)

    def _variable(self, slot: Slot) -> str:
        return f"v{self.first + slot.index}"

    def declared(self) -> list[str]:
        """The variables of the slots that were printed, with their types."""
        return [f"${self._variable(slot)}: {_type(slot)}" for _, slot in sorted(self.slots.items())]

    def variables(self, values: Sequence[Any]) -> dict[str, Any]:
        """Their values."""
        return {self._variable(slot): values[index] for index, slot in sorted(self.slots.items())}

    def write(self, label: str, write: Write) -> Lines:
        """The root field of a change."""
        given: dict[str, Any] = {} if write.verb == "create" else {"id": self._slot(write.id)}
        if write.verb != "delete":
            given["patch" if write.verb == "update" else "input"] = row_values(write, self._slot)
        if write.version is not None:
            if write.version.many:
                raise ValueError("several versions are REST's alone")
            given["ifVersion"] = self._slot(write.version)
        if not write.pick:
            raise ValueError("a change that answers nothing is REST's alone")
        arguments = ", ".join(f"{name}: {_literal(value)}" for name, value in given.items())
        head = _aliased(label, write.verb + write.resource) + f"({arguments})"
        return _block(head, self._picks(write.pick))

    def watch(self, label: str, watch: Watch) -> Lines:
        """The root field of a subscription."""
        found = self.model.resources[watch.resource]
        key, where = watched_id(watch)
        given = {} if key is None else {"id": self._slot(key)}
        if where != TRUE:
            given["where"] = _literal(self._wheres.tree(where, found))
        body = [line for part in watch.parts for line in self._change_part(part, found)]
        slots = {"kinds": watch.kinds, "after": watch.after}
        given |= {name: self._slot(slot) for name, slot in slots.items() if slot is not None}
        arguments = "(" + ", ".join(f"{name}: {text}" for name, text in given.items()) + ")" if given else ""
        return _block(_aliased(label, found.changed) + arguments, body)

    def _change_part(self, part: ChangePart, found: ResourceDef) -> Lines:
        if part.what == "row":
            return _block(_aliased(part.label, found.one), self._picks(part.pick))
        return [_aliased(part.label, part.what)]

    def root(self, label: str, read: Read) -> Lines:
        found = self.model.resources[read.resource]
        if read.resource == VIEWER:
            return _block(_aliased(label, ROOT), self._picks(read.pick))
        if read.take == "one":
            head = _aliased(label, found.one) + f"(id: {self._slot(one_slot(read))})"
            return _block(head, self._picks(read.pick))
        return self._list(label, found.connection if read.take == "page" else found.many, read, found)

    def _list(self, label: str, name: str, read: Read, found: ResourceDef) -> Lines:
        head = _aliased(label, name) + self._arguments(read, found)
        return _block(head, self._picks(read.pick))

    def _arguments(self, read: Read, found: ResourceDef) -> str:
        assert read.page is not None
        given = {name: self._slot(slot) for name, slot in page_slots(read.page).items()}
        if read.where != TRUE:
            given["where"] = _literal(self._wheres.tree(read.where, found))
        if read.order:
            keys = [{name: "DESC" if down else "ASC"} for name, down in sort_names(read)]
            given["orderBy"] = _literal(keys)
        return "(" + ", ".join(f"{name}: {text}" for name, text in given.items()) + ")"

    def _picks(self, picks: Iterable[Pick | ConnectionPart]) -> Lines:
        return [line for pick in picks for line in self._pick(pick)]

    def _pick(self, pick: Pick | ConnectionPart) -> Lines:
        match pick:
            case Field(name, label):
                return [_aliased(label, name)]
            case TypeName(label):
                return [_aliased(label, "__typename")]
            case Follow():
                return self._follow(pick)
            case Nodes(label, inner):
                return _block(_aliased(label, "nodes"), self._picks(inner))
            case Edges(label, parts):
                return _block(_aliased(label, "edges"), [line for part in parts for line in self._edge(part)])
            case PageInfo(label, parts=kinds):
                return _block(_aliased(label, "pageInfo"), [_aliased(key, kind) for kind, key in kinds])
            case Total(label):
                return [_aliased(label, "totalCount")]

    def _edge(self, part: EdgePart) -> Lines:
        head = _aliased(part.label, part.kind)
        return _block(head, self._picks(part.pick)) if part.kind == "node" else [head]

    def _follow(self, pick: Follow) -> Lines:
        read = pick.read
        if read.take == "one":
            return _block(_aliased(pick.label, pick.relation), self._picks(read.pick))
        name = pick.relation + "Connection" if read.take == "page" else pick.relation
        return self._list(pick.label, name, read, self.model.resources[read.resource])


def _document(kind: str, body: Lines, declared: Sequence[str]) -> str:
    head = f"{kind} ({', '.join(declared)})" if declared else kind
    return "\n".join(_block(head, body)) + "\n"


def _type(slot: Slot) -> str:
    name = slot.scalar.graphql or slot.scalar.name
    return f"[{name}!]!" if slot.many else f"{name}!"


def _aliased(label: str, name: str) -> str:
    return name if label == name else f"{label}: {name}"


def _block(head: str, lines: Lines) -> Lines:
    return [head + " {", *("  " + line for line in lines), "}"]


def _literal(value: Any) -> str:
    """A value in a document; its texts are names and variables only."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
