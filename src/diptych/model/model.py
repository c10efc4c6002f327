"""The Model: all that a model file declares, understood and checked; and the View of it for each role."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from diptych.errors import ModelError
from diptych.lru import LRUCache, declare
from diptych.model.build import Builder
from diptych.model.defs import ResourceDef
from diptych.model.expr import ViewerValue
from diptych.model.looks import looked_at
from diptych.model.naming import upper_first
from diptych.model.resource import Resource
from diptych.model.roles import ANONYMOUS, SIGNED_IN, Claims, Role, Viewer
from diptych.model.scalars import Scalar
from diptych.model.view import Signature, TrustedView, View, roles_that_matter
from diptych.model.viewers import settled

_NONE: frozenset[str] = frozenset()
_VIEWS, _VIEW_BYTES = 64, 16 << 20
_SIGNATURES = 1_000


class Model:
    """`Model(Author, Post)`: raises ModelError with every mistake that the classes have.

    `Model(…, viewer=Member)` serves viewers of a class of its own. `Model(…, title="Help desk")` names the service in
    its OpenAPI document; without one, it is named after the module of its first class.
    """

    def __init__(self, *classes: type[Resource], viewer: type[Viewer] = Viewer, title: str = "") -> None:
        built = Builder(classes, viewer)
        if built.mistakes:
            raise ModelError(built.mistakes)
        self.title = title or _title_of(classes)
        self.resources: Mapping[str, ResourceDef] = built.resources
        self.enums: tuple[Scalar, ...] = tuple(built.enums.values())
        self.roles: Mapping[str, Role] = built.roles
        self._matter = roles_that_matter(self.resources.values())
        self.collections = {name: found.collections for name, found in self.resources.items()}
        self.calls = {name: _by_segment(found) for name, found in self.resources.items()}
        """The actions and queries of a resource, by whether they are on a row or the class, and their segment."""
        self.by_path: Mapping[str, ResourceDef] = {found.path: found for found in self.resources.values()}
        self.views: LRUCache[View] = LRUCache("views of roles", _VIEWS, _VIEW_BYTES, largest=1)
        self.trusted = functools.lru_cache(maxsize=2)(self._trusted)
        """The view of code that the model trusts, for a viewer with an id or without."""
        self.viewer_type = viewer
        self.viewer_values: Mapping[str, ViewerValue] = built.viewer_values
        self.anonymous = self._settled(viewer())
        self.looked_at = looked_at(self.resources)
        """What any rule looks at from another row."""
        self._closures = {name: role.closure() for name, role in self.roles.items()}

    def signature(self, viewer: Viewer) -> Signature:
        """What of a viewer can change an answer's shape: equal signatures see the same schema and rules."""
        scopes = viewer.scopes
        if scopes is not None:
            scopes = _canonical(scopes & self.scopes)
        knows = _NONE
        if self.viewer_values:
            knows = frozenset(name for name, value in viewer.all_known() if value is not None and value != [])
        return _signature(viewer.signed_in, viewer.id is not None, viewer.roles & self._matter, scopes, knows)

    def viewer(
        self, roles: frozenset[str], id: str | None = None, scopes: frozenset[str] | None = None,
        claims: Mapping[str, Any] | None = None,
    ) -> Viewer:  # fmt: skip
        """A signed-in viewer with these roles and all that they imply: whom a token with all this would mean."""
        found = self.viewer_of(Claims(id, roles, scopes, 0, claims or {}))
        if found is None:
            raise ValueError("the model's own code refuses this viewer")
        return found

    def viewer_of(self, claims: Claims) -> Viewer | None:
        """The viewer whom a token means, if any: by the model's own code, within the scopes of the token."""
        found = self.viewer_type.of(claims)
        if found is None:
            return None
        held = frozenset({SIGNED_IN}).union(*(self._closures.get(name, frozenset({name})) for name in found.roles))
        return self._settled(replace(found, roles=held, scopes=claims.scopes, signed_in=True))

    def _settled(self, viewer: Viewer) -> Viewer:
        return settled(viewer, self.viewer_values) if self.viewer_values else viewer

    def viewer_as(self, role: str) -> Viewer:
        """The viewer that `--as ROLE` means: anonymous, signed_in, or a role of the model."""
        if role == ANONYMOUS:
            return self.anonymous
        return self.viewer(frozenset({role}), id="00000000-0000-7000-8000-000000000000")

    def view_as(self, role: str) -> View:
        """What a role could ever see and do: whoever has it may have any value that rules ask of a viewer."""
        signature = self.signature(self.viewer_as(role))
        return self.view(signature if role == ANONYMOUS else replace(signature, knows=frozenset(self.viewer_values)))

    @functools.cached_property
    def scopes(self) -> frozenset[str]:
        each = (f"{found.path}:{kind}" for found in self.resources.values() for kind in ("read", "write"))
        return frozenset({"read", "write", *each})

    @functools.cached_property
    def role_names(self) -> tuple[str, ...]:
        """Every role that `--as` takes."""
        return (ANONYMOUS, SIGNED_IN, *(name for name in self.roles if name != SIGNED_IN))

    def _trusted(self, has_id: bool) -> View:
        return TrustedView(self.resources, (SIGNED_IN, *self.roles), has_id)

    def view(self, signature: Signature) -> View:
        """What viewers of a signature may see."""
        found = self.views.get(signature)
        if found is None:
            found = View(self.resources, signature)
            self.views.put(signature, found, found.size)
        return found


def _title_of(classes: Sequence[type[Resource]]) -> str:
    """`shop.help_desk` → "Help desk"."""
    module = classes[0].__module__.rpartition(".")[2].strip("_").replace("_", " ") if classes else ""
    return upper_first(module) if module not in ("", "main") else "Diptych"


def _canonical(scopes: frozenset[str]) -> frozenset[str]:
    """The same scopes without those that another one of them includes: `read` includes `users:read`."""
    return frozenset(each for each in scopes if ":" not in each or each.rpartition(":")[2] not in scopes)


def _by_segment(found: ResourceDef) -> dict[tuple[str, str], str]:
    return {(call.on, call.segment): call.name for call in found.calls}


@functools.lru_cache(maxsize=_SIGNATURES)
def _signature(
    signed_in: bool, has_id: bool, roles: frozenset[str], scopes: frozenset[str] | None, knows: frozenset[str]
) -> Signature:
    """One object for equal signatures, so that they are told apart quickly."""
    return Signature(signed_in, has_id, roles, scopes, knows)


declare(_signature, "signatures of viewers", 4_096)
