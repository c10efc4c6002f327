"""The tables of Pagila in both styles: enums of the database, days, junction tables, rules through relations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.contract.existing.pagila import MODEL
from tests.contract.existing.test_existing import send
from tests.support.existing import make_existing
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    database = make_existing(new_database(), "pagila")
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        yield service


def test_both_styles_show_what_the_rules_allow(service: Service) -> None:
    admin = service.token(None, "admin")
    document = "{ films(orderBy: [{title: ASC}]) { id title rating language { name } actors { lastName } } }"
    fields = "fields=id,title,rating,language(name),actors(lastName)&sort=title"
    for token, titles in ((None, ["Academy", "adaptation"]), (admin, ["Academy", "Ace", "adaptation"])):
        asked = service.data(document, token=token)["films"]
        assert asked == service.get(f"/films?{fields}", token=token).json()["data"]
        assert [film["title"] for film in asked] == titles
    assert asked[0] == {
        "id": "1",
        "title": "Academy",
        "rating": "PG",
        "language": {"name": "English"},
        "actors": [{"lastName": "Guiness"}, {"lastName": "Wahlberg"}],
    }
    assert service.get("/films/2").status == 404
    assert service.data("{ actors { films { title } } }")["actors"][0] == {"films": [{"title": "Academy"}]}
    assert "email" not in service.get("/customers/1").json()


def test_writes(service: Service) -> None:
    film = {"title": "New", "languageId": "1", "rating": "R"}
    made = send(service, "POST", "/films?fields=id,rating,rentalDuration,version", film)
    row = made.json()
    assert (made.status, row["id"], row["rating"], row["rentalDuration"]) == (201, "4", "R", 3), made.body
    assert service.get("/films/4").status == 404
    changed = send(
        service, "PATCH", "/films/4?fields=rating,version", {"rating": "PG_13"}, if_match=made.headers["etag"]
    )
    assert (changed.status, changed.json()["rating"]) == (200, "PG_13"), changed.body
    assert send(service, "PATCH", "/films/4", {"rating": "G"}, if_match=made.headers["etag"]).status == 412
    assert send(service, "PUT", "/films/4/actors/1").status in (201, 204)
    assert service.get("/films/4/actors?fields=id").json()["data"] == [{"id": "1"}]
    assert service.get("/film-actors/4,1?fields=id").json() == {"id": "4,1"}
    late = send(service, "POST", "/rentals", {"inventoryId": "1", "customerId": "1", "rented": "2026-02-02"})
    assert late.status == 201, late.body
    taken = send(service, "POST", "/customers", {"storeId": "1", "firstName": "M", "email": "m@example.org"})
    assert taken.status == 409, taken.body


def test_a_rule_through_a_relation(service: Service) -> None:
    assert [row["id"] for row in service.get("/rentals?fields=id").json()["data"]] == ["1"]
    assert send(service, "PATCH", "/customers/1", {"active": False}).status == 200
    assert service.data("{ rentals { id } customers { firstName } }") == {
        "rentals": [],
        "customers": [{"firstName": "Lisa"}],
    }
