"""`diptych contract`: write the API of a model into files, and report what a change would break."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from diptych.cli.model import load_model, model_argument
from diptych.contract.change import Change
from diptych.contract.lock import changes_between, contract_of, read_contract, record_breaking, write_contract
from diptych.errors import StartError

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("contract"),
    show_default=True,
    help="The folder of the contract, under version control.",
)


@click.group()
def contract() -> None:
    """The API of a model as files: the GraphQL schema and the OpenAPI document of every role."""


@contract.command()
@model_argument
@_FOLDER
@click.option("--breaking", "reason", metavar="REASON", help="Why clients are broken on purpose; it is written down.")
def lock(model: str | None, folder: Path, reason: str | None) -> None:
    """Write the documents of every role; refused if that breaks clients of those there, unless a REASON is given."""
    new = contract_of(load_model(model))
    breaking = _breaking(changes_between(read_contract(folder), new)) if folder.is_dir() else {}
    if breaking and reason is None:
        _show(breaking)
        raise StartError(f"{_counted(breaking)} would break clients; add --breaking REASON to do it on purpose.")
    write_contract(folder, new)
    if breaking and reason is not None:
        record_breaking(folder, reason, breaking)
    click.echo(f"Wrote {len(new)} documents to {folder}.")


@contract.command()
@model_argument
@_FOLDER
@click.option("--strict", is_flag=True, help="Also fail for changes that only may surprise a client.")
def check(model: str | None, folder: Path, strict: bool) -> None:
    """Compare the model with its contract; fails if a client of the contract could break."""
    old, new = read_contract(folder), contract_of(load_model(model))
    changes = changes_between(old, new)
    _show(changes)
    breaking = changes if strict else _breaking(changes)
    if breaking:
        raise StartError(
            f"{_counted(breaking)} would break clients; diptych contract lock --breaking REASON allows it."
        )
    grown = "" if old == new else " It has grown: run diptych contract lock."
    click.echo(f"The model keeps its contract.{grown}")


def _breaking(changes: Mapping[Change, list[str]]) -> dict[Change, list[str]]:
    return {change: roles for change, roles in changes.items() if change.breaking}


def _show(changes: Mapping[Change, list[str]]) -> None:
    for change, roles in sorted(changes.items(), key=lambda entry: (not entry[0].breaking, entry[0])):
        click.echo(f"{'Breaking' if change.breaking else 'Dangerous'}: {change} ({', '.join(roles)})")


def _counted(changes: Mapping[Change, list[str]]) -> str:
    return "1 change" if len(changes) == 1 else f"{len(changes)} changes"
