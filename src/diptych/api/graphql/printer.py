"""Prints Asks as a GraphQL document: the inverse of `translate.py`.

Every slot becomes a variable, typed by its scalar; the shape of the Ask (filters, sorts, aliases) is written
out. Translating the document again gives equal Asks, slot by slot. For people, values are literals (`literals`), and
only what a literal cannot say is a variable.

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

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diptych.api.filter_printer import (
    Wheres,
    check_take,
    one_slot,
    page_arguments,
    row_values,
    sort_names,
    split_search,
    watched_id,
)
from diptych.ask.nodes import (
    BulkPart,
    Call,
    ChangePart,
    ConnectionPart,
    EdgePart,
    Edges,
    Field,
    Follow,
    MemberPick,
    Nodes,
    PageInfo,
    Pick,
    Read,
    RowSet,
    Total,
    TypeName,
    Watch,
    Write,
)
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.naming import upper_first
from diptych.model.rules.expr import TRUE, Slot
from diptych.model.viewer_object import ROOT, VIEWER

Lines = list[str]
_BARE = ("delete", "restore", "purge")
"""Verbs without values."""
_LONGEST = 200
"""Characters of the longest text that is printed as a literal."""


def print_graphql(
    asks: Sequence[tuple[str, Read]], values: Sequence[Any], model: Model, *, literals: bool = False
) -> tuple[str, dict[str, Any]]:
    """The document of some Asks, each with its key in the answer, and its variables."""
    printer = _Printer(model, literals=values if literals else None)
    body = [line for label, read in asks for line in printer.root(label, read)]
    return _document("query", body, printer.declared()), printer.variables(values)


def print_node(label: str, read: Read, values: Sequence[Any], model: Model) -> tuple[str, dict[str, Any]]:
    """The document that asks for one row by its id alone, as `node` and in a list of `nodes`, and its variables."""
    printer = _Printer(model)
    key, picks = (
        printer._slot(one_slot(read)),
        _block(f"... on {read.resource}", printer._picks(read.pick, read.resource)),
    )
    body = [
        *_block(_aliased(label, "node") + f"(id: {key})", picks),
        *_block(_aliased(label + "_many", "nodes") + f"(ids: [{key}, {key}])", picks),
    ]
    return _document("query", body, printer.declared()), printer.variables(values)


def print_mutation(
    writes: Sequence[tuple[str, Write, Sequence[Any]]], model: Model, *, literals: bool = False
) -> tuple[str, dict[str, Any]]:
    """The document of some Writes, each with its key in the answer and its own values, and its variables."""
    body: Lines = []
    declared: list[str] = []
    variables: dict[str, Any] = {}
    first = 0
    for label, write, values in writes:
        printer = _Printer(model, first, values if literals else None)
        body += printer.write(label, write)
        declared += printer.declared()
        variables |= printer.variables(values)
        first += len(values)
    return _document("mutation", body, declared), variables


def print_nested(
    label: str, write: Write, values: Sequence[Any], given: Mapping[str, Any], model: Model
) -> tuple[str, dict[str, Any]]:
    """The document of a nested write, whose rows are one variable, and its variables."""
    printer = _Printer(model, literals=values)
    kind = f"{write.resource}{'Patch' if write.verb == 'update' else 'Create'}"
    body = printer.write(label, write, "$input")
    return _document("mutation", body, [f"$input: {kind}!", *printer.declared()]), {
        "input": given,
        **printer.variables(values),
    }


def print_call(call: Call, values: Sequence[Any], model: Model) -> tuple[str, dict[str, Any]]:
    """The document of a call of the model's own code, and its variables."""
    printer = _Printer(model, literals=values)
    definition = model.resources[call.resource].call(call.name)
    kind = "query" if isinstance(definition, QueryDef) else "mutation"
    return _document(kind, printer.call(call, definition), printer.declared()), printer.variables(values)


def print_subscription(
    label: str, watch: Watch, values: Sequence[Any], model: Model, *, literals: bool = False
) -> tuple[str, dict[str, Any]]:
    """The document of a Watch, with its key in the answer, and its variables."""
    printer = _Printer(model, literals=values if literals else None)
    body = printer.watch(label, watch)
    return _document("subscription", body, printer.declared()), printer.variables(values)


