"""`diptych documents`: trusted documents, which clients send by hash; with `trusted_only`, nothing else runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from diptych.api.graphql.manifest import BadManifest, DocumentEntry, document_faults, operations_of, read_file
from diptych.api.graphql.persisted import HASH_PREFIX, is_hash
from diptych.api.graphql.schema import build_schema
from diptych.cli.documents import role_of
from diptych.cli.model import load_model
from diptych.cli.records import in_database, iso_time, print_table, run_on_store
from diptych.cli.settings import config_of
from diptych.db.trusted_documents import TrustedDocument, add_documents, all_documents, remove_documents
from diptych.errors import StartError
from diptych.identity.records import unix_time
from diptych.model.model import Model
from diptych.policy.limits import Checks
from diptych.serve.request_limits import request_limits


@click.group()
def documents() -> None:
    """Trusted documents, which clients send by hash. With --trusted-only nothing else runs."""


@documents.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@in_database
def add(files: tuple[str, ...], **flags: Any) -> None:
    """Add the GraphQL documents of files, or of manifests (.json).

    A file has one document; a manifest is one of Apollo or Relay. All of them are validated against the model
    first; if one is invalid, none is added.
    """
    entries = _read(files, load_model(flags["model"]))
    made = [TrustedDocument(hash, _name(entry), entry.text, unix_time()) for hash, entry in entries.items()]
    new = run_on_store(flags, lambda store, revoked: add_documents(store, made))
    rows = [
        (HASH_PREFIX + document.hash, document.name, "added" if document.hash in new else "was there")
        for document in made
    ]
    print_table(("DOCUMENT", "OPERATIONS", "STATE"), rows)


@documents.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all trusted documents."""
    documents = run_on_store(flags, lambda store, revoked: all_documents(store))
    rows = [
        (HASH_PREFIX + document.hash, document.name, str(len(document.body.encode())), iso_time(document.created_at))
        for document in documents
    ]
    print_table(("DOCUMENT", "OPERATIONS", "BYTES", "CREATED"), rows)


@documents.command()
@click.argument("names", metavar="sha256:HASH…", nargs=-1, required=True)
@in_database
def remove(names: tuple[str, ...], **flags: Any) -> None:
    """Remove documents by their hashes.

    Running services know within a second.
    """
    hashes = [name.removeprefix(HASH_PREFIX) for name in dict.fromkeys(names)]
    wrong = next((name for name, hash in zip(dict.fromkeys(names), hashes, strict=True) if not is_hash(hash)), None)
    if wrong is not None:
        raise StartError(f"{wrong!r} names no document; write {HASH_PREFIX} and 64 hexadecimal digits, as in `list`.")
    for document in run_on_store(flags, lambda store, revoked: remove_documents(store, dict.fromkeys(hashes))):
        click.echo(f"{HASH_PREFIX}{document.hash} is removed.")


def _read(files: tuple[str, ...], model: Model) -> dict[str, DocumentEntry]:
    """The documents of files by their hashes; a StartError if any of them is invalid."""
    entries: list[DocumentEntry] = []
    faults: list[str] = []
    for file in files:
        try:
            entries += read_file(file, Path(file).read_bytes())
        except BadManifest as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"{file}: {error.strerror or error}")
    role = role_of(model, None)
    view, viewer = model.view_as(role), model.viewer_as(role)
    schema = build_schema(view)
    checks = Checks(request_limits(config_of({})))
    faults += [fault for entry in entries for fault in document_faults(entry, view, schema, viewer, checks)]
    if faults:
        raise StartError("No document was added:\n" + "\n".join(faults))
    return {entry.hash: entry for entry in reversed(entries)}


def _name(entry: DocumentEntry) -> str:
    return ", ".join(name or "-" for name in operations_of(entry.text))
