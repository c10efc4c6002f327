"""No alias of ours meets a name of the model, whatever the model is called.

The words are taken from the SQL itself: the golden cases, the DDL and the triggers. Every one of them, with and without
its underscore, names a field and a table, beside all keywords and types of both databases. Such a field or table must
answer as the one with a harmless name beside it does.
"""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import apsw
import pytest

from diptych import Index, Json, Model, OnDelete, Resource, Unique, grant, inverse
from diptych.compile.dialect import POSTGRES, SQLITE
from diptych.compile.fragment import identifier
from diptych.compile.system.object import FeedTable
from diptych.compile.system.objects import system_objects
from diptych.compile.tables import create
from diptych.compile.verdict import Listing, compile_counts, compile_hidden
from diptych.demo.model import model as default
from diptych.model.naming import attribute_fault, class_fault
from diptych.model.rules.expr import FALSE, TRUE
from tests.support.effort import LONG
from tests.support.in_process import Service, encoded, in_process
from tests.support.running import NewDatabase

CASES = Path(__file__).parents[1] / "contract" / "cases"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL = re.compile(r"E?'(?:[^']|'')*'")
_ALIAS = re.compile(r'(?:\bAS |\bWITH |" |\) |\bdiptych_\w+ (?:AS )?)([a-z_][a-z0-9_]*)\b(?! *\()')
# keywords and types that the other regular expressions cannot tell from an alias
_NO_ALIASES = frozenset(
    ["text", "integer", "json", "bigint", "boolean", "uuid", "numeric", "timestamp", "double", "date", "record"]
)
KEYWORDS = frozenset(each.lower() for each in apsw.keywords)
# PostgreSQL tells its own: these are the names of types that a table could have
TYPES = ("date", "json", "name", "path", "point", "record", "text", "timestamp", "uuid")
SYSTEM = ("excluded", "rowid", "oid", "main", "temp", "public", "tg_op", "found")


def statements() -> str:
    """All SQL that the compiler writes for the golden cases and the default model, without its string literals."""
    found: list[str] = []
    for file in sorted(CASES.glob("*.toml")):
        for text in tomllib.loads(file.read_text())["sql"].values():
            found += text.values() if isinstance(text, dict) else [text]
    tables = [
        FeedTable(each.table, [field.column for field in each.fields.values()], (("email",),))
        for each in default.resources.values()
    ]
    for dialect in (SQLITE, POSTGRES):
        name: Any = dialect.name
        found += create(default, name)
        found += [statement for part in system_objects(tables, name) for statement in part.create]
        listing = Listing("Post", TRUE, FALSE)
        found += [plan(listing, default, dialect).sql for plan in (compile_counts, compile_hidden)]
    return _LITERAL.sub("''", "\n".join(found))


def aliases() -> set[str]:
    """Every alias of the statements of requests and triggers; of numbered ones, the first two."""
    found = set(_ALIAS.findall(statements())) - KEYWORDS - _NO_ALIASES
    return {each for each in found if not re.search(r"[2-9]$|\d\d$", each)}


def fields() -> list[str]:
    """Every word that can name a field."""
    words = {each.lower().lstrip("_") for each in _WORD.findall(statements())} | KEYWORDS | {*TYPES, *SYSTEM}
    taken = {"harmless", "id", "version", "created_at", "updated_at"}
    return [each for each in sorted(words - taken) if attribute_fault(each, each) is None]


def tables(words: Iterable[str]) -> list[str]:
    """Those that can name a table."""
    return [each for each in sorted({*words} - {"harmless"}) if class_fault("Thing", each) is None]


