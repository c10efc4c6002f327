"""Changes to two databases that look the same to their viewer.

A pair is one random transaction, in one style, made in both; they were altered afresh a few transactions before.
Status, headers and bytes must be equal, but for what the contract lets differ (B2), and for nothing else:

- That the caller's own input is in conflict may be told, though a hidden row is what it is in conflict with: a value
  that must be unique, a row that others still refer to. It counts as such only where the ledgers too say so of one
  database and not of the other, where both answers have the codes of the ledgers, and where it names nothing but
  what was given; what follows cannot be compared then. Where the ledgers agree, conflicts are equal as all else.
- `version` and `updatedAt` count every write, also one to hidden fields. So what a deletion sets to null is the
  same in both, and the times that a database sets by its own clock are left out.
- A change may let its viewer see more than before: what is seen then is no longer hidden. Only its status is
  compared, and nothing follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from diptych.api.reply import Reply
from diptych.errors import Code
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import INTEGER_ID
from tests.proof.interference.altering import alike
from tests.proof.interference.databases import Leak, Pairs
from tests.proof.interference.dealing import Deal, deal
from tests.proof.interference.reaching import Reach, Step, Touch
from tests.support.oracle import Sight
from tests.support.oracle_writes import Ledger, Refused, Wish
from tests.support.proof_writes import Outcome

WHO = ("someone", "someone", "another", "another", "middle", "middle", "narrow", "reader")
LENGTH = 8
"""Transactions between two alterations."""
NEW = "01ffffff-0000-7000-9000-"


class Numbered(Ledger):
    """A ledger whose new ids are the same wherever the same changes are made."""

    def new_id(self, resource: ResourceDef) -> Any:
        if resource.key is INTEGER_ID:
            return max([10**9, *(row["id"] for row in self.rows[resource.name])]) + 1
        new = [row["id"] for row in self.rows[resource.name] if row["id"].startswith(NEW)]
        return f"{NEW}{int(max([NEW + '0', *new])[len(NEW) :], 16) + 1:012x}"


class Writing(Pairs):
    """One viewer changes both databases in the same way; there is a ledger of each."""

    def deal(self, random: Random) -> Deal:
        return deal(self.model, random, WHO, _set_null(self.model))

    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        ledgers = [Numbered(self.model, rows) for rows in dealt.both]
        reach, touches = Reach(dealt, random), Touch(dealt)
        for self.clock.step in range(LENGTH):
            if self.pairs == end:
                break
            both = [grant_store.rows for grant_store in ledgers]
            step = reach.step(both)
            touching = touches(step, both)
            trial = Trial(self.model, dealt, step, self.clock.moment)
            reveals = trial.reveals(ledgers)
            verdicts = [trial.verdict(grant_store) for grant_store in ledgers]
            replies = await self._make(step, dealt, ledgers[1].made)
            if reveals or verdicts[0] != verdicts[1]:
                why = self._excuse(step, verdicts, replies, reveals)
                if not why:
                    raise Leak(f"{verdicts}\n{self.told(replies, dealt, step)}")
                self.seen[why] += 1
                break
            self.check_same(replies, dealt, step)
            self.seen.update(pairs=1, done=verdicts[0] == DONE, touching=touching)

    async def _make(self, step: Step, dealt: Deal, made: Sequence[tuple[int, Any]]) -> list[Reply]:
        replies = []
        for run in self.runs:
            self.ids = self.clock.step * 1_000
            sent = step.sent(self.model, run.names)
            reply = await run.send(sent, dealt.viewer)
            run.note_ids(step.transaction, run.outcome(reply, sent), made)
            replies.append(reply)
        return replies

    def _excuse(self, step: Step, verdicts: Sequence[Verdict], replies: Sequence[Reply], reveals: bool) -> str:
        """Why the answers may differ; nothing, if they may not."""
        if reveals:
            return "reveals" if verdicts[0] != verdicts[1] or replies[0].status == replies[1].status else ""
        outcomes = [
            run.outcome(reply, step.sent(self.model, run.names)) for run, reply in zip(self.runs, replies, strict=True)
        ]
        if [outcome.code for outcome in outcomes] != [verdict[0] for verdict in verdicts]:
            return ""
        own = (_is_own_conflict(reply, outcome, step) for reply, outcome in zip(replies, outcomes, strict=True))
        return "conflicts" if any(own) else ""


Verdict = tuple[Code | None, Any, Any]
"""A code, the places at fault and which change it was, as a ledger tells it."""
DONE: Verdict = (None, (), None)
MISFIT: Verdict = (Code.CONFLICT, "a patch that does not fit", None)


@dataclass(frozen=True)
class Trial:
    """What ledgers say of one step."""

    model: Model
    dealt: Deal
    step: Step
    moment: str

    def verdict(self, grant_store: Ledger) -> Verdict:
        """Make the changes, if they may be made."""
        wishes = self.step.asked_of(grant_store, Sight(self.model, self.dealt.viewer, grant_store.rows))
        return MISFIT if wishes is None else self._made(grant_store, wishes)

    def _made(self, grant_store: Ledger, wishes: Sequence[Wish]) -> Verdict:
        try:
            grant_store.transact(wishes, self.dealt.viewer, self.moment)
            return DONE
        except Refused as refused:
            return refused.code, refused.places, refused.at

    def reveals(self, ledgers: Sequence[Ledger]) -> bool:
        """Does the viewer see more, once the changes are made, or on the way there?"""
        for count in range(1, len(self.step.wishes) + 1):
            one, other = (Numbered(self.model, grant_store.rows) for grant_store in ledgers)
            made = [self._made(grant_store, self.step.wishes[:count]) for grant_store in (one, other)]
            if made == [DONE, DONE] and not alike(self.model, self.dealt.viewer, one.rows, other.rows):
                return True
        return False


def _is_own_conflict(reply: Reply, outcome: Outcome, step: Step) -> bool:
    """Is it a conflict that may be told, in no more words than these, and does it name only what was given?"""
    if outcome.code is not Code.CONFLICT:
        return False
    body = json.loads(reply.body)
    told = body["detail"] if "detail" in body else body["errors"][0]["message"]
    if told == "Others still refer to this.":
        return any(wish.verb == "delete" for wish in step.wishes)
    given = [wish.body if isinstance(wish.body, dict) else {} for wish in step.wishes]
    own = all(name in given[index] for index, name in outcome.places or ())
    return own and bool(told == "Another one has this value.")


def _set_null(model: Model) -> Callable[[FieldDef], bool]:
    """References that a deletion sets to null: that moves the version of their row, which may be seen."""
    found = [
        each.fields[way.name + "Id"]
        for each in model.resources.values()
        for way in each.relations.values()
        if way.kind == "one" and way.on_delete == "set null"
    ]
    return lambda field: any(field is each for each in found)
