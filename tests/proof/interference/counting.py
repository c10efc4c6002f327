"""Numbers of rows from two databases that look the same to their viewer.

A pair is one random summary, groups, or list that is sorted, filtered or described by related rows, in both styles.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from diptych.api.graphql.translate import translate
from diptych.ask.measures import Limits
from diptych.errors import Code
from diptych.policy.values import Binder
from tests.proof.interference.databases import Pairs, RequestMeasures
from tests.proof.interference.dealing import Deal, all_seeing, deal
from tests.proof.interference.reading import PER_DEAL, WHO
from tests.support.oracle_aggregates import AggregateOracle, LongSum
from tests.support.random_aggregates import Draw, Drawn
from tests.support.reading import parsed


class Counting(Pairs):
    """One viewer counts in both databases."""

    def deal(self, random: Random) -> Deal:
        return deal(self.model, random, WHO)

    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        view = self.model.view(self.model.signature(dealt.viewer))
        draw = Draw(random, view, dealt.both[0])
        for _ in range(min(PER_DEAL, end - self.pairs)):
            drawn = draw()
            if drawn is None:
                self.seen.update(pairs=1)
                continue
            body = json.dumps({"query": drawn.document, "variables": drawn.variables}).encode()
            for asked in (RequestMeasures("POST", "/graphql", body), RequestMeasures("GET", drawn.url)):
                replies = await self.ask(asked, dealt)
                refused = b"more than 18 digits"
                for reply in replies:
                    assert reply.status == 200 or refused in reply.body, f"{asked}\n{reply.body!r}"
                self.check_same(replies, dealt, asked)
            self.seen.update(pairs=1, touching=self._differs(drawn, dealt))

    def _differs(self, drawn: Drawn, dealt: Deal) -> bool:
        """Would the answers differ if there were no rules?"""
        view = self.model.view(self.model.signature(dealt.viewer))
        wish = translate(*parsed(drawn.document), drawn.variables, view).wish
        values = Binder(wish.slots, wish.sources, Limits(), Code.BAD_USER_INPUT)(drawn.variables)
        answers: list[Any] = []
        for rows in dealt.both:
            oracle = AggregateOracle(self.model, dealt.viewer, rows)
            oracle.sight = all_seeing(dealt, rows).sight
            try:
                answers.append(oracle.numbers(wish.asks[0], values))
            except LongSum:
                answers.append(None)
        return bool(answers[0] != answers[1])
