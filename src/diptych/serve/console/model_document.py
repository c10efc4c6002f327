"""The document of `/console/api/model`: made once for each role signature, in time slices, and kept."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from diptych.api.reply import JSON_TYPE, NO_STORE, Reply
from diptych.engine.read import Engine
from diptych.identity.viewer import Caller
from diptych.lru import LRUCache
from diptych.model.declare.roles import SIGNED_IN, Viewer
from diptych.serve.console.describe import describe_resources
from diptych.serve.console.paced import encode_list

_KEPT, _BYTES = 16, 16 << 20


class ModelDocuments:
    """Makes and caches the documents of one service."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._kept: LRUCache[bytes] = LRUCache("console's models", _KEPT, _BYTES, keeps_one=True)
        self._building: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    async def reply(self, caller: Caller, *, admin: bool) -> Reply:
        """The model for a caller. Names of roles that one does not have are for admins."""
        model, limits, viewer = self.engine.model, self.engine.limits, caller.viewer
        head: dict[str, Any] = {
            "title": model.title,
            "description": model.about.get("description", ""),
            "roles": list(model.role_names) if admin else _roles(viewer),
            "admin": admin,
            "viewer": _viewer(viewer) if viewer.signed_in else None,
            "limits": {"depth": limits.depth, "cost": limits.complexity, "page": limits.page, "bulk": limits.bulk},
        }
        resources = await self._resources(caller)
        body = b"".join((msgspec.json.encode(head)[:-1], b',"resources":', resources, b"}"))
        return Reply(200, ((b"content-type", JSON_TYPE), *NO_STORE), body)

    async def _resources(self, caller: Caller) -> bytes:
        key = caller.signature
        kept = self._kept.get(key)
        if kept is None:
            lock = self._building.setdefault(key, asyncio.Lock())
            async with lock:  # one build for all who ask at the same time
                kept = self._kept.get(key) or await self._build(caller)
                self._kept.put(key, kept, len(kept))
        return kept

    async def _build(self, caller: Caller) -> bytes:
        budget = self.engine.planning_budget
        with budget.planning():
            view = self.engine.model.view(caller.signature)
        return await encode_list(describe_resources(view), budget)


def _roles(viewer: Viewer) -> list[str]:
    return sorted(viewer.roles - {SIGNED_IN})


def _viewer(viewer: Viewer) -> dict[str, Any]:
    scopes = None if viewer.scopes is None else sorted(viewer.scopes)
    return {"id": viewer.id, "name": viewer.id, "roles": _roles(viewer), "scopes": scopes}
