"""`diptych rules`: what it tells of a role is what the service does to that role."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from diptych import Model
from diptych.api.graphql.schema import build_schema
from diptych.cli import commands
from diptych.cli.rules_page import page
from diptych.cli.rules_text import render_matrices
from diptych.demo.model import model as default
from diptych.explain.text import WIDTH
from diptych.model.call_defs import ActionDef, QueryDef
from diptych.model.declare.resource import VERBS
from diptych.model.declare.roles import ANONYMOUS, SIGNED_IN
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.describe.matrix import Permission, ResourceMatrix, matrix
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, JSON, STRING
from tests.contract.calls import press
from tests.support import edge_cases
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import declare
from tests.support.proof_writes import kind
from tests.support.running import Command

MODELS = {"default": default, "edge_cases": edge_cases.model}
PEOPLE = {default: "User", edge_cases.model: "Person", press.model: "Writer"}
SEED = 7
NOWHERE = {ID: "00000000-0000-7000-8000-00000000ffff", INTEGER_ID: "987654321"}


class Subject:
    """A model with rows, served, and someone of each role."""

    def __init__(self, model: Model, service: Service, rows: edge_cases.Data) -> None:
        self.model, self.service, self.rows = model, service, rows
        # one of whom every value is known that rules ask for
        self.user = next(row["id"] for row in rows[PEOPLE[model]] if int(row["id"][-1], 16) % 3)
        self.tokens = {role: self._token(role) for role in model.role_names}

    def _token(self, role: str) -> str | None:
        return None if role == ANONYMOUS else self.service.token(self.user, *([] if role == SIGNED_IN else [role]))

    def send(self, role: str, method: str, path: str, body: Any = None) -> Answer:
        kind = {"content-type": "application/json"} if body is not None else {}
        sent = b"" if body is None else json.dumps(body).encode()
        return self.service.send(method, path, headers=kind, body=sent, token=self.tokens[role])

    def cells(self) -> Iterator[tuple[ResourceDef, str, str, Permission]]:
        """Every cell of the rows: resource, role, column."""
        for found in matrix(self.model, self.model.role_names):
            for role, cells in found.rows.items():
                for column, cell in zip(found.columns, cells, strict=True):
                    yield found.resource, role, column, cell

    def readable(self, role: str, resource: ResourceDef) -> list[Any]:
        """The ids of rows that a role reads."""
        return [
            row["id"] for row in self.service.rows(f"/{resource.path}?first=100&fields=id", token=self.tokens[role])
        ]


@pytest.fixture(params=MODELS)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with serving(MODELS[request.param]) as found:
        yield found


@contextmanager
def serving(model: Model) -> Iterator[Subject]:
    rows = kind(model, edge_cases.rows(model, SEED))
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner) as service:
        runner.run(edge_cases.load(service.app.store, model, rows))
        yield Subject(model, service, rows)


# the truth


def probe(subject: Subject, resource: ResourceDef, role: str, column: str) -> Answer:
    """A request that tells whether a role could ever do this: it asks for no row that is there, or has a bad body."""
    path, nowhere = f"/{resource.path}", f"/{resource.path}/{NOWHERE[resource.key]}"
    match column:
        case "read":
            return subject.send(role, "GET", path)
        case "create":
            return subject.send(role, "POST", path, {"nothing": 1})
        case "update":
            return subject.send(role, "PATCH", nowhere, {"nothing": 1})
        case "delete":
            return subject.send(role, "DELETE", nowhere)
    call = next(call for call in resource.calls if call.attr == column)
    if isinstance(call, QueryDef):
        return subject.send(role, "GET", f"{path}/{call.segment}?nothing=1")
    return subject.send(role, "POST", f"{nowhere if call.on == 'row' else path}/{call.segment}", {"nothing": 1})


def test_never_is_what_the_service_refuses_to_the_role(subject: Subject) -> None:
    kinds = set()
    for resource, role, column, cell in subject.cells():
        refused = probe(subject, resource, role, column).status in (401, 403)
        assert refused == (cell.kind == "never"), (resource.name, role, column, cell)
        kinds.add((column in VERBS, cell.kind))
    assert kinds >= {(True, "always"), (True, "never"), (True, "where")}
    assert subject.model is default or kinds >= {(False, "where"), (False, "never")}


def test_never_is_said_of_actions_and_queries_that_are_refused() -> None:
    kinds = set()
    with serving(press.model) as subject:
        for resource, role, column, cell in subject.cells():
            if column not in VERBS:
                call = next(call for call in resource.calls if call.attr == column)
                status = probe(subject, resource, role, column).status
                assert (status in (401, 403)) == (cell.kind == "never"), (resource.name, role, column, cell, status)
                kinds.add((type(call), call.on, cell.kind))
    assert kinds >= {
        (kind, on, told) for kind, on in ((ActionDef, "class"), (QueryDef, "class")) for told in ("always", "never")
    }


def test_reading_always_is_reading_every_row(subject: Subject) -> None:
    narrowed = 0
    for resource, role, column, cell in subject.cells():
        if column == "read" and cell.kind != "never":
            seen, there = len(subject.readable(role, resource)), len(subject.rows[resource.name])
            assert seen == there or cell.kind == "where", (resource.name, role)
            narrowed += seen < there
    assert narrowed


def required(subject: Subject, role: str, resource: ResourceDef) -> dict[str, Any] | None:
    """The least that a new row needs; None if there is no row that it could refer to."""
    body: dict[str, Any] = {}
    for name, each in resource.fields.items():
        if each.required:
            body[name] = _value(subject, role, resource, each)
            if body[name] is None:
                return None
    return body


def _value(subject: Subject, role: str, resource: ResourceDef, each: FieldDef) -> Any:
    if each.relation:
        target = subject.model.resources[resource.relations[each.relation].target]
        return next(iter(subject.readable(role, target)), None)
    if each.scalar.choices:
        return each.scalar.choices[0]
    if each.scalar.python is Decimal:
        return str(edge_cases.decimals(each.scalar)[4])
    return {
        STRING: f"{role}@{resource.name}",
        INT: 1,
        BIGINT: "1",
        FLOAT: 1.5,
        BOOLEAN: True,
        DATE: "2026-01-31",
        DATETIME: "2026-01-31T00:00:00Z",
        JSON: {},
    }[each.scalar]


def test_creating_always_is_allowed(subject: Subject) -> None:
    made = 0
    for resource, role, column, cell in subject.cells():
        if column == "create" and cell.kind == "always":
            answer = subject.send(role, "POST", f"/{resource.path}", required(subject, role, resource))
            assert answer.status == 201, (resource.name, role, answer.body)
            made += 1
    assert made


def test_updating_always_is_allowed_on_every_row_that_the_role_reads(subject: Subject) -> None:
    done = 0
    for resource, role, column, cell in subject.cells():
        if column == "update" and cell.kind == "always":
            for key in subject.readable(role, resource):
                answer = subject.send(role, "PATCH", f"/{resource.path}/{key}", {})
                assert answer.status == 200, (resource.name, role, answer.body)
                done += 1
    assert done


def test_deleting_always_is_allowed_unless_others_refer_to_the_row(subject: Subject) -> None:
    statuses = set()
    for resource, role, column, cell in subject.cells():
        if column == "delete" and cell.kind == "always":
            for key in subject.readable(role, resource):
                answer = subject.send(role, "DELETE", f"/{resource.path}/{key}")
                assert answer.status in (204, 409), (resource.name, role, answer.body)
                statuses.add(answer.status)
    assert 204 in statuses


def test_a_condition_is_true_of_the_rows_on_which_a_change_is_allowed(subject: Subject) -> None:
    """Told of an update that anyone may make of its own: it is allowed on those rows and refused on others."""
    resource = subject.model.resources["Post" if subject.model is default else "Note"]
    (own,) = {
        cell.text
        for found, role, column, cell in subject.cells()
        if (found, role, column) == (resource, SIGNED_IN, "update")
    }
    assert own == "author.id = viewer.id"
    owners = {str(row["id"]): row["authorId"] for row in subject.rows[resource.name]}
    results = set()
    for key in subject.readable(SIGNED_IN, resource):
        answer = subject.send(SIGNED_IN, "PATCH", f"/{resource.path}/{key}", {"body": "x"})
        assert (answer.status == 200) == (owners[key] == subject.user), answer.body
        results.add(answer.status)
    assert results == {200, 403}


# fields


def field_cells(found: ResourceMatrix) -> dict[tuple[str, str, str], Permission]:
    """For each field or relation by its word, role and touch."""
    return {
        (name, role, touch): cell
        for group in found.fields
        for name in group.names
        for role, cells in group.rows.items()
        for touch, cell in zip(group.columns, cells, strict=True)
    }


def word(resource: ResourceDef, name: str) -> str:
    if name in resource.relations:
        return resource.relations[name].attr
    each = resource.fields[name]
    return f"{resource.relations[each.relation].attr}.id" if each.relation else each.attr


def test_a_field_that_is_never_read_does_not_exist_for_the_role(subject: Subject) -> None:
    kinds = set()
    for found in matrix(subject.model, subject.model.role_names):
        resource, special = found.resource, field_cells(found)
        for role, (row, *_) in found.rows.items():
            for name in (*resource.fields, *resource.relations) if row.kind != "never" else ():
                asked = f"{name}(id)" if name in resource.relations else name
                answer = subject.send(role, "GET", f"/{resource.path}?fields={asked}")
                cell = special.get((word(resource, name), role, "read"))
                assert (answer.status == 400) == (cell is not None and cell.kind == "never"), (role, name, answer.body)
                kinds.add(cell and cell.kind)
    assert kinds == {None, "always", "where", "never"}


def test_a_field_that_is_always_read_shows_on_every_row(subject: Subject) -> None:
    hidden = 0
    for found in matrix(subject.model, subject.model.role_names):
        resource, special = found.resource, field_cells(found)
        stored = {str(row["id"]): row for row in subject.rows[resource.name]}
        for role, (row, *_) in found.rows.items():
            for name, each in resource.fields.items() if row.kind != "never" else ():
                cell = special.get((word(resource, name), role, "read"))
                if each.stored and (cell is None or cell.kind != "never"):
                    url = f"/{resource.path}?first=100&fields=key:id,{name}"
                    shown = subject.service.rows(url, token=subject.tokens[role])
                    missing = [row for row in shown if row[name] is None and stored[row["key"]][name] is not None]
                    assert not missing or (cell and cell.kind == "where"), (role, name)
                    hidden += bool(missing)
    assert hidden


@pytest.mark.parametrize("name", MODELS)
def test_what_a_role_may_give_is_what_its_schema_takes(name: str) -> None:
    model = MODELS[name]
    kinds = set()
    for role in model.role_names:
        types = build_schema(model.view_as(role)).type_map
        for found in matrix(model, model.role_names):
            special = field_cells(found)
            for touch, suffix in (("create", "Create"), ("update", "Patch")):
                given: Any = types.get(found.resource.name + suffix)
                for each in found.resource.fields.values():
                    cell = special.get((word(found.resource, each.name), role, touch))
                    if cell is not None:
                        takes = given is not None and each.name in given.fields
                        assert takes == (cell.kind != "never"), (role, each.name, touch)
                        kinds.add(cell.kind)
    assert kinds >= {"always", "never"}


def test_what_a_viewer_may_have_is_told_and_not_taken_for_nothing() -> None:
    told = field_cells(matrix(edge_cases.model, ["signed_in", "anonymous"])[1])
    assert told["exact", "signed_in", "read"].text == "mood in viewer.moods or maybe_text = viewer.word"
    assert told["exact", "anonymous", "read"].kind == "never"


# the text


def test_the_rules_of_the_default_model_read_well(command: Command) -> None:
    done = command("rules")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        """
