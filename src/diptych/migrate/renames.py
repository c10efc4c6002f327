"""Renames that the model declares: answers to what `diptych migrate make` would ask.

    class Article(Resource, renamed_from="Post"):                    posts → articles
        headline: Annotated[str, RenamedFrom("title")]               title → headline

A declaration is an answer only while it fits: the old name is in the state before and not in the model, the new one is
in the model and not in the state. So it can stay after the migration, and means nothing then.
"""

from __future__ import annotations

from collections.abc import Iterator

from diptych.migrate.diff import Answers
from diptych.migrate.state import State
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.naming import plural, snake


def declared_renames(model: Model, before: State) -> dict[str, str]:
    """The renames that a model declares, since a state: `posts` → `articles`, `articles.title` → `headline`."""
    tables = {resource.table for resource in model.resources.values()}
    renames: dict[str, str] = {}
    for resource in model.resources.values():
        was = resource.table
        if was not in before.tables:
            was = next((name for name in _tables_before(resource) if name in before.tables and name not in tables), was)
            if was == resource.table:
                continue
            renames[was] = resource.table
        columns = {field.column: field for field in resource.fields.values() if field.stored}
        there = before.tables[was].columns
        for name, field in columns.items():
            old = field.renamed_from
            if old and name not in there and old in there and old not in columns:
                renames[f"{resource.table}.{old}"] = name
    return renames


def with_declared(answers: Answers, model: Model, before: State) -> Answers:
    """The answers, and what the model declares besides."""
    said = {name for name in (*answers.renames, *answers.drops)}
    declared = {old: new for old, new in declared_renames(model, before).items() if old not in said}
    return Answers({**declared, **answers.renames}, answers.drops, answers.fills, answers.usings)


def _tables_before(resource: ResourceDef) -> Iterator[str]:
    """The names that the table may have had: that of the class before, or the plural that it had."""
    old = resource.cls.__diptych__["renamed_from"]
    if isinstance(old, str) and old:
        yield from (plural(snake(old)), old.replace("-", "_"))
