"""Every attack is refused with exactly its code, as early as it must be and before any SQL, or is answered as it should."""

from __future__ import annotations

import re

from tests.proof.attacks.case import Case
from tests.proof.attacks.everything import CASES, REFUSED
from tests.proof.attacks.scene import Outcome, Scene
from tests.support.cases import cases
from tests.support.effort import scaled

MOST_TOLD = 16_384
"""Bytes of a refusal: it must not be worth its while to be refused."""
INTERNAL = re.compile(
    rb"Traceback|sqlite|apsw|asyncpg|graphql-core|msgspec|integer string conversion|recursion|RecursionError|\.py\b|SELECT |diptych_"
)
_SENT = {"text": 1, "prepass": 1, "other": scaled(3, 1), "answered": scaled(3, 1)}
"""How often an attack is sent: what comes far enough to be remembered must be no other when it comes again."""
_LATER = {"text": ("text",), "prepass": ("text", "prepass"), "other": ("text", "prepass", "other")}


STORED = [name for name, case in CASES.items() if case.reads or case.where == "answered"]
"""Where the store has a part in the answer."""


@cases("name", CASES)
def test_an_attack_is_refused_with_its_code_or_answered(scene: Scene, name: str) -> None:
    check(scene, CASES[name])


@cases("name", STORED)
def test_what_comes_as_far_as_the_store_is_answered_by_postgres_too(elsewhere: Scene, name: str) -> None:
    check(elsewhere, CASES[name])


def check(scene: Scene, case: Case) -> None:
    with scene.watched():
        outcomes = [scene.send(case) for _ in range(_SENT[case.where])]
    for outcome in outcomes:
        told = (outcome.status, outcome.code, outcome.reply.body[:300])
        assert told[:2] == (case.status, case.code), told
        if case.where != "answered":
            check_refusal(case, outcome)


def check_refusal(case: Case, outcome: Outcome) -> None:
    assert outcome.came in _LATER[case.where], f"refused by {outcome.came}: {outcome.reply.body[:300]!r}"
    assert case.reads or not outcome.ran, "the store was asked"
    assert len(outcome.reply.body) <= MOST_TOLD, f"{len(outcome.reply.body)} bytes are told"
    found = INTERNAL.search(outcome.reply.body)
    assert found is None, f"it tells of {found and found[0]!r}: {outcome.reply.body[:500]!r}"
    if not case.streams:
        assert (b"cache-control", b"no-store") in outcome.reply.headers


def test_there_are_as_many_attacks_as_were_promised() -> None:
    assert len(CASES) >= 150
    ids = {found[0] for name in CASES if (found := re.search(r"CVE-\d{4}-\d+|GHSA(-[a-z0-9]{4}){3}", name))}
    assert len(ids) >= 30
    assert len(REFUSED) > len(CASES) // 2
