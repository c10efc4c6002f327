"""The OpenAPI document against the service, by schemathesis: what fits is accepted, what does not is refused,
and every answer is as described. All checks are on, in the phases examples, coverage, fuzzing and stateful: the last
goes along the links, so that what was created is read, changed, deleted, and then gone.

What the document says in words for all operations is written out for each (tests/support/written_out.py). A list then
takes some sixty parameters, and not all of them go together: `first` excludes `last`, a cursor is bound to its sort and
filter, and a filter may have fifty terms. OpenAPI cannot say so, and a tool that sends them all at once learns nothing.
So documents are narrowed before they are tried: a Narrowed document has fewer optional
parameters, and ids and cursors that are there. It has nothing below `/oauth`: forms and codes there belong to a browser or
a client, and are used once; tests/unit/rest/test_openapi_oauth.py holds them against the document. `make fuzz` tries more of all of
it, as a user too. A Changing document has bodies whose references lead somewhere, and that
give back no read-only values. They write no relations (a body has `postId` or `post`, one of the two, and what else a
relation takes depends on whether the row is new: tests/proof/test_nests_are_batches.py proves these), they change many
rows by the id alone (one filter is required, whichever it is), and have no `onConflict`, which takes a `by`. Whoever keeps
to these keeps to the whole document, too.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.engine import Status, events, from_schema
from schemathesis.generation.case import Case

from diptych.model.operators import FOLDED, ORDERED, SEARCHES
from tests.proof.fuzz.effort import FUZZ, SEED, UNMETERED
from tests.support.documents import document_of
from tests.support.running import Client, NewDatabase, Service, served, token
from tests.support.written_out import written_out

Document = dict[str, Any]
Keep = Callable[[str, str], tuple[str, ...]]
"""Path and method → the parameters to keep."""

ROLES = ("admin",) if FUZZ == 1 else ("admin", "user", "anonymous")
MORE = max(1, FUZZ // 8)
"""How many times as many examples: most of the time, what is tried costs more than what answers."""


def some(full: int) -> int:
    """How many examples are drawn of each operation; the short form draws a fifth, beside those that cover the document."""
    return full if FUZZ > 1 else full // 5


LEFT_OUT = ("posts", "comments") if FUZZ == 1 else ()
"""Resources whose operations the short form does not try: they are generated as those of users and orders are."""
ENOUGH = 500 if FUZZ > 1 else 300
"""Requests that are made at least, where a whole document is tried."""
COMMON = ("id", "version", "createdAt", "updatedAt")
DOCUMENTS = ("query Hello { __typename }", "query Hello { users(first: 2) { name posts(first: 1) { title } } }")
FORWARD = ("fields", "first", "offset", "count", "sort", "kinds", "If-None-Match", "Prefer")
OPERATORS = [op for op in (*ORDERED, *SEARCHES) if op != "eq" and op not in FOLDED]
SCALARS = [
    ("/users", "id"),
    ("/posts", "published"),
    ("/orders", "total"),
    *([("/users", "version"), ("/users", "createdAt"), ("/orders", "status"), ("/orders", "note")] if FUZZ > 1 else []),
]
"""A field for each type of value; fields of one type are parsed alike. The short form leaves out the costly ones:
tests/unit/api/openapi/test_schemas.py tries the filters of every type."""

CHANGES = ("POST", "PUT", "PATCH", "DELETE")
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "412"]
"""What may become of a request that fits the document; a version that has passed by is no fault of its form."""
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "412", "415", "422", "431"]
"""What may become of one that does not; that a reference leads nowhere is told after the version."""
PATCHES = {
    "type": "array",
    "maxItems": 100,
    "items": {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["test"]},
            "path": {"type": "string", "enum": ["/id", "/version", "/nope", "/name/0", ""]},
            "value": {},
        },
        "required": ["op", "path", "value"],
    },
}
KEYS = itertools.count()
TRIED: Counter[int] = Counter()
"""Answers by their status."""
ELSEWHERE = document_of("default", "admin")["paths"]
"""What others may do, if this role may not."""

schemathesis.openapi.format("idempotency-key", st.just("key"))
schemathesis.openapi.format(
    "fields", st.just("*") | st.lists(st.sampled_from(COMMON), min_size=1, unique=True).map(",".join)
)
schemathesis.openapi.format("summary-fields", st.sampled_from(["count", "count,createdAt(min,max)"]))
schemathesis.openapi.format("group-keys", st.sampled_from(["createdAt", "createdAt:month,updatedAt:day"]))
schemathesis.openapi.format("group-fields", st.sampled_from(["count", "createdAt,summary(updatedAt(max))"]))
schemathesis.openapi.format("group-sort", st.sampled_from(["-count", "createdAt,count", "-summary.updatedAt.max"]))
schemathesis.openapi.format("group-filter", st.sampled_from(['{"count":{"gte":1}}', '{"not":{"count":{"lt":2}}}']))
schemathesis.openapi.format("viewer-fields", st.sampled_from(["*", "*,user(*)", "*,me:subject"]))
schemathesis.openapi.format("graphql", st.sampled_from(DOCUMENTS))
schemathesis.openapi.format("graphql-operation", st.just("Hello"))


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", UNMETERED) as service:
        yield service


@pytest.fixture(scope="module", params=ROLES)
def caller(request: pytest.FixtureRequest, service: Service) -> Client:
    if request.param == "anonymous":
        return service
    if request.param == "user":
        return service.token_of(user=service.get("/users?first=1&fields=id").json()["data"][0]["id"])
    return service.signed_in(token(service.database, request.param))


@pytest.fixture(autouse=True)
def tally(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[None]:
    """Tell how many requests a test made."""
    TRIED.clear()
    yield
    record_property(
        "fuzz", {"what": "schemathesis, REST", "cases": TRIED.total(), "seed": SEED, "answers": dict(TRIED)}
    )


class Narrowed:
    """A document with fewer parameters, and with ids and cursors that are there."""

    def __init__(self, caller: Client, keep: Keep) -> None:
        self.caller = caller
        whole = written_out(caller.get("/openapi.json").json())
        self.parts = whole["components"]
        self.document = copy.deepcopy(whole)
        for path in [path for path in whole["paths"] if path.startswith("/oauth/")]:
            del self.document["paths"][path]
        self.lists: list[str] = []
        self.counted = True
        for path, item in self.document["paths"].items():
            is_list = len(item.get("get", {}).get("parameters", ())) > 10 and "{collection}" not in path
            self.lists += [path] if is_list else []
            for method in {"get", "head"} & item.keys():
                item[method]["parameters"] = self._parameters(path, item[method], keep(path, method))

    def add_where(self, path: str, fields: Mapping[str, Sequence[str]], depth: int = 0) -> None:
        """Add the parameter `where`, cut to some operators of some fields and to so many levels of relations."""
        resource = self.document["paths"][path]["get"]["tags"][0]
        self.counted = not path.endswith("/changes")  # the document says so in its description
        schema = self._where(f"{resource}Where", fields, depth)
        part = {**self._find(f"{resource}.where"), "content": {"application/json": {"schema": schema}}}
        self.document["paths"][path]["get"]["parameters"].append(part)

    @staticmethod
    def _compared(schema: Document, operators: Sequence[str]) -> Document:
        return {**schema, "properties": {key: each for key, each in schema["properties"].items() if key in operators}}

    def _where(self, name: str, fields: Mapping[str, Sequence[str]], depth: int) -> Document:
        """The schema of a filter, written out so that it does not lead back to itself."""
        schema: Document = self.parts["schemas"][name]
        properties = {}
        for key, inner in schema["properties"].items():
            target = inner.get("$ref", "").rpartition("/")[2]
            if key in fields:
                properties[key] = self._compared(self.parts["schemas"][target], fields[key])
            elif depth and key in ("and", "or"):
                properties[key] = {"type": "array", "items": self._where(name, fields, 0)}
            elif depth and target.endswith("ListWhere"):
                one = self._where(target.replace("ListWhere", "Where"), fields, depth - 1)
                words = self.parts["schemas"][target]
                count = self._compared(self.parts["schemas"]["IntFilter"], ("eq", "gt"))
                quantified = {word: one for word in ("some", "every", "none")}
                properties[key] = {**words, "properties": quantified | ({"count": count} if self.counted else {})}
            elif depth and target.endswith("Where"):
                properties[key] = self._where(target, fields, depth - 1)
        return {**schema, "properties": properties}

    def _find(self, name: str) -> Document:
        found: Document = self.parts["parameters"][name]
        return found

    def _parameters(self, path: str, operation: Document, names: tuple[str, ...]) -> list[Document]:
        given: list[Document] = operation.get("parameters", [])
        is_list = len(given) > 10
        left_out = ("after", "before") if "{collection}" in path else ()  # a cursor is one of a collection
        names = tuple(name for name in names if name not in left_out)
        kept = [
            each for each in map(self._resolved, given) if not is_list or each["name"] in names or each.get("required")
        ]
        for each in kept:
            if each["name"] == "fields" and path == "/viewer":  # it has other fields than rows
                each["schema"] = {"type": "string", "enum": ["*"]}
            if each["name"] in ("after", "before"):
                each["schema"] = {"type": "string", "enum": [self._cursor(path)]}
        if "{id}" in path:
            kept.append({**self._find("id"), "schema": {"type": "string", "enum": self._ids(path)}})
        return kept

    def _resolved(self, given: Document) -> Document:
        return dict(self._find(given["$ref"].rpartition("/")[2])) if "$ref" in given else given

    def _ids(self, path: str) -> list[str]:
        rows = self.caller.get(f"/{path.split('/')[1]}?first=3&fields=id").json()["data"]
        return [row["id"] for row in rows]

    def _cursor(self, path: str) -> str:
        """A cursor in the middle of a list."""
        for each in self._ids(path) if "{id}" in path else [""]:
            page = self.caller.get(path.replace("{id}", each) + "?first=1&fields=id").json()["page"]
            if page["next"]:
                return str(page["next"])
        return "none"


class Changing(Narrowed):
    """A document of changes: references lead to rows, what is read-only is left out, patches are of what is there."""

    def __init__(self, caller: Client, user: str) -> None:
        super().__init__(caller, lambda path, method: ("fields",))
        self.user = user
        self.is_admin = "delete" in self.document["paths"].get("/orders/{id}", {})
        schemas = self.document["components"]["schemas"]
        for name, schema in schemas.items():
            if name.endswith(("Create", "Patch", "Replace")) and "properties" in schema:
                self._leave_out_relations(schema, is_new=name.endswith("Create"))
                self._narrow(schema["properties"])
        if "JsonPatch" in schemas:
            schemas["JsonPatch"] = PATCHES
        for path, item in self.document["paths"].items():
            for method in {each.lower() for each in CHANGES} & item.keys():
                self._leave_out_combinations(path, item[method])
                if "{id}" in path:
                    ids = [each for each in self._ids(path) if each != user]
                    part = {**self._find("id"), "schema": {"type": "string", "enum": ids or ["none"]}}
                    item[method]["parameters"] = [*item[method]["parameters"], part]
        self._narrow_batch()

    def _leave_out_relations(self, schema: Document, *, is_new: bool) -> None:
        """Leave out the relations of a body; without them, the keys that they stand in for are required of a new row."""
        properties = schema["properties"]
        for name in [name for name, part in properties.items() if part.get("$ref", "").endswith("Write")]:
            text = properties.pop(name)["description"]
            keys = re.findall("instead of `([A-Za-z]+)`", text) if is_new else []
            schema["required"] = [*schema.get("required", ()), *keys]

    def _leave_out_combinations(self, path: str, operation: Document) -> None:
        """Leave out what depends on other parameters: how conflicts end, and all filters of many rows but the id."""
        given = operation["parameters"]
        names = {each["name"] for each in given}
        if "most" in names:
            kept = ("fields", "most", "dryRun", "Idempotency-Key", "Prefer")
            found = {"schema": {"type": "string"}, "example": self._ids(path)[-1]}
            by_id = {"name": "id", "in": "query", "required": True, **found}
            operation["parameters"] = [*(each for each in given if each["name"] in kept), by_id]
            content = operation.get("requestBody", {}).get("content", {})
            for kind, part in {kind: part["schema"] for kind, part in content.items()}.items():
                content[kind] = {"schema": self._of_any_row(part["$ref"].rpartition("/")[2])}
        elif "by" in names:
            operation["parameters"] = [each for each in given if each["name"] != "onConflict"]

    def _of_any_row(self, name: str) -> Document:
        """The schema of a change of many rows: where none matches, no reference is followed, so that any will do."""
        schema: Document = copy.deepcopy(self.parts["schemas"][name])
        self._leave_out_relations(schema, is_new=False)
        return schema

    def _narrow_batch(self) -> None:
        """Requests of a batch are those of the document; those of rows, of rows that are there."""
        paths = self.document["paths"]
        writes = [
            self._request_of(path, method, item[method]["requestBody"]["content"]["application/json"]["schema"])
            for path, item in paths.items()
            for method in ("post", "patch")
            if path.count("/") == 1 + (method == "patch") and path not in ("/batch", "/graphql") and method in item
        ]
        if not writes:
            paths.pop("/batch", None)
            return
        requests = {"type": "array", "items": {"anyOf": writes}, "minItems": 1, "maxItems": 20}
        schema = {"type": "object", "properties": {"requests": requests}, "required": ["requests"]}
        content = {"application/json": {"schema": {**schema, "additionalProperties": False}}}
        paths["/batch"]["post"]["requestBody"] = {"required": True, "content": content}

    def _request_of(self, path: str, method: str, body: Document) -> Document:
        ids = [each for each in self._ids(path) if each != self.user] if "{id}" in path else [""]
        properties = {
            "method": {"type": "string", "enum": [method.upper()]},
            "url": {"type": "string", "enum": [path.replace("{id}", each) for each in ids]},
            "body": body,
        }
        return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}

    def _narrow(self, properties: Document) -> None:
        for name in COMMON:
            properties.pop(name, None)
        for name, path in {"postId": "/posts", "customerId": "/users", "authorId": "/users"}.items():
            if name in properties:
                found = [*self._ids(path), self.user] if name == "postId" else [self.user]
                properties[name] = {"type": "string", "enum": found}


def tried(
    narrowed: Narrowed,
    paths: Sequence[str] = (),
    phases: Sequence[str] = ("examples", "coverage", "fuzzing"),
    methods: Sequence[str] = (),
    *,
    examples: int = some(10),
) -> int:
    """Try a document. Every failure is told; the answer is how many requests were made."""
    caller = narrowed.caller
    config = SchemathesisConfig.from_dict(
        {
            "base-url": caller.url,
            "seed": SEED,
            "headers": {"Authorization": f"Bearer {caller.token}"} if caller.token else {},
            "continue-on-failure": True,
            "cache": {"enabled": False},
            "generation": {"max-examples": examples * MORE, "database": "none", "deterministic": FUZZ == 1},
            "checks": {
                "enabled": True,
                "positive_data_acceptance": {"expected-statuses": ACCEPTED},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
            "phases": {
                **{name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing")},
                # only along the links of the document: what is inferred would mend bodies that are wrong on purpose
                "stateful": {"enabled": "stateful" in phases, "inference": {"algorithms": []}},
            },
        }
    )
    schema: schemathesis.BaseSchema = schemathesis.openapi.from_dict(narrowed.document, config=config)
    schema.hook("map_headers")(told_by_status)
    if paths:
        schema = schema.include(path=list(paths), method="GET")
    if methods:
        schema = schema.include(
            lambda found: {found.operation.method.upper(), found.operation.label} & set(methods) != set()
        )
    if not paths and "stateful" not in phases:  # links lead from one resource to others
        schema = schema.exclude(lambda found: found.operation.path.split("/")[1] in LEFT_OUT)
    requests, failures = 0, []
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            requests += len(event.recorder.cases)
            answers = [each.response for each in event.recorder.interactions.values()]
            TRIED.update(each.status_code if each else 0 for each in answers)
            failures += list(failures_of(event))
        elif isinstance(event, events.NonFatalError | events.FatalError):
            failures.append(str(event))
    assert not failures, "\n\n".join(dict.fromkeys(failures))[:10_000]
    return requests


def told_by_status(context: schemathesis.HookContext, headers: Mapping[str, Any] | None) -> dict[str, Any]:
    """At `/graphql`, ask for the media type whose status tells of errors: `application/json` is always a 200."""
    found = dict(headers or {})
    if context.operation is not None and context.operation.path == "/graphql":
        found.setdefault("Accept", "application/graphql-response+json")
    return found


@schemathesis.hook("before_call")
def with_new_key(context: schemathesis.HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """No key comes twice: with another body it would be refused."""
    if re.fullmatch("[!#-~][!-~]{0,254}", str(case.headers.get("Idempotency-Key", ""))):
        case.headers["Idempotency-Key"] = f"key-{next(KEYS)}"


def failures_of(event: events.ScenarioFinished) -> Iterator[str]:
    """What went wrong, but for what others may do and this role may not."""
    for number, nodes in event.recorder.checks.items():
        for node in nodes:
            if node.status is Status.FAILURE and node.failure_info is not None:
                case: Case[Any] = event.recorder.cases[number].value
                answer = event.recorder.interactions[number].response
                if answer is not None and is_of_others(node.name, case, answer, ELSEWHERE.get(case.path, {})):
                    continue
                if answer is not None and node.name == "positive_data_acceptance" and lacks_values(case, answer):
                    continue
                body = answer.content[:500].decode(errors="replace") if answer else ""
                yield f"{node.name} in {event.phase.value}: {node.failure_info.failure.message}\n{case.as_curl_command()}\n{body}"


def lacks_values(case: Case[Any], answer: Response) -> bool:
    """PUT creates a row that is not there: what it needs then, beyond what a change needs, is said in words."""
    if case.method != "PUT" or answer.status_code != 422:
        return False
    return {error["message"] for error in json.loads(answer.content)["errors"]} == {"expected a value"}


def is_of_others(check: str, case: Case[Any], answer: Response, item: Document) -> bool:
    """Paths and operations are no secrets: `Allow` lists what any role has, and to use it is not a 405."""
    if case.method == "QUERY" and check == "unsupported_method":  # in words: OpenAPI 3.1 does not know it
        return case.path == "/graphql" or "get" in item
    if check == "unsupported_method":
        return case.method.lower() in item and answer.status_code in (401, 403, 415)
    methods = {method.strip().lower() for method in answer.headers.get("allow", [""])[0].split(",")} - {"query"}
    return check == "allow_header_conformance" and methods == item.keys() - {"parameters"}


def test_every_operation_does_what_the_document_says(caller: Client) -> None:
    def keep(path: str, method: str) -> tuple[str, ...]:
        if method == "head":
            return ("fields", "If-None-Match")
        return ("fields", "first", "sort") if "{id}" in path else FORWARD

    assert tried(Narrowed(caller, keep), methods=("GET", "HEAD", "OPTIONS", "POST /graphql")) > ENOUGH


@pytest.mark.parametrize("caller", ROLES if FUZZ > 1 else ["admin"], indirect=True)
def test_cursors_lead_on_and_nothing_else_does(caller: Client) -> None:
    def forward(path: str, method: str) -> tuple[str, ...]:
        return ("first", "after", "count", "kinds")

    def backward(path: str, method: str) -> tuple[str, ...]:
        return ("last", "sort", "count") if "{id}" in path else ("last", "before", "fields")

    lists = ["/users", "/posts", "/users/{id}/posts"]
    assert tried(Narrowed(caller, forward), [*lists, "/posts/changes"]) > 50
    assert tried(Narrowed(caller, backward), lists) > 50


@pytest.mark.parametrize("caller", ["admin"], indirect=True)  # values are parsed alike for everyone
@pytest.mark.parametrize(("path", "name"), SCALARS)
def test_a_filter_takes_exactly_the_values_of_its_type(caller: Client, path: str, name: str) -> None:
    filters = (name, *(f"{name}[{operator}]" for operator in OPERATORS))
    narrowed = Narrowed(caller, lambda path, method: filters)
    narrowed.add_where(path, {name: ("eq", *OPERATORS)})
    assert tried(narrowed, [path], phases=("coverage", "fuzzing")) > 40


@pytest.mark.parametrize("caller", ROLES if FUZZ > 1 else ["admin"], indirect=True)
def test_filters_reach_through_relations(caller: Client) -> None:
    narrowed = Narrowed(caller, lambda path, method: ("first",))
    roots = [path for path in narrowed.lists if "{id}" not in path]
    for path in roots:
        narrowed.add_where(path, {"id": ("ne",), "createdAt": ("lt",)}, depth=1)  # a filter may have fifty comparisons
    assert tried(narrowed, roots, phases=("fuzzing",), examples=10) >= 30


# changes


CHANGERS = ("admin", *(["staff", "user"] if FUZZ > 1 else []), "anonymous")


@pytest.fixture(scope="module", params=CHANGERS)
def changing(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> Iterator[Changing]:
    """The changes of a role, in a database of its own."""
    with served(new_sqlite(), "--sample", UNMETERED) as service:
        user = service.get("/users?first=1&fields=id").json()["data"][0]["id"]
        roles = [request.param] if request.param in ("admin", "staff") else []
        yield Changing(service if request.param == "anonymous" else service.token_of(*roles, user=user), user)


def test_every_change_does_what_the_document_says(changing: Changing) -> None:
    if changing.is_admin or not changing.caller.token:  # who has all operations, and who has none
        assert tried(changing, methods=CHANGES, examples=some(5)) > (ENOUGH if changing.is_admin else 10)
    else:
        assert tried(changing, methods=CHANGES, phases=("fuzzing",), examples=5) > 30


@pytest.mark.parametrize("changing", CHANGERS if FUZZ > 1 else ["admin"], indirect=True)
def test_what_was_created_is_read_and_changed_and_gone_when_deleted(changing: Changing) -> None:
    methods = ("GET", "HEAD", *CHANGES)  # OPTIONS is of a path, whatever row it names
    made = tried(changing, methods=methods, phases=("stateful",), examples=15)
    assert made > 50 or not changing.caller.token  # who creates nothing has no link to follow
