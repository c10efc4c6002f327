"""python gql_walk.py URL TOKEN: a walk through the scenarios with gql, its DSL included. Prints {step: ok or failed}."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from gql import Client, gql
from gql.dsl import DSLQuery, DSLSchema, dsl_gql
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport

url, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}
found: dict[str, Any] = {}

CREATE = gql("mutation($input: UserCreate!) { createUser(input: $input) { id version name } }")
READ = gql("query($id: ID!) { user(id: $id) { name email } }")
UPDATE = gql(
    "mutation($id: ID!, $patch: UserPatch!, $v: Int) { updateUser(id: $id, patch: $patch, ifVersion: $v) { name } }"
)
WHERE = gql("query($where: UserWhere) { users(where: $where) { id name } }")
IN = gql("query($in: [OrderStatus!]) { orders(where: {status: {in: $in}}) { status } }")
SORT = gql("{ users(first: 5, orderBy: [{name: DESC}]) { name } }")
PAGE = gql("query($a: String) { usersConnection(first: 2, after: $a) { nodes { id } pageInfo { endCursor } } }")
NESTED = gql("{ users(first: 3) { posts(first: 2) { title comments(first: 2) { author { name } } } } }")
CHANGED = gql("subscription($id: ID) { userChanged(id: $id) { kind rowId user { name } } }")


async def step(name: str, work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
        found[name] = "ok"
    except Exception:
        found[name] = {"failed": traceback.format_exc()}


async def main() -> None:  # noqa: C901, a list of steps
    transport = AIOHTTPTransport(f"{url}/graphql", headers=headers)
    async with Client(transport=transport, fetch_schema_from_transport=True) as session:

        async def ask(document: Any, **variables: Any) -> Any:
            document.variable_values = variables
            return await session.execute(document)

        made: dict[str, Any] = {}

        async def create() -> None:
            made.update((await ask(CREATE, input={"name": "gql", "email": "gql@fit.example"}))["createUser"])

        async def read() -> None:
            assert (await ask(READ, id=made["id"]))["user"]["email"] == "gql@fit.example"

        async def update() -> None:
            values = {"id": made["id"], "patch": {"name": "gql 2"}, "v": made["version"]}
            assert (await ask(UPDATE, **values))["updateUser"]["name"] == "gql 2"
            assert await code(ask(UPDATE, **values)) == "PRECONDITION_FAILED"

        async def code(work: Awaitable[Any]) -> str:
            try:
                await work
            except TransportQueryError as error:
                return str((error.errors or [{}])[0]["extensions"]["code"])
            raise AssertionError("nothing was refused")

        async def where() -> None:
            assert len((await ask(WHERE, where={"name": {"startsWith": "gql"}}))["users"]) == 1

        async def among() -> None:
            assert {each["status"] for each in (await ask(IN, **{"in": ["paid"]}))["orders"]} == {"paid"}

        async def sort() -> None:
            names = [each["name"] for each in (await ask(SORT))["users"]]
            assert names == sorted(names, reverse=True)

        async def page() -> None:
            first = (await ask(PAGE))["usersConnection"]
            second = (await ask(PAGE, a=first["pageInfo"]["endCursor"]))["usersConnection"]
            assert len({each["id"] for each in [*first["nodes"], *second["nodes"]]}) == 4

        async def nested() -> None:
            assert any(each["posts"] for each in (await ask(NESTED))["users"])

        async def error() -> None:
            assert await code(ask(CREATE, input={"name": "gql", "email": "gql@fit.example"})) == "CONFLICT"

        async def dsl() -> None:
            assert session.client.schema is not None
            ds = DSLSchema(session.client.schema)
            row = ds.Query.node(id=made["id"]).select(ds.Node.id)
            answer = await session.execute(dsl_gql(DSLQuery(row)))
            assert answer["node"]["id"] == made["id"]

        async def stream() -> None:
            socket = WebsocketsTransport(
                f"{url.replace('http', 'ws')}/graphql", init_payload={"authorization": headers["Authorization"]}
            )

            async def rename() -> None:
                for number in range(20):
                    await asyncio.sleep(0.3)
                    await ask(UPDATE, id=made["id"], patch={"name": f"gql {number}"})

            async with Client(transport=socket) as following:
                renaming = asyncio.create_task(rename())
                CHANGED.variable_values = {"id": made["id"]}
                async for event in following.subscribe(CHANGED):
                    assert event["userChanged"]["rowId"] == made["id"]
                    break
                renaming.cancel()

        steps = {"create": create, "read": read, "update": update, "where": where, "in": among, "sort": sort}
        steps |= {"page": page, "nested": nested, "error": error, "DSL": dsl, "stream": stream}
        for name, work in steps.items():
            await step(name, work)


asyncio.run(main())
print(json.dumps(found))
