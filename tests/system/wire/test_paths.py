"""A path names what it says, letter by letter: no other way of writing it leads to the same place."""

from __future__ import annotations

import pytest

from tests.proof.long_running.parts import tokens
from tests.support.cases import cases
from tests.support.running import Client, Service
from tests.system.wire.raw import SIZED, exchange, get, post


@pytest.fixture(scope="module")
def admin(service: Service) -> Client:
    (bearer,) = tokens(service.database, (None, ("admin",)))
    return service.signed_in(bearer)


@pytest.fixture(scope="module")
def user(service: Service) -> str:
    found: str = service.get("/users?first=1").json()["data"][0]["id"]
    return found


TRICKS = [
    "//users",
    "/users/",
    "/users//",
    "/./users",
    "/users/.",
    "/x/../users",
    "/users/../users",
    "/..;/users",
    "/users;x=1",
    "/users;",
    "/users%2f",
    "/users%2F",
    "/%2fusers",
    "%2fusers",
    "/%2e/users",
    "/x/%2e%2e/users",
    "/users%00",
    "/users%20",
    "/users%0a",
    "/users%0d%0aX-A:b",
    "/%c0%af/users",
    "/users%c0%af",
    "/users\\",
    "\\users",
    "/\\users",
    "/USERS",
    "/Users",
    "/users.json",
    "/users%3ffirst=1",
    "/users%23",
    "/users%",
    "/users%zz",
    "/users%u002f",
    "/users/%2e%2e%2fposts",
    "/graphql/",
    "//graphql",
    "/graphql%00",
    "/graphql%2f",
    "/graphql;x",
    "/%67raphql",
    "/GraphQL",
    "/graphql/.",
    "/x/../graphql",
    "/health/live/",
    "/health//live",
    "/health/%6cive",
    "/openapi.json/",
    "/openapi.json%00",
    "/oauth//token",
    "/oauth/token/",
    "/.well-known//jwks.json",
    "/..",
    "/../..",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/../../etc/passwd",
    "//",
    "/*",
    "/users/{id}/",
    "/users//{id}",
    "/users/./{id}",
    "/users/x/../{id}",
    "/users/{id}%2fposts",
    "/users/{id}%2Fposts",
    "/users%2f{id}",
    "/users/{id}%00",
    "/users/{id};x",
    "/users/{id}/posts/",
    "/users/{id}//posts",
    "/users/{id}/./posts",
    "/users/{id}/..",
    "/users/{id}/../{id}",
    "/users/{id}\\posts",
    "/users/{id}%5cposts",
    "/users/{id}%20",
    "/users/+{id}",
    "/users/%20{id}",
    "/users/{ID}",
    "/users/%7b{id}%7d",
    "/users/{hex}",
]


@cases("trick", TRICKS)
def test_no_other_way_leads_to_the_same_place(service: Service, admin: Client, user: str, trick: str) -> None:
    id_, upper = user, user.upper()
    path = trick.replace("{id}", id_).replace("{ID}", upper).replace("{hex}", id_.replace("-", ""))
    (answer,) = exchange(service, get(path))
    assert (answer.status, answer.code) in ((404, "NOT_FOUND"), (400, "BAD_REQUEST"))
    (answer,) = exchange(service, post(SIZED).replace(b"/graphql", path.encode(), 1))
    assert answer.status in (400, 404, 405)  # as a row that is none, it takes other methods
    (answer,) = exchange(service, get(path, f"Authorization: Bearer {admin.token}").replace(b"GET", b"DELETE", 1))
    assert answer.status in (400, 404)


def test_while_the_plain_one_does(service: Service, user: str) -> None:
    for path in ("/users", f"/users/{user}", f"/users/{user}/posts", "/health/live", "/openapi.json", "/users?"):
        assert exchange(service, get(path))[0].status == 200


def test_a_very_long_target_is_refused(service: Service) -> None:
    assert exchange(service, get("/users/" + "x" * 60_000))[0].status == 404
    (answer,) = exchange(service, get("/users/" + "x" * 70_000))
    assert (answer.status, answer.code) == (431, "HEADERS_TOO_LARGE")
