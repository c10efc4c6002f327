"""The Model: the checked definitions of a model file, its viewers, and a cached View for each role signature."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from diptych.errors import Mistake, ModelError
from diptych.lru import LRUCache, declare
from diptych.model.call_defs import ScheduleDef
from diptych.model.declare.rate import Rate
from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import ANONYMOUS, SIGNED_IN, Claims, Role, Viewer
from diptych.model.declare.sign_up import SignUp
from diptych.model.declare.webhook import Webhook
from diptych.model.defs import ResourceDef
from diptych.model.naming import upper_first
from diptych.model.read.build import Builder
from diptych.model.read.viewers import canonical_viewer
from diptych.model.rules.expr import ViewerValue
from diptych.model.rules.looks import looked_at
from diptych.model.scalars import Scalar
from diptych.model.signature import Signature, roles_that_matter
from diptych.model.versions import all_versions
from diptych.model.view import TrustedView, View
from diptych.model.viewer_object import ByName, viewer_object

_NONE: frozenset[str] = frozenset()
_VIEWS, _VIEW_BYTES = 64, 16 << 20
_SIGNATURES = 1_000


class Model:
    """A model of resource classes: `Model(Author, Post)`. Raises ModelError with every mistake in them.

    `Model(…, viewer=Member)` has a viewer class of its own. `Model(…, title="Help desk")` names the service in
    its OpenAPI document; without one, it is named after the module of its first class. `description`, `contact` (with
    `name`, `url`, `email`) and `license` (an SPDX identifier, such as "MIT") are in that document too.
    `Model(…, user=Author)` says whose rows the viewers are; without it, they are those of the one resource whose ids
    rules compare with `viewer.id`.
    `Model(…, sign_up=SignUp(…))` lets people make accounts by themselves.
    `Model(…, webhooks=[Webhook(…)])` sends changes to addresses.
    `Model(…, rates=[Rate(requests=600, per="minute")])` limits how much callers may ask for.
    """

    def __init__(
        self,
        *classes: type[Resource],
        viewer: type[Viewer] = Viewer,
        title: str = "",
        user: type[Resource] | None = None,
        description: str = "",
        contact: Mapping[str, str] | None = None,
        license: str = "",
        sign_up: SignUp | None = None,
        webhooks: Sequence[Webhook] = (),
        rates: Sequence[Rate] = (),
    ) -> None:
        built = Builder(classes, viewer, user, sign_up, webhooks, rates)
        if built.mistakes:
            raise ModelError(built.mistakes)
        self.title = title or _title_of(classes)
        self.about = _about(description, contact or {}, license)
        """What the OpenAPI document says of the service, besides its title."""
        self.sign_up = built.sign_up
        """How people make accounts by themselves; None if they cannot."""
        self.webhooks = tuple(webhooks)
        """The webhooks that it declares."""
        self.rates = built.rates
        """How much callers may ask for in a time."""
        self.enums: tuple[Scalar, ...] = tuple(built.types.enums.values())
        self.roles: Mapping[str, Role] = built.roles
        self.schedules: Mapping[str, ScheduleDef] = built.schedules
        """The functions that run by the clock, by name."""
        self._job = built.job
        self._hold(built.resources, built.user)
        self.viewer_type = viewer
        self.viewer_values: Mapping[str, ViewerValue] = built.viewer_values
        self.anonymous = self._settled(viewer())
        self._closures = {name: role.closure() for name, role in self.roles.items()}

    def _hold(self, resources: Mapping[str, ResourceDef], user: str) -> None:
        """Set all that depends on the definitions of the resources."""
        self.user: ResourceDef | None = resources[user] if user else None
        """The resource whose rows the viewers are."""
        self.job: ResourceDef | None = resources[self._job] if self._job else None
        """The resource of jobs; None if nothing runs in the background."""
        self.resources: Mapping[str, ResourceDef] = ByName(resources, viewer_object(self.user), all_versions(resources))
        self.managed: Mapping[str, ResourceDef] = {
            name: resource for name, resource in self.resources.items() if resource.managed
        }
        """The resources whose tables Diptych makes and changes."""
        self.audited = {
            resource.table: resource.audit
            for resource in self.managed.values()
            if resource.audit is not None and resource.followed
        }
        """What is recorded of changes besides the rows, by table; empty if nothing is audited."""
        self._matter = roles_that_matter(self.resources.values())
        self.collections = {name: resource.collections for name, resource in self.resources.items()}
        self.calls = {
            name: {(call.on, call.segment): call.name for call in resource.calls}
            for name, resource in self.resources.items()
        }
        """The actions and queries of a resource, by (row or class, path segment)."""
        self.by_path: Mapping[str, ResourceDef] = {resource.path: resource for resource in self.resources.values()}
        self.views: LRUCache[View] = LRUCache("views of roles", _VIEWS, _VIEW_BYTES, keeps_one=True)
        self.trusted = functools.lru_cache(maxsize=8)(self._trusted)
        """The view of trusted model code (`tx.trusted`), for a viewer with an id or without, and with these values."""
        self.looked_at = looked_at(self.resources)
        """The fields that any rule reads from other rows."""

    def without_feed(self, *, existing: bool = False) -> Model:
        """The same model, whose changes nobody can follow, as no triggers log them.

        With `existing`, that is so only for tables that Diptych did not make.
        """
        twin = copy.copy(self)
        unfollowed = {
            name: replace(resource, followed=resource.followed and existing and resource.managed)
            for name, resource in self.resources.items()
        }
        twin._hold(unfollowed, self.user.name if self.user else "")
        return twin

    def signature(self, viewer: Viewer) -> Signature:
        """The part of a viewer on which schema and rules depend: viewers with equal signatures share plans."""
        scopes = viewer.scopes
        if scopes is not None:
            scopes = _canonical(scopes & self.scopes)
        knows = _NONE
        if self.viewer_values:
            knows = frozenset(name for name, value in viewer.all_known() if value is not None and value != [])
        return _signature(viewer.signed_in, viewer.id is not None, viewer.roles & self._matter, scopes, knows)

    def viewer(
        self,
        roles: frozenset[str],
        id: str | None = None,
        scopes: frozenset[str] | None = None,
        claims: Mapping[str, Any] | None = None,
    ) -> Viewer:
        """A signed-in viewer with these roles and all that they imply, as for a token with these claims."""
        viewer = self.viewer_of(Claims(id, roles, scopes, 0, claims or {}))
        if viewer is None:
            raise ValueError("the model's own code refuses this viewer")
        return viewer

    def viewer_of(self, claims: Claims) -> Viewer | None:
        """The viewer of a token, made by the model's own code and limited to the token's scopes; None if refused."""
        viewer = self.viewer_type.of(claims)
        if viewer is None:
            return None
        held = frozenset({SIGNED_IN}).union(*(self._closures.get(name, frozenset({name})) for name in viewer.roles))
        viewer = self._settled(dataclasses.replace(viewer, roles=held, scopes=claims.scopes, signed_in=True))
        expires = claims.get("exp")
        object.__setattr__(viewer, "_expires", expires if isinstance(expires, int) else None)
        object.__setattr__(viewer, "_claims", claims)
        return viewer

    def _settled(self, viewer: Viewer) -> Viewer:
        return canonical_viewer(viewer, self.viewer_values) if self.viewer_values else viewer

    def viewer_as(self, role: str) -> Viewer:
        """The viewer for `--as ROLE`: anonymous, signed_in, or a role of the model."""
        if role == ANONYMOUS:
            return self.anonymous
        return self.viewer(frozenset({role}), id="00000000-0000-7000-8000-000000000000")

    def view_as(self, role: str) -> View:
        """The most that a role could see and do: with a value for every field of the viewer class."""
        signature = self.signature(self.viewer_as(role))
        return self.view(signature if role == ANONYMOUS else replace(signature, knows=frozenset(self.viewer_values)))

    @functools.cached_property
    def scopes(self) -> frozenset[str]:
        """All OAuth scopes: `read`, `write`, and both for each resource."""
        paths = [resource.path for resource in self.resources.values()]
        return frozenset({"read", "write", *(f"{path}:{kind}" for path in paths for kind in ("read", "write"))})

    @functools.cached_property
    def job_names(self) -> tuple[str, ...]:
        """The names of all jobs that it can run: the root fields of actions, and its schedules."""
        calls = (call for resource in self.resources.values() for call in resource.calls)
        return (*(call.root for call in calls if call.background), *self.schedules)

    @functools.cached_property
    def role_names(self) -> tuple[str, ...]:
        """The roles that `--as` accepts."""
        return (ANONYMOUS, SIGNED_IN, *(name for name in self.roles if name != SIGNED_IN))

    def _trusted(self, has_id: bool, knows: frozenset[str] = frozenset()) -> View:
        return TrustedView(self.resources, (SIGNED_IN, *self.roles), has_id, knows)

    def view(self, signature: Signature) -> View:
        view = self.views.get(signature)
        if view is None:
            view = View(self.resources, signature)
            self.views.put(signature, view, view.size)
        return view


def _title_of(classes: Sequence[type[Resource]]) -> str:
    """`shop.help_desk` → "Help desk"."""
    module = classes[0].__module__.rpartition(".")[2].strip("_").replace("_", " ") if classes else ""
    return upper_first(module) if module not in ("", "main") else "Diptych"


def _about(description: str, contact: Mapping[str, str], license: str) -> dict[str, Any]:
    """The members of `info` in the OpenAPI document."""
    if unknown := contact.keys() - {"name", "url", "email"}:
        cause = f"contact has {', '.join(sorted(unknown))}"
        raise ModelError([Mistake("Model", cause, "Use name, url and email")])
    about: dict[str, Any] = {"description": description} if description else {}
    if contact:
        about["contact"] = dict(contact)
    if license:
        about["license"] = {"name": license, "identifier": license}
    return about


def _canonical(scopes: frozenset[str]) -> frozenset[str]:
    """Remove the scopes that another one includes: `read` includes `users:read`."""
    return frozenset(scope for scope in scopes if ":" not in scope or scope.rpartition(":")[2] not in scopes)


@functools.lru_cache(maxsize=_SIGNATURES)
def _signature(
    signed_in: bool, has_id: bool, roles: frozenset[str], scopes: frozenset[str] | None, knows: frozenset[str]
) -> Signature:
    """Intern signatures, so that they compare quickly."""
    return Signature(signed_in, has_id, roles, scopes, knows)


declare(_signature, "signatures of viewers", 4_096)
