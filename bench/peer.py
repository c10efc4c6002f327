"""The peer: the same API as a competent Python user would write it by hand today.

Strawberry and FastAPI over SQLAlchemy 2 (aiosqlite or asyncpg), with data loaders, so there is no N+1: Q2 is
four statements, Q3 two. What one would do for speed is done: only the wanted columns are selected and no ORM
objects made, no transaction is opened for a read, parsed and validated documents are cached, connections are
kept, uvloop and httptools serve. It checks no token; the viewer is a constant, as on the floor.

    python -m bench.peer --database sqlite:///… --port 8002 --viewer <user id>
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
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy import (
    ColumnElement,
    Dialect,
    Integer,
    Row,
    Select,
    Text,
    TypeDecorator,
    event,
    func,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Mapped, mapped_column
from strawberry.dataloader import DataLoader
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.fastapi import BaseContext, GraphQLRouter
from strawberry.types import Info

from bench.store import SQLITE_PRAGMAS, Store, store_of_url

Statement = Select[*tuple[Any, ...]]
Found = Row[*tuple[Any, ...]]

# Connections, all held: beyond its size the pool would open and close one for each statement.
POOL = 8

# --- tables ---------------------------------------------------------------------------------------

Id = Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


class Moment(TypeDecorator[str]):
    """RFC 3339 with six digits: SQLite stores it so, PostgreSQL has a timestamp."""

    impl = Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """What the database gave, as text."""
        if isinstance(value, datetime):
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return None if value is None else str(value)


class Money(TypeDecorator[str]):
    """A decimal with two digits: SQLite stores a scaled integer."""

    impl = Integer().with_variant(postgresql.NUMERIC(12, 2), "postgresql")
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """What the database gave, as text."""
        return str(value) if isinstance(value, Decimal) else f"{value // 100}.{value % 100:02}"


class Table(DeclarativeBase):
    """What all tables have."""

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    version: Mapped[int]
    created_at: Mapped[str] = mapped_column(Moment)
    updated_at: Mapped[str] = mapped_column(Moment)


class UserRow(Table):
    """users"""

    __tablename__ = "users"
    name: Mapped[str]
    email: Mapped[str]


class PostRow(Table):
    """posts"""

    __tablename__ = "posts"
    author_id: Mapped[str] = mapped_column(Id)
    title: Mapped[str]
    body: Mapped[str]
    published: Mapped[bool]


class CommentRow(Table):
    """comments"""

    __tablename__ = "comments"
    post_id: Mapped[str] = mapped_column(Id)
    author_id: Mapped[str] = mapped_column(Id)
    body: Mapped[str]


class OrderRow(Table):
    """orders"""

    __tablename__ = "orders"
    customer_id: Mapped[str] = mapped_column(Id)
    status: Mapped[str]
    total: Mapped[str] = mapped_column(Money)
    currency: Mapped[str]
    note: Mapped[str | None]
    internal_note: Mapped[str | None]


def engine_of(store: Store) -> AsyncEngine:
    """Autocommit, because a lone read needs no transaction around it."""
    if store.kind == "postgres":
        url = store.url.replace("postgresql://", "postgresql+asyncpg://", 1)
        settings = {"server_settings": {"jit": "off"}}
        return create_async_engine(
            url, isolation_level="AUTOCOMMIT", pool_size=POOL, max_overflow=0, connect_args=settings
        )
    url = store.url.replace("sqlite:///", "sqlite+aiosqlite:///", 1)
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT", pool_size=POOL, max_overflow=0)

    @event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:
        for pragma in SQLITE_PRAGMAS:
            connection.execute(pragma)

    return engine


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

    def __init__(self, engine: AsyncEngine, viewer: str) -> None:
        super().__init__()
        self.engine, self.viewer = engine, viewer
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


# --- GraphQL --------------------------------------------------------------------------------------

Asked = Info[Context, None]


@strawberry.type
class Comment:
    """A comment."""

    id: strawberry.ID
    body: str
    author_id: strawberry.Private[str]

    @strawberry.field
    async def author(self, info: Asked) -> User | None:
        """Who wrote it."""
        return await info.context.users.load(self.author_id)


@strawberry.type
class Post:
    """A post."""

    id: strawberry.ID
    title: str
    author_id: strawberry.Private[str]

    @strawberry.field
    async def author(self, info: Asked) -> User | None:
        """Who wrote it."""
        return await info.context.users.load(self.author_id)

    @strawberry.field
    async def comments(self, info: Asked, first: int = 20) -> list[Comment]:
        """What others said."""
        return await info.context.comments.load(Children(self.id, first))


@strawberry.type
class User:
    """A user."""

    id: strawberry.ID
    name: str
    email: str | None

    @strawberry.field
    async def posts(self, info: Asked, first: int = 20) -> list[Post]:
        """What the user wrote."""
        return await info.context.posts.load(Children(self.id, first))


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
    async def user(self, info: Asked, id: strawberry.ID) -> User | None:
        """One user."""
        return await info.context.users.load(id)

    @strawberry.field
    async def posts(self, info: Asked, first: int = 20, after: str | None = None) -> list[Post]:
        """Posts in the order of their making."""
        context = info.context
        statement = select(PostRow.id, PostRow.title, PostRow.author_id).where(visible(context.viewer))
        if after is not None:
            statement = statement.where(PostRow.id > after)
        return [post_of(row) for row in await context.rows(statement.order_by(PostRow.id).limit(first))]


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


def context_of(request: Request) -> Context:
    """A new context for a request."""
    return Context(request.app.state.engine, request.app.state.viewer)


def app_of(store: Store, viewer: str) -> FastAPI:
    """The whole application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await app.state.engine.dispose()

    app = FastAPI(lifespan=lifespan)
    app.state.engine, app.state.viewer = engine_of(store), viewer
    schema = strawberry.Schema(Root, extensions=[ParserCache, ValidationCache])
    app.include_router(Router(schema, context_getter=context_of, graphql_ide=None), prefix="/graphql")
    app.get("/users/{user_id}")(get_user)
    app.get("/orders")(get_orders)
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
