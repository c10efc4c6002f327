"""The rows of users, for viewing as one of them: in `diptych dev` only, whatever the rules of the model show.

Rules can be such that only users see anything, and that nobody may create the first one: so users are listed and
created here without rules. The one who started the service can read and write its database anyway.
"""

from __future__ import annotations

from typing import Any

from diptych.engine.read import Engine
from diptych.engine.user_rows import UserRows
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Fault, Refusal
from diptych.explain.newest import newest_rows
from diptych.model.read.sign_ups import SignUpDef
from diptych.serve.console.describe import describe_resources

_MOST = 50


class People:
    """Lists and creates the users of one service."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.model = engine.model

    async def list(self) -> dict[str, Any]:
        """The newest users with their labels, and the resource of users as a form needs it; null if there is none."""
        user = self.model.user
        if user is None:
            return {"resource": None, "people": []}
        with self.engine.planning_budget.planning():
            described = describe_resources(self.model.trusted(False))
            resource = next(resource for resource in described if resource["name"] == user.name)
        label = user.fields.get(resource.get("label", ""))
        rows = await newest_rows(user.name, label, self.model, self.engine.store, _MOST)
        return {"resource": resource, "people": [{"id": id, "label": text} for id, text in rows]}

    async def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a user from the values of its fields."""
        user, values = self.model.user, body.get("values")
        if user is None or not isinstance(values, dict):
            raise Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [Fault(("body", "values"), "expected values")])
        rows = UserRows(WriteEngine(self.engine), SignUpDef(user, None, tuple(user.fields.values()), ()))
        session = await self.engine.store.session()
        try:
            id = await rows.create(session, values, "")
            await session.commit()
        finally:
            await session.end()
        return {"id": id}
