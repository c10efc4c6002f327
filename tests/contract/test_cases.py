"""Golden cases: a request in both styles, its SQL for each database, and its answer, side by side in one file.

A file of `tests/contract/cases/` says who asks and what, in GraphQL and in REST; what stands below its second line of
dashes is written by

    UPDATE_CASES=1 make test ARGS=tests/contract/test_cases.py

and read by whoever reviews a change. Both requests must give the same Ask and the same rows, on both stores.
In a request, <after> is the cursor that leads on from the list that [cursors] names. A change has three statements:
`change` makes it if all that guards it holds, `why` tells which guard did not hold, and `answer` reads the answer
where the change cannot. A subscription and the log of a collection are told what an admin does in [[does]].
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.rest.precondition import versions
from diptych.api.rest.query import read_query
from diptych.api.rest.translate import translate as translate_rest
from diptych.api.rest.translate import translate_changes, translate_write
from diptych.ask.nodes import Ask, Read, Watch, Write, WriteVerb
from diptych.ask.wish import WriteWish
from diptych.compile.dialect import POSTGRES, SQLITE, Dialect
from diptych.compile.read import compile_reads
from diptych.compile.watch import compile_watch
from diptych.compile.write import compile_write
from diptych.demo.model import model as default
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.model.view import View
from diptych.policy.access import narrow, narrow_watch
from diptych.policy.guards import add_guards
from tests.contract.http import data, shelf
from tests.contract.writes import vault
from tests.contract.writes.shop import Shop
from tests.support.cases import cases
from tests.support.in_process import Service, in_process
from tests.support.reading import parsed
from tests.support.running import NewDatabase

FOLDER = Path(__file__).parent / "cases"
WRITTEN = "# " + "-" * 100 + "\n"
MODELS: Mapping[str, tuple[Model, Any]] = {
    "default": (default, data.ROWS),
    "shelf": (shelf.model, shelf.ROWS),
    "vault": (vault.model, vault.ROWS),
}
VERBS: Mapping[str, WriteVerb] = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
DIALECTS = {"sqlite": SQLITE, "postgres": POSTGRES}
UPDATE = bool(os.environ.get("UPDATE_CASES"))


@dataclass(frozen=True)
class Case:
    """One file."""

    file: Path
    model: Model
    user: str | None
    roles: tuple[str, ...] | None
    document: str
    variables: dict[str, Any]
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    does: tuple[Mapping[str, str], ...] = ()

    @classmethod
    def read(cls, name: str, cursors: Service) -> Case:
        file = FOLDER / f"{name}.toml"
        found = tomllib.loads(file.read_text().partition(WRITTEN)[0])
        who = (found.get("user"), tuple(found["roles"]) if "roles" in found else None)
        bare = cls(file, MODELS[found["model"]][0], *who, "", {}, "")
        leads = {name: bare.leading_on(cursors, url) for name, url in found.get("cursors", {}).items()}

        def filled(text: str) -> str:
            return re.sub(r"<(\w+)>", lambda mark: leads[mark[1]], text).strip()

        variables = json.loads(filled(found["graphql"].get("variables", "{}")))
        rest = found["rest"]
        url = "".join(filled(rest["url"]).split("\n")).replace(" ", "")
        more = (rest.get("method", "GET"), rest.get("headers", {}), rest.get("body", ""))
        return cls(
            file,
            bare.model,
            *who,
            filled(found["graphql"]["query"]),
            variables,
            url,
            *more,
            does=tuple(found.get("does", ())),
        )

    @property
    def viewer(self) -> Viewer:
        return Viewer() if self.roles is None else self.model.viewer(frozenset(self.roles), self.user)

    @property
    def view(self) -> View:
        return self.model.view(self.model.signature(self.viewer))

    def token(self, service: Service) -> str | None:
        return None if self.roles is None else service.token(self.user, *self.roles)

    def leading_on(self, service: Service, url: str) -> str:
        page = service.get(url, token=self.token(service)).json()["page"]
        return str(page["next"])

    # the two requests

    def ask(self) -> Ask:
        """The Ask that both requests are."""
        operation = translate_graphql(*parsed(self.document), self.variables, self.view)
        asks: list[Ask] = [*operation.wish.asks]
        asks += [each.ask for each in operation.writes if isinstance(each, WriteWish)]
        asks += [operation.watch.ask] if operation.watch is not None else []
        (one,) = asks
        return one

    def rest_ask(self, service: Service) -> Ask:
        path, _, query = self.url.partition("?")
        target = service.handler.rest.target(path)
        assert target is not None
        parsed = read_query(query, target)
        if target.changes:
            return translate_changes(target, parsed, self.view).ask
        if self.method == "GET":
            (other,) = translate_rest(target, parsed, self.view).asks
            return other
        wanted = versions(self.headers.get("if-match", "*").encode(), None)
        body = json.loads(self.body) if self.body else None
        return translate_write(VERBS[self.method], target, parsed, body, wanted, self.view, answer=True).ask

    def written(self, service: Service) -> str:
        """What stands below the line."""
        ask, token = self.ask(), self.token(service)
        if isinstance(ask, Watch):
            return self.sql(ask) + table("answer", self.told(service, token))
        queried = service.query(self.document, self.variables, token=token).json()
        if isinstance(ask, Write):
            self.refill(service)
        headers = {**self.headers, **({"content-type": "application/json"} if self.body else {})}
        given = service.send(self.method, self.url, headers=headers, body=self.body.encode(), token=token)
        answers = {"graphql": queried, "rest": given.json()}
        assert rows_of(next(iter(queried["data"].values()))) == rows_of(answers["rest"])
        return self.sql(ask) + table("answer", {name: pretty(body) for name, body in answers.items()})

    def told(self, service: Service, token: str | None) -> dict[str, str]:
        """What a stream and the log tell of what is done; of their cursors and times, that there are some."""
        stream = service.follow(self.document, self.variables, token=token)
        start = service.end_of_changes()
        for each in self.does:
            body = each.get("body", "")
            headers = {"content-type": "application/json"} if body else {}
            done = service.send(
                each["method"], each["url"], headers=headers, body=body.encode(), token=service.token(None, "admin")
            )
            assert done.status < 300, done.body
        service.settle()
        stream.close()
        page = service.get(f"{self.url}&after={start}", token=token).json()
        assert list(map(timeless, stream.events)) == list(map(timeless, page["data"])), "the stream and the log differ"
        return {"stream": pretty(list(map(timeless, stream.events))), "rest": pretty(timeless(page))}

    def refill(self, service: Service) -> None:
        """All rows as they were."""
        rows = next(rows for model, rows in MODELS.values() if model is self.model)
        Shop(service, rows).refill()

    def sql(self, ask: Ask) -> str:
        """The statements of an Ask for each database."""
        if isinstance(ask, Read):
            narrowed = narrow(ask, self.view)
            reads = {name: compile_reads([narrowed], self.model, each).sql for name, each in DIALECTS.items()}
            return table("sql", {name: layout(sql) for name, sql in reads.items()})
        if isinstance(ask, Watch):
            found = narrow_watch(ask, self.view)
            slots = len([*self.variables])
            both = {
                name: compile_watch(found.watch, found.seen, found.deleted, found.readable, slots, self.model, each).sql
                for name, each in DIALECTS.items()
            }
            return table("sql", {name: layout(sql) for name, sql in both.items()})
        assert isinstance(ask, Write)
        return "".join(table(f"sql.{name}", self.statements(ask, each)) for name, each in DIALECTS.items())

    def statements(self, ask: Write, dialect: Dialect) -> dict[str, str]:
        plan = compile_write(add_guards(ask, self.view), self.model, dialect)
        found = {"change": plan.change, "answer": plan.answer, "why": plan.why}
        return {name: layout(each.sql) for name, each in found.items() if each is not None}


def table(name: str, texts: Mapping[str, str]) -> str:
    """A table of TOML."""
    assert not any("'''" in text for text in texts.values())
    return f"\n[{name}]\n" + "".join(f"{key} = '''\n{text}\n'''\n" for key, text in texts.items())


def pretty(value: Any, indent: str = "") -> str:
    """JSON, on one line as far as it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 110 or not isinstance(value, dict | list) or not value:
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + pretty(each, deeper) for each in value) + f"\n{indent}]"
    pairs = (f"{deeper}{json.dumps(key)}: {pretty(each, deeper)}" for key, each in value.items())
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"


