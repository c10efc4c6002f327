"""Two databases with one model that look the same to one viewer, filled anew again and again."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple, TypeVar

import pytest

from diptych.api import ask_builder as draft
from diptych.api.reply import Header, Reply
from diptych.compile import getters
from diptych.model.model import Model
from tests.proof.interference.dealing import Deal
from tests.support.proof_writes import Clock, Run, untimed
from tests.support.random_writes import Names

SECRET = b"one secret, so that equal cursors are equal"
_TAG = re.compile(r'"etag":"(?:\\.|[^"\\])*"')
"""The tag of a response of a batch."""
_FAILED = re.compile(rb'"code":"(INTERNAL|TIMEOUT|UNAVAILABLE)"')


class Leak(AssertionError):
    """Two answers differ, though what their viewer may see is the same."""


class RequestMeasures(NamedTuple):
    """A request."""

    method: str
    url: str
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.url} {self.body.decode()}"


class Pairs(ABC):
    """Sends the same to two databases, and counts how often they were held against each other."""

    def __init__(self, model: Model, urls: Sequence[str], runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.clock = Clock()
        self.ids = 0
        empty: dict[str, list[Any]] = {name: [] for name in model.resources}
        self.runs = [Run(model, url, empty, runner) for url in urls]
        for run in self.runs:
            run.handler.engine.secret = SECRET
        self.seen: Counter[str] = Counter()
        """How many pairs there were ("pairs"), and of which kinds."""
        self.deals = 0
        self.altered = 0
        """In how many values and rows the databases differed, over all deals."""

    @property
    def pairs(self) -> int:
        return self.seen["pairs"]

    def close(self) -> None:
        for run in self.runs:
            self.runner.run(run.stop())

    def prove(self, pairs: int, seed: str = "") -> None:
        """So many more pairs have equal answers. Every few pairs, both databases are filled and altered afresh."""
        end = self.pairs + pairs
        while self.pairs < end:
            self.deals += 1
            random = Random(f"{seed} {self.deals}")
            self.runner.run(self._fill_and_send(self.deal(random), random, end))

    async def _fill_and_send(self, dealt: Deal, random: Random, end: int) -> None:
        self.altered += dealt.cells + dealt.twins
        for run, rows in zip(self.runs, dealt.both, strict=True):
            run.names = Names()
            await run.refill(rows)
        await self.send(dealt, random, end)

    @abstractmethod
    def deal(self, random: Random) -> Deal:
        """A viewer, and two sets of rows that look the same to that viewer."""

    @abstractmethod
    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        """Some requests to both, at most until there were so many pairs."""

    async def ask(self, asked: RequestMeasures, dealt: Deal, **headers: str) -> list[Reply]:
        """What each of the two answers."""
        given = {"content-type": "application/json", **{name.replace("_", "-"): each for name, each in headers.items()}}
        return [await run.request(asked.method, asked.url, given, asked.body, dealt.viewer) for run in self.runs]

    def check_same(self, replies: Sequence[Reply], dealt: Deal, told: object) -> None:
        """Both answers are the same: status, headers and bytes. What has failed is no answer."""
        assert not any(_FAILED.search(reply.body) for reply in replies), self.told(replies, dealt, told)
        one, other = map(_timeless, replies)
        if one != other:
            raise Leak(self.told(replies, dealt, told))

    def told(self, replies: Sequence[Reply], dealt: Deal, told: object) -> str:
        answers = "\n".join(f"{each.status} {each.headers} {each.body!r}" for each in replies)
        return f"deal {self.deals}, {dealt.who}: {told}\n{answers}"

    def new_id(self) -> str:
        """The same ids in both databases."""
        self.ids += 1
        return f"01ffffff-0000-7000-8000-{self.ids:012x}"


def _timeless(reply: Reply) -> tuple[int, list[Header], str]:
    """An answer without the times that a database set by its own clock, and without the tags of a body that has one."""
    told = reply.body.decode()
    body = untimed(told)
    if body == told:
        return reply.status, list(reply.headers), body
    return reply.status, [each for each in reply.headers if each[0] != b"etag"], _TAG.sub('"etag":""', body)


P = TypeVar("P", bound=Pairs)


@contextmanager
def opened(kind: Callable[[Model, Sequence[str], asyncio.Runner], P], model: Model, urls: Sequence[str]) -> Iterator[P]:
    """Pairs of one kind, on databases in which the same changes make the same ids and times."""
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        found = kind(model, urls, runner)
        patch.setattr(draft, "_new_id", found.new_id)
        patch.setattr(getters, "_now", found.clock.now)
        yield found
        found.close()
