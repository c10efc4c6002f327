"""Versions of rows show what an oracle in Python says, and nothing that is hidden alters them: two databases that differ
only in what a viewer may not see answer with the same bytes. A leak that is planted is noticed."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import pytest

from diptych import Audited, Model, ReadBy, Resource, Role, Viewer, allow, grant
from diptych.compile.past import PastRows
from diptych.model import view as views
from diptych.model.rules.expr import TRUE
from diptych.policy import access
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

admin, auditor = Role("admin"), Role("auditor")
ANN, BOB, CAT = (f"01900000-0000-7000-8000-00000000000{digit}" for digit in "abc")
ROWS = [f"01900000-0000-7000-8000-0000000001{number:02x}" for number in range(4)]
ROUNDS, CHANGES = scaled(12, 1), 30


class User(Resource, ids="client"):
    access = (grant("read", "create"),)
    name: str


class Memo(Resource, ids="client", audit=Audited(history=True, actors=auditor, reason="optional")):
    access = (grant("read", "create", "update", "delete", to=admin), grant("read", to=auditor))
    owner: User
    title: str
    open: bool = False
    shared: bool = False
    note: str | None = None
    secret: Annotated[str | None, ReadBy(admin)] = None

    @allow("read")
    def readable(self, viewer: Viewer) -> bool:
        return self.open | (self.owner.id == viewer.id)

    @allow("read", field="note")
    def shown(self, viewer: Viewer) -> bool:
        return self.shared | (self.owner.id == viewer.id)


MODEL = Model(User, Memo)


class World:
    """A service, and what an oracle knows of its rows: the versions of each, with who made it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.versions: dict[str, list[dict[str, Any]]] = {}
        for id in (ANN, BOB, CAT):
            assert service.send_json("POST", "/users", {"id": id, "name": id[-1]}).status == 201

    def write(self, row: str, values: dict[str, Any], actor: str, reason: str) -> None:
        token = self.service.token(actor, "admin")
        headers = {"content-type": "application/json", "change-reason": reason}
        past = self.versions.setdefault(row, [])
        if past:
            method, path, body = "PATCH", f"/memos/{row}", values
        else:
            method, path, body = "POST", "/memos", {"id": row, "ownerId": ANN, "title": "", **values}
        answer = self.service.send(method, path, headers=headers, body=json.dumps(body).encode(), token=token)
        assert answer.status in (200, 201), answer.body
        plain = {"open": False, "shared": False, "note": None, "secret": None, "title": ""}
        before = past[-1] if past else {"ownerId": ANN, **plain}
        past.append({**before, **values, "actor": actor, "reason": reason, "number": len(past) + 1})

    def expected(self, row: str, viewer: str | None, *roles: str) -> list[dict[str, Any]] | None:
        past = self.versions.get(row, [])
        if not past or not self._reads(past[-1], viewer, roles):
            return None
        told = []
        for version in reversed(past):
            if not self._reads(version, viewer, roles):
                continue
            note = all(v["shared"] or v["ownerId"] == viewer for v in (version, past[-1]))
            shown = {"title": version["title"], "note": version["note"] if note else None}
            shown |= {"secret": version["secret"]} if "admin" in roles else {}
            one: dict[str, Any] = {
                "id": str(version["number"]),
                "kind": "CREATED" if version["number"] == 1 else "UPDATED",
            }
            knows = "auditor" in roles or viewer == version["actor"]
            if viewer is not None or "auditor" in roles:
                one |= {name: version[name] if knows else None for name in ("actor", "reason")}
            told.append({**one, "memo": shown})
        return told

    @staticmethod
    def _reads(version: dict[str, Any], viewer: str | None, roles: tuple[str, ...]) -> bool:
        return bool(version["open"] or version["ownerId"] == viewer or {"admin", "auditor"}.intersection(roles))

    def ask(self, row: str, viewer: str | None, *roles: str) -> tuple[Any, Any]:
        """The history by REST and by GraphQL; None if there is no such row."""
        token = self.service.token(viewer, *roles) if viewer or roles else None
        actors = ["actor", "reason"] if viewer else []
        inner = ["title", "note", *(["secret"] if "admin" in roles else [])]
        names = ["id", "kind", *actors]
        rest = self.service.get(
            f"/memos/{row}/history?first=100&fields={','.join(names)},memo({','.join(inner)})", token=token
        )
        asked = f"history(first: 100) {{ {' '.join(names)} memo {{ {' '.join(inner)} }} }}"
        found = self.service.data(f'{{ memo(id: "{row}") {{ {asked} }} }}', token=token)["memo"]
        return None if rest.status == 404 else rest.json()["data"], found and found["history"]


VIEWERS: list[tuple[str | None, tuple[str, ...]]] = [
    (None, ()),
    (ANN, ()),
    (BOB, ()),
    (CAT, ("auditor",)),
    (BOB, ("admin",)),
]


@contextmanager
def worlds(new_database: NewDatabase) -> Iterator[tuple[World, World]]:
    with (
        asyncio.Runner() as runner,
        in_process(MODEL, new_database(), runner) as one,
        in_process(MODEL, new_database(), runner) as other,
    ):
        yield World(one), World(other)


