"""What a request touches: every verb, field, relation and state about which a rule of the model may speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from diptych.ask.nodes import Call, Edges, Field, Follow, Nodes, Part, Pick, Read, Watch, Write
from diptych.explain.rulebook import Matter, Rulebook
from diptych.explain.wanted import Wanted
from diptych.model.defs import SERVER_FIELDS
from diptych.model.expr import Col, Expr, Has, leaves

Values = Sequence[Any]


def touched(wanted: Wanted, rulebook: Rulebook) -> list[Matter]:
    """All matters of a request about which there are rules, each once, in the order in which they come up."""
    return list(dict.fromkeys(each for each in _touched(wanted, rulebook) if not each.is_open))


def _touched(wanted: Wanted, rulebook: Rulebook) -> Iterator[Matter]:
    for read in wanted.reads[0].asks:
        yield from of_read(read, rulebook)
    if wanted.watch is not None:
        yield from of_watch(wanted.watch[0].ask, rulebook)
    for wish, values in wanted.deeds:
        if isinstance(wish.ask, Write):
            yield from of_write(wish.ask, values, rulebook)
        else:
            yield from of_call(wish.ask, rulebook)


def of_read(read: Read, rulebook: Rulebook) -> Iterator[Matter]:
    """Of a Read: its rows, what it picks of them, what it filters and sorts by."""
    yield rulebook.verb(read.resource, "read")
    for expr in (read.where, *(key.by for key in read.order)):
        yield from of_filter(expr, read.resource, rulebook)
    yield from of_picks(read.pick, read.resource, rulebook)


def of_watch(watch: Watch, rulebook: Rulebook) -> Iterator[Matter]:
    """Of changes: the rows that are followed, and what is told of them."""
    yield from of_read(Read(watch.resource, "one", (), watch.where), rulebook)
    for read in watch.rows:
        yield from of_picks(read.pick, read.resource, rulebook)


def of_filter(expr: Expr, resource: str, rulebook: Rulebook) -> Iterator[Matter]:
    """What a filter looks at."""
    for part in leaves(expr):
        if isinstance(part, Col):
            yield rulebook.field(resource, part.path[0])
        elif isinstance(part, Has):
            relation = rulebook.model.resources[resource].relations[part.relation]
            yield rulebook.way(resource, part.relation)
            yield from rulebook.behind(relation)
            yield from of_filter(part.where, relation.target, rulebook)


def of_picks(parts: Iterable[Pick | Part], resource: str, rulebook: Rulebook) -> Iterator[Matter]:
    for part in picks_of(parts):
        if isinstance(part, Field):
            yield rulebook.field(resource, part.name)
        elif isinstance(part, Follow):
            yield rulebook.way(resource, part.relation)
            yield from rulebook.behind(rulebook.model.resources[resource].relations[part.relation])
            yield from of_read(part.read, rulebook)


def picks_of(parts: Iterable[Pick | Part]) -> Iterator[Pick | Part]:
    """What is picked of the rows, also where they are those of a page."""
    for part in parts:
        match part:
            case Nodes(pick=pick):
                yield from pick
            case Edges(parts=edges):
                for edge in edges:
                    yield from edge.pick
            case _:
                yield part


def of_write(write: Write, values: Values, rulebook: Rulebook) -> Iterator[Matter]:
    """Of a change: the verb, what it gives, to which rows that leads, and what is picked of the answer."""
    yield rulebook.verb(write.resource, "read")
    yield from of_verb(write, rulebook)
    yield from (each for _, each in states(write, values, rulebook))
    yield from (rulebook.verb(target, "read") for target, _ in references(write, values, rulebook))
    yield from of_picks(write.pick, write.resource, rulebook)


def of_verb(write: Write, rulebook: Rulebook) -> Iterator[Matter]:
    """The rules of the verb, and those of every field that is given, where they are not the same."""
    if write.verb == "delete":
        yield rulebook.verb(write.resource, "delete")
        return
    verb: Literal["create", "update"] = "create" if write.verb == "create" else "update"
    whole = rulebook.verb(write.resource, verb)
    yield whole
    fields = rulebook.model.resources[write.resource].fields
    given = {assign.name: fields[assign.name] for assign in write.values}
    if verb == "create":
        given |= {name: field for name, field in fields.items() if field.required}
    for name, field in given.items():
        matter = rulebook.writing(write.resource, name, verb)
        if field.stored and name not in SERVER_FIELDS and matter.left != whole.left:
            yield matter


def states(write: Write, values: Values, rulebook: Rulebook) -> Iterator[tuple[str, Matter]]:
    """The states that are given, by their fields: may they be chosen?"""
    fields = rulebook.model.resources[write.resource].fields
    for assign in write.values:
        if fields[assign.name].moves and assign.value is not None:
            told = rulebook.beginning if write.verb == "create" else rulebook.moving
            yield assign.name, told(write.resource, assign.name, values[assign.value.index])


def references(write: Write, values: Values, rulebook: Rulebook) -> Iterator[tuple[str, Any]]:
    """The rows that are referred to: the resource and the id."""
    found = rulebook.model.resources[write.resource]
    for assign in write.values:
        relation = found.relations.get(found.fields[assign.name].relation)
        if relation is not None and assign.value is not None:
            yield relation.target, values[assign.value.index]


def of_call(call: Call, rulebook: Rulebook) -> Iterator[Matter]:
    """Of a call: who may call it, the row that it is called on, and what is picked of what it gives."""
    definition = rulebook.model.resources[call.resource].call(call.name)
    yield rulebook.call(call.resource, definition)
    if call.id is not None:
        yield rulebook.verb(call.resource, "read")
    if definition.result.resource:
        yield rulebook.verb(definition.result.resource, "read")
        yield from of_picks(call.pick, definition.result.resource, rulebook)
