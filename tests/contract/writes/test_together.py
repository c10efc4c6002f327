"""Rows of one kind that a request creates one after the other are sent to the database together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from diptych import MaxLen, Model, OnDelete, Resource, Unique, Viewer, allow, grant, inverse, not_
from diptych.engine import together as module
from tests.support.emptied import emptied
from tests.support.in_process import Service


class Shelf(Resource):
    """Has books."""

    name: Annotated[str, Unique(), MaxLen(9)]
    books: list[Volume] = inverse("shelf")

    access = (grant("read", "create"),)


class Volume(Resource, ids="integer"):
    """Is on a shelf, and may follow another one."""

    shelf: Annotated[Shelf | None, OnDelete("cascade")] = None
    title: Annotated[str, Unique(), MaxLen(20)]
    follows: Annotated[Volume | None, OnDelete("cascade")] = None
    banned: bool = False

    access = (grant("read"),)

    @allow("create")
    def fit(self, viewer: Viewer) -> bool:
        return not_(self.banned)


MODEL = Model(Shelf, Volume)
shared, service = emptied(MODEL, "volumes", "shelfs")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of the groups that are sent together."""
    sizes: list[int] = []
    send = module.create_together

    def counted(group: Any, *more: Any) -> Any:
        sizes.append(len(group))
        return send(group, *more)

    for place in ("diptych.engine.write.create_together", "diptych.engine.nest.create_together"):
        monkeypatch.setattr(place, counted)
    yield sizes


def titles(service: Service) -> list[str]:
    return [row["title"] for row in service.rows("/volumes?sort=id&fields=title&first=50")]


def volumes(*names: str) -> list[dict[str, Any]]:
    return [{"title": name} for name in names]


def test_an_array_is_one_group_with_an_answer_for_each(service: Service, groups: list[int]) -> None:
    answer = service.send_json("POST", "/volumes/batch?fields=id,title,version", volumes("A", "B", "C"))
    assert answer.status == 201, answer.body
    rows = answer.json()
    assert [row["title"] for row in rows] == ["A", "B", "C"] and len({row["id"] for row in rows}) == 3
    assert [row["version"] for row in rows] == [1, 1, 1]
    assert groups == [3] and titles(service) == ["A", "B", "C"]


def test_a_mutation_with_several_fields_is_one_group(service: Service, groups: list[int]) -> None:
    fields = " ".join(f'{name}: createVolume(input: {{title: "{name}"}}) {{ title }}' for name in "abcd")
    assert service.data(f"mutation {{ {fields} }}") == {name: {"title": name} for name in "abcd"}
    assert groups == [4] and titles(service) == ["a", "b", "c", "d"]


def test_a_row_that_refers_to_another_one_begins_a_group(service: Service, groups: list[int]) -> None:
    names = {"two": "one", "three": "one", "four": "three", "five": "three"}
    fields = (f'{n}: createVolume(input: {{title: "{n}", followsId: "${of}"}}) {{ id }}' for n, of in names.items())
    service.data(
        'mutation { one: createVolume(input: {title: "one", followsId: null}) { id } ' + " ".join(fields) + "}"
    )
    rows = service.rows("/volumes?sort=id&fields=title,follows(title)")
    assert {row["title"]: row["follows"]["title"] for row in rows[1:]} == names
    assert groups == [2, 2]


@pytest.mark.parametrize(
    ("fault", "code"), [({"title": "A"}, "CONFLICT"), ({"title": "X", "banned": True}, "FORBIDDEN")]
)
def test_one_that_is_refused_undoes_all_and_is_named(
    service: Service, groups: list[int], fault: dict[str, Any], code: str
) -> None:
    rows = [*({**row, "banned": False} for row in volumes("A", "B")), {"banned": False, **fault}]
    answer = service.send_json("POST", "/shelfs?fields=id", {"name": "S", "books": {"create": rows}})
    assert answer.code in (code, "UNAUTHENTICATED"), answer.body
    assert answer.places[0].startswith("/books/create/2"), answer.body
    assert groups[0] == 3 and titles(service) == [] and service.rows("/shelfs") == []


def test_each_has_its_event_in_order(service: Service, groups: list[int]) -> None:
    start = service.end_of_changes()
    body = {"name": "S", "books": {"create": volumes(*"QWERTZ")}}
    assert service.send_json("POST", "/shelfs?fields=id", body).status == 201
    service.settle()
    changes = service.changes(f"/volumes/changes?after={start}&fields=title")
    assert [change["volume"]["title"] for change in changes["data"]] == [*"QWERTZ"]
    assert groups == [6]
