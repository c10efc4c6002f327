"""The viewer as an object: `viewer` in GraphQL and `GET /viewer` in REST say the same of who asks."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import pytest

from diptych import Model, ReadBy, Resource, Role, Viewer, allow, grant
from diptych.errors import ModelError
from tests.contract.http.data import ANN, BEN
from tests.contract.identity.desk import Desk
from tests.support.in_process import Service, in_process

WHOLE = "{ viewer { subject roles scopes expiresAt user { id name email } } }"
FIELDS = "/viewer?fields=subject,roles,scopes,expiresAt,user(id,name,email)"


def both(service: Service, token: str | None) -> Any:
    """What both styles say, which must be the same."""
    found = service.data(WHOLE, token=token)["viewer"]
    answer = service.get(FIELDS, token=token)
    assert (answer.json() if answer.status == 200 else None) == found
    return found


def test_a_viewer_has_its_id_its_roles_and_its_row(shop: Service) -> None:
    before = int(time.time())
    found = both(shop, shop.token(ANN, "admin"))
    assert found["roles"] == ["admin", "staff"] and found["scopes"] is None and found["subject"] == ANN
    assert found["user"] == {"id": ANN, "name": "Ann", "email": "ann@example.com"}
    expires = time.strptime(found["expiresAt"], "%Y-%m-%dT%H:%M:%S.000000Z")
    assert 899 <= time.mktime(expires) - time.timezone - before <= 902


def test_by_itself_a_viewer_shows_its_plain_fields(shop: Service) -> None:
    answer = shop.get("/viewer", token=shop.token(BEN))
    assert answer.status == 200
    assert list(answer.json()) == ["subject", "roles", "scopes", "expiresAt"]
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["vary"] == "Authorization, Accept, Accept-Encoding" and answer.headers["etag"]
    again = shop.get("/viewer", token=shop.token(BEN), headers={"if-none-match": answer.headers["etag"]})
    assert again.status in (200, 304)  # its token may expire a second later


def test_without_a_token_there_is_no_viewer(shop: Service) -> None:
    assert shop.data("{ viewer { subject user { name } } }") == {"viewer": None}
    before = shop.runs
    answer = shop.get("/viewer")
    assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["cache-control"] == "no-store"
    assert shop.runs == before
    named = shop.get_query({"query": "{ viewer { subject } }"})
    assert named.json() == {"data": {"viewer": None}} and named.headers["cache-control"] == "private, no-cache"


def test_it_is_one_statement_with_all_else_that_is_asked(shop: Service) -> None:
    before = shop.runs
    found = shop.data(
        "{ me: viewer { user { posts { title } } } users { name } viewer { roles } }", token=shop.token(ANN)
    )
    assert shop.runs == before + 1 and list(found) == ["me", "users", "viewer"]


def test_its_row_shows_what_its_rules_show(shop: Service) -> None:
    assert both(shop, shop.token(BEN))["user"] == {"id": BEN, "name": "Ben", "email": "ben@example.com"}
    nobody = both(shop, shop.token(None, "admin"))
    assert nobody["subject"] is None and nobody["user"] is None and nobody["roles"] == ["admin", "staff"]
    gone = both(shop, shop.token("01900000-0000-7000-8000-0000000000ff"))
    assert gone["subject"] and gone["user"] is None
    odd = both(shop, shop.token("no uuid"))
    assert odd["subject"] is None and odd["user"] is None


def test_scopes_narrow_its_row_and_not_itself(shop: Service) -> None:
    token = shop.token(ANN, scopes=["orders:read"])
    assert shop.data("{ viewer { subject scopes } }", token=token) == {
        "viewer": {"subject": ANN, "scopes": ["orders:read"]}
    }
    assert shop.get("/viewer?fields=subject,scopes", token=token).json() == {"subject": ANN, "scopes": ["orders:read"]}
    assert shop.get("/viewer?fields=user(name)", token=token).status == 400
    assert shop.query("{ viewer { user { name } } }", token=token).status == 400


def test_an_api_key_that_never_expires_says_so(shop: Service, at_shop: Desk) -> None:
    _, forever = at_shop.run(at_shop.api_keys.add("robot", ANN))
    _, brief = at_shop.run(at_shop.api_keys.add("brief", ANN, ttl=1_000))
    assert both(shop, forever)["expiresAt"] is None
    assert both(shop, brief)["expiresAt"] is not None


def test_it_can_only_be_read(shop: Service) -> None:
    token = shop.token(ANN, "admin")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = shop.send(method, "/viewer", token=token)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert shop.send("OPTIONS", "/viewer").status == 204
    for path in ("/viewer/", "/viewer/changes", "/viewer/1", "/viewer/user", "/viewers"):
        assert shop.get(path, token=token).status == 404
    assert shop.get("/viewer?first=1", token=token).status == 400
    assert shop.get("/viewer?fields=password", token=token).status == 400


def test_its_price_and_depth_are_those_of_an_object(shop: Service) -> None:
    answer = shop.get("/viewer?fields=user(posts[first=3](title))", token=shop.token(ANN), headers={"prefer": "cost"})
    assert answer.status == 200
    deep = "{ viewer { user { posts { comments { author { posts { comments { author { posts { comments { author { id"
    assert shop.query(deep + " } }" * 11, token=shop.token(ANN)).code in ("TOO_DEEP", "TOO_COMPLEX")


class Club(Resource):
    name: str
    access = (grant("read"),)


class Member(Resource, ids="integer"):
    name: str
    secret: Annotated[str, ReadBy(Role("chief"))]
    club: Club

    @allow("read")
    def own(self, viewer: Viewer) -> bool:
        return self.id == viewer.id


def test_numeric_ids_are_texts_as_everywhere(database: str, runner: asyncio.Runner) -> None:
    club = {"id": "01900000-0000-7000-8000-0000000000c1", "version": 1, "name": "A"}
    moments = dict.fromkeys(("createdAt", "updatedAt"), "2026-01-01T00:00:00.000000Z")
    member = {"id": 7, "version": 1, "name": "M", "secret": "s", "clubId": club["id"], **moments}
    with in_process(Model(Club, Member), database, runner, {"Club": [club | moments], "Member": [member]}) as service:
        token = service.token("7")
        wanted = {"subject": "7", "user": {"id": "7", "club": {"name": "A"}}}
        assert service.data("{ viewer { subject user { id club { name } } } }", token=token) == {"viewer": wanted}
        assert service.get("/viewer?fields=subject,user(id,club(name))", token=token).json() == wanted


def test_the_row_of_a_viewer_is_inferred_from_rules_or_named() -> None:
    assert (user := Model(Club, Member).user) and user.name == "Member"
    assert (user := Model(Club, Member, user=Club).user) and user.name == "Club"
    assert Model(Club).user is None

    class Other(Resource):
        name: str

        @allow("read")
        def own(self, viewer: Viewer) -> bool:
            return self.id == viewer.id

    assert Model(Club, Member, Other).user is None  # two could be meant
    with pytest.raises(ModelError, match="is not in the model"):
        Model(Club, user=Member)


def test_a_model_cannot_take_its_names() -> None:
    def mistakes(name: str, **given: Any) -> str:
        cls = type(name, (Resource,), {"__annotations__": {"name": str}, "__module__": __name__}, **given)
        with pytest.raises(ModelError) as wrong:
            Model(cls)
        return str(wrong.value)

    assert "the type Viewer is also that of Diptych itself" in mistakes("Viewer")
    assert "the path /viewer is reserved" in mistakes("Camera", plural="viewer")
