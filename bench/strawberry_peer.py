"""A peer: the same API as a competent Python user would write it by hand today.

Strawberry and FastAPI over SQLAlchemy 2 (aiosqlite or asyncpg), with data loaders, so there is no N+1: Q2 is
four statements, Q3 two. What one would do for speed is done: only the wanted columns are selected and no ORM
objects made for a read, which opens no transaction either, parsed and validated documents are cached,
connections are kept, uvloop and httptools serve. A write is an ORM object in a session, as one writes it. It
checks no token; the viewer is a constant, as on the floor.

    python -m bench.strawberry_peer --database sqlite:///… --port 8002 --viewer <user id>
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
import strawberry
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.orm import InstrumentedAttribute
from strawberry.dataloader import DataLoader
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.fastapi import BaseContext, GraphQLRouter
from strawberry.types import Info
from uuid_utils import uuid7

from bench.store import Store, store_of_url
from bench.strawberry_tables import CommentRow, OrderRow, PostRow, UserRow, readers, writers

Statement = Select[*tuple[Any, ...]]
Found = Row[*tuple[Any, ...]]
Sessions = async_sessionmaker[AsyncSession]


def visible(viewer: str) -> ColumnElement[bool]:
    """The rule of posts."""
    return or_(PostRow.published, PostRow.author_id == viewer)


# --- loaders --------------------------------------------------------------------------------------


class Children(NamedTuple):
    """The key of a list: whose, and how many."""

    parent: str
    first: int


class Context(BaseContext):
    """What a request holds: its viewer, its database, its loaders."""

    def __init__(self, engine: AsyncEngine, sessions: Sessions, viewer: str) -> None:
        super().__init__()
        self.engine, self.sessions, self.viewer = engine, sessions, viewer
        self.users = DataLoader(self._users)
        self.posts = DataLoader(self._posts)
        self.comments = DataLoader(self._comments)

    async def rows(self, statement: Statement) -> Sequence[Found]:
        """Runs a read."""
        async with self.engine.connect() as connection:
            return (await connection.execute(statement)).all()

    async def _users(self, keys: list[str]) -> list[User | None]:
        rows = await self.rows(select(UserRow.id, UserRow.name, UserRow.email).where(UserRow.id.in_(keys)))
        found = {row.id: user_of(row, self.viewer) for row in rows}
        return [found.get(key) for key in keys]

    async def _posts(self, keys: list[Children]) -> list[list[Post]]:
        columns = (PostRow.id, PostRow.title, PostRow.author_id)
        grouped = await self._grouped(select(*columns).where(visible(self.viewer)), PostRow.author_id, keys)
        return [[post_of(row) for row in grouped[key.parent][: key.first]] for key in keys]

    async def _comments(self, keys: list[Children]) -> list[list[Comment]]:
        columns = (CommentRow.id, CommentRow.body, CommentRow.author_id, CommentRow.post_id)
        grouped = await self._grouped(select(*columns), CommentRow.post_id, keys)
        return [[comment_of(row) for row in grouped[key.parent][: key.first]] for key in keys]

    async def _grouped(
        self, statement: Statement, parent: InstrumentedAttribute[str], keys: list[Children]
    ) -> dict[str, list[Found]]:
        """The first rows of every parent in one statement, by a window."""
        row_id = parent.class_.id
        place = func.row_number().over(partition_by=parent, order_by=row_id).label("place")
        inner = statement.add_columns(place).where(parent.in_([key.parent for key in keys])).subquery()
        most = max(key.first for key in keys)
        grouped: dict[str, list[Found]] = defaultdict(list)
        for row in await self.rows(select(inner).where(inner.c.place <= most).order_by(inner.c.id)):
            grouped[getattr(row, parent.key)].append(row)
        return grouped


# --- writing --------------------------------------------------------------------------------------


class NoCustomer(Exception):
    """An order for no one."""


async def add_order(sessions: Sessions, customer_id: str, total: Decimal, currency: str, note: str | None) -> OrderRow:
    """A new order, committed."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    order = OrderRow(
        id=str(uuid7()),
        version=1,
        created_at=now,
        updated_at=now,
        status="pending",
        internal_note=None,
        customer_id=customer_id,
        total=f"{total:.2f}",
        currency=currency,
        note=note,
    )
    async with sessions() as session:
        session.add(order)
        try:
            await session.commit()  # which flushes
        except IntegrityError as error:
            raise NoCustomer("There is no such customer.") from error
    return order


