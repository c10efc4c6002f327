"""All links of a row are set at once: nested in both styles, by PUT, in a batch, by the rules of the links."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from diptych import Model, OnDelete, Resource, Unique, allow, grant, inverse, through, unique
from diptych.api.links import link_rows
from diptych.api.nest import Unfolder
from diptych.api.rest.target import find_target
from diptych.ask.measures import Limits
from diptych.ask.slots import RawValue
from diptych.explain.stages import Explanation
from diptych.explain.understood import RestRequest
from diptych.model.describe.link_advice import advise_links
from diptych.serve.http.request import Request
from tests.support.effort import scaled
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service


class Rack(Resource):
    """Has posts."""

    name: str
    posts: list[Post] = inverse("rack")

    access = (grant("read", "create"),)


class Post(Resource):
    """Has tags."""

    title: str
    rack: Annotated[Rack | None, OnDelete("set null")] = None
    tags: list[Tag] = through("PostTag", "post", "tag")
    links: list[PostTag] = inverse("post")

    access = (grant("read", "create", "update", "delete"),)


class Tag(Resource, ids="integer"):
    """Some are hidden."""

    name: Annotated[str, Unique()]
    hidden: bool = False

    access = (grant("create"),)

    @allow("read")
    def shown(self, viewer: Any) -> Any:
        return ~self.hidden


class PostTag(Resource):
    """Links both, at a position; one at a position of 100 or more stays."""

    post: Annotated[Post, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    position: int = 0

    keys = (unique("post", "tag"),)
    access = (grant("read", "create"),)

    @allow("delete")
    def loose(self, viewer: Any) -> Any:
        return self.position < 100


MODEL = Model(Rack, Post, Tag, PostTag)
UPDATE = "mutation($i: ID!, $b: PostPatch!) { updatePost(id: $i, patch: $b) { tags(orderBy: {name: ASC}) { name } } }"
shared, service = emptied(MODEL, "post_tags", "posts", "tags")


def send(service: Service, method: str, path: str, body: Any, **headers: str) -> Answer:
    head = {"content-type": "application/json", **headers}
    return service.send(method, path, body=json.dumps(body).encode(), headers=head)


def made(service: Service, *names: str) -> tuple[str, list[str]]:
    """A new post and new tags."""
    tags = [send(service, "POST", "/tags", {"name": name}).json()["id"] for name in names]
    return send(service, "POST", "/posts", {"title": "A"}).headers["location"], tags


def links(service: Service, post: str) -> list[tuple[str, int]]:
    shown = service.rows(f"/post-tags?postId={post.removeprefix('/posts/')}&sort=position&fields=tagId,position")
    return [(link["tagId"], link["position"]) for link in shown]


def test_links_are_set_in_every_style(service: Service) -> None:
    post, (a, b, c) = made(service, "a", "b", "c")
    answer = send(
        service, "PATCH", f"{post}?fields=version,tags(name)", {"tags": {"set": [{"id": a}, {"id": b, "position": 7}]}}
    )
    assert answer.json() == {"version": 2, "tags": [{"name": "a"}, {"name": "b"}]}
    body = {"tags": {"set": [{"id": b, "position": 9}, {"id": c, "position": 8}]}}
    answer = service.query(UPDATE, {"i": post.removeprefix("/posts/"), "b": body})
    assert answer.json()["data"]["updatePost"]["tags"] == [{"name": "b"}, {"name": "c"}]
    assert links(service, post) == [(b, 7), (c, 8)], "a link that was there keeps its fields"
    document = (
        f'mutation {{ updatePost(id: "{post[7:]}", patch: {{tags: {{set: [{{id: "{a}"}}]}}}}) {{ tags {{ name }} }} }}'
    )
    assert service.query(document).json()["data"]["updatePost"]["tags"] == [{"name": "a"}]
    answer = send(service, "PUT", f"{post}/tags", [{"id": c}, {"id": a}])
    assert (answer.status, answer.body) == (204, b"")
    assert {tag for tag, _ in links(service, post)} == {a, c}
    assert service.get(f"{post}?fields=version").json() == {"version": 4}, "PUT leaves the row alone"
    answer = send(service, "PATCH", f"{post}?fields=tags(name)", {"tags": {"set": [], "create": [{"name": "d"}]}})
    assert answer.json() == {"tags": [{"name": "d"}]}
    assert send(service, "PUT", f"{post}/tags", []).status == 204
    assert links(service, post) == [] and len(service.rows("/tags")) == 4


@pytest.mark.parametrize("style", ["patch", "mutation", "put"])
def test_a_set_is_followed_link_by_link(service: Service, style: str) -> None:
    """Each link that is taken away has its event, then each that is new; one that stays has none."""
    post, (a, b, c, d) = made(service, "a", "b", "c", "d")
    assert send(service, "PUT", f"{post}/tags", [{"id": a}, {"id": b}, {"id": c}]).status == 204
    start = service.end_of_changes()
    told = service.follow("subscription { postTagChanged { kind postTag { tagId } } }")
    wanted = [{"id": d}, {"id": b}]
    if style == "patch":
        assert send(service, "PATCH", post, {"title": "B", "tags": {"set": wanted}}).status == 200
    elif style == "mutation":
        variables = {"i": post.removeprefix("/posts/"), "b": {"title": "B", "tags": {"set": wanted}}}
        assert "errors" not in service.query(UPDATE, variables).json()
    else:
        assert send(service, "PUT", f"{post}/tags", wanted).status == 204
    service.settle()
    found = service.changes(f"/post-tags/changes?after={start}&fields=tagId")["data"]
    kinds = [change["kind"] for change in found]
    assert kinds == ["DELETED", "DELETED", "CREATED"]
    assert found[-1]["postTag"] == {"tagId": d}
    assert [event["kind"] for event in told.events] == kinds
    rows = service.changes(f"/posts/changes?after={start}&fields=title")["data"]
    assert [(change["kind"], change["post"]) for change in rows] == [("UPDATED", {"title": "B"})] * (style != "put")
    again = service.end_of_changes()
    assert send(service, "PUT", f"{post}/tags", wanted).status == 204
    service.settle()
    assert service.changes(f"/post-tags/changes?after={again}")["data"] == [], "nothing changed"


@pytest.mark.parametrize(
    ("body", "status", "places"),
    [
        ({}, 422, [""]),
        (None, 422, [""]),
        ([1], 422, ["/0"]),
        ([{}], 422, ["/0/id"]),
        ([{"id": True}], 422, ["/0/id"]),
        ([{"id": "1", "x": 1}], 422, ["/0/x"]),
        ([{"id": "1", "postId": "1"}], 422, ["/0/postId"]),
        ([{"id": "1", "position": "x"}], 422, ["/0/position"]),
        ([{"id": "999"}], 409, ["/0/id"]),
    ],
)
def test_faults_have_their_places(service: Service, body: Any, status: int, places: list[str]) -> None:
    post, (tag,) = made(service, "a")
    assert service.send("PUT", f"{post}/tags/{tag}").status == 201
    answer = send(service, "PUT", f"{post}/tags", body)
    assert (answer.status, answer.places) == (status, places), answer.body
    if isinstance(body, list):
        answer = send(service, "PATCH", post, {"tags": {"set": body}})
        assert (answer.status, answer.places) == (status, ["/tags/set" + place for place in places]), answer.body
    assert links(service, post) == [(tag, 0)], "nothing was changed"


def test_rules_of_the_links_hold(service: Service) -> None:
    post, (a, b, c) = made(service, "a", "b", "c")
    send(service, "PUT", f"{post}/tags", [{"id": a, "position": 100}, {"id": b}])
    for answer in (
        send(service, "PUT", f"{post}/tags", [{"id": c}]),
        send(service, "PATCH", post, {"tags": {"set": [{"id": c}]}}),
    ):
        assert (answer.status, answer.json()["code"]) == (401, "UNAUTHENTICATED"), "one link may not be deleted"
    assert links(service, post) == [(b, 0), (a, 100)]
    assert send(service, "PUT", f"{post}/tags", [{"id": a}, {"id": c}]).status == 204
    assert links(service, post) == [(c, 0), (a, 100)]
    service.execute("UPDATE tags SET hidden = NOT hidden WHERE name = 'a'")
    assert send(service, "PUT", f"{post}/tags", [{"id": b}]).status == 204, "what is not shown is not touched"
    assert {tag for tag, _ in links(service, post)} == {a, b}


def test_a_row_that_is_not_there_is_not_found(service: Service) -> None:
    post, (a,) = made(service, "a")
    for path in ("/posts/x/tags", "/posts/0198f0c2-0000-7000-8000-000000000000/tags", "/posts/$a/tags"):
        for body in ([], [{"id": a}]):
            assert send(service, "PUT", path, body).status == 404, path
    assert send(service, "PUT", f"{post}/links", []).status == 405
    assert send(service, "PUT", f"{post}/tags", [], **{"if-match": '"1."'}).status == 412
    assert "PUT" in service.send("OPTIONS", f"{post}/tags").headers["allow"]
    assert send(service, "POST", "/posts", {"title": "A", "tags": {"set": []}}).places == ["/tags/set"]


def test_links_are_steps_of_a_batch(service: Service) -> None:
    post, (a, b) = made(service, "a", "b")
    steps = [
        {"id": "new", "method": "POST", "url": "/tags?fields=name", "body": {"name": "c"}},
        {"id": "post", "method": "POST", "url": "/posts?fields=title", "body": {"title": "B"}},
        {"method": "PUT", "url": "/posts/$post/tags/$new", "body": {"position": 3}},
        {"method": "PUT", "url": f"{post}/tags", "body": [{"id": a}, {"id": "$new"}]},
        {"method": "PUT", "url": f"{post}/tags", "body": [{"id": "$new"}, {"id": b}]},
        {"method": "DELETE", "url": f"{post}/tags/{b}"},
    ]
    answer = send(service, "POST", "/batch", {"requests": steps})
    assert [step["status"] for step in answer.json()["responses"]] == [201, 201, 201, 204, 204, 204], answer.body
    assert [tag["name"] for tag in service.get(f"{post}?fields=tags(name)").json()["tags"]] == ["c"]
    for url, body, status, places in (
        (f"{post}/tags/{b}", {"x": 1}, 422, ["/requests/0/body/x"]),
        (f"{post}/tags", [{"id": "$no"}], 422, ["/requests/0/body/0/id"]),
        (f"{post}/tags", [{"id": "999"}], 409, ["/requests/0/body/0/id"]),
        (f"{post}/tags/999", None, 404, []),
        ("/posts/x/tags", [], 404, []),
    ):
        step = {"method": "PUT", "url": url, **({} if body is None else {"body": body})}
        answer = send(service, "POST", "/batch", {"requests": [step]})
        assert (answer.status, answer.places) == (status, places), (url, answer.body)


def test_what_it_takes_away_is_bounded_before_the_statement(service: Service) -> None:
    post, _ = made(service)
    names = [f"({number}, 'n{number}')" for number in range(1, 102)]
    service.execute(f"INSERT INTO tags (id, name) VALUES {', '.join(names)}")
    for start in (1, 50, 99):
        items = [{"id": str(number)} for number in range(start, min(start + 49, 102))]
        assert send(service, "PATCH", post, {"tags": {"connect": items}}).status == 200
    answer = send(service, "PUT", f"{post}/tags", [])
    assert (answer.status, answer.json()["allowed"]) == (409, 100)
    answer = send(service, "PUT", f"{post}/tags", [{"id": "1"}], prefer="cost")
    assert (answer.status, answer.headers["cost"]) == (204, "price=102, allowed=5000, depth=1")
    items = [{"id": str(number)} for number in range(1, 101)]
    assert send(service, "PUT", f"{post}/tags", items).json()["code"] == "TOO_COMPLEX"


def test_two_sets_never_mix(service: Service) -> None:
    post, tags = made(service, *"abcdefgh")
    sets = [tags[:4], tags[4:]]

    async def put(wanted: list[str]) -> int:
        async def read(most: int) -> bytes:
            return json.dumps([{"id": tag} for tag in wanted]).encode()

        headers = {b"content-type": b"application/json"}
        return (await service.handler.handle(Request("PUT", f"{post}/tags", "", headers, read))).status

    async def both() -> list[int]:
        return await asyncio.gather(*[put(each) for each in sets * 4])

    for _ in range(scaled(30, 3)):
        assert service.runner.run(both()) == [204] * 8
        assert sorted(tag for tag, _ in links(service, post)) in [sorted(each) for each in sets]


def test_both_styles_are_equal_asks() -> None:
    view = MODEL.view(MODEL.signature(MODEL.anonymous))
    body = [{"id": "1"}, {"id": "2", "position": 3}]
    target = find_target("/posts/x/tags", MODEL)
    assert target is not None
    by_put = [row.wish(view).ask for row in link_rows("PUT", target, body, view, Limits())]
    nested = RawValue({"tags": {"set": body}}, ("body",))
    for own_paths in (True, False):
        rows, head = Unfolder(view, Limits(), own_paths=own_paths).unfold("update", view.resources["Post"], nested)
        assert [row.wish(view).ask for row in rows[head + 1 :]] == by_put


def test_explain_says_what_becomes_of_links(service: Service) -> None:
    post, (a, b) = made(service, "a", "b")
    send(service, "PUT", f"{post}/tags", [{"id": a}])

    def said(method: str, path: str, body: Any = None) -> str:
        explained = Explanation(MODEL, MODEL.anonymous, Limits(), RestRequest(method, path, "", body))
        return "\n".join([*explained.lines(), *service.runner.run(explained.rows(service.app.store))])

    text = said("PUT", f"{post}/tags", [{"id": b}])
    assert "postTags: 1 match, and this viewer sees 1" in text and "The change would be made." in text, text
    assert "The change would be made." in said("DELETE", f"{post}/tags/{a}")
    assert "no row has this postId_tagId" in said("DELETE", f"{post}/tags/{b}")
    assert "The change would be made." in said("PUT", f"{post}/tags/{b}", {"position": 2})
    service.execute("UPDATE post_tags SET position = 100")
    assert "Refused UNAUTHENTICATED" in said("PUT", f"{post}/tags")
    assert links(service, post) == [(a, 100)]


def test_check_asks_for_the_unique_key_of_a_link() -> None:
    class Book(Resource):
        shelves: list[Shelf] = through("Place", "book", "shelf")
        access = (grant("read"),)

    class Shelf(Resource):
        access = (grant("read"),)

    class Place(Resource):
        book: Book
        shelf: Shelf
        access = (grant("read", "create"),)

    (advice,) = advise_links(Model(Book, Shelf, Place).resources)
    assert advice.startswith("Place (test_links.py:") and advice.endswith('keys = (unique("book", "shelf"),)')
    assert advise_links(MODEL.resources) == []


def test_a_new_row_and_an_old_one_are_linked_in_one_request(service: Service) -> None:
    """Both links have the same fields, and get them from different places."""
    _, (a, b) = made(service, "a", "b")
    body: dict[str, Any] = {
        "title": "B",
        "tags": {"connect": [{"id": a}, {"id": b}], "create": [{"name": "c"}, {"name": "d"}]},
    }
    for _ in range(2):
        answer = send(service, "POST", "/posts?fields=tags(name)", body)
        assert answer.status == 201 and len(answer.json()["tags"]) == 4, answer.body
        body["tags"]["create"] = [{"name": "e"}, {"name": "f"}]


def test_rows_that_are_made_together_can_be_referred_to(service: Service) -> None:
    _, (a,) = made(service, "a")
    posts = [{"title": "B"}, {"title": "C", "tags": {"connect": [{"id": a}]}}]
    answer = send(service, "POST", "/racks?fields=posts(title,tags(name))", {"name": "S", "posts": {"create": posts}})
    assert answer.json() == {"posts": [{"title": "B", "tags": []}, {"title": "C", "tags": [{"name": "a"}]}]}
