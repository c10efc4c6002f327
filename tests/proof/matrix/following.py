"""The channels of changes: the log, streams, filters of what is followed, and history once a row is hidden.

All rows are touched, so that there is a change of each; what a role is told of them is what it could read. A member that
does not exist for the role is no name of changes either.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from diptych.db.script import Script, Step
from diptych.errors import Refusal
from diptych.model.defs import ResourceDef
from tests.proof.matrix.planted import Rows, marks
from tests.proof.matrix.reading import like_nothing, wheres
from tests.proof.matrix.stage import NOTHING, SIZE, Eye, Member, Sent, get
from tests.proof.matrix.values import other_values
from tests.support.following import caller_of, follow, settle
from tests.support.in_process import Answer
from tests.support.oracle import Row, Sight
from tests.support.row_changes import update_row

_MOVES = ("version", "updatedAt")
"""What moves with every change."""


# the log, and streams


def log(eye: Eye, member: Member) -> None:
    resource = member.resource
    if eye.exists(member) is False:
        like_nothing(eye, member, lambda name: get(f"/{resource.path}/changes", fields=f"id,{name}{_inner(member)}"))
        assert not eye.opens(resource) or all(member.name not in event[resource.one] for event in _log(eye, resource))
        return
    _shows(eye, member, _log(eye, resource))


def stream(eye: Eye, member: Member) -> None:
    resource = member.resource
    if eye.exists(member) is False:
        refused = [_refused(eye, resource, f"id {name}{member.inner}", "") for name in (member.name, NOTHING)]
        assert refused[0] == refused[1].replace(NOTHING, member.name), f"{member} for {eye.name}"
        return
    _shows(eye, member, _told(eye, resource))


def _inner(member: Member) -> str:
    return "(id)" if member.inner else ""


def _shows(eye: Eye, member: Member, events: Sequence[Any]) -> None:
    """There is a change of every row that can be read, and of no other; each shows what the oracle says."""
    one = member.resource.one
    rows = {str(row.id): row for row in eye.rows(member.resource)}
    assert sorted(event["rowId"] for event in events) == sorted(rows), f"{member.resource.name} for {eye.name}"
    assert {event["kind"] for event in events} <= {"UPDATED"}
    if member.name in _MOVES:
        return
    for event in events:
        value = event[one][member.name]
        got = [row["id"] for row in _listed(value)] if member.relation else value
        assert got == eye.value(member, rows[event["rowId"]]), f"{member} of {event['rowId']} for {eye.name}"


def _listed(related: Any) -> list[Any]:
    return related if isinstance(related, list) else [related] if related else []


def _log(eye: Eye, resource: ResourceDef) -> list[Any]:
    """All that the log tells of the changes, with everything that exists for the role."""
    fields = ",".join(each.name + _inner(each) for each in eye.known(resource))
    return eye.once(f"log {resource.name}", lambda: _pages(eye, resource, {"fields": fields}))


def _pages(eye: Eye, resource: ResourceDef, parameters: dict[str, Any]) -> list[Any]:
    start = _touch(eye, resource)
    answer = eye.change(get(f"/{resource.path}/changes", first=SIZE, after=start, **parameters))
    eye.stage.reset()
    assert answer.status == 200, answer.body
    body = answer.json()
    assert body["page"]["next"] is None
    found: list[Any] = body["data"]
    return found


def _told(eye: Eye, resource: ResourceDef) -> list[Any]:
    """The same by a stream."""

    def read() -> list[Any]:
        picked = " ".join(each.name + each.inner for each in eye.known(resource))
        document = f"subscription {{ {resource.changed} {{ kind rowId {resource.one} {{ {picked} }} }} }}"
        bodies = eye.stage.runner.run(_follow(eye, resource, document))
        answer = Answer(200, {}, b"[" + b",".join(bodies) + b"]", True)
        eye._look_through(Sent("GET", document), answer, None)
        found: list[Any] = answer.json()
        return found

    return eye.once(f"stream {resource.name}", read)


async def _follow(eye: Eye, resource: ResourceDef, document: str) -> list[bytes]:
    handler = eye.stage.run.handler
    sink = await follow(handler, await caller_of(handler, eye.token), document)
    await _touch_all(eye, resource)
    await settle(handler.live)
    sink.close()
    await eye.stage.run.reset()
    return sink.bodies


def _refused(eye: Eye, resource: ResourceDef, picked: str, arguments: str) -> str:
    """What someone is told who asks for what is not there."""
    handler = eye.stage.run.handler
    document = f"subscription {{ {resource.changed}{arguments} {{ {resource.one} {{ {picked} }} }} }}"

    async def refused() -> str:
        try:
            (await follow(handler, await caller_of(handler, eye.token), document)).close()
        except Refusal as refusal:
            return f"{refusal.code} {refusal.message} {[str(fault) for fault in refusal.faults]}"
        raise AssertionError(f"{eye.name} follows {document}")

    told = eye.stage.runner.run(refused())
    eye._look_through(Sent("GET", document), Answer(400, {}, told.encode(), True), None)
    return told


def _touch(eye: Eye, resource: ResourceDef) -> str:
    """Change every row, and nothing of it; gives the cursor from before."""

    async def touch() -> str:
        start = await _end(eye)
        await _touch_all(eye, resource)
        return start

    return eye.stage.runner.run(touch())


async def _end(eye: Eye) -> str:
    live = eye.stage.run.handler.live
    await settle(live)
    return live.tail.change_cursors.seal(live.tail.end)


async def _touch_all(eye: Eye, resource: ResourceDef) -> None:
    def script() -> Script[None]:
        yield Step(f'UPDATE "{resource.table}" SET version = version + 1', ())

    await eye.stage.run.app.store.write(script)


# filters


def filtered(eye: Eye, member: Member) -> None:
    resource, path = member.resource, f"/{member.resource.path}/changes"
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: get(path, where=json.dumps({name: {"isNull": True}})),
            lambda name: Sent("GET", f"{path}?{name}[isNull]=true"),
            lambda name: Sent("GET", f"{path}?{name}=x"),
        )
        refused = [
            _refused(eye, resource, "id", f"(where: {{{name}: {{isNull: true}}}})") for name in (member.name, NOTHING)
        ]
        assert refused[0] == refused[1].replace(NOTHING, member.name), f"{member} for {eye.name}"
        return
    if member.name in _MOVES:
        return
    for tree, holds in wheres(eye, member):
        wanted = sorted(str(row.id) for row in eye.rows(resource) if holds(row))
        found = _pages(eye, resource, {"fields": "id", "where": json.dumps(tree)})
        assert sorted(event["rowId"] for event in found) == wanted, f"{tree} for {eye.name}"


# history


def history(eye: Eye, member: Member) -> None:
    """Once a row is hidden, nothing of it is told any more but that it has left."""
    resource = member.resource
    if not eye.opens(resource):
        assert eye.send(get(f"/{resource.path}/changes")).code == eye.denial
        return
    hidden = eye.once(f"history {resource.name}", lambda: _hide(eye, resource))
    if hidden is None or eye.exists(member) is False or member.field is None:
        return
    row, events, text, shown = hidden
    assert [event["kind"] for event in events] == ["UPDATED", "LEFT"], f"{resource.name} {row.id} for {eye.name}"
    assert all(event[resource.one] is None for event in events)
    told = marks(json.dumps(row.data[member.name] if member.field.stored else None, default=str)) & marks(text)
    assert not told - shown - {str(row.id)}, f"{member} of {row.id} was told to {eye.name}"


def _hide(eye: Eye, resource: ResourceDef) -> tuple[Row, list[Any], str, set[str]] | None:
    """Change a row that the viewer may read so that it no longer may; gives what is told of it then."""
    found = _hiding(eye, resource)
    if found is None:
        return None
    row, name, value, rows = found

    async def change() -> str:
        start = await _end(eye)
        await _touch_all(eye, resource)
        await update_row(eye.stage.run.app.store, resource, row.id, {name: value})
        return start

    start = eye.stage.runner.run(change())
    sight = Sight(eye.model, eye.viewer, rows)
    url = f"/{resource.path}/changes?first={SIZE}&after={start}&id={quote(str(row.id))}"
    answer = eye.stage.runner.run(eye._send(Sent("GET", url)))
    eye.stage.reset()
    assert answer.status == 200, answer.body
    return row, answer.json()["data"], answer.body.decode(), eye.shown(sight)


def _hiding(eye: Eye, resource: ResourceDef) -> tuple[Row, str, Any, Rows] | None:
    for row in eye.rows(resource):
        for member in eye.stage.members:
            if member.resource is not resource or member.field is None or not member.field.stored:
                continue
            if member.name in ("id", *_MOVES, "createdAt") or member.field.unique:
                continue
            for value in other_values(eye.stage, member):
                changed = {**row.data, member.name: value}
                rows = {
                    **eye.stage.data,
                    resource.name: [
                        changed if each["id"] == row.id else each for each in eye.stage.data[resource.name]
                    ],
                }
                sight = Sight(eye.model, eye.viewer, rows)
                now = sight.find(resource.name, row.id)
                if now is not None and not sight.readable(now):
                    return row, member.name, value, rows
    return None
