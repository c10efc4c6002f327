"""Rates limit requests and cost, the same in both styles, and say what was exceeded and when to try again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from diptych import Rate, signed_in
from diptych.engine.rate_limiter import RateLimiter, Spender
from diptych.errors import StartError
from diptych.testing import Client, Response, serve
from tests.contract.rates.shop import Good, Report, boss, names, shop, staff
from tests.support.running import NewDatabase

ANN, BEN = "00000000-0000-7000-8000-00000000000a", "00000000-0000-7000-8000-00000000000b"


def rest(client: Client) -> Response:
    return client.get("/goods?first=1")


def graphql(client: Client) -> Response:
    return client.graphql("{ goods(first: 1) { name } }")


def details(response: Response) -> dict[str, object]:
    """The members of an error besides its text, in either style."""
    body = response.json()
    found = body["errors"][0]["extensions"] if "errors" in body else body
    return {name: value for name, value in found.items() if name not in ("type", "title", "status", "detail")}


def test_a_model_without_rates_has_no_headers(new_database: NewDatabase) -> None:
    with serve(shop(), database=new_database()) as api:
        assert not [name for name in rest(api.anonymous).headers if "ratelimit" in name]


@pytest.mark.parametrize("ask", [rest, graphql])
def test_requests_over_a_rate_are_refused_alike_in_both_styles(
    new_database: NewDatabase, ask: Callable[[Client], Response]
) -> None:
    with serve(shop(Rate(requests=5, per="day")), database=new_database()) as api:
        ann, ben = api.as_(user=ANN), api.as_(user=BEN)
        for left in (4, 3, 2, 1, 0):
            response = ask(ann).expect(200)
            assert response.headers["ratelimit-policy"] == '"requests-per-day";q=5;w=86400'
            assert response.headers["ratelimit"].startswith(f'"requests-per-day";r={left};t=')
        refused = ask(ann).expect(429)
        assert details(refused) == {
            "code": "RATE_LIMITED",
            "violated-policies": ["requests-per-day"],
            "unit": "requests",
            "quota": 5,
            "window": 86_400,
            "retryAfter": int(refused.headers["retry-after"]),
        }
        assert 17_270 < int(refused.headers["retry-after"]) <= 17_280  # a fifth of a day
        assert f";t={refused.headers['retry-after']}" in refused.headers["ratelimit"]
        ask(ben).expect(200)  # nobody else is limited


@pytest.mark.parametrize("ask", [rest, graphql])
def test_cost_over_a_rate_is_refused_before_any_statement(
    new_database: NewDatabase, ask: Callable[[Client], Response]
) -> None:
    with serve(shop(Rate(cost=10, per="day")), database=new_database()) as api:
        ann = api.as_(user=ANN)
        for left in range(9, -1, -1):
            assert ask(ann).expect(200).headers["ratelimit"].startswith(f'"cost-per-day";r={left};')
        assert details(ask(ann).expect(429))["price"] == 1
        over = ann.get("/goods?first=11").expect(400)
        assert over.code == "TOO_COMPLEX" and over.json()["allowed"] == 10


def test_all_that_is_asked_is_charged_with_its_price(new_database: NewDatabase) -> None:
    """A unit is filled again in minutes here, so none is while the test runs."""
    with serve(shop(Rate(cost=10_000, per=timedelta(days=31))), database=new_database()) as api:
        ann = api.as_(user=ANN)
        left = 10_000

        def check(response: Response) -> Response:
            nonlocal left
            assert response.status < 300, response.body
            if "cost" in response.headers:
                price = int(response.headers["cost"].split("price=")[1].split(",")[0])
            else:
                price = response.json()["extensions"]["cost"]["price"]
            before, left = left, int(response.headers["ratelimit"].split("r=")[1].split(";")[0])
            assert before - left == price > 0
            return response

        def graphql(document: str) -> None:
            check(ann.post("/graphql", {"query": document, "extensions": {"cost": True}}))

        check(ann.get("/goods?first=20", prefer="cost"))
        graphql("{ goods(first: 20) { name } makers(first: 5) { name goods(first: 3) { name } } }")
        good = check(ann.post("/goods", {"name": "lamp"}, prefer="cost")).json()["id"]
        graphql('mutation { createGood(input: {name: "desk"}) { id } }')
        check(ann.patch(f"/goods/{good}", {"name": "chair"}, prefer="cost"))
        batch = [{"method": "POST", "url": "/goods", "body": {"name": str(number)}} for number in range(3)]
        check(ann.post("/batch", {"requests": batch}, prefer="cost"))
        check(ann.post(f"/goods/{good}/rename", {"name": "chair"}, prefer="cost"))
        check(ann.get("/goods/hits", prefer="cost"))
        graphql("{ hitsGoods goods(first: 2) { name } }")
        check(ann.get("/goods/changes?first=7", prefer="cost"))


def test_a_refused_or_unknown_request_counts_as_one(new_database: NewDatabase) -> None:
    with serve(shop(Rate(requests=3, per="day")), database=new_database()) as api:
        ann = api.as_(user=ANN)
        ann.get("/nothing").expect(404)
        ann.graphql("{").expect(400)
        ann.get("/goods?first=x").expect(400)
        ann.get("/goods").expect(429)
        assert ann.get("/health/live").status == ann.get("/health/ready").status == 200  # never limited


def test_who_is_anonymous_or_has_an_invalid_token_is_limited_by_address(new_database: NewDatabase) -> None:
    with serve(shop(Rate(requests=3, per="day")), database=new_database()) as api:
        api.anonymous.get("/goods").expect(200)
        for _ in range(2):
            api.anonymous.get("/goods", authorization="Bearer wrong").expect(401)
        api.anonymous.get("/goods", authorization="Bearer wrong").expect(429)
        api.anonymous.get("/goods").expect(429)
        api.as_(user=ANN).get("/goods").expect(200)


def test_a_rate_for_a_role_takes_the_place_of_the_one_for_everyone(new_database: NewDatabase) -> None:
    rates = [
        Rate(requests=1, per="day"),
        Rate(requests=2, per="day", to=signed_in),
        Rate(requests=4, per="day", to=boss),
        Rate(requests=3, per="day", to=staff),
    ]
    with serve(shop(*rates), database=new_database()) as api:
        for client, allowed in [(api.anonymous, 1), (api.as_(user=ANN), 2), (api.as_("boss", user=BEN), 4)]:
            statuses = [client.get("/goods").status for _ in range(allowed + 1)]
            assert statuses == [200] * allowed + [429]


def test_a_bucket_that_several_share_does_not_tell_what_others_do(new_database: NewDatabase) -> None:
    rates = [Rate(requests=4, per="day", each="role", to=staff), Rate(requests=100, per="day", each="address")]
    with serve(shop(*rates), database=new_database()) as api:
        ann, ben = api.as_("staff", user=ANN), api.as_("staff", user=BEN)
        for client in (ann, ben, ann, ben):
            shown = client.get("/goods").expect(200).headers
            assert set(names(shown["ratelimit-policy"])) == {"requests-per-day-staff", "address-requests-per-day"}
            assert "ratelimit" not in shown
        ann.get("/goods").expect(429)
        ben.get("/goods").expect(429)
        api.as_(user=ANN).get("/goods").expect(200)  # without the role


def test_a_rate_on_a_resource_counts_what_reads_or_writes_it(new_database: NewDatabase) -> None:
    rates = [Rate(requests=3, per="day", on=Good), Rate(cost=5, per="day", on=Report)]
    with serve(shop(*rates), database=new_database()) as api:
        ann = api.as_("staff", user=ANN)
        assert "ratelimit-policy" not in ann.get("/makers").expect(200).headers
        maker = ann.post("/makers", {"name": "ACME"}).expect(201).json()["id"]
        shown = ann.get(f"/makers/{maker}?fields=name,goods(name)").expect(200).headers
        assert names(shown["ratelimit-policy"]) == ["Good-requests-per-day"] and ";r=2;" in shown["ratelimit"]
        ann.graphql("{ hitsGoods a: goods { id } b: goods { id } }").expect(200)  # a call and a read, one request
        ann.post("/goods", {"name": "lamp"}).expect(201)
        ann.get("/goods").expect(429)
        ann.get("/makers").expect(200)
        ann.get("/reports?first=5").expect(200)
        assert ann.get("/reports?first=1").expect(429).json()["violated-policies"] == ["Report-cost-per-day"]


def test_a_response_that_shared_caches_keep_tells_nothing_of_a_caller(new_database: NewDatabase) -> None:
    with serve(shop(Rate(requests=50, per="day")), database=new_database()) as api:
        public = api.anonymous.get("/goods").expect(200)
        assert public.headers["cache-control"].startswith("public") and "ratelimit" not in public.headers
        assert "ratelimit" in api.as_(user=ANN).get("/goods").headers


def test_settings_add_rates_and_replace_those_of_the_model(new_database: NewDatabase) -> None:
    tables = ({"requests": 2, "per": "day"}, {"cost": 100, "per": "hour", "to": "staff", "each": "client"})
    with serve(shop(Rate(requests=100, per="day")), database=new_database(), rates=tables) as api:
        ann = api.as_(user=ANN)
        assert [ann.get("/goods").status for _ in range(3)] == [200, 200, 429]
    for wrong, said in [
        ({"requests": 2}, "None is no period"),
        ({"requests": 2, "per": "day", "to": "pope"}, "there is no role 'pope'"),
        ({"cost": 2, "per": "day", "on": "Nothing"}, "no resource 'Nothing'"),
    ]:
        with pytest.raises(StartError, match=said), serve(shop(), database=new_database(), rates=(wrong,)):
            pass


def test_refusals_are_counted_by_rate_in_the_metrics(new_database: NewDatabase) -> None:
    model = shop(Rate(requests=3, per="day"), Rate(cost=5, per="day", on=Report))
    with serve(model, database=new_database(), metrics_roles=("boss",)) as api:
        ann, chief = api.as_(user=ANN), api.as_("boss", user=BEN)
        assert [rest(ann).status for _ in range(5)] == [200] * 3 + [429] * 2
        assert graphql(ann).status == 429
        lines = chief.get("/metrics").expect(200).body.decode().splitlines()
        assert 'diptych_rate_refusals_total{rate="requests-per-day"} 3.0' in lines
        assert any(line.startswith("diptych_rate_refusals_total{rate=") and line.endswith(" 0.0") for line in lines)
        assert "diptych_rates_shared 1.0" in lines


def test_what_was_spent_outlives_the_process(new_database: NewDatabase) -> None:
    url, model = new_database(), shop(Rate(requests=20, per="day"))
    with serve(model, database=url) as api:
        ann = api.as_(user=ANN)
        assert [ann.get("/goods").status for _ in range(21)] == [200] * 20 + [429]
    with serve(model, database=url) as api:
        ann = api.as_(user=ANN)
        statuses = [ann.get("/goods").status for _ in range(10)]
    assert statuses.count(200) <= 3  # a tenth, and one


def test_the_openapi_document_describes_429_and_its_headers(new_database: NewDatabase) -> None:
    with serve(shop(Rate(requests=50, per="day")), database=new_database()) as api:
        document = api.anonymous.get("/openapi.json").expect(200).json()
        components = document["components"]
        assert {"RateLimit", "RateLimit-Policy", "Retry-After"} <= components["headers"].keys()
        limited = components["responses"]["RateLimited"]
        assert {"RateLimit", "RateLimit-Policy", "Retry-After"} <= limited["headers"].keys()
        for path in ("/goods", "/goods/{id}", "/graphql", "/batch"):
            item = document["paths"][path]
            for operation in [item[method] for method in ("get", "post", "patch", "delete") if method in item]:
                assert operation["responses"]["429"] == {"$ref": "#/components/responses/RateLimited"}
        problem = components["schemas"]["Problem"]["properties"]
        assert problem["violated-policies"]["type"] == "array"
    with serve(shop(), database=new_database()) as api:
        assert "RateLimit" not in api.anonymous.get("/openapi.json").expect(200).body.decode()


@pytest.mark.parametrize("path", ["/goods", "/graphql", "/comments", "/houses", "/reports"])
def test_a_caller_who_was_here_before_is_found_by_its_token_alone(
    new_sqlite: NewDatabase, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    find = RateLimiter.spender

    def noted(self: RateLimiter, *given: Any) -> Spender:
        looked.append(given)
        return find(self, *given)

    monkeypatch.setattr(RateLimiter, "spender", noted)
    with serve(shop(Rate(requests=50, per="day")), database=new_sqlite()) as api:
        ann = api.as_(user=ANN)
        for left in (49, 48, 47):
            assert f";r={left};" in ann.get(path).headers["ratelimit"]
        assert len(looked) == 1