Post  /posts
             read       create                 update                 delete
  anonymous  published  never                  never                  never
  signed_in  where [1]  author.id = viewer.id  author.id = viewer.id  author.id = viewer.id
  staff      where [1]  author.id = viewer.id  author.id = viewer.id  author.id = viewer.id
  admin      always     author.id = viewer.id  always                 always
  [1] published or author.id = viewer.id

  As the row: id, version, created_at, updated_at, author.id, title, body, published, author,
    comments
"""
        in done.stdout
    )
    assert (
        """
  email
             read            create  update
  anonymous  never           never   never
  signed_in  id = viewer.id  never   always
  staff      id = viewer.id  never   always
  admin      always          always  always
"""
        in done.stdout
    )
    assert "  status moves pending → paid (staff), " in done.stdout


def test_the_rules_of_one_role_can_be_asked_for(command: Command) -> None:
    told = command("rules", "--as", "staff").stdout
    assert "  staff  always" in told
    assert "admin  " not in told
    failed = command("rules", "--as", "nobody")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "The model has no role named 'nobody'; there are anonymous, signed_in, staff, admin.\n"


WIDE = """
class Thing(Resource):
    text: str
    access = (grant("read"),)

    @allow("update")
    def plain(self, viewer: Viewer) -> bool:
        return self.text == "{constant}"
