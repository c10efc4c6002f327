"""A change of many rows as a script: find them, change one after another, and answer with their number.

All of it is one transaction. The rows are locked in the order of their ids, so that two such changes wait for each
other and never deadlock. Each row is changed as by a request of its own, in that order; one that is refused refuses
all, and is named. A dry run is the same up to its end, and is then rolled back.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from diptych.ask.nodes import BulkPart, Nodes, TypeName, Write
from diptych.compile.dialect import Dialect
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.db.script import Again, Script, Step
from diptych.db.sqlite.unicode import unicode
from diptych.engine.read_plan import ReadPlan
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteResult
from diptych.engine.write_steps import steps
from diptych.errors import Code, Refusal
from diptych.model.scalars import TEXT_ID
from diptych.model.view import not_yours
from diptych.policy.bulk import rows_of

_BEGIN, _UNDO = (
    (Step("SAVEPOINT bulk", ()),),
    (Step("ROLLBACK TO SAVEPOINT bulk", ()), Step("RELEASE SAVEPOINT bulk", ())),
)


class Bulk(Struct, frozen=True, eq=False):
    """The plans of a change of many rows. `answer` reads the rows that are shown, up to `page` of them."""

    write: Write
    find: Plan
    there: Plan
    """Is a row still there?"""
    each: PreparedWrite
    answer: ReadPlan | None
    page: int
    around: Plan | None = None
    """Finds the row whose links they are, and locks it: of two that set its links, one waits."""

    @property
    def size(self) -> int:
        parts = (self.find, self.there, self.answer, self.around)
        return sum(part.size for part in parts if part is not None)

    def steps(self, bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
        rows = rows_of(self.write)
        if self.around is not None:
            outer = yield bound.step(self.around)
            if outer is None or not outer[1]:
                raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        row = yield bound.step(self.find)
        key = self.write.id.scalar
        texts = row[0] if row is not None and row[0] else ""
        found = msgspec.json.decode(f"[{texts}]") if key is TEXT_ID else texts.split(",") if texts else []
        ids = [key.parse(text) for text in found]
        most = bound.values[rows.most.index]
        if len(ids) > most:
            count = f"{most} row{'s' * (most != 1)}"
            raise Refusal(Code.CONFLICT, f"More than {count} match.", more={"allowed": most})
        dry = rows.dry is not None and bool(bound.values[rows.dry.index])
        if dry:
            yield from _run(_BEGIN)
        deletes = self.write.verb == "delete"
        listed = (yield from self._listed(bound, ids)) if deletes else ()
        for id in ids:
            yield from self._change(bound, id, dialect)
        if not deletes:
            listed = yield from self._listed(bound, ids)
        if dry:
            yield from _run(_UNDO)
        return WriteResult(None, self._composed(len(ids), dry, listed), bound.op.prepared.finish)

    def _change(self, bound: BoundWrite, id: Any, dialect: Dialect) -> Script[None]:
        part = bound.part(self.each, id)
        try:
            yield from steps(part, dialect)
        except Refusal as refusal:
            if refusal.code is Code.NOT_FOUND:
                if self.write.verb == "delete" and (yield part.step(self.there)) is None:
                    return  # it went with another row
                refusal = not_yours(bound.op.prepared.view)
            refusal.more = {**refusal.more, "row": str(id)}
            raise refusal from None

    def _listed(self, bound: BoundWrite, ids: list[Any]) -> Script[tuple[bytes, ...]]:
        """The rows that are shown, as JSON, for each time that they are."""
        if self.answer is None:
            return ()
        shown = ids[: self.page]
        values = [*bound.values, shown, max(1, len(shown))]
        plan = self.answer.plan
        row = yield Step(plan.sql, plan.parameters(values, bound.viewer, bound.keys))
        if row is None:
            raise Again
        if any(len(text) > MAX_ANSWER for text in row if text is not None):
            raise too_long()
        return tuple(unicode(text) or b"[]" for text in row)

    def _composed(self, matched: int, dry: bool, listed: tuple[bytes, ...]) -> bytes:
        """The answer as JSON."""
        texts = iter(listed)
        values = {
            "matched": b"%d" % matched,
            "changed": b"%d" % (0 if dry else matched),
            "dryRun": b"true" if dry else b"false",
        }
        pairs = []
        for part in self.write.parts:
            match part:
                case BulkPart(what, label):
                    pairs.append((label, values[what]))
                case TypeName(label, kind):
                    pairs.append((label, f'"{kind}"'.encode()))
                case Nodes(label):
                    pairs.append((label, next(texts)))
        return b"{%b}" % b",".join(b'"%b":%b' % (label.encode(), text) for label, text in pairs)


def _run(done: tuple[Step, ...]) -> Script[None]:
    yield from done
