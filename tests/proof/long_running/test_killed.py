"""What was acknowledged is there, once, whatever was killed meanwhile.

Sixteen writers create and update, and send again whatever was not answered. Meanwhile the service is killed (-9) and
started anew: at random moments, and every other time right when a client hears that its row is there, so that an
answer which came before its commit would be found out. Or, on PostgreSQL, the backends of its connections are ended,
which it must hide.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import asyncpg

from tests.proof.long_running.parts import Mortal, Tally, Writer, audit, http, mortal, tell, token, wire
from tests.support.effort import scaled
from tests.support.running import PATIENCE, NewDatabase, Postgres

WRITERS = 16
KILLS = scaled(50, 1)
ENDED = scaled(1_000, 40)
Disturb = Callable[[Mortal, Tally], Awaitable[None]]


async def write_meanwhile(service: Mortal, disturb: Disturb) -> tuple[list[Writer], Tally]:
    """Let all writers work until the disturbance is over."""
    admin = token(service.database, "--role", "admin")
    connection = await wire(service.port)
    made = await connection.ask(http("POST", "/users", admin, {"name": "Ann", "email": "ann@example.org"}))
    connection.close()
    user = made.json()["id"]
    bearer = token(service.database, "--user", user)
    tally, done = Tally(), asyncio.Event()
    writers = [Writer(f"w{number}", lambda: service.port, bearer, user, tally) for number in range(WRITERS)]
    async with asyncio.TaskGroup() as group:
        for each in writers:
            group.create_task(each.run(done))
        await disturb(service, tally)
        done.set()
    return writers, tally


def report(what: str, kills: str, tally: Tally, lost: int, twice: int, seconds: float) -> None:
    tell(
        f"{what}: {kills} in {seconds:.0f} s; acknowledged {tally.created} creates, {tally.updated} updates and "
        f"{tally.replayed} replays; cut off {tally.cut}, asked to try again {tally.refused}, sent again {tally.retried}; "
        f"lost {lost}, doubled {twice}"
    )


async def kill_often(service: Mortal, tally: Tally, workers: tuple[int, ...]) -> None:
    dice = random.Random(service.database)
    for number in range(KILLS):
        enough = tally.created + dice.randrange(20, scaled(200, 60))
        deadline = time.monotonic() + PATIENCE
        while (now := tally.created) < enough:  # it works again
            assert time.monotonic() < deadline, "the service does not come back"
            await asyncio.sleep(0.005)
        if number % 2:
            await asyncio.sleep(dice.uniform(0, 0.05))
        else:
            tally.on_answer = service.strike
            while tally.created == now:
                await asyncio.sleep(0)
            tally.on_answer = None
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start, "--workers", str(workers[number % len(workers)]))


def survive(database: str, workers: tuple[int, ...]) -> None:
    begun = time.monotonic()
    with mortal(database) as service:
        writers, tally = asyncio.run(write_meanwhile(service, lambda s, t: kill_often(s, t, workers)))
    lost, twice = audit(database, writers)
    what = f"kill -9, {database.partition(':')[0]}, {' or '.join(map(str, workers))} processes"
    report(what, f"{service.starts - 1} kills", tally, lost, twice, time.monotonic() - begun)
    assert (lost, twice) == (0, 0)
    assert service.starts == 1 + KILLS
    assert tally.cut > 0


def test_killing_the_service_loses_nothing_and_doubles_nothing(database: str) -> None:
    survive(database, (1,))


def test_nor_does_killing_several_processes_on_one_file(new_sqlite: NewDatabase) -> None:
    survive(new_sqlite(), (2, 1, 2))


END_ONE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND application_name = 'diptych' ORDER BY random() LIMIT 1"
)


async def end_backends(service: Mortal, tally: Tally) -> None:
    dice = random.Random(7)
    killer = await asyncpg.connect(service.database)
    try:
        ended = 0
        while ended < ENDED:
            await asyncio.sleep(dice.expovariate(1 / 0.03))
            ended += len(await killer.fetch(END_ONE))
    finally:
        await killer.close()


def test_ending_the_backends_loses_nothing_and_is_hardly_noticed(postgres: Postgres) -> None:
    database = postgres.create()
    begun = time.monotonic()
    with mortal(database) as service:
        writers, tally = asyncio.run(write_meanwhile(service, end_backends))
    lost, twice = audit(database, writers)
    report("ended backends, postgresql", f"{ENDED} ended", tally, lost, twice, time.monotonic() - begun)
    assert (lost, twice, tally.cut) == (0, 0, 0)
    assert tally.refused <= ENDED // 20
