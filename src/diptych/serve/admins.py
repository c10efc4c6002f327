"""Recognises admins: `diptych dev` explains refusals to them, and they may use the admin pages of the console."""

from __future__ import annotations

from diptych.identity.tokens import COMMAND_LINE, Tokens
from diptych.identity.viewer import Caller
from diptych.model.model import Model


def admin_roles(model: Model) -> list[str]:
    """The roles of an admin: `admin`, or all of them if there is no such role. A model without roles has none."""
    return [name for name in model.roles if name == "admin"] or list(model.roles)


def is_admin(caller: Caller, model: Model, tokens: Tokens) -> bool:
    """Is this caller an admin? In a model without roles, that is a token of the command line without a user.

    `dev` prints such a token; anyone who can make one can read the database.
    """
    wanted = admin_roles(model)
    if wanted:
        return caller.viewer.signed_in and caller.viewer.roles.issuperset(wanted)
    claims = caller.claims
    if claims is None or claims.subject is not None:
        return False
    return tokens.is_ours(claims.get("iss")) and claims.get("client_id") == COMMAND_LINE
