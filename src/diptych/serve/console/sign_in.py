"""Tokens of the console in `diptych dev`: for the code that the terminal prints, and for viewing as someone else.

`diptych serve` has neither: people sign in by OAuth, and nobody gets a token of another.
"""

from __future__ import annotations

from typing import Any

from diptych.db.store import Store
from diptych.errors import Code, Fault, Refusal
from diptych.identity.accounts import Accounts
from diptych.identity.console_code import use_console_code
from diptych.identity.viewer import Context
from diptych.model.declare.roles import ANONYMOUS, SIGNED_IN
from diptych.model.model import Model
from diptych.serve.admins import admin_roles

_LIFETIME, _AS_LIFETIME = 86_400, 3_600


class DevSignIn:
    """Makes tokens during development."""

    def __init__(self, model: Model, context: Context, store: Store) -> None:
        self.model = model
        self.context = context
        self.store = store

    async def by_code(self, body: dict[str, Any]) -> dict[str, Any]:
        """A token of the admin for the code of the terminal, once."""
        code = body.get("code")
        account = await use_console_code(self.store, code) if isinstance(code, str) else None
        if account is None:
            raise Refusal(Code.BAD_REQUEST, "The code was used before, or is not valid. A new start prints a new one.")
        return self._token(account[0], admin_roles(self.model), "admin", _LIFETIME)

    async def view_as(self, body: dict[str, Any]) -> dict[str, Any]:
        """A token with a role, or of a user with the roles of its account."""
        role, user = body.get("role"), body.get("user")
        if role is None and isinstance(user, str) and user:
            accounts = await Accounts(self.store, self.context.revoked).all()
            account = next((account for account in accounts if account.user_id == user), None)
            return self._token(user, account.roles if account else (), account.email if account else user, _AS_LIFETIME)
        if not isinstance(role, str) or role not in self.model.role_names or not isinstance(user, str | None):
            raise Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [Fault(("body", "role"), "expected a role")])
        if role == ANONYMOUS:
            return {"accessToken": None, "expiresIn": _AS_LIFETIME, "name": role}
        return self._token(user, () if role == SIGNED_IN else (role,), role, _AS_LIFETIME)

    def _token(self, user: str | None, roles: Any, name: str, ttl: int) -> dict[str, Any]:
        token = self.context.tokens.make(user, roles, None, ttl=ttl)
        return {"accessToken": token, "expiresIn": ttl, "name": name}
