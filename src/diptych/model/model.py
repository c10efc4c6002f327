"""The Model: all that a model file declares, understood and checked; and the View of it for each role."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from diptych.errors import ModelError
from diptych.model.build import Builder
from diptych.model.defs import ResourceDef
from diptych.model.resource import Resource
from diptych.model.roles import ANONYMOUS, SIGNED_IN, Role, Viewer
from diptych.model.scalars import Scalar
from diptych.model.view import Signature, TrustedView, View, roles_that_matter


class Model:
    """`Model(Author, Post)`: raises ModelError with every mistake that the classes have."""

    def __init__(self, *classes: type[Resource]) -> None:
        built = Builder(classes)
        if built.mistakes:
            raise ModelError(built.mistakes)
        self.resources: Mapping[str, ResourceDef] = built.resources
        self.enums: tuple[Scalar, ...] = tuple(built.enums.values())
        self.roles: Mapping[str, Role] = built.roles
        self._matter = roles_that_matter(self.resources.values())
        self.collections = {name: found.collections for name, found in self.resources.items()}
        self.calls = {name: _by_segment(found) for name, found in self.resources.items()}
        """The actions and queries of a resource, by whether they are on a row or the class, and their segment."""
        self.by_path: Mapping[str, ResourceDef] = {found.path: found for found in self.resources.values()}
        self.view = functools.lru_cache(maxsize=64)(self._view)
        self.trusted = functools.lru_cache(maxsize=2)(self._trusted)
        """The view of code that the model trusts, for a viewer with an id or without."""
        self._closures = {name: role.closure() for name, role in self.roles.items()}

    def signature(self, viewer: Viewer) -> Signature:
        """What of a viewer can change an answer's shape: equal signatures see the same schema and rules."""
        scopes = viewer.scopes
        if scopes is not None:
            scopes = scopes & self._scopes
        return _signature(viewer.signed_in, viewer.id is not None, viewer.roles & self._matter, scopes)

    def viewer(
        self, roles: frozenset[str], id: str | None = None, scopes: frozenset[str] | None = None
    ) -> Viewer:
        """A signed-in viewer with these roles and all that they imply."""
        held = frozenset({SIGNED_IN}).union(*(self._closures.get(name, frozenset({name})) for name in roles))
        return Viewer(id, held, scopes, True)

    def viewer_as(self, role: str) -> Viewer:
        """The viewer that `--as ROLE` means: anonymous, signed_in, or a role of the model."""
        if role == ANONYMOUS:
            return Viewer()
        return self.viewer(frozenset({role}), id="00000000-0000-7000-8000-000000000000")

    @functools.cached_property
    def _scopes(self) -> frozenset[str]:
        each = (f"{found.path}:{kind}" for found in self.resources.values() for kind in ("read", "write"))
        return frozenset({"read", "write", *each})

    @functools.cached_property
    def role_names(self) -> tuple[str, ...]:
        """Every role that `--as` takes."""
        return (ANONYMOUS, SIGNED_IN, *(name for name in self.roles if name != SIGNED_IN))

    def _trusted(self, has_id: bool) -> View:
        return TrustedView(self.resources, (SIGNED_IN, *self.roles), has_id)

    def _view(self, signature: Signature) -> View:
        return View(self.resources, signature)


def _by_segment(found: ResourceDef) -> dict[tuple[str, str], str]:
    return {(call.on, call.segment): call.name for call in found.calls}


@functools.lru_cache(maxsize=1_000)
def _signature(
    signed_in: bool, has_id: bool, roles: frozenset[str], scopes: frozenset[str] | None
) -> Signature:
    """One object for equal signatures, so that they are told apart quickly."""
    return Signature(signed_in, has_id, roles, scopes)