def timeless(value: Any) -> Any:
    """Without what is never the same twice."""
    if isinstance(value, dict):
        return {
            key: f"<{key}>"
            if key in ("eventId", "cursor", "at", "next", "last") and inner is not None
            else timeless(inner)
            for key, inner in value.items()
        }
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def rows_of(body: Any) -> Any:
    """The rows in an answer of either style: of a list, or the one."""
    if isinstance(body, dict):
        for key, value in body.items():
            if key in ("nodes", "data"):
                return value
            if key.endswith("Connection"):
                return rows_of(value)
    return body


_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|\((?:SELECT|INSERT|UPDATE|DELETE)\b|[()]"
    r"|(?:FROM|WHERE|ORDER BY|LIMIT|CROSS JOIN|(?<!\w)(?:SET|VALUES|RETURNING))\b|.",
    re.DOTALL,
)


def layout(sql: str) -> str:
    """The same statement with line breaks, for those who read it."""
    lines: list[str] = []
    line = ""
    inside: list[bool] = []  # of every bracket that is open: is it a sub-select?
    for token in _TOKEN.findall(sql):
        selects = sum(inside)
        if token[0] == "(" and len(token) > 1:
            lines, line = [*lines, line + "("], "  " * (selects + 1) + token[1:]
            inside.append(True)
        elif token == "(":
            line += token
            inside.append(False)
        elif token == ")":
            if inside.pop():
                lines, line = [*lines, line], "  " * (selects - 1)
            line += token
        elif token[0].isupper() and len(token) > 1 and (not inside or inside[-1]):
            lines, line = [*lines, line.rstrip()], "  " * selects + token
        else:
            line += token
    return "\n".join([*lines, line])