# --- GraphQL --------------------------------------------------------------------------------------

RequestMeasures = Info[Context, None]


@strawberry.type
class Comment:
    """A comment."""

    id: strawberry.ID
    body: str
    author_id: strawberry.Private[str]

    @strawberry.field
    async def author(self, info: RequestMeasures) -> User | None:
        """Who wrote it."""
        return await info.context.users.load(self.author_id)


@strawberry.type
class Post:
    """A post."""

    id: strawberry.ID
    title: str
    author_id: strawberry.Private[str]

    @strawberry.field
    async def author(self, info: RequestMeasures) -> User | None:
        """Who wrote it."""
        return await info.context.users.load(self.author_id)

    @strawberry.field
    async def comments(self, info: RequestMeasures, first: int = 20) -> list[Comment]:
        """What others said."""
        return await info.context.comments.load(Children(self.id, first))


@strawberry.type
class User:
    """A user."""

    id: strawberry.ID
    name: str
    email: str | None

    @strawberry.field
    async def posts(self, info: RequestMeasures, first: int = 20) -> list[Post]:
        """What the user wrote."""
        return await info.context.posts.load(Children(self.id, first))


@strawberry.type
class Order:
    """An order."""

    id: strawberry.ID
    status: str
    total: Decimal
    currency: str
    customer_id: strawberry.Private[str]

    @strawberry.field
    async def customer(self, info: RequestMeasures) -> User | None:
        """Who ordered."""
        return await info.context.users.load(self.customer_id)


@strawberry.input
class OrderCreate:
    """What a new order takes."""

    customer_id: strawberry.ID
    total: Decimal
    currency: str = "EUR"
    note: str | None = None


def user_of(row: Found, viewer: str) -> User:
    """A user, with its email only for itself."""
    return User(id=row.id, name=row.name, email=row.email if row.id == viewer else None)


def post_of(row: Found) -> Post:
    """A post."""
    return Post(id=row.id, title=row.title, author_id=row.author_id)


def comment_of(row: Found) -> Comment:
    """A comment."""
    return Comment(id=row.id, body=row.body, author_id=row.author_id)


@strawberry.type(name="Query")
class Root:
    """Where a query begins."""

    @strawberry.field
    async def user(self, info: RequestMeasures, id: strawberry.ID) -> User | None:
        """One user."""
        return await info.context.users.load(id)

    @strawberry.field
    async def posts(self, info: RequestMeasures, first: int = 20, after: str | None = None) -> list[Post]:
        """Posts in the order of their making."""
        context = info.context
        statement = select(PostRow.id, PostRow.title, PostRow.author_id).where(visible(context.viewer))
        if after is not None:
            statement = statement.where(PostRow.id > after)
        return [post_of(row) for row in await context.rows(statement.order_by(PostRow.id).limit(first))]


@strawberry.type(name="Mutation")
class Changes:
    """Where a mutation begins."""

    @strawberry.mutation
    async def create_order(self, info: RequestMeasures, input: OrderCreate) -> Order:
        """A new order."""
        made = await add_order(info.context.sessions, input.customer_id, input.total, input.currency, input.note)
        return Order(
            id=strawberry.ID(made.id),
            status=made.status,
            total=Decimal(made.total),
            currency=made.currency,
            customer_id=made.customer_id,
        )


class Router(GraphQLRouter[Context, None]):
    """The endpoint, with a fast JSON encoder."""

    def encode_json(self, data: object) -> bytes:
        """By msgspec instead of the standard library."""
        return msgspec.json.encode(data)


# --- REST -----------------------------------------------------------------------------------------


