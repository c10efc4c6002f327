"""Reads from two databases that look the same to their viewer.

A pair is one random request, in every style that can ask it, sent to both databases; they were altered afresh a
few requests before. Status, headers and bytes must be equal: fields, order, counts, cursors and tags are in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from diptych.api.graphql.node_lookup import is_node
from diptych.api.graphql.printer import print_graphql, print_node
from diptych.api.reply import Reply
from diptych.api.rest.printer import print_rest
from diptych.ask.nodes import Field, OrderBy, Pick
from diptych.model.defs import FieldDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import Col, Expr
from diptych.model.viewer_object import VIEWER
from tests.proof.interference.databases import Pairs, RequestMeasures
from tests.proof.interference.dealing import Deal, SecretWorld, all_seeing, deal
from tests.support.asks import Dice, Drawn
from tests.support.oracle import Oracle
from tests.support.proof import cursor_key

WHO = ("anonymous", "someone", "another", "middle", "narrow")
PER_DEAL = 10
"""Requests between two alterations."""


class Keen(Dice):
    """Draws requests that reach for what is hidden: they pick, compare and sort by fields that hide it, and filter
    through relations that lead to it."""

    def __init__(self, random: Random, world: SecretWorld) -> None:
        super().__init__(random, world)
        self.viewer_once_in = 10 if world.model.user else 0  # without a row, nothing of it could be hidden
        self.secrets = world.secrets

    def term(self, each: ResourceView, depth: int) -> Expr:
        ways = [way for way in each.relations.values() if self.secrets.ids[way.relation.target]]
        if ways and depth < 3 and self.terms_left > 0 and self.chance(4):
            self.terms_left -= 1
            return self.related(self.one_of(ways), depth)
        return super().term(each, depth)

    def compare(self, each: ResourceView, field: FieldDef) -> Expr:
        masked = self._masked(each)
        return super().compare(each, self.one_of(masked) if masked and self.chance(2) else field)

    def key(self, each: ResourceView) -> OrderBy:
        masked = [field for field in self._masked(each) if field.scalar.sortable]
        return (
            OrderBy(Col((self.one_of(masked).name,)), self.chance(2))
            if masked and self.chance(2)
            else super().key(each)
        )

    def pick(self, each: ResourceView, depth: int, taken: Any) -> Pick:
        masked = self._masked(each)
        if masked and self.chance(5):
            name = self.one_of(masked).name
            return Field(name, self.label(name, taken))
        return super().pick(each, depth, taken)

    def _masked(self, each: ResourceView) -> list[FieldDef]:
        names = () if each.resource.name == VIEWER else self.secrets.masked[each.resource.name]
        return [view.field for name, view in each.searchable.items() if name in names]


class Reading(Pairs):
    """One viewer reads from both databases."""

    def deal(self, random: Random) -> Deal:
        return deal(self.model, random, WHO)

    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        world = SecretWorld(dealt)
        oracles = [all_seeing(dealt, rows) for rows in dealt.both]
        for _ in range(min(PER_DEAL, end - self.pairs)):
            drawn = Keen(random, world).drawn(random.choice((1, 1, 1, 2)))
            await self._check(drawn, dealt, random)
            self.seen.update(pairs=1, touching=_differs(drawn, oracles))

    async def _check(self, drawn: Drawn, dealt: Deal, random: Random) -> None:
        engine = self.runs[0].handler.engine
        raw = drawn.sealed(self.model, lambda read, values: cursor_key(engine, dealt.viewer, read, values))
        for asked in self._printed(drawn, raw, random):
            missing = 401 if drawn.reads[0].resource == VIEWER and asked.method == "GET" else 404
            found = await self._same(asked, dealt, (200, missing))
            mark = dict(found.headers).get(b"etag")
            if mark is not None and random.randrange(3) == 0:
                await self._same(asked, dealt, (304,), if_none_match=mark.decode())

    def _printed(self, drawn: Drawn, raw: list[Any], random: Random) -> Iterator[RequestMeasures]:
        """The request in every style that can ask it."""
        document, variables = print_graphql(drawn.asks, raw, self.model)
        if random.randrange(4):
            yield RequestMeasures("POST", "/graphql", json.dumps({"query": document, "variables": variables}).encode())
        else:
            parameters = {"query": document, "variables": json.dumps(variables)}
            yield RequestMeasures("GET", f"/graphql?{urlencode(parameters, quote_via=quote)}")
        first = drawn.reads[0]
        if len(drawn.asks) == 1 and first.take == "one" and is_node(self.model.resources[first.resource]):
            document, variables = print_node(drawn.asks[0][0], first, raw, self.model)
            yield RequestMeasures("POST", "/graphql", json.dumps({"query": document, "variables": variables}).encode())
        if drawn.rest:
            yield RequestMeasures("GET", print_rest(drawn.reads[0], raw, self.model))

    async def _same(self, asked: RequestMeasures, dealt: Deal, fine: Sequence[int], **headers: str) -> Reply:
        """The one answer that both databases give."""
        replies = await self.ask(asked, dealt, **headers)
        for reply in replies:
            assert reply.status in fine and not reply.body.startswith(b'{"errors"'), f"{asked}\n{reply.body!r}"
        self.check_same(replies, dealt, asked)
        return replies[0]


def _differs(drawn: Drawn, oracles: Sequence[Oracle]) -> bool:
    """Would the answers differ if there were no rules?"""
    values = drawn.canonical()
    one, other = ([oracle.answer(read, values) for read in drawn.reads] for oracle in oracles)
    return one != other
