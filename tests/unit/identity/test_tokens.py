"""The client of a token: one of another issuer is never taken for one of ours."""

from __future__ import annotations

from diptych.engine.rate_limiter import bucket_owner
from diptych.identity.tokens import COMMAND_LINE, client_of
from diptych.identity.viewer import Caller, _fairness_key
from diptych.model.declare.roles import Claims, Viewer
from diptych.model.rates import RateDef
from diptych.model.signature import Signature
from diptych.serve.acts import act_of

LOGIN = "https://login.example.com"
OURS = Claims(None, frozenset(), None, 0, {"iss": "https://api.example.com", "jti": "pX3", "client_id": "c1"})
THEIRS = Claims(None, frozenset(), None, 0, {"iss": LOGIN, "their_jti": "pX3", "client_id": "c1"})
LIKE_THE_COMMAND_LINE = Claims(None, frozenset(), None, 0, {"iss": LOGIN, "client_id": COMMAND_LINE})
NONE = Claims("u1", frozenset(), None, 0, {"iss": LOGIN, "client_id": 7})


def test_a_client_of_another_issuer_has_the_name_of_that_issuer() -> None:
    assert [client_of(claims) for claims in (OURS, THEIRS, NONE)] == ["c1", f"{LOGIN} c1", None]


def test_clients_of_two_issuers_share_nothing() -> None:
    rate = RateDef("calls", "requests", 10, 60, "client")
    callers = [Caller(Viewer(), Signature(), claims=claims) for claims in (OURS, THEIRS)]
    assert [bucket_owner(rate, caller, "") for caller in callers] == ["client c1", f"client {LOGIN} c1"]
    assert [act_of(caller, "rest").client for caller in callers] == ["c1", f"{LOGIN} c1"]
    keys = [_fairness_key("token:1", Viewer(), claims) for claims in (OURS, THEIRS, LIKE_THE_COMMAND_LINE)]
    assert keys == ["client:c1", f"client:{LOGIN} c1", f"client:{LOGIN} {COMMAND_LINE}"]
