"""What a model declares holds in what is served: rules, computed fields and defaults, on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.support.in_process import Service, in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

MODEL = """
class Tier(StrEnum):
    basic = "basic"
    gold = "gold"

class Person(Resource):
    name: str
    email: Annotated[str, ReadBy(admin)]
    boss: Person | None = None

    access = (grant("read"),)

    @allow("read", field="email")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @computed
    def address(self) -> str:
        return self.name + " <" + self.email + ">"

    @computed
    def short(self) -> str:
        return self.address[:5]

    @computed
    def above(self) -> str | None:
        return either(is_null(given(self.boss).id), "nobody", given(self.boss).short)

class Ticket(Resource):
    owner: Person
    price: Annotated[Decimal, Digits(8, 2)] = Decimal("9.50")
    day: date = date(2026, 2, 28)
    placed_at: datetime = datetime(2026, 2, 28, tzinfo=UTC)
    note: str | None = None
    extra: Json = [1, {"a": "it's"}]

    @computed
    def tier(self) -> Tier:
        return either(self.price >= Decimal("10.00"), Tier.gold, Tier.basic)

    @computed
    def dear(self) -> bool:
        return self.tier == Tier.gold

    @computed
    def holder(self) -> str:
        return self.owner.name[:1] + "."

    @allow("read")
    def dear_ones_late_ones_and_own(self, viewer: Viewer) -> bool:
        late = (self.day > date(2026, 2, 28)) & (self.placed_at >= datetime(2026, 3, 1, tzinfo=UTC))
        return self.dear | late | (self.owner.short == "none") | (self.owner.id == viewer.id)
"""
ANN, BEN = "00000000-0000-7000-8000-00000000000a", "00000000-0000-7000-8000-00000000000b"


def common(id: str) -> dict[str, Any]:
    moment = "2026-01-01T00:00:00.000000Z"
    return {"id": id, "version": 1, "createdAt": moment, "updatedAt": moment}


def ticket(number: int, owner: str, price: str, day: str = "2026-01-01", placed: str = "2026-01-01") -> dict[str, Any]:
    key = f"00000000-0000-7000-8000-00000000001{number}"
    moment = placed + "T00:00:00.000000Z"
    rest = {"price": Decimal(price), "day": day, "placedAt": moment, "note": None, "extra": {"n": number}}
    return {**common(key), "ownerId": owner, **rest}


ROWS = {
    "Person": [
        {**common(ANN), "name": "Ann", "email": "ann@example.com", "bossId": None},
        {**common(BEN), "name": "Ben", "email": "ben@example.com", "bossId": ANN},
    ],
    "Ticket": [
        ticket(0, ANN, "10.00"),
        ticket(1, ANN, "9.99"),
        ticket(2, BEN, "9.99"),
        ticket(3, BEN, "0.01", day="2026-03-01", placed="2026-03-01"),
    ],
}


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model_of(MODEL), new_database(), runner, ROWS) as found:
        yield found


def numbers(service: Service, url: str, token: str | None = None) -> list[int]:
    return [row["extra"]["n"] for row in service.rows(url, token=token)]


def test_a_rule_made_of_computed_fields_and_constants_chooses_rows(service: Service) -> None:
    assert numbers(service, "/tickets") == [0, 3]
    assert numbers(service, "/tickets", service.token(ANN)) == [0, 1, 3]
    assert numbers(service, "/tickets", service.token(BEN)) == [0, 2, 3]


def test_computed_fields_are_answered_filtered_and_sorted_by(service: Service) -> None:
    token = service.token(BEN)
    rows = service.rows("/tickets?fields=tier,dear,holder&sort=-holder,tier", token=token)
    assert rows == [
        {"tier": "basic", "dear": False, "holder": "B."},
        {"tier": "basic", "dear": False, "holder": "B."},
        {"tier": "gold", "dear": True, "holder": "A."},
    ]
    assert numbers(service, "/tickets?tier=gold", token) == [0]
    assert numbers(service, "/tickets?dear=false&holder[startsWith]=B", token) == [2, 3]
    document = "{ tickets(where: {tier: {eq: gold}}) { tier owner { name } } }"
    assert service.data(document, token=token) == {"tickets": [{"tier": "gold", "owner": {"name": "Ann"}}]}


def test_a_computed_field_tells_nothing_that_the_viewer_may_not_read(service: Service) -> None:
    document = "{ persons { name address short above } }"
    assert service.data(document, token=service.token(ANN)) == {
        "persons": [
            {"name": "Ann", "address": "Ann <ann@example.com>", "short": "Ann <", "above": "nobody"},
            {"name": "Ben", "address": None, "short": None, "above": "Ann <"},
        ]
    }
    assert service.data(document, token=service.token(BEN)) == {
        "persons": [
            {"name": "Ann", "address": None, "short": None, "above": "nobody"},
            {"name": "Ben", "address": "Ben <ben@example.com>", "short": "Ben <", "above": None},
        ]
    }
    assert service.query(document).code == "GRAPHQL_VALIDATION_FAILED"
    assert [row["above"] for row in service.rows("/persons?fields=above")] == ["nobody", None]
    assert service.get("/persons?fields=short").status == 400


def test_a_filter_sees_null_where_the_viewer_would(service: Service) -> None:
    url = "/persons?fields=name&short[startsWith]=Ann"
    assert service.rows(url, token=service.token(BEN)) == []
    assert service.rows(url, token=service.token(ANN)) == [{"name": "Ann"}]
    assert service.rows(url, token=service.token(None, "admin")) == [{"name": "Ann"}]


def test_a_default_of_the_model_is_one_of_the_table(service: Service) -> None:
    service.execute(
        "INSERT INTO tickets (id, version, created_at, updated_at, owner_id) VALUES "
        f"('{ANN[:-1]}f', 1, '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z', '{ANN}')"
    )
    found = service.rows(f"/tickets?id={ANN[:-1]}f&fields=price,day,placedAt,note,extra,tier", token=service.token(ANN))
    service.execute(f"DELETE FROM tickets WHERE id = '{ANN[:-1]}f'")
    assert found == [
        {
            "price": "9.50",
            "day": "2026-02-28",
            "placedAt": "2026-02-28T00:00:00.000000Z",
            "note": None,
            "extra": [1, {"a": "it's"}],
            "tier": "basic",
        }
    ]
