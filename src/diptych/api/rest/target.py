"""The targets of REST paths: a path → what it names in the model.

/posts                   a collection           /posts/<id>/publish      a call of the model's own code
/posts/<id>              one resource           /posts/changes           the changes of a collection
/users/<id>/posts        a relation of it       /posts/batch             where several rows are created
/posts/<id>/tags/<id>    a link of two rows
/posts/<id>/restore      where a deleted row is restored
/posts/summary           numbers of its rows    /posts/groups            groups of its rows
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.nesting import link_key
from diptych.model.view import View, not_yours
from diptych.model.viewer_object import ROOT as VIEWER_PATH
from diptych.model.viewer_object import VIEWER

PATH_ID = "{id}"
"""The id in the name of an operation, and among the inputs of a request."""
OTHER_ID = "{other}"
"""The id behind a relation."""
_RESERVED = frozenset(("changes", "summary", "groups", "batch"))
"""Segments after a collection that are no id."""
RESTORE = "restore"
"""The last segment of the path on which a deleted row is restored."""


CANCEL = "cancel"
"""The action that a DELETE on a job is."""


class Target(NamedTuple):
    """The target of a path: a collection, one resource, a relation of it, a call of the model's own code, the changes
    of a collection, numbers or groups of its rows, where several rows of it are created, where a deleted row is
    restored, or the viewer."""

    resource: str
    id: str | None = None
    relation: str = ""
    call: str = ""
    changes: bool = False
    batch: bool = False
    restore: bool = False
    numbers: str = ""
    """`summary` or `groups`."""
    other: str | None = None
    """The row behind a many-to-many relation: the path of their link."""


def find_target(path: str, model: Model) -> Target | None:
    """Parse a path; None if it names nothing. It is split before it is decoded: %2F does not split."""
    parts = path[1:].split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    resource = model.by_path.get(parts[0])
    if resource is None or len(parts) > 3 or (len(parts) > 1 and not parts[1]):
        if resource is not None and len(parts) == 4:
            return _link(resource, parts, model)
        return Target(VIEWER) if parts == [VIEWER_PATH] else None
    if len(parts) == 1:
        return Target(resource.name)
    calls = model.calls[resource.name]
    if len(parts) == 2:
        if parts[1] in _RESERVED and (reserved := _reserved(resource, parts[1])) is not None:
            return reserved
        call = calls.get(("class", parts[1]), "") if calls else ""
        return Target(resource.name, None if call else parts[1], "", call)
    relation = model.collections[resource.name].get(parts[2])
    if relation is not None:
        return Target(resource.name, parts[1], relation)
    if parts[2] == RESTORE and resource.trash:
        return Target(resource.name, parts[1], restore=True)
    call = calls.get(("row", parts[2]), "")
    return Target(resource.name, parts[1], "", call) if call else None


def _reserved(resource: ResourceDef, segment: str) -> Target | None:
    """The target of a reserved segment after a collection; None if this one has it not."""
    if segment == "changes":
        return Target(resource.name, changes=True)
    if segment == "batch":
        return Target(resource.name, batch=True) if resource.offers("create") else None
    return Target(resource.name, numbers=segment)


def _link(resource: ResourceDef, parts: list[str], model: Model) -> Target | None:
    """The link of two rows, where a unique key says that there is one."""
    relation = resource.relations.get(model.collections[resource.name].get(parts[2], ""))
    if relation is None or not relation.link or not (parts[1] and parts[3]):
        return None
    if not link_key(model.resources[relation.link], relation):
        return None
    return Target(resource.name, parts[1], relation.name, other=parts[3])


def cancelling(method: str, target: Target, model: Model) -> Target:
    """The action that cancels a job, where a DELETE is that; any other target as it is."""
    if method != "DELETE" or target.id is None or target != Target(target.resource, target.id):
        return target
    return target._replace(call=CANCEL) if model.resources[target.resource].is_job else target


def check_target(target: Target, view: View) -> None:
    """Refuse a collection that other roles have and this one has not."""
    resource = view.resources.get(target.resource)
    if resource is None or not resource.may("read") or (target.relation and target.relation not in resource.relations):
        raise not_yours(view)


def operation_name(method: str, target: Target, model: Model) -> str:
    """The name of a request for checks: `GET /users/{id}/posts`."""
    if target.resource == VIEWER:
        return f"{method} /{VIEWER_PATH}"
    calls, collections = model.calls[target.resource], model.collections[target.resource]
    last = [segment for (_, segment), name in calls.items() if name == target.call]
    last += [segment for segment, name in collections.items() if name == target.relation]
    last += [RESTORE] * target.restore + [OTHER_ID] * (target.other is not None)
    parts = [model.resources[target.resource].path, *[PATH_ID] * (target.id is not None), *last]
    parts += [target.numbers] * (target.numbers != "")
    return f"{method} /{'/'.join([*parts, *['changes'] * target.changes, *['batch'] * target.batch])}"
