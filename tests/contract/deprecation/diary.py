"""A model in which one thing of each kind is deprecated."""

from __future__ import annotations

from diptych import Model
from tests.support.model_files import model_of

SOURCE = """
@deprecated_values(low=deprecated("Use calm.", since="2026-03-01"))
class Mood(StrEnum):
    calm = "calm"
    low = "low"


class Author(Resource):
    name: str
    pages: list[Page] = inverse("author")
    access = (grant("read", "create", "update", "delete"),)


class Page(Resource):
    title: Annotated[
        str, deprecated("Use headline.", since="2026-01-01", sunset="2026-12-31", link="https://example.com/title")
    ] = "-"
    headline: str = "-"
    rank: Annotated[int, deprecated("Count them.", since="2026-02-01", sunset="2027-06-30")] = 0
    mood: Mood = Mood.calm
    author: Annotated[Author | None, deprecated("Pages have no author.", since="2026-04-01")] = None
    notes: list[Note] = inverse("page")
    access = (grant("read", "create", "update", "delete"),)

    @action
    async def turn(
        self, tx: Tx, note: Annotated[str | None, deprecated("Not read.", since="2026-05-01")] = None
    ) -> Page:
        return self

    @action(deprecated=deprecated("Use turn.", since="2026-05-02"))
    async def flip(self, tx: Tx) -> None: ...

    @query
    @classmethod
    async def top(
        cls, tx: Tx, limit: Annotated[int, deprecated("All are shown.", since="2026-05-03")] = 3
    ) -> list[Page]:
        return []


class Note(Resource, deprecated=deprecated("Use Page.", since="2026-06-01", sunset="2026-09-30")):
    text: str = ""
    page: Page | None = None
    access = (grant("read", "create", "update", "delete"),)
"""


def model(source: str = SOURCE) -> Model:
    return model_of(source)
