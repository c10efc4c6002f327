"""Names of a model file for tables and columns: classes, attributes, relations."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable

from diptych.model.naming import camel, plural, snake, upper_first
from diptych.model.read.name_clashes import CHANGE_PARTS, RESERVED_PATHS, RESERVED_TYPES

_OTHER = re.compile(r"[^a-z0-9]+")
RESERVED = frozenset(
    {
        *("id", "version", "created_at", "updated_at", "deleted_at", "access", "keys", "search"),
        *("and", "or", "not", "self", "viewer"),
    }
)
"""Attributes that a class has already, or that are words of filters."""
TYPES = frozenset({"str", "int", "bool", "float", "date", "datetime", "time", "list", "enum", "now", "today", "grant"})
"""Attributes that would hide a type or a function in the body of their class."""
_TAKEN_CLASSES = frozenset(
    {
        *(
            "Resource",
            "Model",
            "Role",
            "Column",
            "Columns",
            "Decimal",
            "Annotated",
            "BigInt",
            "Json",
            "UUID",
            "Unique",
            "OnDelete",
        ),
        *("Digits", "MaxLen", "Min", "Max", "Id", "Value", "True", "False", "None"),
    }
)


def class_name(table: str, taken: Container[str]) -> str:
    """`Order Details` → `OrderDetail`, `film_actor` → `FilmActor`."""
    words = [word for word in _OTHER.split(snake(table.replace(" ", "_"))) if word]
    words[-1:] = [singular(words[-1])] if words else ["row"]
    name = "".join(map(upper_first, words))
    if not name[0].isalpha():
        name = "Table" + name
    if (
        name in _TAKEN_CLASSES
        or name in RESERVED_TYPES
        or snake(name) + "s" in RESERVED_PATHS
        or snake(name) in RESERVED
        or camel(snake(name)) in CHANGE_PARTS
    ):
        name += "Row"
    while name in taken:
        name += "Row"
    return name


def clashes(name: str, others: Iterable[str]) -> bool:
    """Would GraphQL have two types of one name? `ProductOrder` is also the order of a list of `Product`."""
    for other in others:
        for stem in (other, upper_first(camel(plural(snake(other))))):
            if name != other and name.startswith(stem) and name.removeprefix(stem) in _SUFFIXES:
                return True
    return False


_SUFFIXES = frozenset(
    {
        *("Where", "List", "ListWhere", "Order", "Connection", "Edge", "Create", "Patch", "Replace", "Change"),
        *("Update", "UpsertKey", "Bulk", "Group", "GroupBy", "GroupConnection", "GroupOrder", "Having"),
        *("Summary", "SummaryOrder"),
    }
)


def singular(word: str) -> str:
    """The regular English singular of a plural; another word stays as it is."""
    if re.search(r"[^aeiou]ies$", word) and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(ss|x|z|ch|sh)es$", word):
        return word[:-2]
    if re.search(r"[^sui]s$", word) and len(word) > 3:
        return word[:-1]
    return word


def attribute(column: str, owner: str, taken: Container[str]) -> str:
    """`UnitPrice` → `unit_price`; a name that the class has already gets that of the class before it."""
    name = _OTHER.sub("_", snake(column.replace(" ", "_"))).strip("_") or "value"
    if not name[0].isalpha():
        name = f"n{name}"
    if name in RESERVED:
        name = f"{snake(owner)}_{name}"
    if keyword.iskeyword(name) or name in TYPES:
        name += "_"
    while name in taken:
        name = name.rstrip("_") + "_value"
    return name


def relation(column: str, target: str, owner: str, taken: Container[str]) -> str:
    """`ArtistId` → `artist`; a column that is not called an id keeps its name."""
    name = attribute(column, owner, ())
    short = re.sub(r"_?(id|key|code|no)$", "", name)
    name = short if short and short not in RESERVED and not keyword.iskeyword(short) else name
    if name in TYPES:
        name += "_"
    if _has_taken(name, taken):
        name = snake(target)
    while _has_taken(name, taken):
        name += "_ref"
    return name


def key_of(name: str) -> str:
    """The attribute whose name in requests the key of a relation has: `class_` → `class_id`, which is `classId`."""
    return f"{name.rstrip('_')}_id"


def _has_taken(name: str, taken: Container[str]) -> bool:
    return name in taken or key_of(name) in taken
