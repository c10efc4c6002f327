"""Answers are compressed for those who accept it, on every way through the server, and for nobody else."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator

import pytest

from diptych.demo.data import FIRST_USER_ID
from tests.contract.live.clients import EventStream
from tests.support.cases import cases
from tests.support.running import Client, NewDatabase, Service, node, served
from tests.support.zstd import unzstd
from tests.system.oauth.browsing import chromium
from tests.system.wire.raw import Told, connect, drain, exchange, get, post, told

USERS = "/users?fields=*,posts(*)"
QUERY = json.dumps({"query": "{ users { id name posts { id title body createdAt } } }"}).encode()
UNPACK = {"gzip": gzip.decompress, "zstd": unzstd}
TWICE = ("X-A: 1", "X-A: 2")
"""Headers with which a request takes the path of ASGI."""


@pytest.fixture(scope="module")
def caller(service: Service) -> Client:
    return service.token_of("admin", user=FIRST_USER_ID)


def one(service: Service, sent: bytes) -> Told:
    (answer,) = exchange(service, sent)
    return answer


@cases(("coding", "more"), [("gzip", ()), ("zstd", ()), ("gzip", TWICE), ("zstd", TWICE)])
def test_both_styles_on_both_paths(service: Service, coding: str, more: tuple[str, ...]) -> None:
    sized = f"Content-Length: {len(QUERY)}"
    for plain, small in (
        (get(USERS, *more), get(USERS, f"Accept-Encoding: {coding}", *more)),
        (get("/openapi.json", *more), get("/openapi.json", f"Accept-Encoding: {coding}", *more)),
        (post(sized, *more, body=QUERY), post(sized, f"Accept-Encoding: {coding}", *more, body=QUERY)),
    ):
        before, after = one(service, plain), one(service, small)
        assert before.status == after.status == 200
        assert "content-encoding" not in before.headers and len(before.body) >= 1_024
        assert after.headers["content-encoding"] == coding
        assert UNPACK[coding](after.body) == before.body and len(after.body) < len(before.body)
        assert before.headers["vary"] == after.headers["vary"] == "Authorization, Accept, Accept-Encoding"
        tag = before.headers.get("etag")
        assert after.headers.get("etag") == (tag and f'{tag[:-1]}-{coding}"')


def test_head_and_range_are_as_ever(service: Service) -> None:
    whole = one(service, get(USERS, "Accept-Encoding: gzip"))
    part = one(service, get(USERS, "Accept-Encoding: gzip", "Range: bytes=0-10"))
    assert (part.status, part.body) == (200, whole.body) and "accept-ranges" not in part.headers
    with connect(service) as connection:
        connection.sendall(get(USERS, "Accept-Encoding: gzip").replace(b"GET", b"HEAD"))
        head, separator, rest = drain(connection).partition(b"\r\n\r\n")
    assert (separator, rest) == (b"\r\n\r\n", b"")
    (seen,) = told(head + separator + whole.body)
    assert seen._replace(headers={**seen.headers, "date": ""}) == whole._replace(headers={**whole.headers, "date": ""})


@cases("url", [USERS, "/openapi.json", "/graphql?query={users{id,name,posts{id,title,body,createdAt}}}"])
def test_each_variant_is_validated_by_its_own_tag(service: Service, url: str) -> None:
    tags = {
        coding: one(service, get(url, f"Accept-Encoding: {coding}")).headers["etag"]
        for coding in ("identity", "gzip", "zstd")
    }
    assert len(set(tags.values())) == 3
    for coding, own in tags.items():
        for other, tag in tags.items():
            answer = one(service, get(url, f"Accept-Encoding: {coding}", f"If-None-Match: {tag}"))
            assert answer.status == (304 if other == coding else 200)
            assert answer.headers["etag"] == own and "Accept-Encoding" in answer.headers["vary"]
            assert (answer.status == 304) == ("content-encoding" not in answer.headers and not answer.body) or (
                coding == "identity"
            )
        every = one(service, get(url, f"Accept-Encoding: {coding}", f"If-None-Match: {', '.join(tags.values())}"))
        assert (every.status, every.headers["etag"]) == (304, own)


def test_the_tag_of_a_compressed_answer_guards_a_write(caller: Client) -> None:
    post = {"authorId": FIRST_USER_ID, "title": "t", "body": "b" * 2_000}
    url = "/posts/" + caller.post("/posts", post).json()["id"]
    got = caller.request("GET", url, {"accept-encoding": "gzip"})
    assert got.headers["etag"].startswith('"1.') and got.headers["etag"].endswith('-gzip"')
    kind = {"content-type": "application/merge-patch+json", "accept-encoding": "gzip"}
    changed = caller.request("PATCH", url, {**kind, "if-match": got.headers["etag"]}, b'{"title":"u"}')
    assert changed.status == 200 and changed.headers["content-encoding"] == "gzip"
    again = caller.request("GET", url, {"accept-encoding": "gzip"})
    assert again.headers["etag"] == changed.headers["etag"] and again.headers["etag"].startswith('"2.')
    stale = caller.request("PATCH", url, {**kind, "if-match": got.headers["etag"]}, b'{"title":"v"}')
    assert stale.status == 412


@cases(
    "url",
    [
        "/users?first=1&fields=name",
        "/health/live",
        "/.well-known/oauth-authorization-server",
        "/.well-known/jwks.json",
        "/oauth/authorize?client_id=" + "x" * 2_000,
        "/oauth/account",
        "/.well-known/openid-configuration",
    ],
)
def test_small_answers_and_those_of_the_authorization_server_are_not_compressed(service: Service, url: str) -> None:
    assert "content-encoding" not in one(service, get(url, "Accept-Encoding: gzip, zstd")).headers


def test_streams_are_not_compressed(service: Service) -> None:
    with EventStream(service.port, "/users/changes", headers={"Accept-Encoding": "gzip, zstd"}) as stream:
        assert stream.status == 200 and "content-encoding" not in stream.headers
        assert stream.next_event() == {"retry": "1000"}
    sized = f"Content-Length: {len(QUERY)}"
    answer = one(service, post(sized, "Accept: text/event-stream", "Accept-Encoding: gzip", body=QUERY))
    assert len(answer.body) > 1_024 and "content-encoding" not in answer.headers


@pytest.fixture(scope="module")
def plain(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", "--no-compression") as service:
        yield service


def test_it_can_be_turned_off(plain: Service) -> None:
    answer = one(plain, get(USERS, "Accept-Encoding: gzip, zstd"))
    assert "content-encoding" not in answer.headers and json.loads(answer.body)
    assert one(plain, get(USERS, "Accept-Encoding: gzip", f"If-None-Match: {answer.headers['etag']}")).status == 304


def test_the_event_loop_is_free_while_a_large_body_is_compressed(caller: Client) -> None:
    """A large document is compressed in a thread: the answer is the same, and arrives."""
    rows = [{"authorId": FIRST_USER_ID, "title": "t", "body": "b" * 9_000} for _ in range(20)]
    assert caller.post("/posts", rows).status == 201
    url = f"/users/{FIRST_USER_ID}/posts?sort=-id"

    async def many() -> list[bytes]:
        work = [asyncio.to_thread(caller.request, "GET", url, {"accept-encoding": "gzip"}) for _ in range(6)]
        return [answer.body for answer in await asyncio.gather(*work)]

    (body,) = {*asyncio.run(many())}
    assert len(json.loads(gzip.decompress(body))["data"]) == 20


def test_browsers_and_node_unpack_it(service: Service) -> None:
    with chromium() as browser:
        page = browser.new_page()
        answer = page.goto(f"{service.url}/openapi.json")
        assert answer is not None and answer.headers["content-encoding"] == "zstd"
        assert "paths" in answer.json()
    assert json.loads(node("compressed.mjs", service.url)) == {"gzip": True, "zstd": True}
