"""Numbers of rows: summaries, groups, and sorts and filters by related rows, in both styles and on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

import pytest

from diptych import BigInt, Digits, Model, ReadBy, Resource, Role, grant, inverse
from diptych.testing import Api, serve
from tests.support.running import NewDatabase

staff = Role("staff")


class Shop(Resource, public=60):
    """A shop."""

    name: str
    sales: list[Sale] = inverse("shop")

    access = (grant("read", "create"),)


class Sale(Resource, public=30):
    """A sale."""

    shop: Shop | None = None
    amount: Annotated[Decimal, Digits(18, 2)]
    units: BigInt = BigInt(0)
    margin: Annotated[int | None, ReadBy(staff)] = None

    access = (grant("read", "create"),)


model = Model(Shop, Sale)


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(model, database=new_database()) as found:
        for name, amounts in {"a": ["1.50", "2.25"], "b": ["10.00"], "c": []}.items():
            shop = found.make(Shop, name=name)
            for amount in amounts:
                found.make(Sale, shop=shop, amount=Decimal(amount), units=BigInt(2), margin=7)
        found.make(Sale, amount=Decimal("4.00"), units=BigInt(9 * 10**17), margin=1)
        found.make(Sale, amount=Decimal("4.00"), units=BigInt(2 * 10**17))
        yield found


def get(api: Api, url: str, **headers: str) -> Any:
    return api.anonymous.get(url, **headers).expect(200).json()


def query(api: Api, document: str, *roles: str) -> Any:
    return api.as_(*roles).graphql(document).expect(200).data


def test_a_summary_and_groups_in_both_styles(api: Api) -> None:
    wanted = {"count": 5, "amount": {"sum": "21.75", "avg": 4.35, "min": "1.50", "max": "10.00", "distinct": 4}}
    assert get(api, "/sales/summary?fields=count,amount(sum,avg,min,max,distinct)") == wanted
    assert query(api, "{ salesSummary { count amount { sum avg min max distinct } } }") == {"salesSummary": wanted}
    assert get(api, "/sales/summary?amount[gt]=100&fields=count,amount(sum,avg)") == {
        "count": 0,
        "amount": {"sum": None, "avg": None},
    }
    groups = get(api, "/sales/groups?by=shopId&sort=-amount.sum&fields=count,amount(sum)")["data"]
    sums = [("10.00", 1), ("8.00", 2), ("3.75", 2)]
    assert groups == [{"count": count, "amount": {"sum": total}} for total, count in sums]
    null = get(api, '/sales/groups?by=shopId&having={"count":{"eq":2}}&sort=shopId&first=2')["data"]
    assert [row["shopId"]["value"] is None for row in null] == [False, True]
    assert get(api, "/sales/summary") == {"count": 5} and "summary" not in get(api, "/sales")


def test_sorts_and_filters_by_related_rows(api: Api) -> None:
    assert [row["name"] for row in get(api, "/shops?sort=-sales.count,name")["data"]] == ["a", "b", "c"]
    rows = get(api, '/shops?where={"sales":{"amount":{"sum":{"gte":"3.75"}}}}&sort=-sales.amount.sum&fields=name')
    assert rows["data"] == [{"name": "b"}, {"name": "a"}]
    shown = get(api, "/shops?sort=name&fields=name,salesSummary(count,amount(sum))")["data"]
    assert shown[2] == {"name": "c", "salesSummary": {"count": 0, "amount": {"sum": None}}}
    url, names = "/sales?sort=-shop.name&first=1&fields=shop(name)", []
    page = get(api, url)
    while True:
        names += [row["shop"] and row["shop"]["name"] for row in page["data"]]
        if page["page"]["next"] is None:
            break
        page = get(api, f"{url}&after={quote(page['page']['next'])}")
    assert names == ["b", "a", "a", None, None]


def test_a_sum_of_too_many_digits_is_refused(api: Api) -> None:
    assert get(api, "/sales/summary?units[lt]=1000&fields=units(sum)") == {"units": {"sum": "6"}}
    groups = "/sales/groups?by=shopId&sort=units.sum"
    for url in ("/sales/summary?fields=units(sum)", "/sales/summary?fields=units(avg)", groups):
        refused = api.as_("staff").get(url)
        assert (refused.status, refused.code, refused.json()["field"]) == (400, "BAD_REQUEST", "units"), url
    refused = api.anonymous.graphql("{ salesSummary { units { sum } } }")
    assert refused.json()["errors"][0]["extensions"] == {"code": "BAD_REQUEST", "field": "units"}


def test_what_a_role_cannot_read_does_not_exist(api: Api) -> None:
    for url in (
        "/sales/summary?fields=margin(sum)",
        "/sales/groups?by=margin",
        "/shops?sort=sales.margin.max",
        '/shops?where={"sales":{"margin":{"sum":{"gt":1}}}}',
        '/sales/groups?by=shopId&having={"margin":{"sum":{"gt":"1"}}}',
    ):
        assert api.anonymous.get(url).status == 400, url
        assert api.as_("staff").get(url).status == 200, url
    assert api.anonymous.graphql("{ salesSummary { margin { sum } } }").code == "GRAPHQL_VALIDATION_FAILED"
    assert query(api, "{ salesSummary { margin { sum } } }", "staff") == {"salesSummary": {"margin": {"sum": "22"}}}


def test_price_limits_caches_and_tags(api: Api) -> None:
    def cost(url: str) -> str:
        return api.anonymous.get(url, prefer="cost").expect(200).headers["cost"].split(",")[0]

    assert cost("/sales/summary?fields=count,amount(sum)") == "price=30"
    assert cost("/sales/groups?by=shopId&first=7&fields=count") == "price=32"
    assert cost("/shops?sort=-sales.count&first=1") == "price=31"
    assert cost("/sales?sort=shop.name&first=1") == "price=11"
    for url in ("/sales/summary", "/sales/groups?by=shopId", "/shops?sort=sales.count"):
        found = api.anonymous.get(url)
        assert "max-age=30" in found.headers["cache-control"], url
        assert api.anonymous.get(url, if_none_match=found.headers["etag"]).status == 304
        assert api.anonymous.get(url, accept="text/csv").status == (200 if url.startswith("/shops") else 406)
    many = ",".join(f"a{number}:amount(sum)" for number in range(30)) + ",units(sum)"
    assert api.anonymous.get(f"/sales/summary?fields={many}").status in (200, 400)
    wide = "{ salesSummary { " + " ".join(f"a{n}: amount {{ sum avg min }}" for n in range(20)) + " } }"
    assert api.anonymous.graphql(wide).code == "TOO_COMPLEX"
    sent = api.anonymous.request("QUERY", "/sales/groups", {"by": ["shopId"], "having": {"count": {"gte": 2}}})
    assert sent.expect(200).headers["cache-control"] == "private, no-cache" and len(sent.data) == 2
    assert api.anonymous.request("OPTIONS", "/sales/summary").headers["allow"] == "GET, HEAD, OPTIONS, QUERY"
    assert api.anonymous.post("/sales/summary", {}).status == 405


def test_faults_are_reported_with_their_paths(api: Api) -> None:
    for url, place in {
        "/sales/groups": "/query/by",
        "/sales/groups?by=nope": "/query/by",
        "/sales/groups?by=amount:month": "/query/by",
        "/sales/groups?by=shopId,shopId": "/query/by",
        "/sales/groups?by=shopId&fields=createdAt": "/query/fields",
        "/sales/groups?by=shopId&sort=createdAt": "/query/sort",
        '/sales/groups?by=shopId&having={"nope":{"eq":1}}': "/query/having/nope",
        '/sales/groups?by=shopId&having={"count":{"eq":"x"}}': "/query/having/count/eq",
        "/sales/summary?first=1": "/query/first",
        "/sales/summary?fields=amount": "/query/fields",
        "/sales/summary?fields=amount(median)": "/query/fields",
        "/shops?sort=sales.nope": "/query/sort",
        "/shops?fields=salesSummary": "/query/fields",
    }.items():
        refused = api.anonymous.get(url)
        assert (refused.status, [each["pointer"] for each in refused.json()["errors"]]) == (400, [place]), url
    followed = api.anonymous.get("/shops/changes?where=" + json.dumps({"sales": {"count": {"gt": 1}}}))
    assert followed.status == 400, followed.body
    document = "subscription { shopChanged(where: {sales: {count: {gt: 1}}}) { kind } }"
    assert api.anonymous.graphql(document).code in ("BAD_USER_INPUT", "NOT_ACCEPTABLE", "BAD_REQUEST")
