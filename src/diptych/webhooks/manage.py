"""Adds, lists, removes and changes webhooks.

    webhook, secret = await add(engine, "erp", "https://erp.example.org/hook", "Order", "fields=total", owner)

A new webhook starts at the end of the feed. Its secret is returned once, by `add` and `rotate`.
"""

from __future__ import annotations

import secrets
import time

from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.webhook_secret import secret_of, secret_text
from diptych.db.store import Store
from diptych.engine.watch import WatchEngine
from diptych.errors import Code, Refusal, StartError
from diptych.identity.checks import checked_name
from diptych.identity.owner import fixed_owner, viewer_of
from diptych.identity.records import unix_time
from diptych.webhooks.address import RefusedAddress, Resolver, parts_of
from diptych.webhooks.message import message_id, resource_at, watch_of
from diptych.webhooks.post import PostOutcome, Sender
from diptych.webhooks.records import (
    WEBHOOKS,
    PendingDelivery,
    WebhookRecord,
    add_webhook,
    deliveries_of,
    remove_webhook,
    replay_dead,
)
from diptych.webhooks.signing import secrets_at, signed_headers

_MODEL = "model"


class WebhookStatus(Struct, frozen=True):
    """A webhook and how it fares, for lists: what waits, and what was given up."""

    webhook: WebhookRecord
    pending: int
    dead: int
    behind: int
    """Changes of the feed that it has not seen yet."""

    @property
    def state(self) -> str:
        """In one word."""
        if self.webhook.disabled_at is not None:
            return "disabled"
        if self.webhook.next_at > time.time() * 1000:
            return "paused"
        return "retrying" if self.pending else "active"


async def add(
    engine: WatchEngine,
    name: str,
    url: str,
    resource: str,
    query: str,
    owner: str,
    *,
    source: str = "command",
    allowed: str = "",
) -> tuple[WebhookRecord, str]:
    """Add a webhook, and return it with its secret; a Refusal if its owner may not follow what it names."""
    store = engine.engine.store
    await check_webhook(engine, url, resource_at(engine.engine.model, resource), query, owner, allowed)
    position = (await store.head()).position
    webhook = replace(
        new_webhook("wh_" + secrets.token_hex(8), checked_name(name), source, position),
        url=url,
        resource=resource_at(engine.engine.model, resource),
        query=query,
        owner=owner,
    )
    if not await store.write(lambda: add_webhook(store.dialect, webhook)):
        raise Refusal(Code.CONFLICT, f"There is a webhook named {name!r} already.")
    return webhook, secret_text(secret_of(engine.engine.secret, webhook.id, 1))


def new_webhook(id: str, name: str, source: str, position: int) -> WebhookRecord:
    """A webhook that follows nothing yet, after this position of the feed."""
    return WebhookRecord(
        id=id,
        name=name,
        url="",
        resource="",
        query="",
        owner="",
        source=source,
        generation=1,
        rotated_at=None,
        created_at=unix_time(),
        disabled_at=None,
        reason=None,
        position=position,
        failures=0,
        next_at=0,
        delivered_at=None,
        replays=0,
        lease_by="",
        lease_until=0,
    )


async def check_webhook(
    engine: WatchEngine, url: str, resource: str, query: str, owner: str, allowed: str = ""
) -> None:
    """Refuse a webhook that could not be delivered: by its address, its filter, or the rules of its owner.

    A name is not resolved yet: it may be that of a host that does not run yet.
    """
    try:
        endpoint = parts_of(url)
        if endpoint.scheme != "https" and not allowed:
            raise RefusedAddress("expected https://…")
        if endpoint.host.replace(".", "").isdigit() or ":" in endpoint.host:
            await Resolver(allowed).resolve(endpoint)
    except RefusedAddress as error:
        raise Refusal(Code.BAD_USER_INPUT, f"The address is not valid: {error}.") from None
    viewer = await viewer_of(owner, engine.engine.store, engine.engine.model)
    if viewer is None:
        raise Refusal(Code.FORBIDDEN, "The owner of the webhook may do nothing.")
    watch_of(engine, resource, query, viewer)


async def find(store: Store, name: str) -> WebhookRecord:
    """The webhook with this name or id."""
    matching = await WEBHOOKS.all(store, "id", name=name) or await WEBHOOKS.all(store, "id", id=name)
    if not matching:
        raise Refusal(Code.NOT_FOUND, f"There is no webhook named {name!r}.")
    return matching[0]