""" + "".join(
    f"""
    @action(to=admin)
    async def do_something_{number}(self, tx: Tx) -> None: ...
"""
    for number in range(12)
)


def wide(constant: str = "x") -> Model:
    built = declare(WIDE.replace("{constant}", constant)).built
    assert isinstance(built, Model), built
    return built


@pytest.mark.parametrize("model", [default, edge_cases.model, wide("word " * 60)])
def test_no_line_is_wider_than_a_terminal(model: Model) -> None:
    lines = click.unstyle(render_matrices(matrix(model, model.role_names))).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line != line.rstrip() for line in lines)


def test_a_table_that_is_too_wide_goes_on_below() -> None:
    told = click.unstyle(render_matrices(matrix(wide(), ["anonymous", "admin"])))
    heads = [line.split() for line in told.splitlines() if re.match(" {4,}(read|do_something_)", line)]
    assert [*VERBS, *(f"do_something_{number}" for number in range(12))] == [name for head in heads for name in head]
    assert len(heads) > 2
    assert len(re.findall("^  admin  ", told, re.MULTILINE)) == len(heads)


def test_colours_are_for_terminals_that_want_them() -> None:
    styled = CliRunner().invoke(commands, ["rules"], color=True).stdout
    assert (
        "\x1b[32malways\x1b[0m" in styled and "\x1b[31mnever\x1b[0m" in styled and "\x1b[33mpublished\x1b[0m" in styled
    )
    plain = CliRunner().invoke(commands, ["rules"]).stdout
    assert plain == click.unstyle(styled) != styled
    assert CliRunner().invoke(commands, ["rules"], color=True, env={"NO_COLOR": "1"}).stdout == plain


# the page


class Page(HTMLParser):
    """Reads a page: whether tags are balanced, the tables with their cells, and all attributes."""

    VOID = ("meta", "br")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if {"th", "td"} & {*self.open}:
            self.tables[-1][-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("name", MODELS)
def test_the_page_has_every_cell_in_a_real_table(name: str) -> None:
    model = MODELS[name]
    matrices = matrix(model, model.role_names)
    shown = Page(page(name, matrices))
    expected = []
    for found in matrices:
        for columns, rows in ((found.columns, found.rows), *((each.columns, each.rows) for each in found.fields)):
            expected.append(
                [["role", *columns], *([role, *(cell.text for cell in cells)] for role, cells in rows.items())]
            )
    assert shown.tables == expected
    assert len(shown.all("caption")) == len(shown.tables)
    assert {attrs.get("scope") for attrs in shown.all("th")} == {"row", "col"}


def test_the_page_needs_nothing_else(command: Command) -> None:
    html = command("rules", "--html").stdout
    shown = Page(html)
    assert html.startswith('<!doctype html>\n<html lang="en">')
    assert html.endswith("</html>\n")
    assert {tag for tag, _ in shown.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    assert {name for _, attrs in shown.tags for name in attrs} == {
        *("lang", "charset", "name", "content", "class", "scope", "id", "href", "tabindex", "role"),
        *("aria-label", "aria-hidden", "viewbox", "d"),
    }
    assert [each["href"] for each in shown.all("a")] == [f"#{each['id']}" for each in shown.all("section")]
    assert shown.all("meta")[0] == {"charset": "utf-8"}
    assert "url(" not in html and "@import" not in html and "//" not in html
    assert "color-scheme: light dark" in html


def test_nothing_of_the_model_is_taken_for_html() -> None:
    constant = "</code></td><script>alert(1)</script>&amp;' onload='"
    model = wide(constant)
    html = page('"><img src=x>', matrix(model, model.role_names))
    shown = Page(html)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in shown.tags)
    assert f'text = "{constant}"' in [cell for table in shown.tables for row in table for cell in row]
    assert "<script" not in html and "<img" not in html


def test_the_page_is_utf_8_wherever_it_goes(tmp_path: Path, command: Command) -> None:
    (tmp_path / "snow.py").write_text(
        "from diptych import Model, Resource, Viewer, allow\n\n\n"
        "class Snow(Resource, plural='snows'):\n    text: str\n\n    @allow('read')\n"
        "    def shown(self, viewer: Viewer) -> bool:\n        return self.text == 'Schnee ☃'\n\n\nmodel = Model(Snow)\n"
    )
    assert "text = 'Schnee ☃'" in command("rules", "snow:model").stdout
    assert "text = &#x27;Schnee ☃&#x27;" in command("rules", "snow:model", "--html").stdout
