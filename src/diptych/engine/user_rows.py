"""The rows of users who sign up: created, and given a new address, in the transaction of their account.

The declaration `SignUp` of the model is the rule of such a row, so the rules of viewers do not apply to it. Types,
constraints, states and uniqueness do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.api.ask_builder import AskBuilder
from diptych.ask.nodes import Field, Write
from diptych.ask.slots import RawValue
from diptych.db.store import Session
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import WriteOp
from diptych.engine.write_steps import locked_steps
from diptych.errors import Code, Fault, Refusal
from diptych.model.declare.roles import NOBODY
from diptych.model.read.sign_ups import SignUpDef


class UserRows:
    """Writes rows of users as a `SignUp` says."""

    def __init__(self, write_engine: WriteEngine, sign_up: SignUpDef) -> None:
        self._write_engine = write_engine
        self._sign_up = sign_up
        self._view = write_engine.engine.model.trusted(False)

    async def create(self, session: Session, values: Mapping[str, Any], email: str) -> str:
        """Create the row of a new user, and return its id. Faults are under `fields`."""
        taken = {field.name for field in self._sign_up.fields}
        unknown = [name for name in values if name not in taken]
        if unknown:
            faults = [Fault(("fields", name), "there is no such field here") for name in unknown[:10]]
            raise Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)
        address = {self._sign_up.email.name: email} if self._sign_up.email else {}
        return await self._write(session, "create", {**values, **address})

    async def set_email(self, session: Session, id: str, email: str) -> None:
        """Set the address in the row of a user; a row that is gone is no fault."""
        if self._sign_up.email is None:
            return
        try:
            await self._write(session, "update", {self._sign_up.email.name: email}, id)
        except Refusal as refusal:
            if refusal.code is not Code.NOT_FOUND:
                raise

    async def _write(self, session: Session, verb: Any, values: Mapping[str, Any], id: str | None = None) -> str:
        resource = self._view.resources[self._sign_up.resource.name]
        builder = AskBuilder(self._view)
        key = builder.row_id(resource, None if id is None else RawValue(id, ("id",), fixed=True))
        assigned = builder.values(verb, resource, RawValue(dict(values), ("fields",), fixed=True))
        ask = Write(verb, resource.resource.name, key, assigned, None, (Field("id", "id"),))
        prepared = self._write_engine.prepare(builder.write(ask, ("fields",)), {}, self._view)
        (bound,) = self._write_engine.bind([WriteOp(prepared, {})], NOBODY)
        done = await session.drive(lambda: locked_steps(bound, self._write_engine.engine.store.dialect))
        return str(done.id)
