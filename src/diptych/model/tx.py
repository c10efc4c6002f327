"""The transaction in which an action or a query runs: all that it can do with rows.

    author = await tx.get(Author, author_id)
    post = await tx.save(Post(title="x", body="y", author=author))
    drafts = await tx.select(Post, where={"published": {"eq": False}}, order="-createdAt")

Everything is held against the rules of whoever asks, as a request of theirs would be; `tx.trusted` is the same
transaction without these rules. What is raised out of the function takes back all that it wrote.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from diptych.model.resource import Resource
from diptych.model.roles import Viewer

R = TypeVar("R", bound=Resource)


class Tx(ABC):
    """One transaction, on behalf of one viewer."""

    @property
    @abstractmethod
    def viewer(self) -> Viewer:
        """Whoever asks."""

    @property
    @abstractmethod
    def trusted(self) -> Tx:
        """The same transaction without the rules of the viewer."""

    @abstractmethod
    async def get(self, cls: type[R], id: str | int) -> R | None:
        """The row with this id; None if there is none, or none that the viewer may read."""

    @abstractmethod
    async def select(
        self,
        cls: type[R],
        *,
        where: Mapping[str, Any] | None = None,
        order: str | Sequence[str] = (),
        first: int = 100,
    ) -> list[R]:
        """The first rows for which `where` holds, a tree as in GraphQL; `order` is as in `sort`: "-createdAt"."""

    @abstractmethod
    async def save(self, row: R) -> R:
        """Create a new row, or write what was assigned to a loaded one. It comes back as the database has it."""

    @abstractmethod
    async def delete(self, row: Resource) -> None:
        """Delete the row."""

    @abstractmethod
    async def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement of SQL as it stands, with placeholders as the database has them (`?` or `$1`)."""
