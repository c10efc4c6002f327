"""`Webhook`: changes of a resource are sent to an address, as the model declares it.

    erp_hook = Webhook("erp", url="https://erp.example.org/hook", on=Order, query="fields=total", roles=(erp,))
    model = Model(Order, webhooks=[erp_hook])

What is sent is what a viewer with these roles would see in a stream of `GET /orders/changes?fields=total`. Without
roles it is what anyone who is signed in would.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import Role


class Webhook(Struct, frozen=True):
    """A webhook. `query` has `fields`, `kinds` and filters as in a URL; `user` is what rules know as viewer.id."""

    name: str
    url: str
    on: type[Resource]
    query: str = ""
    roles: tuple[Role, ...] = ()
    user: str | None = None


def webhook_faults(webhooks: Any, classes: Any) -> list[tuple[str, str]]:
    """What is wrong with the webhooks of a model, each with how to fix it."""
    example = 'Write webhooks=[Webhook("erp", url="https://…", on=Order, roles=(erp,))]'
    if not isinstance(webhooks, list | tuple) or not all(isinstance(item, Webhook) for item in webhooks):
        return [("webhooks is no list of Webhooks", example)]
    faults: list[tuple[str, str]] = []
    for webhook in webhooks:
        if webhook.on not in classes:
            faults.append((f"the webhook {webhook.name!r} follows {webhook.on!r}, which is not in the model", example))
        if not isinstance(webhook.roles, tuple | list) or not all(isinstance(role, Role) for role in webhook.roles):
            faults.append((f"the roles of the webhook {webhook.name!r} are no roles", example))
    names = [item.name for item in webhooks]
    if len(set(names)) < len(names):
        faults.append(("two webhooks have the same name", "Rename one"))
    return faults
