"""A Deprecation: a part of the API that clients should stop using, since when, and until when it is there."""

from __future__ import annotations

from datetime import date

from msgspec import Struct


class Deprecation(Struct, frozen=True):
    """Why a part of the API is deprecated, since which day, from which day on it may be gone, and a page about it."""

    reason: str
    since: date
    sunset: date | None = None
    link: str = ""

    @property
    def words(self) -> str:
        """The reason with its days, as documents show it: `Use headline. (Since 2026-01-01, sunset 2026-12-31)`."""
        until = "" if self.sunset is None else f", sunset {self.sunset}"
        return f"{self.reason} (Since {self.since}{until})"


class Deprecated(Struct, frozen=True):
    """A part of the API that is deprecated, by its name in the model: `Post`, `Post.title`, `Post.publish.note`."""

    name: str
    deprecation: Deprecation
