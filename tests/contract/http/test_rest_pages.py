"""Pages of a list: sizes, cursors, offsets, the Link header, and walking all of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from diptych.compile.plan import Plan
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN, POST
from tests.support.cases import cases
from tests.support.in_process import Answer, Service, encoded

EDGES = """query($w: PostWhere, $o: [PostOrder!]) {
             postsConnection(first: 100, where: $w, orderBy: $o) { edges { cursor } } }"""


def admin(shop: Service) -> str:
    return shop.token(ANN, "admin")


def cursor(shop: Service, number: int) -> str:
    """The cursor of a post in the list of all posts; post 0 has none."""
    edges = shop.data(EDGES, token=admin(shop))["postsConnection"]["edges"]
    return str(edges[number - 1]["cursor"])


def numbers(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.body
    return [POST.index(row["id"]) for row in answer.json()["data"]]


def links(answer: Answer) -> dict[str, str]:
    found = re.findall(r'<([^<>]*)>; rel="(\w+)"', answer.headers.get("link", ""))
    return {rel: url for url, rel in found}


# a query string of /posts, which posts, is there a next page, is there a previous one; <n> is a cursor
PAGES: dict[str, tuple[list[int], bool, bool]] = {
    "": ([1, 2, 3, 4, 5, 6, 7, 8], False, False),
    "&&": ([1, 2, 3, 4, 5, 6, 7, 8], False, False),
    "first=100": ([1, 2, 3, 4, 5, 6, 7, 8], False, False),
    "first=8": ([1, 2, 3, 4, 5, 6, 7, 8], False, False),
    "first=3": ([1, 2, 3], True, False),
    "first=1": ([1], True, False),
    "last=3": ([6, 7, 8], False, True),
    "last=100": ([1, 2, 3, 4, 5, 6, 7, 8], False, False),
    "first=3&after=<3>": ([4, 5, 6], True, True),
    "first=3&after=<5>": ([6, 7, 8], False, True),
    "first=3&after=<8>": ([], False, False),
    "after=<7>": ([8], False, True),
    "last=2&before=<4>": ([2, 3], True, True),
    "last=9&before=<4>": ([1, 2, 3], True, False),
    "last=2&before=<1>": ([], False, False),
    "before=<3>": ([1, 2], True, False),
    "first=2&before=<4>": ([1, 2], True, False),
    "first=5&before=<4>": ([1, 2, 3], True, False),
    "last=2&after=<5>": ([7, 8], False, True),
    "last=9&after=<5>": ([6, 7, 8], False, True),
    "after=<2>&before=<6>": ([3, 4, 5], True, True),
    "first=1&after=<2>&before=<6>": ([3], True, True),
    "last=1&after=<2>&before=<6>": ([5], True, True),
    "after=<6>&before=<2>": ([], False, False),
    "offset=2&first=2": ([3, 4], True, True),
    "offset=0&first=2": ([1, 2], True, False),
    "offset=2&first=2&after=<2>": ([5, 6], True, True),
    "offset=1&first=9&before=<4>": ([2, 3], True, True),
    "offset=8": ([], False, False),
    "offset=10000": ([], False, False),
    "sort=-id&first=2": ([8, 7], True, False),
    "sort=-id&last=2": ([2, 1], False, True),
    "sort=title&first=3": ([1, 4, 8], True, False),
    "sort=title&last=3": ([6, 5, 7], False, True),
    "sort=-title&first=2&offset=4": ([2, 1], True, True),
}


@cases("query", PAGES)
def test_a_page_has_these_rows_and_leads_on(shop: Service, query: str) -> None:
    asked = re.sub(r"<(\d)>", lambda found: cursor(shop, int(found[1])), query)
    rows, following, previous = PAGES[query]
    for _ in range(3):  # cold, noted, remembered
        answer = shop.get(f"/posts?fields=id&{asked}", token=admin(shop))
        page = answer.json()["page"]
        assert numbers(answer) == rows
        if rows:  # from an empty page no cursor can lead on
            assert (page["next"] is not None, page["previous"] is not None) == (following, previous)
        assert list(page) == ["size", "next", "previous"]
        assert list(links(answer)) == ["next"] * (page["next"] is not None) + ["prev"] * (page["previous"] is not None)
        size = re.search(r"\b(?:first|last)=(\d+)", query)
        assert page["size"] == (int(size[1]) if size else 20)


WRONG_SIZES = (
    "0",
    "101",
    "-1",
    "abc",
    "",
    "1.5",
    "01",
    "%2B5",
    "+5",
    "1e1",
    "5 ",
    "99999999999999999999",
    "9" * 5000,
    "null",
    "true",
    "%00",
    "٣",
)
WRONG_PAGES: dict[str, list[str]] = {
    **{f"{name}={quote(size, safe='%+')}": [f"/query/{name}"] for size in WRONG_SIZES for name in ("first", "last")},
    **{f"offset={size}": ["/query/offset"] for size in ("-1", "10001", "abc", "", "1.5", "99999999999999999999")},
    "first=1&last=1": ["/query/last"],
    "last=1&offset=0": ["/query/offset"],
    "last=1&offset=1&first=1": ["/query/last", "/query/offset"],
    "first=0&offset=-1": ["/query/first", "/query/offset"],
    **{
        f"{name}={text}": [f"/query/{name}"]
        for name in ("after", "before")
        for text in ("", "x", "null", "%00", "%E2%82%AC", "====", "a" * 10_000, "W10", "-_-_")
    },
}


@cases("query", WRONG_PAGES)
def test_a_page_that_cannot_be_is_refused_and_never_clamped(shop: Service, query: str) -> None:
    before = shop.runs
    answer = shop.get(f"/posts?{query}")
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", WRONG_PAGES[query]), answer.body
    assert shop.runs == before


def test_the_largest_page_and_the_largest_offset_are_told(shop: Service) -> None:
    for query, told in {"first=101": "at most 100, got 101", "offset=10001": "at most 10000, got 10001"}.items():
        (error,) = shop.get(f"/posts?{query}").json()["errors"]
        assert told in error["message"]


def test_the_largest_page_is_a_setting(fresh: Fresh) -> None:
    service = fresh(max_page=3)
    assert service.get("/posts?first=4").status == 400
    assert len(service.rows("/posts?first=3")) == 3


def test_count_exact_counts_all_pages_and_the_filter(shop: Service) -> None:
    for query, total in {"": 8, "&first=1": 8, "&first=1&offset=7": 8, "&title=Alpha": 3, "&title=none": 0}.items():
        assert shop.get(f"/posts?count=exact{query}", token=admin(shop)).json()["page"]["total"] == total
    assert shop.get("/posts?count=exact").json()["page"]["total"] == 6
    body = shop.get(f"/posts?count=exact&first=2&after={cursor(shop, 5)}", token=admin(shop)).json()
    assert (list(body["page"]), body["page"]["total"]) == (["size", "next", "previous", "total"], 8)


# walking

WALKS = [
    ("/posts", ("", "title", "-title", "title,-createdAt", "published,-title", "-id", "authorId", "-authorId,title")),
    ("/orders", ("note", "-note", "total,-note", "-note,status", "-note,-id", "customerId,note")),
    ("/users", ("email", "-email,-name")),
    ("/comments", ("-createdAt", "body")),
]


@pytest.mark.slow
@cases("size", [1, 2, 3, 5])
@cases(("path", "sort"), [(path, sort) for path, sorts in WALKS for sort in sorts])
def test_walking_all_pages_visits_each_row_once_forward_and_backward(
    shop: Service, path: str, sort: str, size: int
) -> None:
    query = f"fields=id&count=exact{f'&sort={sort}' if sort else ''}"
    for token in (admin(shop), shop.token(BEN)):
        everything = shop.get(f"{path}?{query}&first=100", token=token).json()
        whole = [row["id"] for row in everything["data"]]
        assert everything["page"]["total"] == len(whole)
        for start, rel in ((f"first={size}", "next"), (f"last={size}", "prev")):
            assert walk(shop, f"{path}?{query}&{start}", rel, token) == whole


def walk(service: Service, url: str, rel: str, token: str) -> list[str]:
    """The ids of all rows, by following links; each page must lead back to the one before it."""
    ids: list[str] = []
    came_from: list[str] = []
    while True:
        answer = service.get(url, token=token)
        rows = [row["id"] for row in answer.json()["data"]]
        assert rows, "a link led to an empty page"
        ids = ids + rows if rel == "next" else rows + ids
        back = links(answer).get("prev" if rel == "next" else "next")
        if came_from:
            assert back is not None
            behind = [row["id"] for row in service.rows(back, token=token)]
            assert behind == came_from
        else:
            assert back is None
        came_from = rows
        if rel not in links(answer):
            return ids
        url = links(answer)[rel]


@cases(
    "sort",
    [
        "text",
        "-number",
        "big,-price",
        "-ratio",
        "day,moment",
        "-moment",
        "mood,flag",
        "flag",
        "-parentId",
        "price",
        "-count,text",
        "-ratio,-id",
    ],
)
@cases("size", [1, 2, 3])
def test_walking_goes_by_every_type_and_its_nulls(things: Service, sort: str, size: int) -> None:
    whole = [row["id"] for row in things.rows(f"/items?sort={sort}&fields=id")]
    assert sorted(whole) == ["1", "2", "3", "4", "5"]
    for start, rel in ((f"first={size}", "next"), (f"last={size}", "prev")):
        assert walk(things, f"/items?sort={sort}&fields=id&{start}", rel, things.token()) == whole


@cases("sort", ["number,-number", "-id,id", "flag,-number,flag"])
@cases("size", [1, 2, 5])
def test_a_field_may_be_sorted_by_twice(things: Service, sort: str, size: int) -> None:
    once = ",".join(dict.fromkeys(["id", *(part.lstrip("-") for part in sort.split(","))]))
    whole = [row["id"] for row in things.rows(f"/items?sort={sort}&fields={once}")]
    assert sorted(whole) == ["1", "2", "3", "4", "5"]
    assert walk(things, f"/items?sort={sort}&fields={once}&first={size}", "next", things.token()) == whole


def test_walking_a_list_below_one(shop: Service, things: Service) -> None:
    token = admin(shop)
    assert len(walk(shop, f"/users/{ANN}/posts?first=1&sort=-title&fields=id", "next", token)) == 3
    assert walk(things, "/items/1/labels?first=1&sort=word", "next", things.token())[0].endswith("f2")


def test_a_row_that_is_gone_does_not_break_its_cursor(fresh: Fresh) -> None:
    service = fresh()
    page = service.get("/posts?sort=title&first=2&fields=id").json()["page"]
    service.execute(f"DELETE FROM comments WHERE post_id = '{POST[4]}'")
    service.execute(f"DELETE FROM posts WHERE id = '{POST[4]}'")
    rows = service.rows(f"/posts?sort=title&first=2&fields=id&after={page['next']}")
    assert [POST.index(row["id"]) for row in rows] == [8, 2]


# the Link header


def test_links_are_path_absolute_and_keep_everything_but_the_page(shop: Service) -> None:
    query = f"fields=title,comments[first=1;sort=-body](body)&title[in]=Alpha,{quote('É mile')}&count=exact&sort=-title"
    answer = shop.get(f"/posts?offset=1&{query}&first=1", token=admin(shop))
    page = answer.json()["page"]
    assert links(answer) == {
        "next": f"/posts?{query}&first=1&after={page['next']}",
        "prev": f"/posts?{query}&last=1&before={page['previous']}",
    }


def test_a_parameter_of_the_page_is_known_in_a_link_however_it_was_written(shop: Service) -> None:
    answer = shop.get("/posts?%66irst=2&o%66fset=1", token=admin(shop))
    assert numbers(answer) == [2, 3]
    assert numbers(shop.get(links(answer)["next"], token=admin(shop))) == [4, 5]


def test_a_link_cannot_be_broken_out_of(shop: Service) -> None:
    answer = shop.get('/posts?first=1&title[ne]=a>;rel="next",<http://x/?y=">', token=admin(shop))
    assert answer.status == 200
    assert list(links(answer)) == ["next"]
    assert links(answer)["next"].startswith("/posts?title")
    assert numbers(shop.get(links(answer)["next"], token=admin(shop))) == [2]


# what a cursor is bound to

MADE = "/posts?sort=title&title[ne]=Beta&first=2"
SAME = (
    "first=1",
    "first=100",
    "last=2",
    "fields=title",
    "fields=comments(body)",
    "count=exact",
    "first=3&count=exact&fields=id",
)
FOREIGN = (
    "/users?sort=name",
    "/comments?sort=body",
    "/posts?",
    "/posts?sort=title",
    "/posts?sort=-title&title[ne]=Beta",
    "/posts?sort=title,id&title[ne]=Beta",
    "/posts?sort=title,-id&title[ne]=Beta",
    "/posts?sort=body&title[ne]=Beta",
    "/posts?title[ne]=Beta",
    "/posts?sort=title&title[ne]=beta",
    "/posts?sort=title&title=Beta",
    "/posts?sort=title&title[gt]=Beta",
    "/posts?sort=title&body[ne]=Beta",
    "/posts?sort=title&title[ne]=Beta&published=true",
    "/posts?sort=title&title[in]=Beta",
)


def test_a_cursor_holds_for_the_same_list_in_other_sizes_and_fields(shop: Service) -> None:
    token = admin(shop)
    following = shop.get(MADE, token=token).json()["page"]["next"]
    for query in SAME:
        url = f"/posts?sort=title&title[ne]=Beta&{query}&after={following}"
        assert shop.get(url, token=token).status == 200, url
        assert shop.get(url.replace("after=", "before="), token=token).status == 200
    where = encoded(where={"title": {"ne": "Beta"}})
    assert shop.get(f"/posts?sort=title&{where}&after={following}", token=token).status == 200


@cases("url", FOREIGN)
def test_a_cursor_of_another_list_is_refused(shop: Service, url: str) -> None:
    token = admin(shop)
    following = shop.get(MADE, token=token).json()["page"]["next"]
    for name in ("after", "before"):
        answer = shop.get(f"{url}&{name}={following}", token=token)
        assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", [f"/query/{name}"])


def test_a_cursor_of_another_view_is_refused(shop: Service) -> None:
    following = shop.get(MADE, token=admin(shop)).json()["page"]["next"]
    for token in (None, shop.token(BEN), shop.token(BEN, "staff"), shop.token(BEN, "staff", scopes=["read"])):
        assert shop.get(f"{MADE}&after={following}", token=token).status == 400
    assert shop.get(f"{MADE}&after={following}", token=admin(shop)).status == 200


def test_a_cursor_is_the_same_in_both_styles(shop: Service) -> None:
    token = admin(shop)
    given = {"w": {"title": {"ne": "Beta"}}, "o": [{"title": "ASC"}]}
    edges = shop.data(EDGES, given, token=token)["postsConnection"]["edges"]
    page = shop.get(MADE, token=token).json()["page"]
    assert edges[1]["cursor"] == page["next"]
    document = """query($c: String) { postsConnection(first: 1, after: $c, where: {title: {ne: "Beta"}},
                  orderBy: {title: ASC}) { nodes { id } } }"""
    assert shop.data(document, {"c": page["next"]}, token=token)["postsConnection"]["nodes"] == [{"id": POST[8]}]


def test_a_cursor_that_was_tampered_with_is_refused(shop: Service) -> None:
    token = admin(shop)
    genuine = shop.get("/posts?sort=title&first=2", token=token).json()["page"]["next"]
    raw = base64.urlsafe_b64decode(genuine + "=" * (-len(genuine) % 4))
    changed = [raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :] for place in range(len(raw))]
    for other in (*changed, raw[:-1], raw + b" ", raw[12:], b"\0" * 12 + raw[12:], raw * 2):
        forged = base64.urlsafe_b64encode(other).rstrip(b"=").decode()
        assert shop.get(f"/posts?sort=title&after={forged}", token=token).status == 400
    for other in (genuine[:-4], genuine + "AAAA", genuine[1:], genuine.swapcase(), "." + genuine, genuine + "%00"):
        assert shop.get(f"/posts?sort=title&after={other}", token=token).status == 400
    assert shop.get(f"/posts?sort=title&after={genuine}", token=token).status == 200


def test_a_cursor_of_another_database_is_refused(fresh: Fresh) -> None:
    following = fresh().get("/posts?first=1").json()["page"]["next"]
    assert fresh().get(f"/posts?first=1&after={following}").status == 400


@pytest.mark.parametrize("style", ["rest", "graphql"])
def test_a_few_page_sizes_are_constants_where_that_keeps_the_plan(
    shop: Service, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL plans a statement with a bound LIMIT anew for every run; one shape of requests fills no cache."""
    statements: list[str] = []
    run = shop.app.store.run

    async def noted(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        statements.append(plan.sql)
        return await run(plan, parameters)

    def page(size: int) -> list[str]:
        if style == "rest":
            return [row["name"] for row in shop.rows(f"/users?first={size}&sort=name&fields=name")]
        query = "query($n: Int!) { users(first: $n, orderBy: {name: ASC}) { name } }"
        return [row["name"] for row in shop.data(query, {"n": size})["users"]]

    longest = page(9)  # what is seen once is not cached
    monkeypatch.setattr(shop.app.store, "run", noted)
    for size in (1, 2, 3, 4, 5, 6, 7, 8, 2, 9, 6):
        assert page(size) == longest[:size]
    assert len(set(statements)) == (5 if shop.app.store.dialect.sees_limits else 1)