def check_oracle(world: World, dice: random.Random) -> int:
    shown = 0
    for row in ROWS:
        for viewer, roles in VIEWERS:
            expected = world.expected(row, viewer, *roles)
            assert world.ask(row, viewer, *roles) == (expected, expected), (row, viewer, roles)
            shown += len(expected or ())
    return shown


def some_values(dice: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {"title": f"t{dice.randrange(50)}", "open": dice.random() < 0.6}
    values |= {"shared": dice.random() < 0.5, "note": dice.choice([None, f"n{dice.randrange(50)}"])}
    values |= {"secret": f"s{dice.randrange(50)}", "ownerId": dice.choice([ANN, BOB])}
    return {name: value for name, value in values.items() if dice.random() < 0.6 or name == "title"}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_history_is_what_an_oracle_says(seed: int, new_database: NewDatabase) -> None:
    dice = random.Random(seed)
    with asyncio.Runner() as runner, in_process(MODEL, new_database(), runner) as service:
        world = World(service)
        for number in range(CHANGES):
            world.write(dice.choice(ROWS), some_values(dice), dice.choice([ANN, BOB, CAT]), f"r{number}")
        assert check_oracle(world, dice) > 30


def hidden_twin(values: dict[str, Any], before: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """The same write with other values where Cat, who owns nothing, may not see them."""
    after = {"open": False, "shared": False, **before, **values}
    other = dict(values)
    if "secret" in other:
        other["secret"] = f"x{dice.randrange(10**6)}"
    if not after["open"]:
        other["title"] = f"x{dice.randrange(10**6)}"
    # what was hidden until now and shows from now on is the same in both
    shows = after["shared"] and after["open"]
    other["note"] = after.get("note") if shows else f"x{dice.randrange(10**6)}"
    return other


def payload(page: dict[str, Any]) -> list[Any]:
    """What cursors hold, without their signatures: the two services have other keys."""
    cursors = [page["page"]["next"], page["page"]["previous"]]
    return [cursor and base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[12:] for cursor in cursors]


def compare(one: World, other: World) -> int:
    """Every answer to Cat, and to nobody; returns how many versions they showed."""
    shown = 0
    for row in ROWS:
        for viewer in (CAT, None):
            assert one.ask(row, viewer) == other.ask(row, viewer)
            tokens = [world.service.token(viewer) if viewer else None for world in (one, other)]
            query = "first=2&count=exact&fields=id,memo(title,note)"
            for more in ("", "&sort=id", "&kind=UPDATED", "&id[gt]=2"):
                pages = [
                    world.service.get(f"/memos/{row}/history?{query}{more}", token=token)
                    for world, token in zip((one, other), tokens, strict=True)
                ]
                assert pages[0].status == pages[1].status
                if pages[0].status == 200:
                    a, b = (page.json() for page in pages)
                    assert (a["data"], a["page"]["total"], payload(a)) == (b["data"], b["page"]["total"], payload(b))
                    shown += len(a["data"])
    return shown


def deal(one: World, other: World, seed: int) -> int:
    dice = random.Random(seed)
    shown = 0
    for number in range(CHANGES):
        row, values = dice.choice(ROWS), some_values(dice)
        before = (one.versions.get(row) or [{}])[-1]
        values.pop("ownerId", None)  # Cat owns nothing in either
        actors = dice.choice([(ANN, BOB), (CAT, CAT)])
        reasons = ("same", "same") if actors[0] == CAT else (f"r{number}", f"q{number}")
        one.write(row, values, actors[0], reasons[0])
        other.write(row, hidden_twin(values, before, dice), actors[1], reasons[1])
        if dice.random() < 0.2:  # another row, which only one of them has
            other.write(f"01900000-0000-7000-8000-0000000002{number:02x}", {"title": "hidden"}, BOB, "hidden")
        if number % 10 == 9:
            shown += compare(one, other)
    return shown


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_is_hidden_alters_no_history(seed: int, new_database: NewDatabase) -> None:
    with worlds(new_database) as (one, other):
        assert deal(one, other, seed) > 20


# leaks


def _any_version(patch: pytest.MonkeyPatch) -> None:
    """All versions are listed, whoever could have seen them."""
    patch.setattr(access, "_seen_versions", lambda versions, view: TRUE)


def _only_now(patch: pytest.MonkeyPatch) -> None:
    """A field shows if it is visible now, whatever was."""
    original = PastRows.shows

    def shows(self: Any, rule: Any, row: Any) -> Any:
        now = getattr(row, "now", None)
        return self.condition(rule, now) if now is not None else original(self, rule, row)

    patch.setattr(PastRows, "shows", shows)


def _any_actor(patch: pytest.MonkeyPatch) -> None:
    """Everyone sees who made a version."""
    patch.setattr(views, "ACTOR_FIELDS", ())
    patch.setattr(MODEL, "views", Model(User, Memo).views)


@pytest.mark.parametrize("leak", [_any_version, _only_now, _any_actor])
def test_a_planted_leak_is_noticed(
    leak: Callable[[pytest.MonkeyPatch], None], new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak(monkeypatch)
    with pytest.raises(AssertionError), worlds(new_sqlite) as (one, other):
        for seed in range(ROUNDS):
            deal(one, other, seed)
