"""Has a user allowed an app these scopes before? The answer does not read a grant for each sign-in of half a year."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.compile.plan import Plan
from diptych.db.script import Script
from diptych.identity.oauth.grant_store import GrantStore, new_grant
from diptych.identity.records import GRANTS, unix_time
from tests.contract.identity.desk import ANN, BEN, PASSWORD, Desk

GRANTED = ["openid", "read write", *["openid read"] * 300]


def test_a_consent_is_found_among_many_sign_ins(one: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GrantStore(one.store, one.revoked)
    ann, ben = (one.run(one.accounts.add(email, PASSWORD)) for email in (ANN, BEN))
    app, other = (one.run(one.clients.add(name, ["https://app.example/"]))[0] for name in ("App", "Other"))

    def add() -> Script[None]:
        for scope in GRANTED:
            yield from GRANTS.add(one.store.dialect, new_grant(ann, app, scope))
        ended, revoked = new_grant(ann, app, "email"), new_grant(ann, app, "profile")
        yield from GRANTS.add(one.store.dialect, replace(ended, expires_at=unix_time() - 1))
        yield from GRANTS.add(one.store.dialect, replace(revoked, revoked_at=unix_time()))

    one.run(one.store.write(add))
    read, run = [], one.store.run

    async def noted(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        answer = await run(plan, parameters)
        read.append(len(answer[0] or b""))
        return answer

    monkeypatch.setattr(one.store, "run", noted)
    for scope, has in {"read": True, "write read": True, "openid read": True, "write openid": False}.items():
        assert one.run(store.has_consent(ann, app, scope.split())) is has
    assert not any(one.run(store.has_consent(ann, app, [scope])) for scope in ("email", "profile"))
    assert not one.run(store.has_consent(ann, other, ["read"])) and not one.run(store.has_consent(ben, app, ["read"]))
    assert max(read) < 100