def test_every_alias_begins_with_an_underscore_and_no_name_of_a_model_does() -> None:
    found = aliases()
    assert {"_t0", "_p", "_lo", "_hi", "_was", "_becomes", "_w", "_f", "_j", "_j0", "_k", "_a0"} <= found
    # names inside functions of PostgreSQL's own, which see no table of the model
    assert {each for each in found if not each.startswith("_")} <= {
        "b",
        "c",
        "f",
        "h",
        "n",
        "place",
        "r",
        "s",
        "step",
        "w",
        "waiting",
    }
    for name in ("_lo", "__", "_", "new", "old"):
        assert class_fault("Thing", name) is not None
    for name in ("_lo", "__", "_"):
        assert attribute_fault(name, name) is not None
        with pytest.raises(ValueError, match="no identifier"):
            identifier(name)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def resource(name: str, plural: str, lines: Mapping[str, Any]) -> type[Resource]:
    """A resource class whose lines can have any name."""

    def fill(body: dict[str, Any]) -> None:
        body["__annotations__"] = {attr: hint for attr, (hint, *_) in lines.items()}
        body["__module__"] = __name__
        body["access"] = (grant("read", "create", "update", "delete"),)
        body.update({attr: value for attr, (_, *default) in lines.items() for value in default})

    return types.new_class(name, (Resource,), {"plural": plural, "ids": "integer"}, fill)


def send(service: Service, method: str, url: str, body: Any = None) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "prefer": "return=representation"} if body is not None else {}
    answer = service.send(method, url, body=sent, headers=headers)
    assert answer.status < 300, (method, url, answer.body)
    return answer.json() if answer.body else None


# fields


def paged(service: Service, name: str, by: str = "") -> list[Any]:
    """What a field answers: sorted both ways, followed in both directions, filtered, counted."""
    found: list[Any] = []
    for sort in (by or name, f"-{by or name}"):
        where = encoded(where={name: {"gte": 2}})
        url: str | None = f"/things?fields=id&first=2&sort={sort}&count=exact&{where}"
        for key in ("next", "next", "previous"):
            page = send(service, "GET", url) if url else None
            found.append(page and [page["data"], page["page"]["total"], *map(bool, page["page"].values())])
            cursor = page and page["page"][key]
            way = "last=2&before" if key == "previous" else "first=2&after"
            url = f"/things?fields=id&{way}={cursor}&sort={sort}&count=exact&{where}" if cursor else None
    return found


def masked(row: Any, names: Iterable[str]) -> set[str]:
    return {json.dumps(row[each]) for each in names}


