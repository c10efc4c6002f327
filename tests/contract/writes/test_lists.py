"""Lists of scalars: what is written, refused, called and followed, in both styles and on both databases."""

from __future__ import annotations

import json

import pytest

from diptych import Model
from tests.support.in_process import Service
from tests.support.model_files import model_of

ANN = "00000000-0000-7000-8000-000000000001"
BOXES = """
class Color(StrEnum):
    red = "red"
    blue = "blue"


class Box(Resource):
    tags: Annotated[list[Annotated[str, MaxLen(8)]], MaxLen(3)] = []
    sizes: list[int] | None = None
    colors: list[Color] = [Color.red]
    people: list[Id] = []
    prices: list[Annotated[Decimal, Digits(8, 2), Min(0)]] = []

    @computed
    def vip(self) -> bool:
        return contains(self.tags, "vip")

    @allow("update")
    def mine(self, viewer: Viewer) -> bool:
        return contains(self.people, viewer.id)

    @action
    async def add(self, tx: Tx, tags: Annotated[list[str], MinLen(1)], prices: list[Annotated[Decimal, Digits(8, 2)]] = [Decimal(1)]) -> list[Annotated[Decimal, Digits(8, 2)]]:
        assert isinstance(self.colors[0], Color)
        self.tags = [*self.tags, *tags]
        await tx.trusted.save(self)
        return [price + 1 for price in prices]

    @query
    @classmethod
    async def echo(cls, tx: Tx, days: list[date] | None = None) -> list[date]:
        return days or []

    access = (grant("read", "create"),)
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(BOXES)


def test_faults_name_the_element_in_both_styles(service: Service) -> None:
    wrong = {"tags": ["a"] * 4, "sizes": [1, "x"], "colors": ["green"], "people": ["x"], "prices": ["1.00", "-1.00"]}
    refused = service.send_json("POST", "/boxes", wrong)
    assert refused.status == 422
    assert refused.places == ["/tags", "/sizes/1", "/colors/0", "/people/0", "/prices/1"]
    assert service.send_json("POST", "/boxes", {"tags": "a"}).places == ["/tags"]
    assert service.send_json("POST", "/boxes", {"tags": [None]}).places == ["/tags/0"]
    document = 'mutation($tag: String!) { createBox(input: {tags: [$tag, "much too long"]}) { id } }'
    answer = service.query(document, {"tag": "a"})
    assert (answer.code, answer.places) == ("BAD_USER_INPUT", ["/createBox/input/tags/1"])
    assert service.data('mutation { createBox(input: {tags: "one"}) { tags } }') == {"createBox": {"tags": ["one"]}}


def test_a_list_is_replaced_reset_and_part_of_rules(service: Service) -> None:
    ann = service.token(ANN)
    row = service.send_json("POST", "/boxes", {"tags": ["vip"], "people": [ANN], "sizes": [3, 1, 3]}).json()
    path = f"/boxes/{row['id']}"
    assert (row["vip"], row["sizes"], row["colors"]) == (True, [3, 1, 3], ["red"])
    assert [row["id"] for row in service.rows("/boxes?vip=true")] == [row["id"]]
    assert service.send_json("PATCH", path, {"tags": ["b"]}, service.token(ANN[:-1] + "2")).status == 403
    assert service.send_json("PATCH", path, {"tags": ["b"]}, ann).json()["tags"] == ["b"]
    patch = json.dumps([{"op": "add", "path": "/tags/-", "value": "c"}]).encode()
    headers = {"content-type": "application/json-patch+json"}
    assert service.send("PATCH", path, headers=headers, body=patch, token=ann).json()["tags"] == ["b", "c"]
    whole = service.get(path).json() | {"tags": ["z"]}
    assert service.send_json("PUT", path, whole, ann).json()["tags"] == ["z"]
    after = service.send_json("PUT", path, {"people": [ANN]}, ann).json()
    assert (after["tags"], after["sizes"], after["colors"]) == ([], None, ["red"])


def test_calls_take_and_give_lists(service: Service) -> None:
    row = service.send_json("POST", "/boxes", {"tags": ["a"]}).json()
    called = service.send_json("POST", f"/boxes/{row['id']}/add", {"tags": ["b"], "prices": ["2.50", "0.00"]})
    assert called.json() == ["3.50", "1.00"]
    assert service.data(f'mutation {{ addBox(id: "{row["id"]}", tags: ["c"]) }}') == {"addBox": ["2.00"]}
    assert service.get(f"/boxes/{row['id']}").json()["tags"] == ["a", "b", "c"]
    assert service.send_json("POST", f"/boxes/{row['id']}/add", {"tags": []}).places == ["/tags"]
    assert service.send_json("POST", f"/boxes/{row['id']}/add", {"tags": ["b", 5]}).places == ["/tags/1"]
    assert service.get("/boxes/echo?days=2026-01-31,2026-02-01").json() == ["2026-01-31", "2026-02-01"]
    assert service.data('{ echoBoxes(days: ["2026-01-31"]) }') == {"echoBoxes": ["2026-01-31"]}
    assert service.get("/boxes/echo").json() == [] and service.get("/boxes/echo?days=2026-01-31,x").status == 400


def test_a_changed_list_is_a_change_and_what_others_write_never_breaks_a_response(service: Service) -> None:
    row = service.send_json("POST", "/boxes", {"tags": ["a"]}).json()
    path = f"/boxes/{row['id']}"
    followed = service.follow('subscription { boxChanged(where: {tags: {has: "live"}}) { kind box { tags sizes } } }')
    for tags in ('["live"]', '["live","b"]', '["gone"]'):
        service.execute(f"UPDATE boxes SET tags = '{tags}' WHERE id = '{row['id']}'")
    service.settle()
    assert [(event["kind"], event["box"] and event["box"]["tags"]) for event in followed.events] == [
        ("UPDATED", ["live"]),
        ("UPDATED", ["live", "b"]),
        ("LEFT", None),
    ]
    service.execute(f"UPDATE boxes SET sizes = '[1,\"x\"]' WHERE id = '{row['id']}'")
    assert service.get(path).json()["sizes"] is None
    service.execute(f"UPDATE boxes SET tags = '5' WHERE id = '{row['id']}'")
    assert service.get(path).status == 404
    for where in ("tags[has]=5", "tags[hasAny]=5,6", "tags[hasAll]=5", "tags[isEmpty]=true"):
        assert service.rows(f"/boxes?{where}") == []


def test_whether_a_list_is_empty_is_asked_anew_by_each_request(service: Service) -> None:
    """Also by a request that is known but for its true or false."""
    rows = [service.send_json("POST", "/boxes", {"tags": tags}).json()["id"] for tags in ([], ["a"])]
    among = f"where={json.dumps({'id': {'in': rows}})}&fields=id".replace(" ", "")
    for _ in range(3):
        for number, truth in enumerate(("true", "false")):
            assert service.rows(f"/boxes?{among}&tags[isEmpty]={truth}") == [{"id": rows[number]}], truth
            changes = service.get(f"/boxes/changes?{among}&tags[isEmpty]={truth}").json()["data"]
            assert [change["rowId"] for change in changes] == [rows[number]], truth
    assert service.get(f"/boxes?{among}&tags[isEmpty]=maybe").status == 400
