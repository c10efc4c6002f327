"""Hidden rows alter no answer to nested writes, links, sets, upserts, changes by filters, dry runs and searches; and a
leak that is planted in any of these channels is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.ask.guarded import Guard, Why
from diptych.ask.nodes import Write
from diptych.engine import write as engine
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Expr, Matches
from diptych.model.view import View
from diptych.policy import access, bulk, guards, upserts
from diptych.policy.bulk import rows_of
from tests.proof.interference.databases import Leak
from tests.proof.interference.nesting import MODEL, NestPairs
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

PAIRS = scaled(600, 60)
"""On each store."""
CHANNELS = ("nest", "set", "link", "upsert", "bulk", "dry run", "search")


@contextmanager
def opened(one: str, other: str) -> Iterator[NestPairs]:
    with asyncio.Runner() as runner, in_process(MODEL, one, runner) as a, in_process(MODEL, other, runner) as b:
        yield NestPairs((a, b))


def test_what_is_hidden_alters_no_answer(new_database: NewDatabase) -> None:
    with opened(new_database(), new_database()) as found:
        found.prove(PAIRS, seed=1)
    assert all(found.seen[kind] >= PAIRS // 20 for kind in CHANNELS), found.seen
    assert found.seen["conflicts"] <= PAIRS // 10, found.seen


# leaks


def _any_reached(only: Callable[[Write], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    """Changes by a filter reach rows that are hidden."""
    original = bulk.reached

    def reached(write: Write, view: View) -> Expr:
        return rows_of(write).where if only(write) else original(write, view)

    return lambda patch: patch.setattr(engine, "reached", reached)


def _hidden_row(patch: pytest.MonkeyPatch) -> None:
    """A row of a nested write may be changed, though it is hidden."""
    original = guards._WriteGuards._guards

    def open_rows(self: Any, values: dict[str, Expr]) -> Iterator[Guard]:
        for guard in original(self, values):
            yield replace(guard, was=TRUE) if guard.why is Why.HIDDEN else guard

    patch.setattr(guards._WriteGuards, "_guards", open_rows)


def _hidden_key(patch: pytest.MonkeyPatch) -> None:
    """An upsert finds rows that are hidden."""
    original = upserts.key_of_upsert
    patch.setattr(engine, "key_of_upsert", lambda write, view: replace(original(write, view), seen=TRUE))


def _hidden_around(patch: pytest.MonkeyPatch) -> None:
    """The links of a hidden row can be set."""
    original = engine.WriteEngine._around

    def around(self: Any, write: Write, view: View) -> Any:
        if write.within is None:
            return None
        post = view.resources[write.within.resource]
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(view, "resources", {**view.resources, write.within.resource: replace(post, read=TRUE)})
            return original(self, write, view)

    patch.setattr(engine.WriteEngine, "_around", around)


def _searched(patch: pytest.MonkeyPatch) -> None:
    """Searches look into fields that are hidden."""
    original = access.narrow_expr

    def narrowed(expr: Expr, resource: ResourceView, view: View) -> Expr:
        return expr if isinstance(expr, Matches) else original(expr, resource, view)

    patch.setattr(access, "narrow_expr", narrowed)
    patch.setattr(ResourceView, "searched", property(lambda self: tuple(self.resource.search)))


LEAKS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a nested row": _hidden_row,
    "an upsert": _hidden_key,
    "a count of changes": _any_reached(lambda write: write.within is None and rows_of(write).dry is None),
    "a dry run": _any_reached(lambda write: rows_of(write).dry is not None),
    "the links that a set takes away": _any_reached(lambda write: write.within is not None),
    "the row whose links are set": _hidden_around,
    "a search": _searched,
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_noticed_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    LEAKS[name](monkeypatch)
    with opened("sqlite:///:memory:", "sqlite:///:memory:") as found, pytest.raises(Leak):
        found.prove(400)
    print(f"{name}: after {found.seen['pairs']} pairs")
