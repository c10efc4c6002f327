"""`Server-Timing`: `diptych dev` says how long each stage of a request took, and `diptych serve` does not."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.effort import long_where
from tests.support.running import Answer, NewDatabase, running

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract."""

STAGES = ("understand", "check", "compile", "run", "reply")
USERS = json.dumps({"query": "{ users(first: 3) { name } }"}).encode()
BROKEN = json.dumps({"query": "{ nothing }"}).encode()
JSON = {"content-type": "application/json"}


def timed(response: Answer) -> dict[str, float]:
    """The milliseconds of each stage; they add up to the total."""
    header = response.headers["server-timing"]
    milliseconds = {name: float(number) for name, number in re.findall(r"([a-z]+);dur=([0-9.]+)", header)}
    assert header == ", ".join(f"{name};dur={number:.3f}" for name, number in milliseconds.items())
    total = milliseconds.pop("total")
    assert tuple(milliseconds) == STAGES
    assert sum(milliseconds.values()) == pytest.approx(total, abs=0.01)
    return milliseconds


def test_a_response_in_development_says_how_long_each_stage_took(new_database: NewDatabase) -> None:
    with running("dev", database=new_database(), noise="INFO") as service:
        for method, path, body in (("GET", "/users?first=3", None), ("POST", "/graphql", USERS)):
            times = [timed(service.request(method, path, JSON, body)) for _ in range(4)]
            assert min(times[0].values()) > 0, (path, times[0])
            assert times[-1]["compile"] == 0, "its plan is cached"
            assert times[-1]["understand"] > 0 < times[-1]["run"]


def test_writes_and_refusals_have_it_too_and_what_is_no_api_has_not(new_database: NewDatabase) -> None:
    with running("dev", database=new_database(), noise="INFO") as service:
        admin = service.token_of("admin")
        user = json.dumps({"name": "Ann", "email": "ann@example.org"}).encode()
        created = admin.request("POST", "/users", JSON, user)
        assert created.status == 201, created.body
        assert timed(created)["run"] > 0
        patched = admin.request("PATCH", created.headers["location"], JSON, b'{"name": "Bea"}')
        assert patched.status == 200 and timed(patched)["run"] > 0
        for refused in (service.get("/users/none"), service.request("POST", "/graphql", JSON, BROKEN)):
            assert refused.status >= 400 or b"errors" in refused.body
            assert timed(refused)["understand"] > 0
        for path in ("/health/live", "/openapi.json", "/console/"):
            assert "server-timing" not in service.get(path).headers, path


def test_a_service_in_production_says_nothing_unless_it_is_asked_to(new_sqlite: NewDatabase) -> None:
    for options in ((), ("--server-timing",)):
        with running("serve", "--sample", *options, database=new_sqlite()) as service:
            for method, path, body in (("GET", "/users", None), ("POST", "/graphql", USERS)):
                response = service.request(method, path, JSON, body)
                assert ("server-timing" in response.headers) is bool(options)
                assert not options or timed(response)["run"] > 0
