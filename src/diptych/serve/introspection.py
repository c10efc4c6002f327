"""Who may read the descriptions of the service: GraphQL introspection and `/openapi.json`.

Everyone, by default: what a role may never see is not in them, so they reveal nothing but what it could ask for anyway.
With `introspection_roles`, only those with one of these roles; with `introspection` off, nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from diptych.config import Config
from diptych.errors import Code, Refusal, StartError
from diptych.model.declare.roles import SIGNED_IN, Viewer


def known_roles(setting: str, names: Iterable[str], roles: Collection[str]) -> frozenset[str]:
    """The roles of a setting, which must be roles of the model or `signed_in`."""
    for name in names:
        if name != SIGNED_IN and name not in roles:
            raise StartError(f"{setting} has {name!r}, which is no role of the model.")
    return frozenset(names)


def is_one_of(viewer: Viewer, roles: frozenset[str]) -> bool:
    """Has a viewer one of these roles?"""
    return bool(roles & viewer.roles) or (viewer.signed_in and SIGNED_IN in roles)


class Introspection(Struct, frozen=True):
    """Whether there is introspection, and the roles that it is for; none are all."""

    is_on: bool = True
    roles: frozenset[str] = frozenset()

    @staticmethod
    def of(config: Config, roles: Collection[str]) -> Introspection:
        """The introspection of these settings, for a model with these roles."""
        return Introspection(
            config.introspection, known_roles("introspection_roles", config.introspection_roles, roles)
        )

    @property
    def depends(self) -> bool:
        """Does the answer to introspection depend on the viewer? Then no answer to it may be reused for another one."""
        return bool(self.roles)

    def is_for(self, viewer: Viewer) -> bool:
        if not self.is_on or not self.roles:
            return self.is_on
        return is_one_of(viewer, self.roles)

    def check(self, viewer: Viewer) -> None:
        """Refuse a viewer that it is not for."""
        if not self.is_on:
            raise Refusal(Code.FORBIDDEN, "Introspection is disabled.")
        if self.is_for(viewer):
            return
        if viewer.signed_in:
            raise Refusal(Code.FORBIDDEN, "Introspection is not for your roles.")
        raise Refusal(Code.UNAUTHENTICATED, "You need to sign in for introspection.")
