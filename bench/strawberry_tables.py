"""The tables of the Strawberry peer, by SQLAlchemy's ORM, and the engines that reach them.

A value of the API has the form that it has on the wire, text; what each store makes of it is a type here:

    Money()      SQLite an integer, scaled by 100      PostgreSQL a decimal
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Dialect, Integer, Text, TypeDecorator, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bench.store import SQLITE_PRAGMAS, Store

# Connections, all held: beyond its size the pool would open and close one for each statement.
POOL = 8

Id = Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


class Moment(TypeDecorator[str]):
    """RFC 3339 with six digits: SQLite stores it so, PostgreSQL has a timestamp."""

    impl = Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """The text as the database takes it."""
        return datetime.fromisoformat(value) if value and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """What the database gave, as text."""
        if isinstance(value, datetime):
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return None if value is None else str(value)


class Money(TypeDecorator[str]):
    """A decimal with two digits: SQLite stores a scaled integer."""

    impl = Integer().with_variant(postgresql.NUMERIC(12, 2), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """The text as the database takes it."""
        amount = Decimal(value or 0)
        return amount if dialect.name == "postgresql" else int(amount.scaleb(2))

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


def readers(store: Store) -> AsyncEngine:
    """Autocommit, because a lone read needs no transaction around it."""
    return _engine(store, POOL, isolation_level="AUTOCOMMIT")


def writers(store: Store) -> async_sessionmaker[AsyncSession]:
    """Sessions with a transaction. Only one can write to SQLite: more would wait for its lock, and try again."""
    engine = _engine(store, 1 if store.kind == "sqlite" else POOL)
    return async_sessionmaker(engine, expire_on_commit=False)


def _engine(store: Store, size: int, **settings: Any) -> AsyncEngine:
    settings |= {"pool_size": size, "max_overflow": 0}
    if store.kind == "postgres":
        url = store.url.replace("postgresql://", "postgresql+asyncpg://", 1)
        return create_async_engine(url, connect_args={"server_settings": {"jit": "off"}}, **settings)
    engine = create_async_engine(store.url.replace("sqlite:///", "sqlite+aiosqlite:///", 1), **settings)

    @event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:
        for pragma in SQLITE_PRAGMAS:
            connection.execute(pragma)

    return engine
