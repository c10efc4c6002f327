"""What a page of another site can make a browser send without asking first changes nothing: a body must be JSON and say
so, a mutation must be a POST, and no cookie is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.contract.caching.kiosk import ANN, ARTICLES, ROWS, model
from tests.support.cases import cases
from tests.support.in_process import Service, in_process

LIKED = ARTICLES[0]
SIMPLE = [
    "text/plain",
    "text/plain; charset=utf-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    None,
    "",
    "application/json-seq",
    "text/plain;application/json",
    "text/plain, application/json",
    "application/jsonx",
]
"""The types that a form or a script of any page can send (https://fetch.spec.whatwg.org/#cors-safelisted-request-header),
and some that only look like JSON."""
MUTATION = f'{{"query": "mutation {{ likeArticle(id: \\"{LIKED}\\") }}"}}'.encode()
SENT = [
    ("/graphql", MUTATION),
    ("/graphql", b'{"query": "{ articles { title } }"}'),
    (f"/articles/{LIKED}/like", b"{}"),
    ("/notes", b'{"text": "x", "ownerId": "%b"}' % ANN.encode()),
    ("/articles", b'{"title": "x"}'),
]


@pytest.fixture(scope="module")
def kiosk() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner, ROWS) as service:
        yield service


def state(kiosk: Service) -> object:
    admin = kiosk.token(None, "admin")
    return [kiosk.rows(f"/{path}", token=admin) for path in ("articles", "notes")]


@cases("kind", SIMPLE)
@cases(("url", "body"), SENT)
def test_what_any_page_can_post_is_refused(kiosk: Service, url: str, body: bytes, kind: str | None) -> None:
    before = state(kiosk)
    for signed_in in (None, kiosk.token(ANN, "admin")):
        for more in ({}, {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}):
            headers = {**more, **({} if kind is None else {"content-type": kind})}
            answer = kiosk.send("POST", url, headers=headers, body=body, token=signed_in)
            assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert state(kiosk) == before


def test_a_page_cannot_call_an_action_by_a_post_that_has_no_body(kiosk: Service) -> None:
    before = state(kiosk)
    answer = kiosk.send("POST", f"/articles/{LIKED}/like", headers={"origin": "https://evil.example"})
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert state(kiosk) == before
    assert kiosk.send("POST", f"/articles/{LIKED}/like").status == 204, "a program can"
    assert state(kiosk) != before


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_mutation_cannot_be_sent_by_get(kiosk: Service, method: str) -> None:
    before = state(kiosk)
    for token in (None, kiosk.token(ANN, "admin")):
        answer = kiosk.send(method, f'/graphql?query=mutation{{likeArticle(id:"{LIKED}")}}', token=token)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert kiosk.send(method, f"/articles/{LIKED}/like", token=token).status == 405
    assert state(kiosk) == before


@pytest.mark.parametrize(
    "cookie",
    ["diptych={}", "__Secure-diptych={}", "token={}", "access_token={}", "Authorization=Bearer {}", "session={}"],
)
def test_cookies_open_nothing(kiosk: Service, cookie: str) -> None:
    admin = kiosk.token(None, "admin")
    headers = {"cookie": cookie.format(admin)}
    for url in ("/articles?fields=title", "/notes", "/authors", "/graphql?query={authors{name}}"):
        anonymous, answer = kiosk.get(url), kiosk.get(url, headers=headers)
        assert (answer.status, answer.headers, answer.body) == (anonymous.status, anonymous.headers, anonymous.body)
        assert "set-cookie" not in answer.headers
    deleted = kiosk.send("DELETE", f"/articles/{LIKED}", headers=headers)
    assert deleted.status == 401
    for parameter in ("access_token", "token", "authorization"):
        assert kiosk.get(f"/articles?{parameter}={admin}").status == 400