class _Printer:
    """Prints Asks, and collects the slots that become variables; `first` is the number of the first variable.

    With `literals`, values are part of the document where GraphQL has a literal for them.
    """

    def __init__(self, model: Model, first: int = 0, literals: Sequence[Any] | None = None) -> None:
        self.model = model
        self.first = first
        self.literals = literals
        self.slots: dict[int, Slot] = {}
        self._wheres = Wheres(model, self._slot)

    def _slot(self, slot: Slot) -> str:
        if self.literals is not None:
            text = _value_literal(self.literals[slot.index], is_enum=bool(slot.scalar.choices))
            if text is not None:
                return text
        self.slots[slot.index] = slot
        return "$" + self._variable(slot)

    def _variable(self, slot: Slot) -> str:
        return f"v{self.first + slot.index}"

    def declared(self) -> list[str]:
        """The variables of the slots that were printed, with their types."""
        return [f"${self._variable(slot)}: {_type(slot)}" for _, slot in sorted(self.slots.items())]

    def variables(self, values: Sequence[Any]) -> dict[str, Any]:
        """The values of the declared variables, by name."""
        return {self._variable(slot): values[index] for index, slot in sorted(self.slots.items())}

    def write(self, label: str, write: Write, rows: str = "") -> Lines:
        """The root field of a change; `rows` is the text of its values, if they are nested."""
        if write.rows is not None:
            return self._bulk(label, write, write.rows)
        sent: dict[str, Any] = {} if write.verb in ("create", "upsert") else {"id": self._slot(write.id)}
        if write.verb not in _BARE:
            sent["patch" if write.verb == "update" else "input"] = rows or row_values(write, self._slot)
        if write.version is not None:
            if write.version.many:
                raise ValueError("several versions are REST's alone")
            sent["ifVersion"] = self._slot(write.version)
        if not write.pick:
            raise ValueError("a change that answers nothing is REST's alone")
        arguments = ", ".join(f"{name}: {_literal(value)}" for name, value in sent.items())
        if write.key:
            arguments += f", by: {write.key}" + ", onConflict: KEEP" * write.keep
        arguments += ", deleted: ONLY" * (write.verb == "purge")
        verb = "delete" if write.verb == "purge" else write.verb
        head = _aliased(label, verb + write.resource) + f"({arguments})"
        return _block(head, self._picks(write.pick, write.resource))

    def call(self, call: Call, definition: CallDef) -> Lines:
        """The root field of a call."""
        sent = {} if call.id is None else {"id": self._slot(call.id)}
        sent |= {assign.name: "null" if assign.value is None else self._slot(assign.value) for assign in call.values}
        arguments = "(" + ", ".join(f"{name}: {text}" for name, text in sent.items()) + ")" if sent else ""
        head = definition.root + arguments
        return _block(head, self._picks(call.pick, definition.result.resource)) if call.pick else [head]

    def _bulk(self, label: str, write: Write, rows: RowSet) -> Lines:
        """The root field of a change of many rows."""
        resource = self.model.resources[write.resource]
        sent: dict[str, Any] = {"patch": row_values(write, self._slot)} if write.verb == "update" else {}
        sent |= {"where": self._wheres.tree(rows.where, resource), "most": self._slot(rows.most)}
        sent |= {"dryRun": self._slot(rows.dry)} if rows.dry is not None else {}
        arguments = ", ".join(f"{name}: {_literal(value)}" for name, value in sent.items())
        body: Lines = []
        for part in write.parts:
            if isinstance(part, Nodes):
                body += _block(_aliased(part.label, "nodes"), self._picks(part.pick, write.resource))
            elif isinstance(part, BulkPart):
                body.append(_aliased(part.label, part.what))
        return _block(_aliased(label, write.verb + upper_first(resource.many)) + f"({arguments})", body)

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
            return _block(_aliased(part.label, found.one), self._picks(part.pick, found.name))
        return [_aliased(part.label, part.what)]

    def root(self, label: str, read: Read) -> Lines:
        check_take(read)
        found = self.model.resources[read.resource]
        if read.resource == VIEWER:
            return _block(_aliased(label, ROOT), self._picks(read.pick, read.resource))
        if read.take == "one":
            head = _aliased(label, found.one) + f"(id: {self._slot(one_slot(read))}{', deleted: ONLY' * read.deleted})"
            return _block(head, self._picks(read.pick, read.resource))
        return self._list(label, found.connection if read.take == "page" else found.many, read, found)

    def _list(self, label: str, name: str, read: Read, found: ResourceDef) -> Lines:
        head = _aliased(label, name) + self._arguments(read, found)
        return _block(head, self._picks(read.pick, read.resource))

    def _arguments(self, read: Read, found: ResourceDef) -> str:
        assert read.page is not None
        given = {name: self._slot(slot) for name, slot in page_arguments(read.page).items()}
        where, search = split_search(read.where)
        if where != TRUE:
            given["where"] = _literal(self._wheres.tree(where, found))
        if search is not None:
            given["search"] = self._slot(search)
        if read.deleted:
            given["deleted"] = "ONLY"
        if read.order:
            keys = [_sort_key(name, "DESC" if down else "ASC") for name, down in sort_names(read)]
            given["orderBy"] = _literal(keys)
        return "(" + ", ".join(f"{name}: {text}" for name, text in given.items()) + ")"

    def _picks(self, picks: Iterable[Pick | ConnectionPart], resource: str) -> Lines:
        return [line for pick in picks for line in self._pick(pick, resource)]

    def _pick(self, pick: Pick | ConnectionPart, resource: str) -> Lines:
        match pick:
            case Field():
                return self._field(pick, resource)
            case TypeName(label):
                return [_aliased(label, "__typename")]
            case Follow():
                return self._follow(pick)
            case Nodes(label, inner):
                return _block(_aliased(label, "nodes"), self._picks(inner, resource))
            case Edges(label, parts):
                lines = [line for part in parts for line in self._edge(part, resource)]
                return _block(_aliased(label, "edges"), lines)
            case PageInfo(label, parts=kinds):
                return _block(_aliased(label, "pageInfo"), [_aliased(key, kind) for kind, key in kinds])
            case Total(label):
                return [_aliased(label, "totalCount")]
        raise ValueError("numbers of rows are printed in the style in which they are asked for")

    def _field(self, pick: Field, resource: str) -> Lines:
        """A field, with the members of a value object, which GraphQL always names."""
        head = _aliased(pick.label, pick.name)
        members = self.model.resources[resource].fields[pick.name].scalar.members
        if members is None:
            return [head]
        inside = [MemberPick(name, name) for name in members] if pick.inside is None else pick.inside
        return _block(
            head,
            [_aliased(part.label, part.name if isinstance(part, MemberPick) else "__typename") for part in inside],
        )

    def _edge(self, part: EdgePart, resource: str) -> Lines:
        head = _aliased(part.label, part.kind)
        return _block(head, self._picks(part.pick, resource)) if part.kind == "node" else [head]

    def _follow(self, pick: Follow) -> Lines:
        read = pick.read
        check_take(read)
        if read.take == "one":
            return _block(_aliased(pick.label, pick.relation), self._picks(read.pick, read.resource))
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


def _value_literal(value: Any, *, is_enum: bool) -> str | None:
    """The literal of a value; None for objects, whose keys may be no names, and for long texts."""
    if isinstance(value, list):
        items = [_value_literal(item, is_enum=is_enum) for item in value]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    if isinstance(value, dict) or (isinstance(value, str) and len(value) > _LONGEST):
        return None
    return value if is_enum and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sort_key(name: str, direction: str) -> dict[str, Any]:
    """`address.city` is `{address: {city: ASC}}`."""
    field, _, member = name.partition(".")
    return {field: {member: direction} if member else direction}


def _literal(value: Any) -> str:
    """A value in a document; its texts are names and variables only."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
