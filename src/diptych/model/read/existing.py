"""Reads where the rows of a resource are: `table=`, `view=`, `key=` and `managed=`.

    table="tbl_person"                                      Diptych makes the table, under this name
    table="Album", key="AlbumId", managed=False             the table exists, and stays as it is
    table="entry", key=("list_id", "place"), managed=False  the id of a row is made of two columns
    view="sales_by_day", key="day", ids="text"              a view exists, and is read only

A table that Diptych did not make has no columns of Diptych: the version of a row is a digest of its values, and there
are no times of its own. Triggers log its changes only with `triggers=True`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from diptych.model.declare.markers import Counter
from diptych.model.declare.resource import Resource, VerbGrant, allowances
from diptych.model.defs import NATURAL, FieldDef, RelationDef
from diptych.model.naming import LONGEST, NameFault, column_fault, table_fault
from diptych.model.rules.expr import RowDigest
from diptych.model.scalars import TEXT_ID

TIMES = ("created_at", "updated_at")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_READS = ("read", "export")


def table_name(cls: type[Resource], stem: str) -> str:
    """The name of the table or view of a resource."""
    declared = cls.__diptych__["view"] or cls.__diptych__["table"]
    return declared if isinstance(declared, str) and declared else stem.replace("-", "_")


def is_managed(cls: type[Resource]) -> bool:
    """Does Diptych make and change the table?"""
    return bool(cls.__diptych__["managed"]) and not cls.__diptych__["view"]


def key_columns(cls: type[Resource]) -> tuple[str, ...]:
    """The columns of the primary key."""
    declared = cls.__diptych__["key"] or "id"
    return (declared,) if isinstance(declared, str) else tuple(declared)


def place_faults(cls: type[Resource]) -> Iterator[NameFault]:
    """The mistakes in the `table=` or `view=` of a resource."""
    said = cls.__diptych__
    if said["table"] and said["view"]:
        yield "it is a table and a view", "Give table= or view="
    for name in (said["table"], said["view"]):
        if name and (fault := table_fault(name)):
            yield fault
    columns = key_columns(cls)
    if not columns or len(set(columns)) < len(columns) or any(map(column_fault, columns)):
        yield f"key={said['key']!r} names no columns", 'Write key="person_id", or key=("list_id", "position")'
    if is_managed(cls):
        yield from _managed_faults(cls)
    else:
        yield from _unmanaged_faults(cls)


def _managed_faults(cls: type[Resource]) -> Iterator[NameFault]:
    said = cls.__diptych__
    if said["key"]:
        yield "the key of a table that Diptych makes is id", "Remove key=, or write managed=False"
    if said["ids"] in NATURAL:
        yield f"ids={said['ids']!r} is for a table that exists", 'Write managed=False, or ids="client"'
    if said["table"] and not _PLAIN.fullmatch(str(said["table"])):
        yield f"the table {said['table']!r} is not made by Diptych", "Use letters, digits and _, or write managed=False"
    if said["triggers"]:
        yield "triggers= is for a table that exists", "Remove it: a table that Diptych makes has them"


def _unmanaged_faults(cls: type[Resource]) -> Iterator[NameFault]:
    said = cls.__diptych__
    if said["trash"] is not None:
        yield "a trash needs a table that Diptych makes", "Remove trash="
    if cls.search is not None:
        yield "a search needs a table that Diptych makes", "Remove search"
    if said["view"]:
        if said["triggers"]:
            yield "a view has no triggers", "Remove triggers="
        access = cls.access if isinstance(cls.access, tuple) else ()
        verbs: set[str] = {verb for grant in access if isinstance(grant, VerbGrant) for verb in grant.verbs}
        verbs |= {verb for member in vars(cls).values() for note in allowances(member) for verb in note.verbs}
        if verbs - {*_READS}:
            yield "a view is read only", 'Grant "read" and "export" alone'


Report = Callable[[str, str, str], None]
"""Reports what is wrong with a member, and how to fix it."""


def settle_columns(
    cls: type[Resource],
    fields: Mapping[str, FieldDef],
    relations: Mapping[str, RelationDef],
    wrong: Report,
) -> dict[str, FieldDef]:
    """The fields as the table has them; reports columns that two fields have, or that Diptych cannot make."""
    settled = dict(fields) if is_managed(cls) else _of_existing(cls, fields, wrong)
    owners: dict[str, str] = {}
    for field in settled.values():
        if not field.stored:
            continue
        attr = relations[field.relation].attr if field.relation in relations else field.attr
        other = owners.setdefault(field.column.lower(), attr)
        if other != attr:
            wrong(attr, f"the column {field.column} is also that of '{other}'", "Give another Column(…)")
        if is_managed(cls) and (field.cast or not _PLAIN.fullmatch(field.column) or len(field.column) > LONGEST):
            cause = f"Diptych makes no column {field.column!r} of this type"
            wrong(attr, cause, "Use letters, digits and _ without a type, or write managed=False")
    return settled


def _of_existing(cls: type[Resource], fields: Mapping[str, FieldDef], wrong: Report) -> dict[str, FieldDef]:
    """The fields of a table that Diptych did not make: without times, and with a digest as the version."""
    columns = key_columns(cls)
    settled: dict[str, FieldDef] = {}
    for name, field in fields.items():
        if field.counts is not None:
            wrong(field.attr, "a counter needs a table that Diptych makes", f"Remove {Counter.__name__}")
        elif field.attr == "id" and len(columns) > 1:
            settled[name] = replace(field, column="", scalar=TEXT_ID, description=_KEY)
        elif field.attr == "id":
            settled[name] = replace(field, column=columns[0])
        elif field.attr == "version":
            settled[name] = replace(field, column="", computed=RowDigest(), description=_VERSION)
        elif field.attr not in TIMES:
            settled[name] = field
    stored = {field.column for field in settled.values() if field.stored}
    for column in columns if len(columns) > 1 else ():
        if column not in stored:
            wrong(
                "", f"no field has the column {column} of its key", f'Declare it: … = Annotated[…, Column("{column}")]'
            )
    return settled


_KEY = "The columns of its primary key, as one text."
_VERSION = "A digest of the row, by which a change of it is noticed."


def table_options(cls: type[Resource]) -> dict[str, Any]:
    """The fields of a ResourceDef about the table or view that its rows are in."""
    return {
        "managed": is_managed(cls),
        "is_view": bool(cls.__diptych__["view"]),
        "key_columns": key_columns(cls),
        "followed": is_managed(cls) or bool(cls.__diptych__["triggers"]),
    }
