"""`WebhookResource`: the base class of a resource whose rows are webhooks, so that clients manage them in both styles.

    class Hook(WebhookResource):
        access = (grant("create", to=partner),)

        @allow("read", "update", "delete")
        def own(self, viewer: Viewer) -> bool:
            return self.owner == viewer.id

Without rules nobody may, as for any resource. What is sent is judged by the rules of the owner, who created the row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from diptych.errors import Code, Refusal
from diptych.model.declare.actions import action
from diptych.model.declare.markers import Id, MaxLen, Pattern, WriteBy
from diptych.model.declare.resource import Resource, from_viewer
from diptych.model.declare.tx import Tx


class WebhookResource(Resource):
    """Webhooks as rows: `follows` is the path of a resource, `query` has its fields, kinds and filters."""

    url: Annotated[str, MaxLen(2_000), Pattern("https?://[!-~]+")]
    follows: Annotated[str, MaxLen(200)]
    query: Annotated[str, MaxLen(4_000)] = ""
    owner: Annotated[Id, WriteBy()] = from_viewer()
    generation: Annotated[int, WriteBy()] = 1
    rotated_at: Annotated[datetime | None, WriteBy()] = None

    @action
    async def rotate(self, tx: Tx) -> str:
        """Give it a new secret, which is returned once; the one before signs too for another day."""
        if tx.viewer.id is None or tx.viewer.id != self.owner:
            raise Refusal(Code.FORBIDDEN, "Only the owner of a webhook gets its secret.")
        self.generation += 1
        self.rotated_at = datetime.now(UTC)
        await tx.trusted.save(self)
        return tx.webhook_secret(self)
