"""The transaction in which an action or a query runs, and its operations on rows.

    author = await tx.get(Author, author_id)
    post = await tx.save(Post(title="x", body="y", author=author))
    drafts = await tx.select(Post, where={"published": {"eq": False}}, order="-createdAt")

The rules of the viewer apply to every operation, as to a request of theirs; `tx.trusted` is the same transaction
without these rules. An exception that leaves the function rolls the transaction back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import Viewer

R = TypeVar("R", bound=Resource)


class Tx(ABC):
    """One transaction, on behalf of one viewer."""

    @property
    @abstractmethod
    def viewer(self) -> Viewer:
        """The viewer on whose behalf the transaction runs."""

    @property
    @abstractmethod
    def trusted(self) -> Tx:
        """The same transaction without the rules of the viewer."""

    @abstractmethod
    async def get(self, cls: type[R], id: str | int) -> R | None:
        """The row with this id; None if it does not exist or the viewer may not read it."""

    @abstractmethod
    async def select(
        self, cls: type[R], *, where: Mapping[str, Any] | None = None, order: str | Sequence[str] = (), first: int = 100
    ) -> list[R]:
        """The first rows that match `where` (a filter as in GraphQL), in `order` (as in `sort`: "-createdAt")."""

    @abstractmethod
    async def save(self, row: R) -> R:
        """Create a new row, or update a loaded one with its assigned fields. Returns it as stored."""

    @abstractmethod
    async def delete(self, row: Resource) -> None:
        """Delete the row."""

    @abstractmethod
    def webhook_secret(self, row: Resource) -> str:
        """The secret of a webhook that is a row (`WebhookResource`)."""

    @abstractmethod
    async def cancel_job(self, row: R) -> R:
        """Cancel a job that has not ended (`JobResource`), and return it."""

    @abstractmethod
    async def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one SQL statement without rules. Values are `$1`, `$2`, … on both databases."""
