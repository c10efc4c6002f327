"""Full-text search of a class.

class Post(Resource):
    title: str
    body: str

    search = Search("title", "body")
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, init=False)
class Search:
    """The text fields that clients search by words: `posts(search: "déjà vu*")`, `GET /posts?search=…`."""

    fields: tuple[str, ...]

    def __init__(self, *fields: str) -> None:
        object.__setattr__(self, "fields", fields)
