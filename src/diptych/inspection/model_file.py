"""Writes the model file of a database that exists: every class, field and relation, and what is left out and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

from diptych.inspection.found import FoundColumn, FoundDatabase, FoundReference, FoundTable
from diptych.inspection.names import attribute, clashes, class_name, key_of, relation
from diptych.inspection.types import FieldType, bounds_of, member_names, type_of, written_default
from diptych.model.naming import MAPPED, plural, snake

_WIDTH = 120
_HEADER = '''"""A model of the database as it is, which `diptych inspect` wrote. It is yours to change.

Only the role `admin` may read, and nobody may write: give class_ class its rules. Diptych never changes these tables.
"""
'''
_ADMIN = 'admin = Role("admin")\n"""May read everything, until each class has rules of its own."""\n'
_ORIGINS = {
    "datetime": ("date", "datetime", "time"),
    "decimal": ("Decimal",),
    "typing": ("Annotated",),
    "uuid": ("UUID",),
}
_DIPTYCH = (
    *("BigInt", "Column", "Columns", "Digits", "Json", "Max", "MaxLen", "Min", "Model", "OnDelete", "Resource", "Role"),
    *("Unique", "grant", "inverse", "now", "through", "today", "unique"),
)


def write_model(found: FoundDatabase, *, triggers: bool = False) -> tuple[str, list[str]]:
    """The text of the model file, and sentences about what it leaves out; with `triggers`, Diptych may put its own on
    the tables."""
    return _ModelFile(found, triggers).written()


class _Class:
    """One class while it is written."""

    def __init__(self, table: FoundTable, name: str) -> None:
        self.table = table
        self.name = name
        self.attributes: dict[str, str] = {}
        """The attribute of each column that has one."""
        self.lines: list[str] = []
        self.lists: list[str] = []
        self.relations: dict[str, FoundReference] = {}
        """The relations of the class, by their attributes."""
        self.notes: list[str] = []

    @property
    def taken(self) -> set[str]:
        keys = map(key_of, self.relations)
        return {*self.attributes.values(), *keys, *(line.partition(":")[0] for line in self.lists)}


class _ModelFile:
    def __init__(self, found: FoundDatabase, triggers: bool) -> None:
        self.found, self.triggers = found, triggers
        self.left: list[str] = []
        self.used: set[str] = {"Model", "Resource", "Role", "grant"}
        self.enums: dict[str, str] = {}
        self.members: dict[str, dict[str, str]] = {}
        self.classes: dict[str, _Class] = {}

    def written(self) -> tuple[str, list[str]]:
        self._name_classes()
        enums = [*self._enums()]
        for class_ in self.classes.values():
            self._fields(class_)
        for class_ in self.classes.values():
            self._lists(class_)
        bodies = ["\n".join(self._class(class_)) for class_ in self.classes.values()]
        names = ", ".join(class_.name for class_ in self.classes.values())
        model = f"model = Model({names})\n"
        if len(model) > _WIDTH:
            model = "model = Model(\n" + "".join(f"    {class_.name},\n" for class_ in self.classes.values()) + ")\n"
        tables = [sentence for sentence in self.left if sentence.startswith("the ")]
        whole = [line for sentence in tables for line in _wrapped(f"Left out: {sentence}", "#")]
        head = "\n".join([_HEADER, *whole, *[""] * bool(whole), self._imports(), "", _ADMIN])
        parts = [head, *enums, *bodies, model]
        return "\n\n".join(part.rstrip("\n") + "\n" for part in parts), self.left

    def _leave(self, sentence: str) -> None:
        self.left.append(sentence)

    # names

    def _name_classes(self) -> None:
        for schema, count in self.found.elsewhere.items():
            option = f"?options=-csearch_path%3D{quote(schema)}"
            self._leave(f"the schema {schema} with {count} tables and views: inspect it with {option} in the address.")
        for table in self.found.tables.values():
            kind = "view" if table.is_view else "table"
            reason = self._unserved(table)
            if reason:
                self._leave(f"the {kind} {table.name}: {reason}.")
                continue
            taken = {class_.name for class_ in self.classes.values()}
            self.classes[table.name] = _Class(table, class_name(table.name, taken))
        names = [class_.name for class_ in self.classes.values()]
        for class_ in self.classes.values():
            class_.name += "Row" * clashes(class_.name, names)

    def _unserved(self, table: FoundTable) -> str:
        """Why a table cannot be a class; "" if it can."""
        if not MAPPED.fullmatch(table.name) or table.name.lower() in ("new", "old"):
            return "its name has characters that are not served"
        if not table.key:
            return "it has no column that is unique in its rows" if table.is_view else "it has no primary key"
        for name in table.key:
            column = next((column for column in table.columns if column.name == name), None)
            kind = None if column is None else type_of(column, self.found.kind, self.enums)
            if not isinstance(kind, FieldType) or not MAPPED.fullmatch(name):
                return f"its key {name} has no type here"
            if len(table.key) == 1 and _ids(kind.python, counted=False) is None:
                return f"its key {name} is {kind.python}"
        return ""

    def _enums(self) -> Iterator[str]:
        """The classes of enums whose values are names; others are text."""
        for class_ in self.classes.values():
            for column in class_.table.columns:
                members = member_names(column.values) if column.values else None
                if column.type in self.enums or members is None or not MAPPED.fullmatch(column.type):
                    continue
                taken = {*self.enums.values(), *(other.name for other in self.classes.values())}
                name = class_name(column.type, taken)
                self.enums[column.type] = name
                self.members[name] = {value: f"{name}.{member}" for value, member in members.items()}
                self.used.add("enum")
                lines = [f"class {name}(enum.Enum):", f'    """The values of {column.type}."""', ""]
                yield "\n".join([*lines, *(f'    {member} = "{value}"' for value, member in members.items())])

    # fields

    def _fields(self, class_: _Class) -> None:
        table = class_.table
        references = {reference.columns[0]: reference for reference in table.references if len(reference.columns) == 1}
        checks = list(table.checks)
        for column in table.columns:
            if table.key == (column.name,):
                if column.name in references:
                    class_.notes.append(f"Its key {column.name} refers to {references[column.name].target}.")
                continue
            self._field(class_, column, references.get(column.name), checks)
        for reference in table.references:
            if len(reference.columns) > 1:
                self._composite(class_, reference)
        class_.notes += [f"The database checks {check}" for check in checks]
        class_.notes += [f"It has {left}." for left in table.left]

    def _field(self, class_: _Class, column: FoundColumn, reference: FoundReference | None, checks: list[str]) -> None:
        kind = type_of(column, self.found.kind, self.enums)
        if not MAPPED.fullmatch(column.name):
            kind = "its name has characters that are not served"
        if isinstance(kind, str):
            missing = (
                ""
                if column.nullable or column.default or column.counted
                else "; it must not be null, so no row can be made"
            )
            class_.notes.append(f"{column.name} is left out: {kind}{missing}.")
            self._leave(f"{class_.table.name}.{column.name}: {kind}{missing}.")
            return
        reason = self._no_relation(column, reference)
        if reference is not None and not reason:
            self._relation(class_, column, reference)
            return
        attr = attribute(column.name, class_.name, class_.taken)
        class_.attributes[column.name] = attr
        markers = list(kind.markers)
        for check in [check for check in checks if (bounds_of(check, column.name, kind.python))]:
            markers.append(str(bounds_of(check, column.name, kind.python)))
            checks.remove(check)
        if (column.name,) in class_.table.uniques and kind.python != "Json":
            markers.append("Unique()")
        comments = [*column.comment.splitlines(), kind.note, reason]
        self._line(class_, attr, kind, column, markers, [comment for comment in comments if comment])

    def _line(
        self, class_: _Class, attr: str, kind: FieldType, column: FoundColumn, markers: list[str], comments: list[str]
    ) -> None:
        if attr != column.name or kind.cast:
            cast = f", type={_text(kind.cast)}" if kind.cast else ""
            markers.insert(0, f"Column({_text(column.name)}{cast})")
        default = None
        if column.default and not class_.table.is_view:
            default = written_default(column, kind.python, self.members.get(kind.python, {}))
            if default is None:
                comments.append(
                    f"Its default {' '.join(column.default.split())} is not expressed: a client sends a value."
                )
        default = default or ("None" if column.nullable else "")
        class_.lines += [f"# {comment}" for comment in comments]
        class_.lines.append(self._declared(attr, kind.python + " | None" * column.nullable, markers, default))

    def _declared(self, attr: str, kind: str, markers: list[str], default: str) -> str:
        self._use(kind, default, *markers)
        if markers:
            self.used.add("Annotated")
            kind = f"Annotated[{kind}, {', '.join(markers)}]"
        line = f"{attr}: {kind}" + (f" = {default}" if default else "")
        if len(line) + 4 <= _WIDTH or not markers:
            return line
        inner = kind.removeprefix("Annotated[").removesuffix("]")
        return f"{attr}: Annotated[\n        {inner}\n    ]" + (f" = {default}" if default else "")

    # relations

    def _no_relation(self, column: FoundColumn, reference: FoundReference | None) -> str:
        """Why a reference is no relation; "" if it is one, or there is none."""
        if reference is None:
            return ""
        target = self.classes.get(reference.target)
        if target is None:
            return f"It refers to {reference.target}, which is not served."
        if len(target.table.key) > 1 or (reference.keys[0] or target.table.key[0]) != target.table.key[0]:
            return f"It refers to {reference.target} ({', '.join(reference.keys)}), which is not its one key."
        if reference.on_delete == "set default" or (reference.on_delete == "set null" and not column.nullable):
            return f"It refers to {reference.target}, with ON DELETE {reference.on_delete.upper()}."
        return ""

    def _relation(self, class_: _Class, column: FoundColumn, reference: FoundReference) -> None:
        target = self.classes[reference.target]
        attr = relation(column.name, target.name, class_.name, class_.taken)
        class_.attributes[column.name] = attr
        class_.relations[attr] = reference
        markers = [f"Column({_text(column.name)})"] if column.name != f"{attr}_id" else []
        if reference.on_delete in ("cascade", "set null"):
            markers.append(f"OnDelete({_text(reference.on_delete)})")
        if (column.name,) in class_.table.uniques:
            markers.append("Unique()")
        class_.lines += [f"# {comment}" for comment in column.comment.splitlines()]
        kind, default = target.name + " | None" * column.nullable, "None" if column.nullable else ""
        class_.lines.append(self._declared(attr, kind, markers, default))

    def _composite(self, class_: _Class, reference: FoundReference) -> None:
        """A relation by several columns, which are fields of their own."""
        target = self.classes.get(reference.target)
        columns = {column.name: column for column in class_.table.columns}
        nullable = any(columns[name].nullable for name in reference.columns)
        keys = () if target is None else target.table.key
        by = dict(zip(reference.keys if all(reference.keys) else keys, reference.columns, strict=False))
        served = {*class_.attributes, *(class_.table.key if len(class_.table.key) == 1 else ())}
        cleared = reference.on_delete == "set null" and not nullable
        if target is None or {*by} != {*keys} or not {*reference.columns} <= served or cleared:
            class_.notes.append(f"({', '.join(reference.columns)}) refers to {reference.target}, by several columns.")
            return
        attr = relation(target.name, target.name, class_.name, class_.taken)
        class_.attributes[" ".join(reference.columns)] = attr
        class_.relations[attr] = reference
        markers = [f"Columns({', '.join(_text(by[key]) for key in keys)})"]
        if reference.on_delete in ("cascade", "set null"):
            markers.append(f"OnDelete({_text(reference.on_delete)})")
        class_.lines.append(
            self._declared(attr, target.name + " | None" * nullable, markers, "None" if nullable else "")
        )

    def _lists(self, class_: _Class) -> None:
        """The other sides of the relations of a class; a junction table is a relation of many to many."""
        key = sorted(class_.table.key)
        ends = [(attr, reference) for attr, reference in class_.relations.items() if {*reference.columns} <= {*key}]
        junction = len(ends) == 2 and sorted([*ends[0][1].columns, *ends[1][1].columns]) == key
        if junction:
            (one, first), (other, second) = ends
            self._through(class_, one, first, other, second)
            self._through(class_, other, second, one, first)
        if junction and len(class_.table.columns) == len(class_.table.key):
            return
        for attr, reference in class_.relations.items():
            target = self.classes[reference.target]
            many = plural(snake(class_.name))
            alone = [other.target for other in class_.relations.values()].count(reference.target) == 1
            name = many if alone and many not in target.taken else f"{many}_by_{attr.rstrip('_')}"
            if name not in target.taken:
                target.lists.append(f'{name}: list[{class_.name}] = inverse("{attr}")')
                self.used.add("inverse")

    def _through(self, link: _Class, mine: str, first: FoundReference, theirs: str, second: FoundReference) -> None:
        owner, other = self.classes[first.target], self.classes[second.target]
        many = plural(snake(other.name))
        name = many if many not in owner.taken else f"{many}_through_{snake(link.name)}"
        if name not in owner.taken:
            owner.lists.append(f'{name}: list[{other.name}] = through("{link.name}", "{mine}", "{theirs}")')
            self.used.add("through")

    # text

    def _class(self, class_: _Class) -> Iterator[str]:
        yield self._statement(class_)
        description = " ".join(class_.table.comment.split()).replace("\\", "\\\\")
        description = re.sub('"(?="")', r'\\"', description)  # never three in a row, which end it
        if description.endswith('"'):
            description = f'{description[:-1]}\\"'
        kind = "view" if class_.table.is_view else "table"
        yield f'    """{description or f"A row of the {kind} {class_.table.name}."}"""'
        if class_.notes or class_.table.is_view:
            yield ""
        if class_.table.is_view:
            yield f"    # Its key {class_.table.key[0]} is unique in the rows of today: make sure that it always is."
        for note in class_.notes:
            yield from _wrapped(note)
        if class_.lines or class_.lists:
            yield ""
        yield from (f"    {line}" for line in (*class_.lines, *class_.lists))
        yield ""
        keys = [unique for unique in class_.table.uniques if len(unique) > 1 and {*unique} <= class_.attributes.keys()]
        if keys:
            self.used.add("unique")
            listed = [f"unique({', '.join(_text(class_.attributes[name]) for name in unique)})" for unique in keys]
            yield f"    keys = ({', '.join(listed)},)"
        yield '    access = (grant("read", to=admin),)'

    def _statement(self, class_: _Class) -> str:
        table = class_.table
        options = [f"{'view' if table.is_view else 'table'}={_text(table.name)}"]
        if len(table.key) > 1:
            options.append(f"key=({', '.join(map(_text, table.key))})")
        else:
            column = next(column for column in table.columns if column.name == table.key[0])
            kind = type_of(column, self.found.kind, self.enums)
            assert isinstance(kind, FieldType)
            options += [f"key={_text(table.key[0])}"] * (table.key[0] != "id")
            ids = _ids(kind.python, column.counted) or ""
            options += [f"ids={_text(ids)}"] * bool(ids)
        options += ["managed=False"] * (not table.is_view)
        options += ["triggers=True"] * (self.triggers and not table.is_view)
        line = f"class {class_.name}(Resource, {', '.join(options)}):"
        return line if len(line) <= _WIDTH else f"class {class_.name}(\n    Resource, {', '.join(options)}\n):"

    def _use(self, *texts: str) -> None:
        """Note the names that a declaration needs to be imported."""
        names = {*_DIPTYCH, *(name for names in _ORIGINS.values() for name in names)}
        words = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in " ".join(texts)).split()
        self.used |= names.intersection(words)

    def _imports(self) -> str:
        lines = ["from __future__ import annotations", ""]
        standard = ["import enum"] if "enum" in self.used else []
        for module, names in _ORIGINS.items():
            if used := sorted(self.used.intersection(names), key=_import_order):
                standard.append(f"from {module} import {', '.join(used)}")
        ours = sorted(self.used.intersection(_DIPTYCH), key=_import_order)
        line = f"from diptych import {', '.join(ours)}"
        if len(line) > _WIDTH:
            line = "from diptych import (\n" + "".join(f"    {name},\n" for name in ours) + ")"
        return "\n".join([*lines, *standard, *[""] * bool(standard), line])


def _ids(python: str, counted: bool) -> str | None:
    """The kind of ids of a key of this type; "" is the default, a UUID, and None is none."""
    if python in ("int", "BigInt"):
        return "integer" if counted else "number"
    return {"str": "text", "UUID": ""}.get(python)


def _text(text: str) -> str:
    return json.dumps(text)


def _wrapped(note: str, mark: str = "    #") -> Iterator[str]:
    line = mark
    for word in note.split():
        if len(line) + len(word) >= _WIDTH:
            yield line
            line = mark
        line += " " + word
    yield line


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions: as ruff sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
