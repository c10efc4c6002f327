"""Nested writes through a link: rows are connected and disconnected, or made and connected, in both styles."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from diptych import Model, OnDelete, Resource, Unique, grant, inverse, through, unique
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service


class Post(Resource):
    """Has tags."""

    title: str
    tags: list[Tag] = through("PostTag", "post", "tag")
    links: list[PostTag] = inverse("post")

    access = (grant("read", "create", "update", "delete"),)


class Tag(Resource, ids="integer"):
    """Has posts."""

    name: Annotated[str, Unique()]

    access = (grant("read", "create"),)


class PostTag(Resource):
    """Links both, at a position."""

    post: Annotated[Post, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    position: int = 0

    keys = (unique("post", "tag"),)
    access = (grant("read", "create", "delete"),)


MODEL = Model(Post, Tag, PostTag)
shared, service = emptied(MODEL, "post_tags", "posts", "tags")


def send(service: Service, method: str, path: str, body: Any) -> Answer:
    return service.send(method, path, body=json.dumps(body).encode(), headers={"content-type": "application/json"})


WAY = "fields=title,tags[sort=name](name),links[sort=position](position)"
CREATE = "mutation($b: PostCreate!) { createPost(input: $b) { title tags(orderBy: {name: ASC}) { name } } }"
UPDATE = (
    "mutation($i: ID!, $b: PostPatch!) { updatePost(id: $i, patch: $b) { title tags(orderBy: {name: ASC}) { name } } }"
)


def test_rows_are_made_connected_and_disconnected(service: Service) -> None:
    red = send(service, "POST", "/tags", {"name": "red"}).json()["id"]
    body = {"title": "A", "tags": {"create": [{"name": "blue"}], "connect": [{"id": red, "position": 7}]}}
    answer = send(service, "POST", f"/posts?{WAY}", body)
    assert answer.status == 201, answer.body
    shown = {"title": "A", "tags": [{"name": "blue"}, {"name": "red"}], "links": [{"position": 0}, {"position": 7}]}
    assert answer.json() == shown
    path = answer.headers["location"]
    again = {"tags": {"connect": [{"id": red, "position": 9}], "create": [{"name": "green"}]}}
    answer = send(service, "PATCH", f"{path}?{WAY}", again)
    assert [link["position"] for link in answer.json()["links"]] == [0, 0, 7], "connecting again changes nothing"
    answer = send(service, "PATCH", f"{path}?{WAY}", {"tags": {"disconnect": [{"id": red}]}})
    assert [tag["name"] for tag in answer.json()["tags"]] == ["blue", "green"]
    answer = send(service, "PATCH", path, {"title": "B", "tags": {"disconnect": [{"id": red}]}})
    assert (answer.status, answer.places) == (404, ["/tags/disconnect/0"])
    assert len(service.rows("/tags")) == 3, "a row is never deleted with its link"
    answer = service.query(UPDATE, {"i": path.removeprefix("/posts/"), "b": {"tags": {"connect": [{"id": red}]}}})
    assert len(answer.json()["data"]["updatePost"]["tags"]) == 3
    answer = service.query(
        CREATE, {"b": {"title": "C", "tags": {"connect": [{"id": red}], "create": [{"name": "pink"}]}}}
    )
    assert answer.json()["data"]["createPost"]["tags"] == [{"name": "pink"}, {"name": "red"}]
    answer = service.query(UPDATE, {"i": path.removeprefix("/posts/"), "b": {"tags": {"disconnect": [{"id": red}]}}})
    assert len(answer.json()["data"]["updatePost"]["tags"]) == 2


@pytest.mark.parametrize(
    ("tags", "status", "place"),
    [
        ({"connect": [{}]}, 422, "/tags/connect/0/id"),
        ({"connect": [{"id": "1", "x": 1}]}, 422, "/tags/connect/0/x"),
        ({"connect": [{"id": "1", "postId": "1"}]}, 422, "/tags/connect/0/postId"),
        ({"connect": [{"id": "1", "position": "x"}]}, 422, "/tags/connect/0/position"),
        ({"disconnect": [{"id": "1", "position": 1}]}, 422, "/tags/disconnect/0/position"),
        ({"update": []}, 422, "/tags/update"),
        ({"delete": []}, 422, "/tags/delete"),
        ({"create": [{"name": 1}]}, 422, "/tags/create/0/name"),
        ({"connect": [{"id": "999"}]}, 409, "/tags/connect/0/id"),
        ({"disconnect": [{"id": "999"}]}, 404, "/tags/disconnect/0"),
    ],
)
def test_faults_have_their_places(service: Service, tags: Any, status: int, place: str) -> None:
    post = send(service, "POST", "/posts", {"title": "A"}).headers["location"]
    answer = send(service, "PATCH", post, {"tags": tags})
    assert (answer.status, answer.places) == (status, [place]), answer.body
    answer = service.query(UPDATE, {"i": post.removeprefix("/posts/"), "b": {"tags": tags}})
    assert answer.json()["errors"]


def test_a_name_that_is_taken_undoes_all(service: Service) -> None:
    send(service, "POST", "/tags", {"name": "red"})
    answer = send(service, "POST", "/posts", {"title": "A", "tags": {"create": [{"name": "blue"}, {"name": "red"}]}})
    assert (answer.status, answer.places) == (409, ["/tags/create/1/name"])
    assert len(service.rows("/tags")) == 1 and service.rows("/posts") == []


def test_a_link_has_a_path_of_its_own(service: Service) -> None:
    red = send(service, "POST", "/tags", {"name": "red"}).json()["id"]
    post = send(service, "POST", "/posts", {"title": "A"}).headers["location"]
    link = f"{post}/tags/{red}"
    assert service.send("PUT", link).status == 201
    assert service.send("PUT", link).status == 204
    assert service.get(f"{post}?fields=version,tags(name)").json() == {"version": 1, "tags": [{"name": "red"}]}
    assert service.send("DELETE", link).status == 204
    assert service.send("DELETE", link).status == 404
    assert send(service, "PUT", link, {"position": 3}).status == 201
    assert service.rows("/post-tags?fields=position") == [{"position": 3}]
    for wrong, status in (({"position": "x"}, 422), ([], 422), ({"tagId": red}, 422), ({"x": 1}, 422)):
        assert send(service, "PUT", link, wrong).status == status
    for path in (
        f"{post}/tags/999",
        f"{post}/tags/x",
        f"/posts/x/tags/{red}",
        f"{post}/tags/$a",
        f"{post}/links/{red}",
    ):
        assert service.send("PUT", path).status == 404, path
        assert service.send("DELETE", path).status == 404, path
    assert service.get(link).status == 405
    assert service.send("OPTIONS", link).headers["allow"] == "PUT, DELETE, OPTIONS"
    document = service.get("/openapi.json").json()
    assert set(document["paths"]["/posts/{id}/tags/{other}"]) >= {"put", "delete"}
