"""A nested write and a batch are all or nothing, whenever the service is killed (-9).

Eight clients create users with orders, by nested writes in both styles and by batches, until the service was killed
often enough. Then each user that is there has all its orders, and each that was acknowledged is there.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.proof.long_running.parts import Mortal, http, mortal, rows, tell, token, wire
from tests.support.effort import scaled

CLIENTS = 8
KILLS = scaled(50, 1)
ORDERS = 12


class Client:
    """Creates users with orders; what breaks off is not sent again. It remembers what was acknowledged."""

    def __init__(self, name: str, service: Mortal, bearer: str) -> None:
        self.name = name
        self.service = service
        self.bearer = bearer
        self.acknowledged: set[str] = set()
        self.sent = 0

    async def run(self, done: asyncio.Event) -> None:
        while not done.is_set():
            try:
                connection = await wire(self.service.port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            try:
                while not done.is_set():
                    self.sent += 1
                    email = f"{self.name}-{self.sent}@example.org"
                    answer = await asyncio.wait_for(connection.ask(self._request(email)), 30)
                    if answer.status in (200, 201) and b'"errors"' not in answer.body:
                        self.acknowledged.add(email)
            except (OSError, EOFError, TimeoutError, AssertionError):
                pass
            finally:
                connection.close()

    def _request(self, email: str) -> bytes:
        user: dict[str, Any] = {"name": "a", "email": email}
        orders = [{"total": f"{number}"} for number in range(ORDERS)]
        nested = {**user, "orders": {"create": orders}}
        match self.sent % 3:
            case 0:
                return http("POST", "/users?fields=id", self.bearer, nested)
            case 1:
                query = "mutation($u: UserCreate!) { createUser(input: $u) { id } }"
                return http("POST", "/graphql", self.bearer, {"query": query, "variables": {"u": nested}})
        requests = [{"id": "u", "method": "POST", "url": "/users", "body": user}]
        requests += [{"method": "POST", "url": "/orders", "body": {**order, "customerId": "$u"}} for order in orders]
        return http("POST", "/batch", self.bearer, {"requests": requests})


async def kill_meanwhile(service: Mortal) -> list[Client]:
    bearer = token(service.database, "--role", "admin")
    clients = [Client(f"c{number}", service, bearer) for number in range(CLIENTS)]
    dice, done = random.Random(service.database), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(done))
        for _ in range(KILLS):
            enough = sum(len(client.acknowledged) for client in clients) + dice.randrange(5, 30)
            while sum(len(client.acknowledged) for client in clients) < enough:
                await asyncio.sleep(0.005)
            await asyncio.sleep(dice.uniform(0, 0.03))
            await asyncio.to_thread(service.kill)
            await asyncio.to_thread(service.start)
        done.set()
    return clients


def test_a_nested_write_is_there_whole_or_not_at_all(database: str) -> None:
    with mortal(database) as service:
        clients = asyncio.run(kill_meanwhile(service))
        assert service.starts == KILLS + 1
    count = (
        "SELECT u.email, count(o.id) FROM users u LEFT JOIN orders o ON o.customer_id = u.id "
        "WHERE u.email LIKE 'c%' GROUP BY u.email"
    )
    found = dict(rows(database, count))
    halves = {email: orders for email, orders in found.items() if orders != ORDERS}
    acknowledged = set[str]().union(*(client.acknowledged for client in clients))
    lost = acknowledged - found.keys()
    sent = sum(client.sent for client in clients)
    tell(
        f"nests and batches, {database.partition(':')[0]}: {KILLS} kills, {sent} sent, {len(acknowledged)} acknowledged, "
        f"{len(found)} there; {len(halves)} in part, {len(lost)} lost"
    )
    assert not halves and not lost
    assert len(acknowledged) >= KILLS * 5
