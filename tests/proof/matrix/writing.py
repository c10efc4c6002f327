"""The channels by which a field can be written, or by which its value could be learned by writing.

What must come of a change is told by the ledger (`tests/support/oracle_writes.py`): the code and the places at fault, or
the row as it becomes. It is tried on a row of every kind: one that cannot be read, one on which the field is
hidden, one on which it may not be written, one on which it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from diptych.api.reply import STATUS
from diptych.ask.nodes import WriteVerb
from diptych.errors import Code
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from tests.proof.matrix.planted import Rows
from tests.proof.matrix.reading import code_of, like_nothing, same
from tests.proof.matrix.stage import Eye, Member, Sent, get, ql, rest
from tests.proof.matrix.values import fresh
from tests.proof.matrix.words import words
from tests.support.asks import ABSENT
from tests.support.in_process import Answer
from tests.support.oracle import Row, wire
from tests.support.oracle_writes import Ledger, Refused, Wish, writable
from tests.support.random_writes import INPUTS, STYLES

JSON_PATCH = "application/json-patch+json"
MOMENT = "2031-01-01T00:00:00.000000Z"
_TRIES = 30
_CLOCK = ("version", "createdAt", "updatedAt")
"""What of a row tells when it was written."""


@dataclass(frozen=True)
class Verdict:
    """What must come of a change: a code with the places at fault, or rows."""

    code: Code | None
    places: Sequence[str]
    typed: bool
    """Is it a fault of types, where the types of a role hold only what it may write?"""
    rows: Rows
    made: Any = None


def verdict(eye: Eye, wish: Wish) -> Verdict:
    """What the ledger says."""
    grant_store = Ledger(eye.model, eye.stage.data)
    try:
        grant_store.transact([wish], eye.viewer, MOMENT)
    except Refused as refused:
        return Verdict(refused.code, [f"/{name}" for _, name in refused.places], refused.typed, eye.stage.data)
    made = grant_store.made[0][1] if grant_store.made else None
    return Verdict(None, (), False, grant_store.rows, made)


def requests(wish: Wish, resource: ResourceDef) -> Iterator[tuple[str, Sent]]:
    """The change in both styles. A replacement answers the same in both, so that it is planned once."""
    method, path = {
        "create": ("POST", f"/{resource.path}"),
        "update": ("PATCH", f"/{resource.path}/{wish.id}"),
        "replace": ("PUT", f"/{resource.path}/{wish.id}?fields=id"),
    }[wish.verb]
    yield "rest", rest(method, path, wish.body)
    body, label = f"{resource.name}{INPUTS[wish.verb]}", "patch" if wish.verb == "update" else "input"
    key = "" if wish.verb == "create" else "id: $id, "
    call = f"{wish.verb}{resource.name}({key}{label}: $body)"
    declared = f"$body: {body}!" if wish.verb == "create" else f"$id: ID!, $body: {body}!"
    variables = {"body": wish.body} | ({} if wish.verb == "create" else {"id": wish.id})
    yield "graphql", ql(f"mutation({declared}) {{ a: {call} {{ id }} }}", variables)


def check(eye: Eye, wish: Wish, *styles: str) -> None:
    """The change is made, or refused, as the ledger says; in both styles unless told otherwise."""
    resource, wanted = eye.model.resources[wish.resource], verdict(eye, wish)
    for style, sent in requests(wish, resource):
        if styles and style not in styles:
            continue
        answer = eye.change(sent, wanted.rows)
        if wanted.code is None:
            assert answer.status in (200, 201) and b'"errors"' not in answer.body, (
                f"{wish} by {eye.name}: {answer.body!r}"
            )
            made = answer.json() if style == "rest" else answer.json()["data"]["a"]
            check_row(eye, wish, made["id"], wanted)
            eye.stage.reset()
        else:
            check_refusal(wish, answer, wanted, style, eye)


def check_refusal(wish: Wish, answer: Answer, wanted: Verdict, style: str, eye: Eye) -> None:
    assert wanted.code is not None
    told = f"{wish} by {eye.name}: {answer.body!r}, not {wanted.code} {wanted.places}"
    if style == "rest":
        assert (answer.status, code_of(answer)) == (STATUS[wanted.code], wanted.code), told
        assert sorted(answer.places) == sorted(wanted.places), told
    else:
        assert code_of(answer) == (Code.BAD_USER_INPUT if wanted.typed else wanted.code), told
    hidden = _hidden_states(eye, wish) - words(str(wish.body))
    assert not words(answer.body.decode()) & hidden, told


def _hidden_states(eye: Eye, wish: Wish) -> set[str]:
    """The values of states that the viewer may not see on the row: a refusal could tell which of them it has."""
    resource = eye.model.resources[wish.resource]
    row = eye.sight.find(wish.resource, resource.key.parse(wish.id)) if wish.id is not None else None
    hidden = [
        field for name, field in resource.fields.items() if field.moves and row and not eye.sight.shows(name, row)
    ]
    return {choice for field in hidden for choice in field.scalar.choices}


def check_row(eye: Eye, wish: Wish, id: str, wanted: Verdict) -> None:
    """The row is stored as the ledger has it: also what its writer may not see."""
    fields = eye.model.resources[wish.resource].fields
    key = wanted.made if wish.verb == "create" else fields["id"].scalar.parse(wish.id)
    row = next(row for row in wanted.rows[wish.resource] if row["id"] == key)
    expected = {name: wire(fields[name].scalar, value) for name, value in row.items() if name not in (*_CLOCK, "id")}
    stored = eye.stage.stored(wish.resource)[id]
    assert {name: stored[name] for name in expected} == expected, f"{wish} by {eye.name}"


# the rows on which it is tried


def kinds(eye: Eye, member: Member) -> list[Row]:
    """A row of every kind."""
    found: dict[tuple[bool, ...], Row] = {}
    for row in eye.sight.rows[member.resource.name]:
        found.setdefault(_kind(eye, member, row), row)
    return list(found.values())


def _kind(eye: Eye, member: Member, row: Row) -> tuple[bool, ...]:
    if not eye.sight.readable(row):
        return (False,)
    shows, field = eye.sight.shows(member.name, row), member.field
    if field is None or not field.stored or member.name in SERVER_FIELDS:
        return (True, shows)
    rules = eye.forecast.updating(member.resource, field)
    return (True, shows, any(eye.sight.holds(rule.expr, row) for rule in rules))


def unknown(eye: Eye, member: Member, may: bool | None) -> bool:
    """Is it neither to be seen nor to be written by this role?"""
    return eye.exists(member) is False and (may is False or not _is_given(member))


def _is_given(member: Member) -> bool:
    """Is it a value that clients give?"""
    return member.field is not None and member.field.stored and member.name not in SERVER_FIELDS


def new_value(eye: Eye, member: Member, row: Row | None) -> Any:
    """A value that clients could give: another than the row has."""
    field = member.field
    assert field is not None
    old = row.data.get(member.name) if row is not None else None
    if row is not None and field.moves:
        return next((move.target.value for move in field.moves if move.source.value == old), old)
    if field.relation and eye.viewer.id is not None and old != eye.viewer.id:
        target = member.resource.relations[field.relation].target
        if eye.sight.find(target, eye.viewer.id):
            return eye.viewer.id
    return wire(field.scalar, fresh(eye.stage, member, old))


# create


def base(eye: Eye, resource: ResourceDef) -> dict[str, Any]:
    """The least that a new row needs; such that the viewer may make it, where one is found."""
    return eye.once(f"base of {resource.name}", lambda: _base(eye, resource))


def _base(eye: Eye, resource: ResourceDef) -> dict[str, Any]:
    random = Random(resource.name)
    body: dict[str, Any] = {}
    for _ in range(_TRIES if eye.forecast.has("create", resource) else 1):
        given = [each for each in writable(resource) if each.required or (each.relation and random.random() < 0.5)]
        body = {each.name: _drawn(eye, resource, each, random) for each in given}
        if verdict(eye, Wish("create", resource.name, None, body)).code is None:
            break
    return body


def _drawn(eye: Eye, resource: ResourceDef, field: FieldDef, random: Random) -> Any:
    """A value for a new row; a reference is mostly to the viewer, or else to a row that it may read."""
    if not field.relation:
        return wire(field.scalar, fresh(eye.stage, Member(resource, field.name), None))
    target = resource.relations[field.relation].target
    if eye.viewer.id and eye.sight.find(target, eye.viewer.id) and random.random() < 0.8:
        return eye.viewer.id
    rows = [row for row in eye.sight.rows[target] if eye.sight.readable(row)] or eye.sight.rows[target]
    return str(random.choice(rows).id)


def create(eye: Eye, member: Member) -> None:
    resource, field = member.resource, member.field
    assert field is not None
    body = base(eye, resource)
    if unknown(eye, member, eye.forecast.creates(resource, field)):
        _like_nothing(eye, member, _naming("create", resource, None, body))
        return
    others = [fresh(eye.stage, member, field.scalar.parse(body[name]))] if (name := member.name) in body else []
    for value in (body.get(name, new_value(eye, member, None)), *(wire(field.scalar, other) for other in others)):
        check(eye, Wish("create", resource.name, None, {**body, name: value}))


def _naming(verb: WriteVerb, resource: ResourceDef, row: Row | None, body: Mapping[str, Any]) -> Callable[[str], Wish]:
    """A change that gives a value for the field of some name."""
    return lambda name: Wish(verb, resource.name, None if row is None else str(row.id), {**body, name: "x"})


def _like_nothing(eye: Eye, member: Member, wish: Callable[[str], Wish]) -> None:
    """A value for a field that does not exist is answered as one for a field that nobody has."""
    like_nothing(
        eye,
        member,
        lambda name: dict(requests(wish(name), member.resource))["rest"],
        lambda name: dict(requests(wish(name), member.resource))["graphql"],
    )


# patch


def patch(eye: Eye, member: Member) -> None:
    resource, field = member.resource, member.field
    assert field is not None
    may = eye.forecast.updates(resource, field)
    for row in kinds(eye, member):
        if unknown(eye, member, may):
            _like_nothing(eye, member, _naming("update", resource, row, {}))
            continue
        for value in field.scalar.choices if field.moves else (new_value(eye, member, row),):
            check(eye, Wish("update", resource.name, str(row.id), {member.name: value}))


def json_patch(eye: Eye, member: Member) -> None:
    """`test` tells whether a value is what the viewer sees; of one that is hidden it sees null."""
    resource, field = member.resource, member.field
    assert field is not None
    for row in kinds(eye, member):
        path = f"/{resource.path}/{row.id}"
        untouched = verdict(eye, Wish("update", resource.name, str(row.id), {}))

        test = partial(_test, path)
        if not eye.forecast.has("update", resource) or not eye.sight.readable(row) or eye.exists(member) is False:
            like_nothing(eye, member, partial(test, value="x"))
            assert eye.send(test(member.name, value="x")).status in (401, 403, 404, 409)
            continue
        shown, true = eye.value(member, row), wire(field.scalar, _true(eye, member, row))
        wrong = eye.change(test(member.name, value="no such value"))
        assert (wrong.status, code_of(wrong), wrong.places) == (409, Code.CONFLICT, ["/0/value"]), wrong.body
        if shown != true:
            same(eye.change(test(member.name, value=true)), wrong)
        passed = eye.change(test(member.name, value=shown))
        assert passed.status == (200 if untouched.code is None else STATUS[untouched.code]), passed.body
        eye.stage.reset()


def _test(path: str, name: str, value: Any) -> Sent:
    return rest("PATCH", path, [{"op": "test", "path": f"/{name}", "value": value}], JSON_PATCH)


def _true(eye: Eye, member: Member, row: Row) -> Any:
    assert member.field is not None
    computed = member.field.computed
    return row.data[member.name] if computed is None else eye.sight.value(computed, row)


# PUT


def put(eye: Eye, member: Member) -> None:
    """What GET gave is taken back, and what is hidden is kept; so it is with another value of the field, and without
    the field. (Every set of fields makes another statement, which is dear: of the second, the styles take turns, and
    of the third, all fields that may be absent are so at once.)"""
    resource, field, name = member.resource, member.field, member.name
    assert field is not None
    required = [each.name for each in writable(resource) if each.required]
    for row in kinds(eye, member):
        wish = given_back(eye, resource, row)
        eye.once(f"{resource.name} {row.id} given back", partial(check, eye, wish))
    for place, row in enumerate(_telling(eye, member)):
        wish = given_back(eye, resource, row)
        if unknown(eye, member, eye.forecast.updates(resource, field)):
            _like_nothing(eye, member, _naming("replace", resource, row, wish.body))
            continue
        check(eye, replace(wish, body={**wish.body, name: new_value(eye, member, row)}), STYLES[place % 2])
        if field.required:
            check(eye, replace(wish, body={key: value for key, value in wish.body.items() if key != name}))
        else:
            least = {key: value for key, value in wish.body.items() if key in required}
            eye.once(f"{resource.name} {row.id} with the least", partial(check, eye, replace(wish, body=least)))


def given_back(eye: Eye, resource: ResourceDef, row: Row) -> Wish:
    """What GET gave; of a row that it does not give, whatever a new one needs."""
    given = eye.send(get(f"/{resource.path}/{row.id}"))
    return Wish("replace", resource.name, str(row.id), given.json() if given.status == 200 else base(eye, resource))


def _telling(eye: Eye, member: Member) -> list[Row]:
    """The row on which most may be done, and one on which the field is hidden, if there is one."""
    first, *rest = sorted(kinds(eye, member), key=lambda row: _kind(eye, member, row), reverse=True)
    hidden = [row for row in rest if eye.sight.readable(row) and not eye.sight.shows(member.name, row)]
    return [first, *hidden[:1]]


# reference


def reference(eye: Eye, member: Member) -> None:
    """A reference to a row that cannot be read is answered as one to no row; one to a row that can be is judged."""
    resource, field = member.resource, member.field
    assert field is not None
    target = eye.model.resources[resource.relations[field.relation].target]
    hidden = [str(row.id) for row in eye.sight.rows[target.name] if not eye.sight.readable(row)]
    read = [str(row.id) for row in eye.rows(target)]
    nothing = str(ABSENT[target.key])
    for row in (None, *kinds(eye, member)):
        old = None if row is None else str(row.data[member.name])  # whoever gives it back tells what it knows
        for id in [*(id for id in hidden if id != old)][:1]:
            _like_no_row(eye, _refers(eye, member, row, id), _refers(eye, member, row, nothing), (nothing, id))
        for id in (*hidden[:1], *read[:1], nothing):
            check(eye, _refers(eye, member, row, id))


def _refers(eye: Eye, member: Member, row: Row | None, id: str) -> Wish:
    """A new row, or one that is there, refers to the id."""
    resource = member.resource
    if row is None:
        return Wish("create", resource.name, None, {**base(eye, resource), member.name: id})
    return Wish("update", resource.name, str(row.id), {member.name: id})


def _like_no_row(eye: Eye, mine: Wish, other: Wish, names: tuple[str, str]) -> None:
    resource = eye.model.resources[mine.resource]
    for (_, one), (_, two) in zip(requests(mine, resource), requests(other, resource), strict=True):
        same(eye.change(one), eye.change(two), names)
