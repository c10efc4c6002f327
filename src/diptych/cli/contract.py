"""`diptych contract`: write the API of a model into files, and report what a change would break."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from diptych.cli.counts import counted
from diptych.cli.model import load_model, model_argument
from diptych.cli.records import in_database, iso_time, print_table, run_on_store
from diptych.contract.change import ContractChange
from diptych.contract.lock import changes_between, contract_of, read_contract, record_breaking, write_contract
from diptych.db.usage import all_usage
from diptych.errors import StartError
from diptych.model.describe.deprecated_names import deprecated_names

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("contract"),
    show_default=True,
    help="The folder of the contract, under version control.",
)


@click.group()
def contract() -> None:
    """The API of a model as files, under version control.

    They are the GraphQL schema and the OpenAPI document of every role.
    """


@contract.command()
@model_argument
@_FOLDER
@click.option("--breaking", "reason", metavar="REASON", help="Why clients are broken on purpose; it is written down.")
def lock(model: str | None, folder: Path, reason: str | None) -> None:
    """Write the documents of every role.

    That is refused if it breaks clients of the documents that are there, unless a REASON is given.
    """
    new = contract_of(load_model(model))
    breaking = _breaking(changes_between(read_contract(folder), new)) if folder.is_dir() else {}
    if breaking and reason is None:
        _show(breaking)
        broken = counted(len(breaking), "change")
        raise StartError(f"{broken} would break clients; add --breaking REASON to do it on purpose.")
    write_contract(folder, new)
    if breaking and reason is not None:
        record_breaking(folder, reason, breaking)
    click.echo(f"Wrote {counted(len(new), 'document')} to {folder}.")


@contract.command()
@model_argument
@_FOLDER
@click.option("--strict", is_flag=True, help="Also fail for changes that only may surprise a client.")
def check(model: str | None, folder: Path, strict: bool) -> None:
    """Compare the model with its contract.

    It fails if a client of the contract could break.
    """
    old, new = read_contract(folder), contract_of(load_model(model))
    changes = changes_between(old, new)
    _show(changes)
    breaking = _breaking(changes, strict=strict)
    if breaking:
        broken = counted(len(breaking), "change")
        raise StartError(f"{broken} would break clients; diptych contract lock --breaking REASON allows it.")
    grown = "" if old == new else " It has grown: run diptych contract lock."
    click.echo(f"The model keeps its contract.{grown}")


@contract.command()
@in_database
def usage(**flags: Any) -> None:
    """List who still uses what is deprecated.

    That is each deprecated part of the API, by role and OAuth client.
    """
    rows = run_on_store(flags, lambda store, _: all_usage(store))
    deprecated = deprecated_names(load_model(flags["model"]))
    table = [
        (row.name, row.role, row.client or "-", str(row.requests), iso_time(row.last_at))
        for row in sorted(rows, key=lambda row: (row.name, -row.requests))
    ]
    unused = sorted(deprecated - {row.name for row in rows})
    print_table(("DEPRECATED", "ROLE", "CLIENT", "REQUESTS", "LAST"), table)
    if unused:
        click.echo(f"Not used by anyone: {', '.join(unused)}.")


def _breaking(changes: Mapping[ContractChange, list[str]], *, strict: bool = False) -> dict[ContractChange, list[str]]:
    return {change: roles for change, roles in changes.items() if change.breaking or (strict and not change.announced)}


def _show(changes: Mapping[ContractChange, list[str]]) -> None:
    for change, roles in sorted(changes.items(), key=lambda entry: (not entry[0].breaking, entry[0])):
        kind = "Breaking" if change.breaking else "Announced" if change.announced else "Dangerous"
        click.echo(f"{kind}: {change} ({', '.join(roles)})")
