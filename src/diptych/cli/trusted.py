"""`diptych documents`: the documents that clients may send by their hashes, and with `trusted_only` the only ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from diptych.api.graphql.manifest import BadManifest, Found, faults_of, operations_of, read_file
from diptych.api.graphql.persisted import PREFIX, is_hash
from diptych.api.graphql.schema import build_schema
from diptych.check.limits import Checks
from diptych.cli.documents import role_of
from diptych.cli.model import load_model
from diptych.cli.records import in_database, moment, run, show
from diptych.cli.settings import config_of
from diptych.db.documents import TrustedDocument, add_documents, all_documents, remove_documents
from diptych.errors import StartError
from diptych.identity.records import now
from diptych.model.model import Model
from diptych.serve.app import limits_of


@click.group()
def documents() -> None:
    """Trusted documents: what clients may ask for by hash. With --trusted-only nothing else runs."""


@documents.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@in_database
def add(files: tuple[str, ...], **given: Any) -> None:
    """Add the documents of files: one of GraphQL each, or manifests of Apollo or Relay (.json).

    All of them are held against the model first; if one is wrong, none is added.
    """
    found = _read(files, load_model(given["model"]))
    made = [TrustedDocument(hash, _name(each), each.text, now()) for hash, each in found.items()]
    new = run(given, lambda store, revoked: add_documents(store, made))
    rows = [(PREFIX + each.hash, each.name, "added" if each.hash in new else "was there") for each in made]
    show(("DOCUMENT", "OPERATIONS", "STATE"), rows)


@documents.command("list")
@in_database
def list_(**given: Any) -> None:
    """List all trusted documents."""
    found = run(given, lambda store, revoked: all_documents(store))
    rows = [(PREFIX + each.hash, each.name, str(len(each.body.encode())), moment(each.created_at)) for each in found]
    show(("DOCUMENT", "OPERATIONS", "BYTES", "CREATED"), rows)


@documents.command()
@click.argument("names", metavar="sha256:HASH…", nargs=-1, required=True)
@in_database
def remove(names: tuple[str, ...], **given: Any) -> None:
    """Remove documents by their hashes; running services know within a second."""
    hashes = [name.removeprefix(PREFIX) for name in dict.fromkeys(names)]
    wrong = next((name for name, hash in zip(dict.fromkeys(names), hashes, strict=True) if not is_hash(hash)), None)
    if wrong is not None:
        raise StartError(f"{wrong!r} names no document; write {PREFIX} and 64 hexadecimal digits, as in `list`.")
    for each in run(given, lambda store, revoked: remove_documents(store, dict.fromkeys(hashes))):
        click.echo(f"{PREFIX}{each.hash} is removed.")


def _read(files: tuple[str, ...], model: Model) -> dict[str, Found]:
    """The documents of files by their hashes, if nothing is wrong with any of them."""
    found: list[Found] = []
    faults: list[str] = []
    for file in files:
        try:
            found += read_file(file, Path(file).read_bytes())
        except BadManifest as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"{file}: {error.strerror or error}")
    role = role_of(model, None)
    view, viewer = model.view_as(role), model.viewer_as(role)
    schema = build_schema(view)
    checks = Checks(limits_of(config_of({})))
    faults += [fault for each in found for fault in faults_of(each, view, schema, viewer, checks)]
    if faults:
        raise StartError("Nothing is added, since this is wrong:\n" + "\n".join(faults))
    return {each.hash: each for each in reversed(found)}


def _name(found: Found) -> str:
    return ", ".join(name or "-" for name in operations_of(found.text))
