"""A peer: REST by hand, FastAPI over asyncpg.

What its documentation says for speed is done: responses are returned as they are, without a model between, bodies are
checked by pydantic, uvloop and httptools serve. It checks no token; the viewer is a constant, as on the floor.
PostgreSQL only.

    python -m bench.fastapi_peer --database postgresql://… --port 8007 --viewer <user id>
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
import uvicorn
from fastapi import FastAPI, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from bench.by_hand import PostgresRows
from bench.store import store_of_url


class OrderIn(BaseModel):
    """What a new order takes."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")
    customer_id: str
    total: Annotated[str, Field(pattern=r"^\d{1,10}\.\d{2}$")]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR"
    note: Annotated[str | None, Field(max_length=500)] = None


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def app_of(rows: PostgresRows) -> FastAPI:
    """The whole application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await rows.open()
        yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/users/{user_id}")
    async def get_user(user_id: str) -> Response:
        user = await rows.full_user(user_id)
        return _json(user) if user else _json({}, 404)

    @app.get("/orders")
    async def get_orders(first: Annotated[int, Query(ge=1, le=100)] = 20, after: str | None = None) -> Response:
        found = await rows.orders(first + 1, after)
        data = found[:first]
        following = data[-1]["id"] if len(found) > first else None
        previous = data[0]["id"] if data and after is not None else None
        headers = {"Link": f'</orders?first={first}&after={following}>; rel="next"'} if following else None
        page = {"size": first, "next": following, "previous": previous}
        return _json({"data": data, "page": page}, headers=headers)

    @app.post("/orders")
    async def post_order(given: OrderIn) -> Response:
        order = await rows.create(given.customer_id, given.total, given.currency, given.note)
        customer = (await rows.users([order.pop("customer_id")])).popitem()[1]
        answer = {**order, "customer": {"name": customer["name"]}}
        return _json(answer, 201, {"Location": f"/orders/{order['id']}"})

    return app


def main() -> None:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(description="a peer: FastAPI over asyncpg")
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewer", required=True)
    given = parser.parse_args()
    uvicorn.run(
        app_of(PostgresRows(store_of_url(given.database), given.viewer)),
        host="127.0.0.1",
        port=given.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
