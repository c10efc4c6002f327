"""What a model says of the audit of a resource."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class AuditDef(Struct, frozen=True):
    """What is recorded of the changes of a resource besides its rows, and who may see it."""

    reason: Literal["", "optional", "required"] = ""
    history: bool = False
    """Can the versions of a row be read?"""
    readers: tuple[str, ...] | None = None
    """The roles that may read them; None is everyone who may read the row."""
    actors: tuple[str, ...] = ()
    """The roles that see who made a version."""
    masked: tuple[str, ...] = ()
    """The columns whose values are not stored."""

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles that it names."""
        return (*(self.readers or ()), *self.actors)
