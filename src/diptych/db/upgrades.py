"""Upgrades of the system tables: numbered steps for what a new column with its default is not enough for.

A step brings the rows of the version before to its own. It is sent its rows as `fitting.py` is, in the transaction that
opens the database, after missing tables, columns and indexes were made. It leaves rows alone that have what it gives:
databases from before there were versions may have it already.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from diptych.compile.catalogue import Catalogue
from diptych.compile.system.object import DialectName
from diptych.compile.system.upgrade import CURRENT, SETTING, SYSTEM_VERSION, SystemVersion
from diptych.db.job_share import share_of
from diptych.db.script import Step

Upgrade = Generator[Step, Sequence[Any], None]
_PLACEHOLDERS: Mapping[DialectName, str] = {"sqlite": "?", "postgres": "$"}
_RECORD = (
    "INSERT INTO diptych_settings (name, value) VALUES ({0}1, {0}2) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class UpgradeStep(Struct, frozen=True):
    """What a version needs besides new tables, columns and indexes."""

    done: str
    """What it did, for who starts the service."""
    run: Callable[[str], Upgrade]
    """Takes the sign of placeholders."""


def upgrade(have: Catalogue, dialect: DialectName) -> Generator[Step, Sequence[Any], list[str]]:
    """Run the steps that a database lacks, and record its version; returns what was done, as sentences.

    One of a later version is left as it is: reading its catalogue refuses it, if this code cannot go on with it.
    """
    sign = _PLACEHOLDERS[dialect]
    if not have.has_system_tables:
        yield Step(_RECORD.format(sign), (SETTING, CURRENT.encode()))
        return []
    was = (have.system_version or SystemVersion()).version
    if was >= SYSTEM_VERSION:
        return []
    steps = [step for version, step in sorted(STEPS.items()) if was < version]
    for step in steps:
        yield from step.run(sign)
    yield Step(_RECORD.format(sign), (SETTING, CURRENT.encode()))
    more = ": " + "; ".join(step.done for step in steps) if steps else ""
    return [f"Upgraded the system tables from version {was} to {SYSTEM_VERSION}{more}."]


def _turns(sign: str) -> Upgrade:
    """Give jobs that were queued first in, first out their shares and turns (`job_queue.py`)."""
    owners = yield Step("SELECT DISTINCT owner FROM diptych_jobs WHERE share = ''", ())
    for (owner,) in owners:
        by_owner = f"UPDATE diptych_jobs SET share = {sign}1 WHERE owner = {sign}2 AND share = ''"
        yield Step(by_owner, (share_of(owner), owner))
    yield Step(_SET_TURNS, ())


_IS_TICK = "name IN (SELECT name FROM diptych_schedules)"
_ORDER = f"row_number() OVER (PARTITION BY share, {_IS_TICK} ORDER BY created_at, id)"
_SET_TURNS = (
    "UPDATE diptych_jobs SET turn = CASE WHEN diptych_jobs.next_at > 0 THEN -1 - o.turn ELSE o.turn END "
    f"FROM (SELECT id, CASE WHEN {_IS_TICK} THEN 0 ELSE {_ORDER} END AS turn FROM diptych_jobs WHERE turn = 0) AS o "
    "WHERE o.id = diptych_jobs.id"
)

STEPS: Mapping[int, UpgradeStep] = {2: UpgradeStep("queued jobs have got their turns", _turns)}
"""The steps, by the version that they lead to."""
