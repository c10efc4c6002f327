"""Refuses steps that take away what a service still needs, by the list of those that run (`db/nodes.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diptych.db.nodes import RECENT, Node
from diptych.errors import StartError
from diptych.migrate.files import Loaded
from diptych.migrate.log import Half
from diptych.migrate.state import State
from diptych.migrate.step import MigrationStep
from diptych.migrate.table_steps import add_column, alter_column, drop_column, drop_table, rename_column, rename_table
from diptych.migrate.value_steps import alter_value


class StillNeeded(StartError):
    """Services that run, as far as is known, need what a migration takes away."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.node = node


def refuse_needed(left: Sequence[Half], nodes: Sequence[Node]) -> None:
    """Raise if one of the halves takes away what a service that runs needs."""
    for node in nodes:
        _refuse(
            node,
            [need for half in left for need in _needs(half, node)],
            ", or apply with --expand what does not concern it",
        )


def refuse_steps(steps: Sequence[MigrationStep], nodes: Sequence[Node]) -> None:
    """Raise if one of the steps takes away what a service that runs needs."""
    for node in nodes:
        _refuse(node, [need for step in steps for need in _needs_before(step, node)])


def _refuse(node: Node, needs: Sequence[str], more: str = "") -> None:
    if needs:
        raise StillNeeded(
            f"The service {node} {'; it '.join([*dict.fromkeys(needs)][:5])}. Nothing was changed. "
            f"Stop it first{more}; one that was killed is forgotten after {RECENT} s. --ignore-nodes does it anyway.",
            node,
        )


def _needs(half: Half, node: Node) -> Iterator[str]:
    """The tables and columns that a running service needs and half a migration takes away."""
    for step in half.steps:
        yield from _needs_before(step, node)
    if half.half == "contract":
        for step in half.migration.migration.expand:
            if isinstance(step, add_column | alter_column) and any(step.leftovers()):
                yield from _leaves_out(step, node)


def _needs_before(step: MigrationStep, node: Node) -> Iterator[str]:
    match step:
        case drop_table(name) | rename_table(name, _) if name in node.tables:
            yield f"has the table {name}"
        case drop_column(table, name) | rename_column(table, name, _) if name in node.tables.get(table, ()):
            yield f"has {table}.{name}"
        case alter_column(table, name) if step.using and name in node.tables.get(table, ()):
            yield f"has {table}.{name} with its values of before"
        case alter_value(table, name) if name in node.tables.get(table, ()):
            yield f"has {table}.{name} with its members of before"
        case alter_column() if not step.column.nullable and step.column.default is None:
            yield from _leaves_out(step, node)


def _leaves_out(step: add_column | alter_column, node: Node) -> Iterator[str]:
    if step.table in node.tables and step.name not in node.tables[step.table]:
        yield f"creates rows of {step.table} without {step.name}"


def version_of(node: Node, chain: Sequence[Loaded]) -> str:
    """The last migration whose tables a service has."""
    for loaded in reversed(chain):
        if _columns(loaded.state) == {table: sorted(columns) for table, columns in node.tables.items()}:
            return loaded.name
    return "another model"


def _columns(state: State) -> dict[str, list[str]]:
    return {name: sorted(table.columns) for name, table in state.tables.items()}
