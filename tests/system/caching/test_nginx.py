"""nginx with a proxy_cache in front, set up by someone who knows nothing of the service behind it: it answers for the
service where that said so, and nobody ever gets what is someone else's.

`PROVE=long` asks 20,000 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.contract.caching.kiosk import ARTICLES
from tests.support.effort import scaled
from tests.support.running import ROOT, NewDatabase, Service, served
from tests.system.caching.careless import WAYS
from tests.system.caching.conftest import Tokens, filled
from tests.system.caching.mixing import NAMED, Mix
from tests.system.caching.nginx import Front, nginx, plain, snippet

REQUESTS = scaled(20_000, 600)


@pytest.fixture
def front(kiosk: Service, tmp_path: Path) -> Iterator[Front]:
    with nginx(snippet(kiosk.url), tmp_path) as found:
        yield found


def test_the_cache_answers_what_is_public(kiosk: Service, front: Front) -> None:
    hashed, document = next(iter(NAMED.items()))
    kiosk.get(f"{hashed}&query={quote(document)}")
    public = (
        "/articles?fields=title",
        f"/articles/{ARTICLES[0]}?fields=title",
        "/authors?fields=name",
        "/articles/newest?fields=title",
        f"/graphql?query={quote('{ articles { title } }')}",
        hashed,
    )
    for url in public:
        first, *others = (front.get(url) for _ in range(20))
        assert (first.status, first.headers["x-cache"]) == (200, "MISS")
        assert {each.headers["x-cache"] for each in others} == {"HIT"}
        assert {each.body for each in others} == {first.body} == {kiosk.get(url).body}
    assert front.passed_on == len(public)


def test_the_cache_answers_what_was_not_modified(kiosk: Service, front: Front) -> None:
    first = front.get("/articles?fields=title")
    for headers in ({}, {"accept": "application/json"}):
        for _ in range(2):
            again = front.request("GET", "/articles?fields=title", {**headers, "if-none-match": first.headers["etag"]})
            assert (again.status, again.headers["etag"]) == (304, first.headers["etag"])
            assert again.headers["cache-control"] == "public, max-age=60"
    assert front.passed_on == 2, "once for each Accept"


def test_the_cache_answers_nothing_else(kiosk: Service, front: Front, tokens: Tokens) -> None:
    private = (
        "/articles",
        "/notes",
        f"/graphql?query={quote('{ notes { text } }')}",
        "/articles?fields=nothing",
        "/openapi.json",
    )
    for url in private:
        assert {front.get(url).headers["x-cache"] for _ in range(3)} == {"MISS"}
    front.get("/articles?fields=title")
    ann = front.signed_in(tokens["ann"])
    assert {ann.get("/articles?fields=title").headers.get("x-cache", "off") for _ in range(3)} == {"off"}
    assert {front.get("/articles?fields=title", prefer="change-cursor").headers["x-cache"] for _ in range(2)} == {"HIT"}
    assert front.passed_on == 3 * len(private) + 1 + 3


def test_signed_in_callers_get_304(front: Front, tokens: Tokens) -> None:
    ann, bob = front.signed_in(tokens["ann"]), front.signed_in(tokens["bob"])
    tag = ann.get("/articles").headers["etag"]
    assert ann.get("/articles", if_none_match=tag).status == 304
    assert bob.get("/notes", if_none_match=tag).status == 200


def test_nobody_gets_the_response_of_another(kiosk: Service, tokens: Tokens, tmp_path: Path) -> None:
    """Not even if nginx asks its cache first, for every caller."""
    with nginx(plain(kiosk.url), tmp_path) as front:
        mixed(kiosk, front, tokens)


def mixed(kiosk: Service, front: Front, tokens: Tokens) -> None:
    short = f"/articles/{ARTICLES[0]}?fields=views"  # for a second; nobody else asks for it
    assert [front.get(short).headers["x-cache"] for _ in range(2)] == ["MISS", "HIT"]
    mix = Mix(front.port, kiosk.port, tokens)
    try:
        assert mix.run(REQUESTS, changing=100) is None
    finally:
        mix.close()
    print(dict(mix.counts), "passed on", front.passed_on)
    assert mix.counts["HIT"] > REQUESTS / 10
    assert mix.counts["not modified"] > REQUESTS / 50
    assert front.passed_on < mix.counts["asked"] + mix.counts["changed"] - mix.counts["HIT"] + 3
    while (again := front.get(short).headers["x-cache"]) == "HIT":
        """Its second is not over yet."""
    assert again == "REVALIDATED", "the cache asked again, and was told by 304 that nothing had changed"


@pytest.fixture(scope="module")
def careless(new_sqlite: NewDatabase) -> Iterator[tuple[Service, Tokens]]:
    database = new_sqlite()
    tokens = filled(database)
    with served(database, model="tests.system.caching.careless:model", cwd=ROOT) as service:
        yield service, tokens


@pytest.mark.parametrize("way", WAYS)
def test_a_careless_service_is_found_out(careless: tuple[Service, Tokens], tmp_path: Path, way: str) -> None:
    service, tokens = careless
    with nginx(plain(service.url), tmp_path) as front:
        mix = Mix(front.port, service.port, tokens, {"x-careless": way})
        try:
            assert mix.run(600, changing=30) is not None
        finally:
            mix.close()
