"""Evaluates many BoundWatches of one plan by one statement: the same changes, as each of them alone would show them.

    changes_together([ann_follows, ben_follows], after, upto, most)   →   a ChangeBatch for each

All of them have the same `batch_key`. A change whose JSON is the same for several is one Change, and so its bytes are
shared. An answer that does not have exactly one part for each is not used at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from diptych.engine.watch import BoundWatch, Change, ChangeBatch, segment_end

_answers = msgspec.json.Decoder(tuple[int, int, list[tuple[int, list[msgspec.Raw]]]])
_row = msgspec.json.Decoder(list[msgspec.Raw])


async def changes_together(watches: Sequence[BoundWatch], after: int, upto: int, most: int) -> list[ChangeBatch]:
    """The first `most` changes of the resource between two positions, as each of the watches shows them.

    All batches end at the same position.
    """
    first = watches[0]
    plan = first.prepared.planned.batch.plan()
    upto = segment_end(after, upto)
    parameters = plan.parameters([watch.parameters(after, upto, most) for watch in watches])
    (answer,) = await first.store.run(plan.plan, parameters)
    oldest, reached, parts = _answers.decode(answer or b"[0,0,[]]")  # what is too deep is evaluated alone
    by_number = dict(parts)
    if len(parts) != len(watches) or by_number.keys() != set(range(1, len(watches) + 1)):
        raise ValueError("the answer to a batch does not have a part for each group")
    changes = await _changes(first, parts)
    return [
        ChangeBatch(oldest, [changes[bytes(row)] for row in by_number[number]], reached)
        for number in range(1, len(watches) + 1)
    ]


async def _changes(first: BoundWatch, parts: Sequence[tuple[int, Sequence[msgspec.Raw]]]) -> dict[bytes, Change]:
    """The changes of all groups by their JSON. Equal JSON makes equal changes: all groups select the same."""
    texts = list({bytes(row): None for _, rows in parts for row in rows})
    changes = await first.finished([_row.decode(text) for text in texts])
    return dict(zip(texts, changes, strict=True))