async def statuses(store: Store) -> list[WebhookStatus]:
    """All webhooks with their status, sorted by name."""
    head = (await store.head()).position
    listed: list[WebhookStatus] = []
    for webhook in await WEBHOOKS.all(store, "name"):
        deliveries = await deliveries_of(store, webhook.id)
        pending = sum(delivery.state == "pending" for delivery in deliveries)
        listed.append(WebhookStatus(webhook, pending, len(deliveries) - pending, max(0, head - webhook.position)))
    return listed


async def dead_letters(store: Store, name: str) -> list[PendingDelivery]:
    """The changes of a webhook that were given up, and the gaps."""
    webhook = await find(store, name)
    return [delivery for delivery in await deliveries_of(store, webhook.id) if delivery.state != "pending"]


async def remove(store: Store, name: str) -> WebhookRecord:
    """Remove a webhook, with all that waits for it."""
    webhook = await find(store, name)
    await store.write(lambda: remove_webhook(store.dialect, webhook.id))
    return webhook


async def rotate(engine: WatchEngine, name: str) -> tuple[WebhookRecord, str]:
    """Give a webhook a new secret, and return it; the one before signs for another day."""
    store = engine.engine.store
    webhook = await find(store, name)
    same = {"id": webhook.id, "generation": webhook.generation}
    number = webhook.generation + 1
    changed = await store.write(lambda: WEBHOOKS.change(store.dialect, same, generation=number, rotated_at=unix_time()))
    if changed is None:
        raise Refusal(Code.CONFLICT, "The secret was rotated by another at the same moment.")
    return changed, secret_text(secret_of(engine.engine.secret, webhook.id, number))


async def replay(store: Store, name: str) -> tuple[WebhookRecord, int]:
    """Try again what was given up, and go on with a webhook that is paused or disabled; also returns how many."""
    webhook = await find(store, name)
    dead = [delivery for delivery in await deliveries_of(store, webhook.id) if delivery.state == "dead"]
    await store.write(lambda: replay_dead(store.dialect, webhook, unix_time()))
    return webhook, len(dead)


async def send_test(engine: WatchEngine, name: str, allowed: str = "") -> PostOutcome:
    """Send a message of the type `webhook.test`, once."""
    webhook = await find(engine.engine.store, name)
    now = unix_time()
    id = message_id(webhook.id, f"test_{secrets.token_hex(8)}")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    body = b'{"type":"webhook.test","timestamp":"%b","data":{"webhook":"%b"}}' % (moment.encode(), webhook.id.encode())
    keys = secrets_at(engine.engine.secret, webhook.id, webhook.generation, webhook.rotated_at, now)
    resolver = Resolver(allowed)
    sender = Sender(parts_of(webhook.url), resolver)
    try:
        return await sender.post(signed_headers(keys, id, now, body), body)
    finally:
        sender.close()
        resolver.close()


async def declare_webhooks(engine: WatchEngine, allowed: str) -> None:
    """Bring the stored webhooks of the model to what it declares; secrets and positions stay."""
    store, model = engine.engine.store, engine.engine.model
    stored = {webhook.name: webhook for webhook in await WEBHOOKS.all(store, "name", source=_MODEL)}
    for declared in model.webhooks:
        owner = fixed_owner([role.name for role in declared.roles], declared.user)
        there = stored.pop(declared.name, None)
        resource = model.resources[declared.on.__name__].name
        try:
            if there is None:
                await add(
                    engine, declared.name, declared.url, resource, declared.query, owner, source=_MODEL, allowed=allowed
                )
                continue
            await check_webhook(engine, declared.url, resource, declared.query, owner, allowed)
        except Refusal as refusal:
            added = refusal.code is Code.CONFLICT and there is None
            if added and await WEBHOOKS.all(store, "id", name=declared.name, source=_MODEL):
                continue  # another node, which starts at the same moment, has added it
            raise StartError(f"The webhook {declared.name!r} of the model is refused: {refusal}") from None
        values = {"url": declared.url, "resource": resource, "query": declared.query, "owner": owner}
        if any(getattr(there, name) != value for name, value in values.items()):
            await _change(store, there.id, values)
    for gone in stored.values():
        await _remove(store, gone.id)


async def _change(store: Store, id: str, values: dict[str, str]) -> None:
    await store.write(lambda: WEBHOOKS.change(store.dialect, {"id": id}, disabled_at=None, **values))


async def _remove(store: Store, id: str) -> None:
    await store.write(lambda: remove_webhook(store.dialect, id))
