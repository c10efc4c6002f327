"""Names: from Python names to those on the wire, in paths and in tables, and which Python names are valid.

>>> camel("placed_at"), snake("OrderLine"), plural("category")
('placedAt', 'order_line', 'categories')
"""

from __future__ import annotations

import re

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?", re.ASCII)
_PLURAL = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", re.ASCII)
_TYPE = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
LONGEST = 63
"""The longest identifier in PostgreSQL, in bytes; longer ones are truncated."""
MAPPED = re.compile(r"[A-Za-z][A-Za-z0-9_ $#-]{0,62}", re.ASCII)
"""A name of a table or column that is given in the model, rather than made from a Python name."""
_MAPPED_TEXT = "letters, digits, _, $, #, - and spaces, a letter first, at most 63"
_FILTER_WORDS = ("and", "or", "not")
_SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
_SYSTEM_TABLES = ("diptych_", "sqlite_", "pg_")
_TRIGGER_ROWS = ("new", "old")
"""Tables of these names shadow NEW and OLD in triggers, also in SQLite's own foreign keys: other rows would change."""


def camel(name: str) -> str:
    """`placed_at` → `placedAt`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def snake(name: str) -> str:
    """`OrderLine` → `order_line`."""
    return _HUMP.sub("_", name).lower()


def kebab(name: str) -> str:
    """`orderLines` → `order-lines`."""
    return snake(name).replace("_", "-")


def spaced_words(name: str) -> str:
    """`OrderLine` → `order line`."""
    return snake(name).replace("_", " ")


def with_article(name: str) -> str:
    """`OrderLine` → `an order line`."""
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {spaced_words(name)}"


def plural(word: str) -> str:
    """The regular English plural; a model can set its own."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return word + "s"


def upper_first(name: str) -> str:
    """`orderLines` → `OrderLines`."""
    return name[:1].upper() + name[1:]


NameFault = tuple[str, str]
"""What is wrong with a name, and how to fix it."""


def word_fault(attr: str) -> NameFault | None:
    """Why a Python name is not valid on the wire; None if it is."""
    if not _ATTRIBUTE.fullmatch(attr):
        return "the name is not valid on the wire", "Use small letters, digits and single underscores"
    return None


def attribute_fault(attr: str, column: str) -> NameFault | None:
    """Why the name of a field or relation is not valid on the wire, or its column in a table."""
    fault = word_fault(attr)
    if fault:
        return fault
    if attr == "access":
        return "access holds the grants of a class, and has no type", "Rename the field, or remove its type"
    if attr == "keys":
        return "keys holds the unique keys and indexes of a class, and has no type", "Rename the field"
    if camel(attr) in _FILTER_WORDS:
        return f"the name {camel(attr)} is a word of filters", "Rename it"
    if len(column) > LONGEST:
        return f"the column {column} would be longer than {LONGEST} characters", "Shorten the name"
    if column in _SYSTEM_COLUMNS:
        return f"every table of PostgreSQL has a column {column} of its own", "Rename it"
    return None


def column_fault(name: object, kind: object = "") -> NameFault | None:
    """Why a name cannot be that of a column that exists, or that of its type."""
    if not isinstance(name, str) or not MAPPED.fullmatch(name):
        return f"Column({name!r}) names no column", f"Use {_MAPPED_TEXT}"
    if name in _SYSTEM_COLUMNS:
        return f"every table of PostgreSQL has a column {name} of its own", "Rename it"
    if kind and (not isinstance(kind, str) or not MAPPED.fullmatch(kind)):
        return f"type={kind!r} names no type", f"Use {_MAPPED_TEXT}"
    return None


def table_fault(name: object) -> NameFault | None:
    """Why a name cannot be that of a table or view that exists."""
    if not isinstance(name, str) or not MAPPED.fullmatch(name):
        return f"{name!r} names no table", f"Use {_MAPPED_TEXT}"
    if name.lower().startswith(_SYSTEM_TABLES):
        return f"the table {name} has a prefix reserved for system tables", "Rename it"
    if name.lower() in _TRIGGER_ROWS:
        return f"the table {name} would hide the row of a trigger", "Rename it"
    return None


def class_fault(name: str, stem: str) -> NameFault | None:
    """Why the name of a resource, or its plural, is not valid as a type, a path or a table."""
    if not _TYPE.fullmatch(name):
        return "the name cannot be a type of GraphQL", "Use CamelCase letters and digits"
    if not isinstance(stem, str) or not _PLURAL.fullmatch(stem):
        return f"the plural {stem!r} cannot be a path", "Use small letters, digits and -"
    table = stem.replace("-", "_")
    if table.startswith(_SYSTEM_TABLES):
        return f"the table {table} would have a prefix reserved for system tables", "Rename it"
    if table in _TRIGGER_ROWS:
        return f"the table {table} would hide the row of a trigger", 'Give another plural: plural="…"'
    if len(table) > LONGEST:
        return f"the table {table} would be longer than {LONGEST} characters", 'Give a shorter plural="…"'
    return None
