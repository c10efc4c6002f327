"""Webhooks that are rows of a table (`WebhookResource`): they follow it when it gets another name, and go with it."""

from __future__ import annotations

from collections.abc import Iterator

from diptych.compile.catalogue import Catalogue
from diptych.migrate.state import Table
from diptych.model.declare.webhook_resource import WebhookResource


def rename_hooks(old: str, new: str, table: Table, have: Catalogue) -> Iterator[str]:
    if _has_hooks(table, have):
        yield f"UPDATE diptych_webhooks SET source = '{new}' WHERE source = '{old}'"


def drop_hooks(name: str, table: Table, have: Catalogue) -> Iterator[str]:
    if _has_hooks(table, have):
        ids = f"SELECT id FROM diptych_webhooks WHERE source = '{name}'"
        yield f"DELETE FROM diptych_webhook_deliveries WHERE webhook_id IN ({ids})"
        yield f"DELETE FROM diptych_webhooks WHERE source = '{name}'"


def _has_hooks(table: Table, have: Catalogue) -> bool:
    return table.columns.keys() >= WebhookResource.__annotations__.keys() and "diptych_webhooks" in have.system_tables