def test_a_field_of_any_name_answers_as_one_with_a_harmless_name(
    new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    words = [*fields(), "harmless"]
    thing = resource("Thing", "things", {each: (int | None,) for each in words})
    model = Model(thing)
    names = {field.attr: field.name for field in model.resources["Thing"].fields.values()}
    wire = [names[each] for each in words]
    with in_process(model, new_database(), runner) as service:
        for value in range(5):
            assert masked(send(service, "POST", "/things", dict.fromkeys(wire, value)), wire) == {str(value)}
        closely = words if LONG else sorted({each.lstrip("_") for each in aliases()} & {*words})
        assert len(closely) > 20
        harmless = paged(service, "harmless")
        assert paged(service, "harmless", by="id") == harmless
        for each in closely:
            assert paged(service, names[each]) == harmless, each
        whole = send(service, "GET", "/things/1")
        assert masked(send(service, "PUT", "/things/1", whole), wire) == {"0"}
        assert masked(send(service, "PATCH", "/things/1", dict.fromkeys(wire, 9)), wire) == {"9"}
        assert masked(send(service, "DELETE", "/things/1", {}), wire) == {"9"}
        log = send(service, "GET", "/things/changes?first=100&fields=*")["data"]
        assert [each["kind"] for each in log] == ["CREATED"] * 5 + ["UPDATED"] * 2 + ["DELETED"]
        assert [masked(each["thing"], wire) for each in log[1:5]] == [{str(value)} for value in range(1, 5)]
        moved = encoded(where={names["was"]: {"gte": 3}, names["becomes"]: {"gte": 3}})
        assert len(send(service, "GET", f"/things/changes?{moved}")["data"]) == 4


class Shelf(Resource, plural="shelves", ids="integer"):
    """Its fields give indexes the names that PostgreSQL gives to keys and sequences."""

    pkey: Annotated[int, Index()]
    id_seq: Annotated[int, Index()]
    name_key: Annotated[int, Index()]
    name: Annotated[str, Unique()]
    a_name_that_is_as_long_as_a_name_can_be_and_ends_in_something_1: Annotated[int, Index()] = 0
    a_name_that_is_as_long_as_a_name_can_be_and_ends_in_something_2: Annotated[int, Index()] = 0
    extra: Json = {"list": [1], "text": "it's"}  # noqa: RUF012  # a field of a model

    access = (grant("read", "create"),)


def test_indexes_have_names_of_their_own_and_a_default_of_json_is_told_with_a_change(
    new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    with in_process(Model(Shelf), new_database(), runner) as service:
        made = send(service, "POST", "/shelves", {"pkey": 1, "idSeq": 2, "nameKey": 3, "name": "a"})
        (change,) = send(service, "GET", "/shelves/changes?fields=*")["data"]
        assert change["shelf"] == made and made["extra"] == {"list": [1], "text": "it's"}


# tables


def lived(service: Service, path: str, one: str) -> list[Any]:
    """All that can be done with a table: rows below rows, pages, counts, changes from outside, the log."""
    fields = "fields=id,version,name,parent(name,parent(id)),children[first=2](name,children[first=2](name))"
    found: list[Any] = []
    found.append(send(service, "POST", f"/{path}?{fields}", [{"name": "a"}, {"name": "b", "parentId": "1"}]))
    found.append(send(service, "PUT", f"/{path}/2?{fields}", {"name": "c", "parentId": "1"}))
    found.append(send(service, "PATCH", f"/{path}/2?{fields}", {"name": "d"}))
    table = path.replace("-", "_")
    service.execute(f"""UPDATE "{table}" SET name = 'e' WHERE id = 2""")
    found.append(send(service, "GET", f"/{path}?{fields}&count=exact&sort=-name"))
    found.append(send(service, "GET", f"/{path}/1/children?{fields}&first=1"))
    found.append(send(service, "DELETE", f"/{path}/1?{fields}", {}))
    log = send(service, "GET", f"/{path}/changes?fields=id,version,name,parent(name)")
    found.append([[each["kind"], each["rowId"], each[one]] for each in log["data"]])
    for page in found:
        if isinstance(page, dict) and "page" in page:
            page["page"] = {key: value if key == "total" else bool(value) for key, value in page["page"].items()}
    return found


def test_a_table_of_any_name_answers_as_one_with_a_harmless_name(
    new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    words = {each.lstrip("_") for each in aliases()} | {*TYPES, *SYSTEM}
    words |= {"select", "table", "from", "user", "order", "group", "where"} if not LONG else {*fields()}
    made = {each: f"Thing{number}" for number, each in enumerate([*tables(words), "harmless"])}
    classes = [node(name, word) for word, name in made.items()]
    model = Model(*classes)
    with in_process(model, new_database(), runner) as service:
        paths = {each.table: (each.path, each.one) for each in model.resources.values()}
        harmless = lived(service, *paths["harmless"])
        assert harmless[3]["page"]["total"] == 2 and [kind for kind, *_ in harmless[-1]].count("UPDATED") == 4
        for word in made:
            if word != "harmless":
                assert lived(service, *paths[word]) == harmless, word


def node(name: str, plural: str) -> type[Resource]:
    found = resource(name, plural, {"name": (str,)})
    hints: Any = found.__annotations__
    hints.update(parent=Annotated[found | None, OnDelete("set null")], children=list[found])  # type: ignore[valid-type]  # made at run time
    found.children = inverse("parent")  # type: ignore[attr-defined]  # made at run time
    return found
