"""The matrix is not blind: a service that leaks in one place fails in the channel of that place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.api.ask_builder import AskBuilder
from diptych.ask.guarded import Guard, Why
from diptych.ask.nodes import Field
from diptych.compile.read import Reads
from diptych.engine import watch
from diptych.model.rules.expr import TRUE, Col, Expr
from diptych.model.view import View
from diptych.policy import access
from diptych.policy import guards as change
from diptych.serve.endpoint import rest
from tests.proof.matrix.matrix import ACTION, CHANNELS, MODELS, cells
from tests.proof.matrix.stage import Stage
from tests.support.running import NewDatabase

Leak = tuple[object, str, Any]
"""What is replaced, and what stands in its place."""


def _unmasked_pick(pick: Any, resource: Any, view: Any) -> Any:
    return pick if isinstance(pick, Field) else _PICK(pick, resource, view)


_PICK = access._pick
_EACH = Reads._each
_WATCH = access.narrow_watch
_GUARDS = change._WriteGuards._guards
_FAULT = AskBuilder.fault


def _guards_but(*whys: Why) -> Callable[[Any, dict[str, Expr]], Iterator[Guard]]:
    return lambda self, values: (each for each in _GUARDS(self, values) if each.why not in whys)


def _telling_fault(self: AskBuilder, place: Any, message: str) -> None:
    _FAULT(self, place, f"{message}; there are label, open and wiring")


LEAKS: dict[str, tuple[Leak, tuple[str, ...]]] = {
    "filters see what is hidden": (
        (access, "mask", lambda rule, of: of),
        ("filter", "filter through a relation", "sort", "cursor", "count", "filter of changes"),
    ),
    "answers show what is hidden": (
        (access, "_pick", _unmasked_pick),
        ("select", "alias", "nested path", "ETag", "JSON Patch test", "log", "stream"),
    ),
    "rows of others are listed": (
        (access, "assume", lambda rule, known: TRUE),
        ("select", "filter", "sort", "cursor", "count"),
    ),
    "a row is found by its id alone": (
        (Reads, "_each", lambda self, read, row: _EACH(self, replace(read, where=TRUE), row)),
        ("node",),
    ),
    "every field exists for every role": (
        (View, "_own_rule", lambda self, found, name, roles: TRUE),
        ("select", "alias", "filter", "error text", "introspection", "SDL", "OpenAPI"),
    ),
    "an error tells the names that there are": (
        (AskBuilder, "fault", _telling_fault),
        ("error text", "filter", "sort"),
    ),
    "a tag is always the same": ((rest, "tag_of_one", lambda body, versioned: b'"same"'), ("ETag",)),
    "hidden rows are changed": ((change._WriteGuards, "_guards", _guards_but(Why.HIDDEN)), ("patch", "PUT")),
    "changes of hidden rows are told": (
        (watch, "narrow_watch", lambda asked, view: replace(_WATCH(asked, view), seen=TRUE, deleted=TRUE)),
        ("log", "stream"),
    ),
    "a row is told that was hidden since": (
        (watch, "narrow_watch", lambda asked, view: replace(_WATCH(asked, view), readable=TRUE)),
        ("history",),
    ),
    "rules of rows do not hold for changes": ((change._WriteGuards, "_guards", _guards_but(Why.DENIED)), ("create",)),
    "references lead to hidden rows": ((change._WriteGuards, "_guards", _guards_but(Why.DANGLING)), ("reference",)),
    "a refusal tells a hidden state": ((change._WriteGuards, "_seen", lambda self, name: Col((name,))), ("patch",)),
    "a replacement takes what is hidden for empty": (
        (change._WriteGuards, "_shows", lambda self, name: TRUE),
        ("PUT",),
    ),
    "an action has no rules": ((View, "call_rule", lambda self, found, call: TRUE), (ACTION,)),
}
ROLE = "signed_in"


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen_in_its_channels(leak: str, new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, channels = LEAKS[leak]
    monkeypatch.setattr(*replaced)
    with asyncio.Runner() as runner:
        stage = Stage(MODELS["house"], new_sqlite(), runner)
        stage.model.views.clear()
        try:
            blind = [channel for channel in channels if not fails(stage, channel)]
        finally:
            stage.model.views.clear()
            stage.close()
    assert not blind, f"{leak}, and it is not seen by {blind}"


def fails(stage: Stage, channel: str) -> bool:
    """Does a cell of the channel fail?"""
    for cell in cells(stage, ROLE, channel):
        try:
            cell.check()
        except AssertionError:
            stage.reset()
            return True
    return False


def test_every_channel_is_seen_to_fail() -> None:
    seen = {channel for _, channels in LEAKS.values() for channel in channels}
    assert seen == {*CHANNELS, ACTION}
