"""The GraphQL schemas of roles, and answers to introspection: what takes long does not stop the event loop.

    schema = schemas.get(signature)       raises Unmade if it takes long to make
    await schemas.make(unmade)            makes it; then the request is recognised again

The schema of 300 resources of 50 fields takes two seconds, and an answer that describes all of it as long. They are
made in a thread, one at a time, for all who ask, and are kept if the request is given up meanwhile. Their time is
charged to the caller who asked first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Any

from graphql import GraphQLSchema, validate_schema

from diptych.api.graphql.introspection import Answer
from diptych.engine.read import Engine
from diptych.lru import LRUCache, footprint
from diptych.model.signature import Signature
from diptych.model.view import View

_SCHEMAS, _SCHEMA_BYTES, _SCHEMA_FACTOR = 64, 64 << 20, 8
_ANSWERS, _ANSWER_BYTES = 16, 32 << 20
_LARGE = 256 << 10
"""Bytes of a view from which its schema, and what describes it, are large: some ten milliseconds."""
Build = Callable[[View], GraphQLSchema]


class Unmade(Exception):
    """Raised where a request needs the schema of a role that is not built yet, which takes long."""

    def __init__(
        self,
        key: Hashable,
        cache: LRUCache[Any],
        work: Callable[[], Any],
        size: Callable[[Any], int],
    ) -> None:
        super().__init__()
        self.key = key
        self.cache = cache
        self.work = work
        self.size = size


class RoleSchemas:
    """The schemas of one service, and its answers to introspection."""

    def __init__(self, engine: Engine, build: Build) -> None:
        self._engine = engine
        self._build = build
        self._schemas: LRUCache[GraphQLSchema] = LRUCache("schemas of roles", _SCHEMAS, _SCHEMA_BYTES, keeps_one=True)
        self._answers: LRUCache[Answer] = LRUCache("introspection", _ANSWERS, _ANSWER_BYTES, keeps_one=True)
        self.made = 0
        """How many were made in a thread."""
        self._making = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, signature: Signature) -> GraphQLSchema:
        """The schema of a role, from an LRU cache."""
        schema = self._schemas.get(signature)
        if schema is None:
            view = self._engine.model.view(signature)
            size = _SCHEMA_FACTOR * view.size
            if view.size > _LARGE:
                raise Unmade(signature, self._schemas, lambda: self._build_whole(view), lambda _: size)
            schema = self._build(view)
            self._schemas.put(signature, schema, size)
        return schema

    def answer(self, key: Hashable, view: View, describe: Callable[[], Answer]) -> Answer:
        """The answer to an introspection, which `describe` makes."""
        if view.size <= _LARGE:
            return describe()
        found = self._answers.get(key)
        if found is None:
            raise Unmade(key, self._answers, describe, lambda made: footprint((key, made)))
        return found

    async def make(self, unmade: Unmade) -> None:
        """Make it, and keep it, unless someone else has meanwhile."""
        task = asyncio.create_task(self._make(unmade))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)  # a request that is given up does not end it

    async def _make(self, unmade: Unmade) -> None:
        def timed() -> tuple[Any, float]:
            begun = time.thread_time()
            return unmade.work(), time.thread_time() - begun

        async with self._making:
            if unmade.cache.get(unmade.key) is None:
                made, seconds = await asyncio.to_thread(timed)
                self._engine.planning_budget.charge(seconds)
                unmade.cache.put(unmade.key, made, unmade.size(made))
                self.made += 1

    def _build_whole(self, view: View) -> GraphQLSchema:
        schema = self._build(view)
        validate_schema(schema)  # graphql-core does so once, when it validates the first document
        return schema
