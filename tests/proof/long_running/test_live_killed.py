"""Whoever comes back with the last cursor is told every change, in order, once: whatever was killed meanwhile.

Scribes change posts and orders in both styles and by SQL from outside. The service is killed (-9) again and again, and
followers of all kinds come back to it. In the end each must have been told exactly what it should have been by the
feed in the database. On PostgreSQL two nodes are killed in turn, and a follower comes back to either of them.

That a fault would be found is shown by clients and by a service that have one.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from tests.proof.long_running.followers import Follower
from tests.proof.long_running.parts import Mortal, tell, until
from tests.proof.long_running.town import Town, town
from tests.support.effort import LONG, scaled
from tests.support.running import NewDatabase, Postgres

FOLLOWERS = scaled(200, 27)
KILLS = scaled(30, 1)
PERIOD = 2.0 if LONG else 0.5
"""Seconds between a service that is ready and the next kill, at least."""
CHANGES = 20
"""Changes between two kills, at least."""


async def kill_in_turn(place: Town, kills: int, *options: str) -> None:
    """Kill a service, start it anew, let it work, and go on with the next."""
    for number in range(kills):
        await work(place)
        service = place.services[number % len(place.services)]
        workers = [] if number % 2 else _workers(service)
        if len(workers) > 1:
            os.kill(workers[number // 2 % len(workers)], signal.SIGKILL)  # it is replaced by the others' parent
        else:
            await asyncio.to_thread(service.kill)
            await asyncio.to_thread(service.start, *options)
    await work(place)


async def work(place: Town) -> None:
    """Let the service work for a time, and until there are changes to tell of, however busy the machine is."""
    enough = len(place.made.acknowledged) + CHANGES
    await asyncio.sleep(PERIOD)
    await until(lambda: len(place.made.acknowledged) > enough, "nothing is changed")


def _workers(service: Mortal) -> list[int]:
    """The server processes of a service that has several."""
    found = [int(pid) for pid in Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()]
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def hang_up(followers: Sequence[Follower]) -> None:
    """Let all come back again and again to a service that has done nothing to them."""
    for _ in range(8):
        await asyncio.sleep(0.25)
        for each in followers:
            each.hang_up()
    await asyncio.sleep(0.25)


def report(place: Town, followers: Sequence[Follower], what: str, seconds: float, wrong: int) -> None:
    made, changes = place.made, place.changes()
    comings, told = sum(each.connections for each in followers), sum(len(each.told) for each in followers)
    tell(
        f"followed on {place.database.partition(':')[0]}, {what}, in {seconds:.0f} s: {changes} changes "
        f"({len(made.acknowledged)} acknowledged, {made.cut} cut off, {made.outside} transactions from outside); "
        f"{len(followers)} followers came {comings} times and were told {told}; wrong {wrong}"
    )


def survive(place: Town, followers: Sequence[Follower], *options: str) -> list[str]:
    """What is wrong with what the followers were told, after all those kills."""
    begun = time.monotonic()
    asyncio.run(place.live(followers, lambda: kill_in_turn(place, KILLS, *options)))
    seconds, found = time.monotonic() - begun, place.verdicts(followers)
    what = f"{len(place.services)} × {' '.join(options) or '--workers 1'}, {KILLS} kills"
    report(place, followers, what, seconds, len(found))
    assert place.changes() > CHANGES * KILLS
    return found


def test_killing_the_service_loses_nothing_and_doubles_nothing_for_followers(new_sqlite: NewDatabase) -> None:
    """Among them are some who come back wrongly, and are found out: from now on, or from their first cursor again."""
    with town(new_sqlite()) as place:
        followers = place.followers(FOLLOWERS)
        forgetful = place.followers(3, lambda follower: "")
        behind = place.followers(3, lambda follower: follower.cursors[0])
        found = survive(place, [*followers, *forgetful, *behind])
        assert all(each.connections > 1 for each in followers)
        assert place.verdicts(followers) == []
        assert all(re.search(r"lost [1-9]", each) for each in place.verdicts(forgetful))
        assert all(re.search(r"doubled [1-9]", each) for each in place.verdicts(behind))
        assert len(found) == len(forgetful) + len(behind)


def test_nor_does_killing_processes_on_one_file(new_sqlite: NewDatabase) -> None:
    with town(new_sqlite(), "--workers", "2") as place:
        assert survive(place, place.followers(FOLLOWERS), "--workers", "2") == []


def test_nor_does_killing_nodes_of_one_database_in_turn(postgres: Postgres) -> None:
    with town(postgres.create(), services=2) as place:
        assert survive(place, place.followers(FOLLOWERS)) == []


def test_a_service_whose_cursors_are_one_off_is_found_out(new_sqlite: NewDatabase) -> None:
    with town(new_sqlite(), named="tests.proof.long_running.one_off:model") as place:
        followers = place.followers(9)
        asyncio.run(place.live(followers, lambda: hang_up(followers)))
        found = place.verdicts(followers)
    assert found, "one change is lost wherever there is one to go on from"
    assert all(re.search("lost [1-9].*doubled 0", each) for each in found), found
