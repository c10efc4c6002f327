"""The tables of webhooks: what each follows and how far it is, and the changes to be tried again or given up.

A lease in the database decides which node delivers a webhook: it is taken and renewed by the clock of the database, and
whatever is stored of a delivery is stored only while it is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.db.leases import Leases, LostLease
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.db.system_records import Records
from diptych.errors import Code, Refusal


class WebhookRecord(Struct, frozen=True):
    """A webhook: a Watch (`resource`, `query`), whose rules are those of `owner`, with an address.

    Every change up to `position` was delivered, is to be tried again, or is not for it.
    """

    id: str
    name: str
    url: str
    resource: str
    query: str
    owner: str
    source: str
    """Where it comes from: `command`, `model`, or the table of the model whose row it is."""
    generation: int
    rotated_at: int | None
    created_at: int
    disabled_at: int | None
    reason: str | None
    """Why it is disabled, or what failed last."""
    position: int
    failures: int
    """Failures since the last delivery."""
    next_at: int
    """Milliseconds: no try before."""
    delivered_at: int | None
    replays: int
    lease_by: str
    lease_until: int


class PendingDelivery(Struct, frozen=True):
    """A change that is to be tried again (`pending`), or was given up (`dead`); or a `gap`, changes that are gone."""

    id: str
    webhook_id: str
    position: int
    row_id: str
    state: str
    attempts: int
    first_at: int
    next_at: int
    last: str


WEBHOOKS = Records("diptych_webhooks", WebhookRecord)
DELIVERIES = Records("diptych_webhook_deliveries", PendingDelivery)
MOST = 1_000
"""Webhooks of a service."""
GONE = "the endpoint is gone (410)"
"""The reason of a webhook that its endpoint has disabled."""

LEASES = Leases("diptych_webhooks", free="disabled_at IS NULL")

_ADVANCE = (
    "UPDATE diptych_webhooks SET position = {0}3, failures = {0}4, next_at = {0}5, reason = {0}6, delivered_at = {0}7 "
    "WHERE id = {0}1 AND lease_by = {0}2 RETURNING 1"
)
_DROP = "DELETE FROM diptych_webhook_deliveries WHERE webhook_id = {0}1"
_REPLAY = (
    "UPDATE diptych_webhook_deliveries SET state = 'pending', attempts = 0, first_at = {0}2, next_at = 0 "
    "WHERE webhook_id = {0}1 AND state = 'dead'"
)
_COUNT = "SELECT count(*) FROM diptych_webhooks"


class Progress(Struct, frozen=True):
    """How far a webhook is."""

    position: int
    failures: int
    next_at: int
    reason: str | None
    delivered_at: int | None


def advance(
    dialect: Dialect,
    id: str,
    node: str,
    progress: Progress,
    deliveries: Mapping[str, PendingDelivery | None],
) -> Script[None]:
    """Store how far a webhook is, with deliveries that are new or changed, and without those that are done (None);
    LostLease if the node has no lease."""
    values = (progress.position, progress.failures, progress.next_at, progress.reason, progress.delivered_at)
    if (yield Step(_ADVANCE.format(dialect.placeholder), (id, node, *values))) is None:
        raise LostLease
    for key, delivery in deliveries.items():
        if delivery is None:
            yield from DELIVERIES.remove(dialect, id=key)
            continue
        changed = {"state": delivery.state, "attempts": delivery.attempts, "next_at": delivery.next_at}
        stored = yield from DELIVERIES.change(dialect, {"id": key}, last=delivery.last, **changed)
        if stored is None:
            yield from DELIVERIES.add(dialect, delivery)


def add_webhook(dialect: Dialect, webhook: WebhookRecord) -> Script[bool]:
    """Add a webhook; False if its name is taken."""
    row = yield Step(_COUNT, ())
    if row is not None and row[0] >= MOST:
        raise Refusal(Code.CONFLICT, f"There are {MOST} webhooks already.")
    return (yield from WEBHOOKS.add(dialect, webhook))


def remove_webhook(dialect: Dialect, id: str) -> Script[WebhookRecord | None]:
    """Remove a webhook and its deliveries."""
    yield Step(_DROP.format(dialect.placeholder), (id,))
    return (yield from WEBHOOKS.remove(dialect, id=id))


def replay_dead(dialect: Dialect, webhook: WebhookRecord, now: int) -> Script[None]:
    """Try again all deliveries that were given up; a webhook that is disabled is enabled."""
    yield Step(_REPLAY.format(dialect.placeholder), (webhook.id, now))
    yield from WEBHOOKS.change(
        dialect, {"id": webhook.id}, replays=webhook.replays + 1, failures=0, next_at=0, disabled_at=None
    )


async def deliveries_of(store: Store, id: str) -> Sequence[PendingDelivery]:
    """The deliveries of a webhook that are not done, the oldest change first."""
    return await DELIVERIES.all(store, "position", webhook_id=id)


def delivery_id(webhook: str, position: int) -> str:
    return f"{webhook}:{position}"
