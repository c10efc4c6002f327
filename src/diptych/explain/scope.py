"""The scope of a request: every verb, field, relation and state in it that rules may be about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from diptych.ask.nodes import Call, ConnectionPart, Field, Follow, Pick, Read, Watch, Write
from diptych.ask.slots import SlotValues
from diptych.ask.walk import group_values, picks
from diptych.explain.rulebook import Matter, Rulebook
from diptych.explain.understood import Wanted
from diptych.model.rules.expr import Col, Expr, Has, Measure, Via, leaves
from diptych.model.viewer_object import VIEWER
from diptych.policy.bulk import asked
from diptych.policy.upserts import possible_writes


def matters_of(wanted: Wanted, rulebook: Rulebook) -> list[Matter]:
    """All matters of a request that have rules, each once, in the order of the request."""
    return list(dict.fromkeys(matter for matter in _touched(wanted, rulebook) if not matter.is_open))


def _touched(wanted: Wanted, rulebook: Rulebook) -> Iterator[Matter]:
    for read in wanted.reads[0].asks:
        yield from of_read(read, rulebook)
    if wanted.watch is not None:
        yield from of_watch(wanted.watch[0].ask, rulebook)
    for wish, values in wanted.ops:
        if isinstance(wish.ask, Write):
            yield from of_write(wish.ask, values, rulebook)
        else:
            yield from of_call(wish.ask, rulebook)


def of_read(read: Read, rulebook: Rulebook) -> Iterator[Matter]:
    """The matters of a Read: its rows, and the fields that it selects, filters and sorts by."""
    if read.resource != VIEWER:  # everyone with a token may read who it is
        yield rulebook.verb(read.resource, "read")
    grouped = () if read.groups is None else (*read.groups.by, read.groups.having)
    for expr in (read.where, *grouped, *(key.by for key in read.order), *(cell.of for cell in group_values(read.pick))):
        yield from of_filter(expr, read.resource, rulebook)
    yield from of_picks(read.pick, read.resource, rulebook)


def of_watch(watch: Watch, rulebook: Rulebook) -> Iterator[Matter]:
    """The matters of a subscription: its rows, and the fields that it selects."""
    yield from of_read(Read(watch.resource, "one", (), watch.where), rulebook)
    for read in watch.rows:
        yield from of_picks(read.pick, read.resource, rulebook)


def of_filter(expr: Expr, resource: str, rulebook: Rulebook) -> Iterator[Matter]:
    """The matters of a filter: the fields and relations in it."""
    for part in leaves(expr):
        if isinstance(part, Col):
            yield rulebook.field(resource, part.path[0])
        elif isinstance(part, Has):
            relation = rulebook.model.resources[resource].relations[part.relation]
            yield rulebook.way(resource, part.relation)
            yield from rulebook.behind(relation)
            yield from of_filter(part.where, relation.target, rulebook)
        elif isinstance(part, Via | Measure):
            relation = rulebook.model.resources[resource].relations[part.relation]
            yield rulebook.way(resource, part.relation)
            yield from rulebook.behind(relation)
            yield from of_filter(part.of, relation.target, rulebook)


def of_picks(parts: Iterable[Pick | ConnectionPart], resource: str, rulebook: Rulebook) -> Iterator[Matter]:
    for part in picks(parts):
        if isinstance(part, Field):
            yield rulebook.field(resource, part.name)
        elif isinstance(part, Follow):
            yield rulebook.way(resource, part.relation)
            yield from rulebook.behind(rulebook.model.resources[resource].relations[part.relation])
            yield from of_read(part.read, rulebook)


def of_write(write: Write, values: SlotValues, rulebook: Rulebook) -> Iterator[Matter]:
    """The matters of a Write: the verb, the fields, the rows that it refers to, and the fields of the answer."""
    yield rulebook.verb(write.resource, "read")
    if write.rows is not None:
        yield from of_filter(write.rows.where, write.resource, rulebook)
        yield from of_picks(asked(write).pick, write.resource, rulebook)
    for part in possible_writes(write, rulebook.model.resources):
        yield from of_verb(part, rulebook)
        yield from (matter for _, matter in states(part, values, rulebook))
    yield from (rulebook.verb(target, "read") for target, _ in references(write, values, rulebook))
    yield from of_picks(write.pick, write.resource, rulebook)


def of_verb(write: Write, rulebook: Rulebook) -> Iterator[Matter]:
    """The rules of the verb, and those of every written field, where they differ."""
    if write.verb in ("delete", "restore", "purge"):
        yield rulebook.verb(write.resource, "delete")
        return
    verb: Literal["create", "update"] = "create" if write.verb == "create" else "update"
    whole = rulebook.verb(write.resource, verb)
    yield whole
    fields = rulebook.model.resources[write.resource].fields
    written = {assign.name: fields[assign.name] for assign in write.values}
    if verb == "create":
        written |= {name: field for name, field in fields.items() if field.required}
    for name, field in written.items():
        matter = rulebook.writing(write.resource, name, verb)
        if field.stored and not field.is_server_set and matter.left != whole.left:
            yield matter


def states(write: Write, values: SlotValues, rulebook: Rulebook) -> Iterator[tuple[str, Matter]]:
    """The state transitions of a Write, by their fields."""
    fields = rulebook.model.resources[write.resource].fields
    for assign in write.values:
        if fields[assign.name].moves and assign.value is not None:
            rules_of_state = rulebook.beginning if write.verb == "create" else rulebook.moving
            yield assign.name, rules_of_state(write.resource, assign.name, values[assign.value.index])


def references(write: Write, values: SlotValues, rulebook: Rulebook) -> Iterator[tuple[str, Any]]:
    """The rows that a Write refers to: the resource and the id."""
    resource = rulebook.model.resources[write.resource]
    for assign in write.values:
        relation = resource.relations.get(resource.fields[assign.name].relation)
        if relation is not None and assign.value is not None:
            yield relation.target, values[assign.value.index]


def of_call(call: Call, rulebook: Rulebook) -> Iterator[Matter]:
    """The matters of a call: the call itself, its row, and the fields of its result."""
    definition = rulebook.model.resources[call.resource].call(call.name)
    yield rulebook.call(call.resource, definition)
    if call.id is not None:
        yield rulebook.verb(call.resource, "read")
    if definition.result.resource:
        yield rulebook.verb(definition.result.resource, "read")
        yield from of_picks(call.pick, definition.result.resource, rulebook)