class Resource(BaseModel):
    """What all resources have; camelCase on the wire."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)
    id: str
    version: int
    created_at: str
    updated_at: str


class UserOut(Resource):
    """A user."""

    name: str
    email: str | None


class OrderOut(Resource):
    """An order, as staff sees it."""

    customer_id: str
    status: str
    total: str
    currency: str
    note: str | None
    internal_note: str | None


class OrderIn(BaseModel):
    """What a new order takes."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")
    customer_id: str
    total: Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=2)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR"
    note: Annotated[str | None, Field(max_length=500)] = None


class CustomerOut(BaseModel):
    """Who ordered."""

    name: str


class OrderMade(BaseModel):
    """A new order."""

    id: str
    status: str
    total: str
    currency: str
    customer: CustomerOut


Item = TypeVar("Item")


class PageInfo(BaseModel):
    """Where a page stands; a cursor is the id of its row."""

    size: int
    next: str | None
    previous: str | None


class Page(BaseModel, Generic[Item]):
    """A list."""

    data: list[Item]
    page: PageInfo


async def get_user(request: Request, user_id: str) -> UserOut:
    """GET /users/{user_id}"""
    context: Context = context_of(request)
    rows = await context.rows(select(*UserRow.__table__.columns).where(UserRow.id == user_id))
    if not rows:
        raise HTTPException(404)
    user = UserOut.model_validate(rows[0])
    if user.id != context.viewer:
        user.email = None
    return user


async def get_orders(
    request: Request,
    response: Response,
    first: Annotated[int, Query(ge=1, le=100)] = 20,
    after: str | None = None,
) -> Page[OrderOut]:
    """GET /orders"""
    statement = select(*OrderRow.__table__.columns).order_by(OrderRow.id).limit(first + 1)
    if after is not None:
        statement = statement.where(OrderRow.id > after)
    rows = await context_of(request).rows(statement)
    orders = [OrderOut.model_validate(row) for row in rows[:first]]
    following = orders[-1].id if len(rows) > first else None
    if following:
        response.headers["Link"] = f'</orders?first={first}&after={following}>; rel="next"'
    previous = orders[0].id if orders and after is not None else None
    return Page[OrderOut](data=orders, page=PageInfo(size=first, next=following, previous=previous))


async def post_order(request: Request, response: Response, given: OrderIn) -> OrderMade:
    """POST /orders; which fields it answers is fixed."""
    context = context_of(request)
    try:
        order = await add_order(context.sessions, given.customer_id, given.total, given.currency, given.note)
    except NoCustomer as error:
        raise HTTPException(422, str(error)) from None
    customer = await context.users.load(order.customer_id)
    assert customer is not None
    response.headers["Location"] = f"/orders/{order.id}"
    return OrderMade(
        id=order.id,
        status=order.status,
        total=order.total,
        currency=order.currency,
        customer=CustomerOut(name=customer.name),
    )


def context_of(request: Request) -> Context:
    """A new context for a request."""
    state = request.app.state
    return Context(state.engine, state.sessions, state.viewer)


def app_of(store: Store, viewer: str) -> FastAPI:
    """The whole application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await app.state.engine.dispose()
        await app.state.sessions.kw["bind"].dispose()

    app = FastAPI(lifespan=lifespan)
    app.state.engine, app.state.sessions, app.state.viewer = readers(store), writers(store), viewer
    schema = strawberry.Schema(Root, Changes, extensions=[ParserCache, ValidationCache])
    app.include_router(Router(schema, context_getter=context_of, graphql_ide=None), prefix="/graphql")
    app.get("/users/{user_id}")(get_user)
    app.get("/orders")(get_orders)
    app.post("/orders", status_code=201)(post_order)
    return app


def main() -> None:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(description="the peer: Strawberry, FastAPI, SQLAlchemy")
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewer", required=True)
    arguments = parser.parse_args()
    uvicorn.run(
        app_of(store_of_url(arguments.database), arguments.viewer),
        host="127.0.0.1",
        port=arguments.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
