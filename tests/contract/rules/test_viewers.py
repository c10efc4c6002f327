"""Viewers of the model's own, in the context step of a running service."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from diptych.compile.plan import Plan
from tests.contract.rules import house
from tests.contract.rules.house import ANN, BEN, BLUE
from tests.contract.rules.test_rules import change, names, who
from tests.support.in_process import Service


def test_the_code_of_the_model_is_asked_on_every_request(served: Service) -> None:
    """A role that another system takes away is gone on the next request, with the same token."""
    token = who(served, BEN)
    assert names(served, token) == ["Blue"]
    house.GROUPS[BEN] = frozenset({"auditor"})
    assert names(served, token) == ["Blue", "Red", "Old"]
    house.GROUPS[BEN] = frozenset()
    assert names(served, token) == ["Blue"]


def test_a_token_can_be_refused_by_the_model(served: Service, caplog: pytest.LogCaptureFixture) -> None:
    for claims in ({"tenant": "closed"}, {"tenant": 7}, {"kinds": [1]}):
        for answer in (
            served.get("/projects", token=who(served, ANN, **claims)),
            served.query("{ projects { name } }", token=who(served, ANN, **claims)),
        ):
            assert answer.status == 401, claims
            assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
            assert not answer.body_was_read
    assert "a value that its class does not take" in caplog.text


def test_what_the_model_raises_is_told_to_nobody(
    served: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(claims: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(house.Member, "of", fail)
    with caplog.at_level(logging.ERROR):
        answer = served.get("/projects", token=who(served, ANN))
    assert answer.status == 500
    assert b"house" not in answer.body
    assert "the secret of the house" in caplog.text


def test_the_scopes_of_the_token_hold_whatever_the_model_gives(served: Service) -> None:
    token = served.handler.context.tokens.make(ANN, (), ["tasks:read"], 900, {"tenant": "acme"})
    assert served.get("/projects", token=token).status == 403
    assert served.get("/folders", token=token).status == 403


def test_a_cursor_belongs_to_a_viewer_with_all_its_values(served: Service) -> None:
    first = served.get("/projects?first=1", token=who(served, ANN))
    cursor = first.json()["page"]["next"]
    assert cursor
    assert served.get(f"/projects?first=1&after={cursor}", token=who(served, ANN)).status == 200
    for other in (who(served, ANN, tenant="other"), who(served, ANN, kinds=["work"]), who(served, BEN)):
        assert served.get(f"/projects?first=1&after={cursor}", token=other).status == 400


def test_a_kept_answer_belongs_to_a_viewer_with_all_its_values(served: Service) -> None:
    def create(token: str) -> int:
        headers = {"content-type": "application/json", "idempotency-key": '"one"'}
        body = b'{"kind": "work", "projectId": "%s"}' % BLUE.encode()
        return served.send("POST", "/tasks", headers=headers, body=body, token=token).status

    assert create(who(served, ANN)) == 201
    assert create(who(served, ANN)) == 201
    assert create(who(served, ANN, tenant="other")) == 422
    assert len(served.rows("/tasks", token=who(served, ANN))) == 4


def test_one_plan_serves_all_tenants(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a viewer is bound, so that it can be no part of a statement."""
    statements, run = set(), served.app.store.run

    def noted(plan: Plan, parameters: Sequence[Any]) -> Any:
        statements.add(plan.sql)
        return run(plan, parameters)

    monkeypatch.setattr(served.app.store, "run", noted)
    for tenant in ("other", "' OR 1=1 --", '"', "x" * 1_000, "acme"):
        found = served.rows("/projects?fields=name", token=who(served, ANN, tenant=tenant))
        assert found == ([{"name": "Blue"}, {"name": "Red"}] if tenant == "acme" else [])
    assert len(statements) == 1


def test_an_update_is_held_against_the_values_of_the_viewer(served: Service) -> None:
    """Whoever leads a project of another tenant than their own does not see it, and cannot give it away."""
    assert change(served, "PATCH", f"/projects/{BLUE}", {"tenant": "other"}, who(served, ANN)).status == 403
    assert change(served, "PATCH", f"/projects/{BLUE}", {"name": "x"}, who(served, ANN, tenant="other")).status == 404