# the tests


@pytest.fixture(scope="module")
def services(new_database: NewDatabase) -> Iterator[Mapping[str, Service]]:
    """A service of each model, with a secret that makes cursors the same everywhere."""
    with asyncio.Runner() as runner, ExitStack() as stack:
        found = {
            name: stack.enter_context(in_process(model, new_database(), runner, rows))
            for name, (model, rows) in MODELS.items()
        }
        for service in found.values():
            service.handler.engine.secret = b"golden"
        yield found


NAMES = sorted(file.stem for file in FOLDER.glob("*.toml"))


@cases("name", NAMES)
def test_both_styles_ask_the_same_and_get_the_same_by_this_sql(name: str, services: Mapping[str, Service]) -> None:
    model = tomllib.loads((FOLDER / f"{name}.toml").read_text().partition(WRITTEN)[0])["model"]
    service = services[model]
    case = Case.read(name, service)
    assert case.ask() == case.rest_ask(service)
    case.refill(service)
    head, line, below = case.file.read_text().partition(WRITTEN)
    now = case.written(service)
    if UPDATE:
        case.file.write_text(head.rstrip() + "\n\n" + WRITTEN + now)
        return
    assert line and below == now, f"run UPDATE_CASES=1 and read the diff of {case.file.name}"


def test_a_layout_changes_nothing_but_blanks() -> None:
    sql = "SELECT concat('(SELECT  x FROM', (SELECT a FROM \"t\" WHERE b IN (1) ORDER BY c LIMIT 1)) FROM u"
    laid = layout(sql)
    assert "'(SELECT  x FROM'" in laid
    assert re.sub(r"\s+", "", laid) == re.sub(r"\s+", "", sql)
    assert len(laid.split("\n")) > 5
