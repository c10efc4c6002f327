"""`SignUp`: people may make accounts by themselves. Without it in a model, only its owner makes them.

    Model(User, Post, sign_up=SignUp(email="email", fields=("name",)))

A person who proves an e-mail address, by a link that is sent there, gets an account and a row of the user resource,
in one transaction. The declaration is the rule of that row: these fields are filled in, and no other.
"""

from __future__ import annotations

from msgspec import Struct

from diptych.model.declare.roles import Role


class SignUp(Struct, frozen=True):
    """Sign-up by e-mail. `email` is the field of the user's row that gets the proven address; `fields` are those that
    the person fills in; `roles` are those of the new account."""

    email: str = ""
    fields: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
