"""Webhooks that are rows of the model (`WebhookResource`): the table of webhooks follows them.

A row that is new is a webhook from its own creation on: it starts at the change of the feed that made it. A row that
cannot be one, by its address, its filter or the rights of its owner, is a webhook that is disabled, with the reason.
Each process judges that once more: the one that disabled it may have had another version of the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from diptych.ask.webhook_secret import webhook_id
from diptych.compile.plan import Plan
from diptych.db.store import Store
from diptych.engine.watch import WatchEngine
from diptych.errors import Code, Refusal
from diptych.identity.owner import user_owner
from diptych.identity.records import unix_time
from diptych.model.declare.webhook_resource import WebhookResource
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.webhooks.manage import check_webhook, new_webhook
from diptych.webhooks.message import resource_at
from diptych.webhooks.records import GONE, WEBHOOKS, WebhookRecord, add_webhook, remove_webhook

_COLUMNS = ("url", "follows", "query", "owner", "generation", "rotated_at")
_LISTED = {
    "sqlite": "SELECT CAST(json_group_array(json_array({0})) AS BLOB) FROM {1}",
    "postgres": "SELECT convert_to(coalesce(json_agg(json_build_array({0}))::text, '[]'), 'UTF8') FROM {1}",
}
_CREATED = {
    "sqlite": Plan("SELECT min(position) FROM diptych_feed WHERE resource = ?1 AND row_id = ?2"),
    "postgres": Plan("SELECT min(position) FROM diptych_feed WHERE resource = $1::text AND row_id = $2::text"),
}


class _Row(NamedTuple):
    id: str
    url: str
    follows: str
    query: str
    owner: str
    generation: int
    rotated_at: int | None


def tables_of(model: Model) -> Iterator[ResourceDef]:
    """The resources whose rows are webhooks."""
    for resource in model.resources.values():
        if isinstance(resource.cls, type) and issubclass(resource.cls, WebhookResource):
            yield resource


async def follow_rows(engine: WatchEngine, allowed: str, judged: dict[str, int | None]) -> int:
    """Bring the webhooks of rows to what the rows say; returns how many rows are none, since there are MOST.

    `judged` has the webhooks that this process has judged once more, with the moment when they were disabled.
    """
    store, left = engine.engine.store, 0
    for resource in tables_of(engine.engine.model):
        stored = {webhook.id: webhook for webhook in await WEBHOOKS.all(store, "id", source=resource.table)}
        for row in await _rows(store, resource):
            there = stored.pop(webhook_id(row.id), None)
            if left and there is None:
                left += 1
                continue
            wanted = await _wanted(engine, resource, row, there, allowed, judged)
            if wanted is not None:
                try:
                    await _keep(store, wanted, there)
                except Refusal as refusal:
                    if there is not None or refusal.code is not Code.CONFLICT:
                        raise
                    left += 1
        for gone in stored:
            judged.pop(gone, None)
            await _remove(store, gone)
    return left


async def _rows(store: Store, resource: ResourceDef) -> list[_Row]:
    names = ", ".join(("id", *(f'"{resource.fields[_wire(name)].column}"' for name in _COLUMNS)))
    table = f'"{resource.table}"' + (" WHERE deleted_at IS NULL" if resource.trash else "")
    (answer,) = await store.run(Plan(_LISTED[store.dialect.name].format(names, table)), [])
    return [
        _Row(str(id), url, follows, query, str(owner), generation, _seconds(rotated_at))
        for id, url, follows, query, owner, generation, rotated_at in json.loads(answer or b"[]")
    ]


def _wire(attr: str) -> str:
    return "rotatedAt" if attr == "rotated_at" else attr


def _seconds(moment: str | None) -> int | None:
    return None if moment is None else int(datetime.fromisoformat(moment).timestamp())


async def _wanted(
    engine: WatchEngine,
    resource: ResourceDef,
    row: _Row,
    there: WebhookRecord | None,
    allowed: str,
    judged: dict[str, int | None],
) -> WebhookRecord | None:
    """The webhook of a row; None if it is as it should be."""
    values: dict[str, Any] = {"url": row.url, "query": row.query.removeprefix("?"), "owner": user_owner(row.owner)}
    values |= {"generation": row.generation, "rotated_at": row.rotated_at}
    model = engine.engine.model
    try:
        values["resource"] = resource_at(model, row.follows)
    except Refusal:  # another version of the model may know its name
        values["resource"] = row.follows if there is None or there.resource in model.resources else there.resource
    same = there if there and all(getattr(there, name) == value for name, value in values.items()) else None
    if same and (same.disabled_at is None or same.reason == GONE or judged.get(same.id) == same.disabled_at):
        return None
    reason = None
    try:
        await check_webhook(engine, row.url, values["resource"], values["query"], values["owner"], allowed)
    except Refusal as refusal:
        if refusal.code is Code.UNAVAILABLE:
            raise
        reason = str(refusal)
    if same and reason is not None:
        judged[same.id] = same.disabled_at
        return None
    values |= {"reason": reason, "disabled_at": None if reason is None else unix_time()}
    if there is not None:
        return replace(there, **values)
    head = (await engine.engine.store.head()).position  # all that was committed is numbered now
    (created,) = await engine.engine.store.run(_CREATED[engine.engine.store.dialect.name], [resource.table, row.id])
    position = head if created is None else int(created)
    name = f"{resource.path}/{row.id}"
    return replace(new_webhook(webhook_id(row.id), name, resource.table, position), **values)


async def _keep(store: Store, wanted: WebhookRecord, there: WebhookRecord | None) -> None:
    if there is None:
        await store.write(lambda: add_webhook(store.dialect, wanted))
        return
    names = ("url", "query", "owner", "resource", "generation", "rotated_at", "reason", "disabled_at")
    values = {name: getattr(wanted, name) for name in names}
    await store.write(lambda: WEBHOOKS.change(store.dialect, {"id": wanted.id}, **values))


async def _remove(store: Store, id: str) -> None:
    await store.write(lambda: remove_webhook(store.dialect, id))
