"""The claims about a user, for ID tokens and userinfo: from the account, and from the user's own row of the model.

The row is read under the rules of the model, as the user: a field that the user may not read is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from diptych.api.rest.target import Target
from diptych.errors import Code, Refusal
from diptych.identity.oauth.openid import email_claims, profile_claims, subject_of
from diptych.identity.records import Account
from diptych.identity.scopes import EMAIL, PROFILE
from diptych.identity.verified_emails import email_is_verified
from diptych.identity.viewer import Caller, Context
from diptych.model.declare.roles import Claims

ReadRow = Callable[[Target, Caller], Awaitable[bytes]]
"""Reads one row of the model as a caller may read it."""


class UserClaims:
    """Gets the claims about a user that the scopes of a token allow."""

    def __init__(self, context: Context, read_row: ReadRow) -> None:
        self._context = context
        self._read_row = read_row

    async def of(self, account: Account, scopes: Collection[str]) -> dict[str, Any]:
        """The claims about an account, besides `sub`."""
        found: dict[str, Any] = await self._profile(account) if PROFILE in scopes else {}
        if EMAIL not in scopes:
            return found
        return {**found, **email_claims(account, await email_is_verified(self._context.store, account))}

    async def _profile(self, account: Account) -> dict[str, Any]:
        model = self._context.model
        known = {"sub": subject_of(account), "account": account.id, "roles": list(account.roles)}
        try:
            viewer = model.viewer_of(Claims(account.user_id, frozenset(account.roles), None, 0, known))
        except ValueError:  # its own class does not take a value, as for the access token
            return {}
        if model.user is None or viewer is None or viewer.id is None:
            return {}
        try:
            row = await self._read_row(Target(model.user.name, viewer.id), Caller(viewer, model.signature(viewer)))
        except Refusal as refusal:
            if refusal.code in (Code.NOT_FOUND, Code.FORBIDDEN, Code.UNAUTHENTICATED):
                return {}
            raise
        return profile_claims(row, model.user)
