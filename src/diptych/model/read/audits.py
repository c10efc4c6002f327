"""Reads `audit=`: what is recorded of the changes of a resource, and who may see it.

class Post(Resource, audit=Audited(history=True))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diptych.model.audit_def import AuditDef
from diptych.model.declare.audited import Audited
from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import Role
from diptych.model.defs import FieldDef, RelationDef
from diptych.model.naming import NameFault, camel, snake
from diptych.model.versions import HISTORY, PARTS


def _roles(declared: object) -> tuple[Role, ...]:
    return declared if isinstance(declared, tuple) else (declared,) if isinstance(declared, Role) else ()


def named_roles(cls: type[Resource]) -> list[Role]:
    """The roles that its audit names."""
    audit = cls.__diptych__["audit"]
    return [*_roles(audit.history), *_roles(audit.actors)] if isinstance(audit, Audited) else []


def audit_faults(
    cls: type[Resource], fields: Mapping[str, FieldDef], relations: Mapping[str, RelationDef], *, managed: bool
) -> Iterator[NameFault]:
    """The faults of the audit of a class."""
    audit = cls.__diptych__["audit"]
    if audit is None:
        return
    if not isinstance(audit, Audited):
        yield f"audit={audit!r} is no Audited", 'Write audit=Audited(), or audit=Audited(reason="required")'
        return
    if not managed:
        yield "changes of a table that Diptych does not manage cannot be audited", "Leave out audit="
    if audit.reason not in ("", "optional", "required"):
        yield f"reason={audit.reason!r} is unknown", 'Write reason="optional" or reason="required"'
    if not isinstance(audit.history, bool) and not _are_roles(audit.history):
        yield f"history={audit.history!r} is neither a bool nor roles", "Write history=True, or history=staff"
    if not _are_roles(audit.actors):
        yield f"actors={audit.actors!r} are no roles", "Write actors=admin, or a tuple of roles"
    attrs = {field.attr for field in fields.values() if field.stored and not field.is_server_set}
    for name in _names(audit.masked):
        if name not in attrs:
            yield f"masked={name!r} is no field of it", "Name a field that is stored"
    if audit.history:
        yield from _history_faults(cls, {*fields, *relations})


def _history_faults(cls: type[Resource], names: set[str]) -> Iterator[NameFault]:
    for name in (HISTORY, HISTORY + "Connection"):
        if name in names:
            yield f"the name {name} is also that of its versions", "Rename the field"
    if (one := camel(snake(cls.__name__))) in PARTS:
        yield f"the name {one} is also that of a part of every version", "Rename the class"


def _are_roles(declared: object) -> bool:
    return isinstance(declared, Role) or (
        isinstance(declared, tuple) and all(isinstance(role, Role) for role in declared)
    )


def _names(masked: object) -> tuple[str, ...]:
    return masked if isinstance(masked, tuple) else (str(masked),) if masked else ()


def audit_of(cls: type[Resource], fields: Mapping[str, FieldDef]) -> AuditDef | None:
    """What is recorded of its changes; None if nothing is, or if it is declared wrongly."""
    audit = cls.__diptych__["audit"]
    if not isinstance(audit, Audited):
        return None
    readers = None if audit.history is True else tuple(role.name for role in _roles(audit.history))
    masked = [field.column for field in fields.values() if field.attr in _names(audit.masked)]
    has_history = audit.history is not False and audit.history != ()
    actors = tuple(role.name for role in _roles(audit.actors))
    return AuditDef(audit.reason, has_history, readers, actors, tuple(masked))
