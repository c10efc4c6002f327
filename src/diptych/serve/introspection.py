"""Who may read the descriptions of the service: GraphQL introspection and `/openapi.json`.

Everyone, by default: what a role may never see is not in them, so they reveal nothing but what it could ask for anyway.
With `introspection_roles`, only those with one of these roles; with `introspection` off, nobody.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from diptych.config import Config
from diptych.errors import Code, Refusal, StartError
from diptych.model.declare.roles import SIGNED_IN, Viewer


class Introspection(Struct, frozen=True):
    """Whether there is introspection, and the roles that it is for; none are all."""

    is_on: bool = True
    roles: frozenset[str] = frozenset()

    @staticmethod
    def of(config: Config, roles: Collection[str]) -> Introspection:
        """The introspection of these settings, for a model with these roles."""
        for name in config.introspection_roles:
            if name != SIGNED_IN and name not in roles:
                raise StartError(f"introspection_roles has {name!r}, which is no role of the model.")
        return Introspection(config.introspection, frozenset(config.introspection_roles))

    @property
    def depends(self) -> bool:
        """Does it depend on the viewer? Then no answer to it may be reused for another one."""
        return bool(self.roles)

    def is_for(self, viewer: Viewer) -> bool:
        if not self.is_on or not self.roles:
            return self.is_on
        return bool(self.roles & viewer.roles) or (viewer.signed_in and SIGNED_IN in self.roles)

    def check(self, viewer: Viewer) -> None:
        """Refuse a viewer that it is not for."""
        if not self.is_on:
            raise Refusal(Code.FORBIDDEN, "Introspection is disabled.")
        if self.is_for(viewer):
            return
        if viewer.signed_in:
            raise Refusal(Code.FORBIDDEN, "Introspection is not for your roles.")
        raise Refusal(Code.UNAUTHENTICATED, "You need to sign in for introspection.")
