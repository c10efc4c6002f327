"""A peer: Ariadne, as its documentation says, over statements by hand (`by_hand.py`).

Its ASGI application on uvicorn, with aiodataloader, so there is no N+1; parsed and validated documents are kept, and
msgspec writes the JSON. It checks no token; the viewer is a constant, as on the floor. GraphQL only.

    python -m bench.ariadne_peer --database sqlite:///… --port 8006 --viewer <user id>
"""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import msgspec
import uvicorn
from aiodataloader import DataLoader
from ariadne import ObjectType, ScalarType, make_executable_schema
from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLHTTPHandler
from graphql import DocumentNode, GraphQLError, GraphQLResolveInfo, GraphQLSchema, parse, validate
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.by_hand import Row, Rows, rows_of
from bench.store import store_of_url

SCHEMA = """
    scalar Decimal
    type Query {
        user(id: ID!): User
        posts(first: Int = 20, after: String): [Post!]!
    }
    type Mutation { createOrder(input: OrderCreate!): Order! }
    type User { id: ID! name: String! email: String posts(first: Int = 20): [Post!]! }
    type Post { id: ID! title: String! author: User comments(first: Int = 20): [Comment!]! }
    type Comment { body: String! author: User }
    type Order { id: ID! status: String! total: Decimal! currency: String! customer: User }
    input OrderCreate { customerId: ID! total: Decimal! currency: String! = "EUR" note: String }
"""
DECIMAL = re.compile(r"\d{1,10}\.\d{2}")
Key = tuple[str, int]
Info = GraphQLResolveInfo[Any]


class Context:
    """What a request holds: its loaders."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.users: DataLoader[str, Row | None] = DataLoader(self._users)
        self.posts: DataLoader[Key, list[Row]] = DataLoader(self._posts)
        self.comments: DataLoader[Key, list[Row]] = DataLoader(self._comments)

    async def _users(self, keys: list[str]) -> list[Row | None]:
        found = await self.rows.users(keys)
        return [found.get(key) for key in keys]

    async def _posts(self, keys: list[Key]) -> list[list[Row]]:
        found = await self.rows.posts_of([key for key, _ in keys], keys[0][1])
        return [found.get(key, []) for key, _ in keys]

    async def _comments(self, keys: list[Key]) -> list[list[Row]]:
        found = await self.rows.comments_of([key for key, _ in keys], keys[0][1])
        return [found.get(key, []) for key, _ in keys]


def decimal_value(value: Any) -> str:
    """Two digits behind the point."""
    if not isinstance(value, str) or not DECIMAL.fullmatch(value):
        raise GraphQLError("This is no decimal.")
    return value


async def one_user(_: Any, info: Info, id: str) -> Row | None:
    """One user."""
    found: Row | None = await info.context.rows.user(id)
    return found


async def page_of_posts(_: Any, info: Info, first: int, after: str | None = None) -> list[Row]:
    """A page of posts."""
    found: list[Row] = await info.context.rows.posts(first, after)
    return found


def posts_of_user(user: Row, info: Info, first: int) -> Any:
    """What the user wrote."""
    return info.context.posts.load((user["id"], first))


def comments_of_post(post: Row, info: Info, first: int) -> Any:
    """What others said."""
    return info.context.comments.load((post["id"], first))


def author(row: Row, info: Info) -> Any:
    """Who wrote it."""
    return info.context.users.load(row["author_id"])


def customer(order: Row, info: Info) -> Any:
    """Who ordered."""
    return info.context.users.load(order["customer_id"])


async def create_order(_: Any, info: Info, input: dict[str, Any]) -> Row:
    """A new order."""
    values = input["customerId"], input["total"], input["currency"], input.get("note")
    made: Row = await info.context.rows.create(*values)
    return made


@lru_cache(maxsize=256)
def _parsed(text: str) -> DocumentNode:
    return parse(text)


def parse_once(_context: Any, data: dict[str, Any]) -> DocumentNode:
    """Documents that were parsed before are kept."""
    return _parsed(data["query"])


class ValidateOnce:
    """Documents that were validated before are kept."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[DocumentNode, list[GraphQLError]]] = {}

    def __call__(
        self,
        schema: GraphQLSchema,
        document_ast: DocumentNode,
        rules: Any = None,
        max_errors: int | None = None,
        type_info: Any = None,
    ) -> list[GraphQLError]:
        found = self.kept.get(id(document_ast))
        if found is None or found[0] is not document_ast:
            errors = validate(schema, document_ast, rules, max_errors)
            found = self.kept[id(document_ast)] = document_ast, errors
        return found[1]


class Handler(GraphQLHTTPHandler):
    """The endpoint, with a fast JSON encoder."""

    async def create_json_response(self, request: Request, result: dict[str, Any], success: bool) -> Response:
        """By msgspec instead of the standard library."""
        return Response(msgspec.json.encode(result), 200 if success else 400, media_type="application/json")


RESOLVERS: dict[str, dict[str, Any]] = {
    "Query": {"user": one_user, "posts": page_of_posts},
    "Mutation": {"createOrder": create_order},
    "User": {"posts": posts_of_user},
    "Post": {"comments": comments_of_post, "author": author},
    "Comment": {"author": author},
    "Order": {"customer": customer},
}


def _type(name: str, fields: dict[str, Any]) -> ObjectType:
    made = ObjectType(name)
    for field, resolver in fields.items():
        made.set_field(field, resolver)
    return made


def app_of(rows: Rows) -> Starlette:
    """The whole application."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await rows.open()
        yield

    def context(_request: Any, _data: Any) -> Any:
        return Context(rows)

    types = [_type(name, fields) for name, fields in RESOLVERS.items()]
    endpoint = GraphQL(
        make_executable_schema(SCHEMA, *types, ScalarType("Decimal", value_parser=decimal_value)),
        context_value=context,
        query_parser=parse_once,
        query_validator=ValidateOnce(),
        explorer=None,
        http_handler=Handler(),
    )
    return Starlette(routes=[Route("/graphql", endpoint.handle_request, methods=["POST"])], lifespan=lifespan)


def main() -> None:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(description="a peer: Ariadne")
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewer", required=True)
    given = parser.parse_args()
    rows = rows_of(store_of_url(given.database), given.viewer)
    uvicorn.run(
        app_of(rows),
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
