"""PATCH and PUT give the same verdict: what is changed is what the rules decide about, not the verb that changes it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.contract.http.data import ANN, day
from tests.contract.writes import rings
from tests.contract.writes.rings import NAMES, PART
from tests.contract.writes.shop import Shop, without
from tests.support.cases import cases
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.oracle_writes import Ledger, Refused, Wish
from tests.support.running import NewDatabase

ROUNDS = scaled(200, 10)
Row = dict[str, Any]
REPLACE = "mutation($id: ID!, $input: PartReplace!) { replacePart(id: $id, input: $input) { id } }"
UPDATE = "mutation($id: ID!, $patch: PartPatch!) { updatePart(id: $id, patch: $patch) { id } }"
_STATUS = {"FORBIDDEN": 403, "CONFLICT": 409, "BAD_USER_INPUT": 422}


class Rings(Shop):
    """Parts that may lead to each other, in any order."""

    parts: list[Row]

    def refill(self) -> None:
        self._rows = {"Part": [{**row, "parentId": None} for row in self.parts]}
        super().refill()
        for row in self.parts:
            if row["parentId"]:
                self.service.execute(f"UPDATE parts SET parent_id = '{row['parentId']}' WHERE id = '{row['id']}'")


@pytest.fixture(scope="module")
def shop(new_database: NewDatabase) -> Iterator[Rings]:
    with asyncio.Runner() as runner, in_process(rings.model, new_database(), runner) as service:
        yield Rings(service, {})


def fill(shop: Rings, **changed: Row) -> None:
    """Plain parts, but for what is told of some by their numbers."""
    plain = rings.rows(Random(0))
    usual = {
        **dict.fromkeys(("top", "deep", "wide", "via", "friend"), 0),
        "locked": False,
        "open": True,
        "note": "plain",
    }
    own = [{**row, **usual, "memo": None, "parentId": None, **changed.get(f"p{n}", {})} for n, row in enumerate(plain)]
    shop.parts = own
    shop.refill()


def row_of(shop: Rings, number: int) -> Row:
    return without(shop.get(f"/parts/{PART[number]}", "ann"), ("id", "version", "createdAt", "updatedAt", "calm"))


def verdicts(shop: Rings, number: int, changed: Row) -> set[int]:
    """What becomes of a difference by PATCH, `updatePart`, PUT and `replacePart`, each from the same rows."""
    found = set()
    for verb in ("PATCH", "update", "PUT", "replace"):
        shop.refill()
        body = changed if verb in ("PATCH", "update") else row_of(shop, number) | changed
        if verb in ("PATCH", "PUT"):
            found.add(shop.rest(verb, f"/parts/{PART[number]}", body, who="ann").status)
            continue
        given = {"patch": body} if verb == "update" else {"input": body}
        answer = shop.ql(UPDATE if verb == "update" else REPLACE, {"id": PART[number], **given}, who="ann")
        found.add(200 if answer.json().get("data") else _STATUS[answer.code])
    return found


LOOP = {"p0": {"parentId": PART[0]}}
RING = {"p0": {"parentId": PART[1]}, "p1": {"parentId": PART[0]}}


@pytest.mark.slow
@cases(
    "rows, changed, status",
    [
        (LOOP, {"locked": True}, 403),
        (LOOP, {"top": 5}, 200),
        ({"p0": {"parentId": PART[1]}}, {"locked": True}, 200),
        (RING, {"deep": 5, "locked": True}, 403),
        (RING, {"locked": True}, 200),
        (LOOP, {"wide": 5, "locked": True}, 403),
        (LOOP, {"via": 5, "locked": True}, 403),
        ({"p0": {"parentId": PART[1]}}, {"friend": 5, "locked": True}, 403),
        ({"p0": {"parentId": PART[1]}}, {"friend": 5, "locked": True, "open": False}, 200),
        ({}, {"top": 5, "parentId": PART[0], "locked": True}, 403),
        ({}, {"note": "new", "open": False}, 403),
        ({}, {"note": "new", "open": True}, 200),
        ({}, {"open": False}, 200),
    ],
)
def test_a_rule_that_leads_back_to_the_row_decides_alike_in_every_verb(
    shop: Rings, rows: dict[str, Row], changed: Row, status: int
) -> None:
    fill(shop, **rows)
    assert verdicts(shop, 0, changed) == {status}


def test_put_without_a_field_is_judged_as_the_reset_that_it_is(shop: Rings) -> None:
    """The note may be changed only while the row is open, and is no longer open then."""
    fill(shop, p0={"note": "mine"})
    closed = without(row_of(shop, 0), ("note",)) | {"open": False}
    with shop.unchanged():
        assert shop.rest("PUT", f"/parts/{PART[0]}", closed, who="ann").status == 403
    assert shop.rest("PUT", f"/parts/{PART[0]}", closed | {"note": "mine"}, who="ann").status == 200
    assert shop.rest("PUT", f"/parts/{PART[0]}", without(closed, ("open",)), who="ann").status == 200, (
        "it stays as it is"
    )
    assert row_of(shop, 0)["note"] == "mine"


def test_a_field_that_has_its_default_already_is_not_reset(shop: Rings) -> None:
    fill(shop)
    closed = without(row_of(shop, 0), ("note", "memo")) | {"open": False}
    assert shop.rest("PUT", f"/parts/{PART[0]}", closed, who="ann").status == 200


def test_a_new_row_is_not_yet_among_the_rows_that_its_rule_looks_at(shop: Rings) -> None:
    fill(shop)
    assert shop.rest("POST", "/parts", {"parentId": PART[0]}, who="ann").status == 201
    assert shop.rest("POST", "/parts", {"parentId": PART[0]}, who="ann").status == 403
    assert shop.rest("POST", "/parts", [{"parentId": PART[1]}, {"parentId": PART[1]}], who="ann").status == 403
    assert shop.count("parts") == 6


@pytest.mark.slow
def test_random_differences_have_one_verdict_which_is_the_ledgers(shop: Rings) -> None:
    """What PUT makes of a row, PATCH would have made; what PATCH makes, PUT makes; and the ledger says the same."""
    seen: Counter[int] = Counter()
    for seed in range(ROUNDS):
        random = Random(seed)
        shop.parts = rings.rows(random)
        number = random.randrange(len(PART))
        new = rings.values(random, PART[number])
        changed = {name: new[name] for name in random.sample(NAMES, random.randrange(1, 5))}
        seen[judged(shop, "update", number, changed, seed)] += 1
        left = without(row_of_seed(shop, number) | changed, random.sample(NAMES, random.randrange(4)))
        judged(shop, "replace", number, left, seed)
        whole = row_of_seed(shop, number) | changed
        real = {name: value for name, value in changed.items() if value != row_of_seed(shop, number)[name]}
        if real:
            status = judged(shop, "update", number, real, seed)
            assert judged(shop, "replace", number, whole, seed) == status, f"{seed}: {real}"
    assert set(seen) == {200, 403} and min(seen.values()) > ROUNDS / 8, seen


def row_of_seed(shop: Rings, number: int) -> Row:
    row = next(each for each in shop.parts if each["id"] == PART[number])
    return {name: row[name] for name in NAMES}


def judged(shop: Rings, verb: Any, number: int, body: Row, seed: int) -> int:
    """The verdict of the service, which is the ledger's, and so is the row after it; and PATCH makes what PUT made."""
    grant_store = Ledger(rings.model, {"Part": shop.parts})
    shop.refill()
    try:
        grant_store.transact([Wish(verb, "Part", PART[number], body)], rings.model.viewer(frozenset(), ANN), day(2))
        wanted = 200
    except Refused as refused:
        wanted = _STATUS[refused.code]
    method = "PATCH" if verb == "update" else "PUT"
    got = shop.rest(method, f"/parts/{PART[number]}", body, who="ann").status
    assert got == wanted, f"{seed}: {method} {body} is {got}, not {wanted}, of {row_of_seed(shop, number)}"
    after = next(each for each in grant_store.rows["Part"] if each["id"] == PART[number])
    assert row_of(shop, number) == {name: after[name] for name in NAMES}, f"{seed}: {method} {body}"
    return got
