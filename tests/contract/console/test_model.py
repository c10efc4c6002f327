"""The model that the console shows: what the role may know, whatever rows there are, and soon also of a large model."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from tests.contract.console.conftest import Console
from tests.contract.http.data import ANN
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.machine import Machine
from tests.support.many_resources import many
from tests.support.model_files import model_of

SECRETS = model_of("""
class State(Enum):
    OPEN = "open"
    DONE = "done"

class HiddenNote(Resource):
    text: str
    thing: Thing
    access = (grant("read", "create", to=staff),)

class HiddenLink(Resource):
    a: Thing
    b: Other
    access = (grant("read", to=staff),)

class Other(Resource):
    name: str
    access = (grant("read"),)

class Thing(Resource):
    \"\"\"Everyone sees it.\"\"\"
    name: str
    hidden_field: Annotated[str, ReadBy(staff), WriteBy(staff)] = "hiddenDefault"
    state: Annotated[State, States(Move(State.OPEN, State.DONE, to=staff))] = State.OPEN
    hidden_notes: list[HiddenNote] = inverse("thing")
    hidden_others: list[Other] = through("HiddenLink", "a", "b")
    access = (grant("read", "update"), grant("create", "delete", to=staff))

    @computed
    def hidden_length(self) -> str:
        return self.hidden_field

    @action(to=staff)
    async def hidden_act(self, tx: Tx, hidden_argument: str) -> None:
        pass
""")


def names(document: Any) -> dict[str, set[str]]:
    return {each["name"]: {field["name"] for field in each["fields"]} for each in document["resources"]}


def test_it_holds_what_the_openapi_document_holds(console: Console) -> None:
    for token in (None, console.service.token(ANN), console.service.token(ANN, "staff"), console.admin):
        schemas = console.service.get("/openapi.json", token=token).json()["components"]["schemas"]
        for name, fields in names(console.get("model", token).json()).items():
            parts = schemas[name].get("allOf", [schemas[name]])
            known = {field for part in parts for field in part.get("properties", {})}
            written = {
                field for end in ("Create", "Patch") for field in schemas.get(name + end, {}).get("properties", {})
            }
            common = {"id", "version", "createdAt", "updatedAt"}
            assert known <= fields and fields <= known | written | common


def test_nothing_of_what_is_hidden_is_in_it() -> None:
    with asyncio.Runner() as runner, in_process(SECRETS, "sqlite:///:memory:", runner, console=True) as service:
        console = Console(service)
        everything = json.dumps(console.get("model", service.token(None, "staff")).json())
        assert all(word in everything for word in ("HiddenNote", "hiddenField", "hiddenAct", "hiddenDefault", "done"))
        for token in (None, service.token(ANN)):
            document = console.get("model", token)
            assert b"idden" not in document.body
            assert console.get("model", token).json()["roles"] == []
            (thing,) = [each for each in document.json()["resources"] if each["name"] == "Thing"]
            assert "states" not in next(field for field in thing["fields"] if field["name"] == "state")
            for text in (
                {"query": "{ things { hiddenFiel } }"},
                {"query": "{ hiddenNote { text } }"},
                {"query": "mutation { createThing(input: {}) { id } }"},
                {"method": "GET", "url": "/things?fields=nam"},
                {"method": "GET", "url": "/things?nam=1"},
                {"method": "POST", "url": "/things", "body": {}},
            ):
                told = json.dumps(console.twin(text, token)["refused"])
                assert "idden" not in told.replace("hiddenFiel'", "").replace("hiddenNote'", ""), told


def test_it_does_not_depend_on_rows(console: Console) -> None:
    """No statement runs for it, so no row can show in it."""
    requests: tuple[dict[str, Any], ...] = (
        {"query": "{ users(first: 2) { name } }"},
        {"method": "GET", "url": f"/users/{ANN}"},
        {"method": "DELETE", "url": f"/users/{ANN}"},
        {"query": "mutation { deletePosts(where: {}, most: 3) { changed } }"},
        {"query": "subscription { postChanged { kind post { title } } }"},
    )
    before = console.service.runs
    for token in (None, console.service.token(ANN), console.admin):
        assert console.get("model", token).status == 200
        for sent in requests:
            console.twin(sent, token)
    why = {"resource": "User", "id": ANN, "verb": "delete", "as": "anonymous"}
    assert console.send("why", why, console.admin).json()["decided"] is None
    assert console.get("rules", console.admin).status == 200
    assert console.service.runs == before


def test_introspection_settings_hold_for_it() -> None:
    with asyncio.Runner() as runner:
        for settings, expected in (
            ({"introspection": False}, (403, 403)),
            ({"introspection_roles": ("staff",)}, (401, 403)),
        ):
            with in_process(SECRETS, "sqlite:///:memory:", runner, console=True, **settings) as service:
                console = Console(service)
                found = tuple(console.get("model", token).status for token in (None, service.token(ANN)))
                assert found == expected


@pytest.mark.slow
def test_a_large_model_is_small_and_quick() -> None:
    """300 resources of 50 fields take two seconds at most: measured on fewer fields, and scaled."""
    count = scaled(300, 100)
    model = many(count)
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner, console=True) as service:
        console = Console(service)
        machine, before, runs = Machine(), time.process_time(), service.runs
        document = console.get("model", **{"accept-encoding": "gzip"})
        spent = time.process_time() - before
        assert document.headers["content-encoding"] == "gzip" and len(document.body) < 100_000 * count / 300
        fields = sum(len(each) for each in names(console.get("model").json()).values())
        assert spent * 15_000 / fields < machine.limit(2.0)
        assert service.runs == runs
