"""`diptych documents`: files and manifests in, all that is wrong with them out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.contract.persisted.naming import CREATE, NAMES, document_id, hashed
from tests.support.running import Command, NewDatabase, make_tables, served

SEVERAL = "query A { users { name } }\nquery B { posts { title } }\n"


@pytest.fixture
def file(tmp_path: Path, command: Command) -> Path:
    """A folder of documents, which is where commands run."""
    (tmp_path / "names.graphql").write_text(NAMES)
    (tmp_path / "several.graphql").write_text(SEVERAL)
    return tmp_path


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """A database that was served before."""
    return make_tables(new_database())


def apollo_manifest(*pairs: tuple[str, str]) -> str:
    operations = [{"id": id, "name": "x", "type": "query", "body": body} for id, body in pairs]
    manifest = {"format": "apollo-persisted-query-manifest", "version": 1, "operations": operations}
    return json.dumps(manifest, indent=2)


def lines_of(done: CompletedProcess[str]) -> list[list[str]]:
    assert (done.returncode, done.stderr) == (0, ""), done
    return [re.split(" {2,}", line) for line in done.stdout.splitlines()]


def test_documents_are_added_listed_and_removed(command: Command, file: Path, database: str) -> None:
    (file / "apollo.json").write_text(apollo_manifest((hashed(CREATE), CREATE), (hashed(NAMES), NAMES)))
    (file / "relay.json").write_text(json.dumps({hashed("{ __typename }"): "{ __typename }"}))
    added = lines_of(
        command(
            "documents", "add", "names.graphql", "several.graphql", "apollo.json", "relay.json", "--database", database
        )
    )
    assert {tuple(line) for line in added[1:]} == {
        (document_id(NAMES), "Names", "added"),
        (document_id(SEVERAL), "A, B", "added"),
        (document_id(CREATE), "Create", "added"),
        (document_id("{ __typename }"), "-", "added"),
    }
    again = lines_of(command("documents", "add", "names.graphql", "--database", database))
    assert again[1][-1] == "was there"
    listed = lines_of(command("documents", "list", "--database", database))
    assert [line[0] for line in listed] == [
        "DOCUMENT",
        document_id("{ __typename }"),
        document_id(SEVERAL),
        document_id(CREATE),
        document_id(NAMES),
    ]
    gone = command("documents", "remove", document_id(NAMES), hashed(SEVERAL), "--database", database)
    assert gone.stdout == f"{document_id(NAMES)} is removed.\n{document_id(SEVERAL)} is removed.\n"
    assert len(lines_of(command("documents", "list", "--database", database))) == 3


@pytest.fixture
def sqlite(new_sqlite: NewDatabase) -> str:
    return make_tables(new_sqlite())


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_added(command: Command, file: Path, sqlite: str) -> None:
    (file / "bad.graphql").write_text("query A {\n  users {\n    nothing\n  }\n  posts { body\n}\n")
    (file / "wrong.graphql").write_text(
        "query A {\n  users {\n    nothing\n  }\n}\nquery B {\n  users { name }\n  nowhere\n}\n"
    )
    (file / "bomb.graphql").write_text("{ " + "a: __typename " * 40 + "}")
    (file / "empty.graphql").write_text("# nothing\n")
    (file / "fragment.graphql").write_text("fragment F on User { name }")
    (file / "latin.graphql").write_bytes(b"{ users { name } } # \xe9")
    (file / "manifest.json").write_text(
        apollo_manifest((hashed(NAMES), NAMES), ("0" * 64, NAMES), (hashed("{\n x }"), "{\n x }"))
    )
    done = command(
        "documents",
        "add",
        "names.graphql",
        "bad.graphql",
        "wrong.graphql",
        "bomb.graphql",
        "empty.graphql",
        "fragment.graphql",
        "latin.graphql",
        "manifest.json",
        "absent.graphql",
        "--database",
        sqlite,
    )
    assert (done.returncode, done.stdout) == (2, "")
    first, *told = done.stderr.splitlines()
    assert first == "No document was added:"
    expected = (
        "latin.graphql: it is not UTF-8",
        "absent.graphql: No such file",
        "bad.graphql:7: Syntax Error",
        "wrong.graphql:3: Cannot query field 'nothing'",
        "wrong.graphql:8: Cannot query field 'nowhere'",
        "bomb.graphql:1: ",
        "empty.graphql:",
        "fragment.graphql:1: the document has no operation",
        f"manifest.json:12: the id '{'0' * 64}' is not the SHA-256 of its document, {hashed(NAMES)}",
        "manifest.json:18: Cannot query field 'x' on type 'Query' (line 2 of the document)",
    )
    assert len(told) == len(expected), told
    for start in expected:
        assert any(line.startswith(start) for line in told), (start, told)
    assert command("documents", "list", "--database", sqlite).stdout.count("\n") == 1


BAD_MANIFESTS = {
    "[]": "expected a manifest of Apollo or Relay",
    "{": "it is not complete",
    "1": "expected a manifest",
    '{"format": "x"}': "expected the format apollo-persisted-query-manifest in version 1",
    '{"format": "apollo-persisted-query-manifest", "version": 2, "operations": []}': "expected the format",
    '{"format": "apollo-persisted-query-manifest", "version": 1}': "expected a list of operations",
    '{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [1]}': "operation 1 has no id or no text",
    '{"a": {"b": "c"}}': "operation 1 has no id or no text",
    '{"a": "{ users { name } }", "a": "x"}': "the key 'a' occurs twice",
    '{"a": "\\ud800"}': "surrogate",
    '{"0123456789abcdef0123456789abcdef": "{ users { name } }"}': "is not the SHA-256 of its document",
}


def test_what_is_no_manifest_is_told_so(command: Command, file: Path, sqlite: str) -> None:
    for text, said in BAD_MANIFESTS.items():
        (file / "manifest.json").write_text(text)
        done = command("documents", "add", "manifest.json", "--database", sqlite)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, (text, done.stderr)


def failures(command: Command, sqlite: str, commands: Iterable[tuple[str, ...]]) -> list[str]:
    found = [command("documents", *each, "--database", sqlite) for each in commands]
    assert [each.returncode for each in found] == [2] * len(found)
    return [each.stderr.strip() for each in found]


def test_what_cannot_be_removed_is_told(command: Command, file: Path, sqlite: str) -> None:
    unknown, short, upper = failures(
        command, sqlite, [("remove", document_id("x")), ("remove", "abc"), ("remove", hashed("x").upper())]
    )
    assert unknown == f"There is no trusted document {document_id('x')}."
    assert short.startswith("'abc' names no document") and "names no document" in upper


@pytest.mark.slow
def test_a_document_is_one_of_the_model(command: Command, file: Path, sqlite: str) -> None:
    (file / "notes.py").write_text(
        "from diptych import Model, Resource, grant\n\n\nclass Note(Resource):\n    text: str = ''\n    access = (grant('read'),)\n\n\n"
        "model = Model(Note)\n"
    )
    (file / "notes.graphql").write_text("{ notes { text } }")
    assert "Cannot query field 'notes'" in command("documents", "add", "notes.graphql", "--database", sqlite).stderr
    notes = sqlite.replace(".db", "-notes.db")
    with served(notes, model="notes:model", cwd=file):
        """It makes the tables."""
    done = command("documents", "add", "notes.graphql", "--model", "notes:model", "--database", notes)
    assert (done.returncode, done.stderr) == (0, "")
