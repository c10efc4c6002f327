"""No update is ever lost: of all who change the same version of a row, exactly one succeeds.

Every round, all clients send a change of the version that the round has, at once. One is answered 200, all others
412, and the next round has the next version.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

import pytest

from tests.proof.long_running.parts import Answer, Wire, http, mortal, rows, tell, token, wires
from tests.support.effort import scaled

Style = Literal["rest", "graphql", "mixed"]
CLIENTS = scaled(64, 16)
ROUNDS = scaled(2_000, 8)
CHANGE = "mutation($id: ID!, $name: String, $v: Int) { updateUser(id: $id, patch: {name: $name}, ifVersion: $v) { name version } }"


def change(style: Style, bearer: str, user: str, version: int, client: int) -> bytes:
    """A change of one version, in one of the styles."""
    name = f"{version}-{client}"
    if style == "rest" or (style == "mixed" and client % 2):
        return http("PATCH", f"/users/{user}", bearer, {"name": name}, f'If-Match: "{version}.x"')
    variables = {"id": user, "name": name, "v": version}
    return http("POST", "/graphql", bearer, {"query": CHANGE, "variables": variables})


def outcome(answer: Answer) -> Any:
    """The row, or the code of what refused it."""
    found = answer.json()
    if answer.status == 200 and found.get("data"):
        return found["data"]["updateUser"]
    return found if answer.status == 200 and "errors" not in found else answer.code


async def play(port: int, bearer: str, user: str, style: Style) -> None:
    clients = await wires(port, CLIENTS)
    for version in range(1, ROUNDS + 1):
        answers = await asyncio.gather(*(ask(each, style, bearer, user, version, n) for n, each in enumerate(clients)))
        winners = [(n, found) for n, found in enumerate(answers) if isinstance(found, dict)]
        refused = [found for found in answers if not isinstance(found, dict)]
        assert len(winners) == 1, f"round {version}: {answers}"
        assert refused == ["PRECONDITION_FAILED"] * (CLIENTS - 1), f"round {version}: {set(refused)}"
        ((client, row),) = winners
        assert (row["version"], row["name"]) == (version + 1, f"{version}-{client}")
    for each in clients:
        each.close()


async def ask(client: Wire, style: Style, bearer: str, user: str, version: int, number: int) -> Any:
    return outcome(await client.ask(change(style, bearer, user, version, number)))


@pytest.mark.parametrize("style", ["rest", "graphql", "mixed"])
def test_of_all_who_change_a_version_exactly_one_succeeds(database: str, style: Style) -> None:
    with mortal(database) as service:
        bearer = token(database, "--role", "admin")

        async def work() -> float:
            (first,) = await wires(service.port, 1)
            made = await first.ask(http("POST", "/users", bearer, {"name": "Ann", "email": "ann@example.org"}))
            first.close()
            begun = time.perf_counter()
            await play(service.port, bearer, made.json()["id"], style)
            return time.perf_counter() - begun

        seconds = asyncio.run(work())
    assert rows(database, "SELECT version FROM users") == [(1 + ROUNDS,)]
    tell(
        f"If-Match, {style} on {database.partition(':')[0]}: {ROUNDS} rounds of {CLIENTS} clients in {seconds:.1f} s, "
        f"one winner in each; {ROUNDS * CLIENTS / seconds:.0f} requests/s"
    )
