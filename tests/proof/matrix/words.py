"""The words of an answer, and those that a service says of its own, whatever its model is.

Descriptions do not count: whoever sees what they describe may read them, whatever words they use.
"""

from __future__ import annotations

import asyncio
import functools
import re

from graphql import get_introspection_query

from diptych import Model, Resource, grant
from tests.support.in_process import encoded, in_process

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DESCRIPTION = re.compile(r'"(?:description|summary)":\s*"(?:[^"\\]|\\.)*"|"""(?:.|\n)*?"""')


def words(text: str) -> set[str]:
    """The words of a text, without its descriptions."""
    return set(_WORD.findall(_DESCRIPTION.sub("", text)))


class Word(Resource):
    """The smallest resource there is."""

    access = (grant("read", "create", "update", "delete"),)


@functools.cache
def own_words() -> frozenset[str]:
    """What a service says of the smallest model there is: the words of its documents, headers and errors."""
    with asyncio.Runner() as runner, in_process(Model(Word), "sqlite:///:memory:", runner) as service:
        answers = [
            service.query(get_introspection_query()),
            service.query("{ words { zz } }"),
            service.get("/openapi.json"),
            service.get("/words?first=1"),
            service.get("/words?" + encoded(where={"zz": 1})),
        ]
    texts = [f"{answer.body.decode()} {dict(answer.headers)}" for answer in answers]
    return frozenset().union(*map(words, texts))
