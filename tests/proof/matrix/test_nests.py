"""Sixteen roles, one for each set of four grants, and every word of a nested write through a link: a role has a word in
both documents, and may send it, exactly if it may make each of its writes alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any, Literal

import pytest

from diptych import Model, OnDelete, Resource, Role, grant, through, unique
from tests.support.in_process import Service, in_process

GRANTS = ("post update", "link create", "link delete", "tag create")
ROLES = {
    "_".join(["r", *(str(GRANTS.index(each)) for each in some)]): frozenset(some)
    for count in range(5)
    for some in combinations(GRANTS, count)
}
NEEDS = {
    "set": {"post update", "link create", "link delete"},
    "connect": {"post update", "link create"},
    "disconnect": {"post update", "link delete"},
    "create": {"post update", "link create", "tag create"},
}
"""What each word stands for."""
BY_PATH = {
    ("PUT", "/tags"): {"link create", "link delete"},
    ("PUT", "/tags/{}"): {"link create"},
    ("DELETE", "/tags/{}"): {"link delete"},
}


def _of(kind: str, verb: Literal["create", "update", "delete"]) -> tuple[Any, ...]:
    return tuple(grant(verb, to=Role(name)) for name, some in ROLES.items() if f"{kind} {verb}" in some)


root = Role("root")


class Post(Resource):
    title: str
    tags: list[Tag] = through("PostTag", "post", "tag")
    access = (grant("read"), grant("create", to=root), *_of("post", "update"))


class Tag(Resource):
    name: str
    access = (grant("read"), grant("create", to=root), *_of("tag", "create"))


class PostTag(Resource):
    post: Annotated[Post, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    keys = (unique("post", "tag"),)
    access = (grant("read"), grant("create", to=root), *_of("link", "create"), *_of("link", "delete"))


MODEL = Model(Post, Tag, PostTag)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(MODEL, "sqlite:///:memory:", runner) as found:
        yield found


def send(service: Service, method: str, url: str, body: Any, token: str) -> Any:
    if body is None:
        return service.send(method, url, token=token)
    head = {"content-type": "application/json"}
    return service.send(method, url, body=json.dumps(body).encode(), headers=head, token=token)


@pytest.mark.parametrize("role", ROLES)
def test_a_nest_is_refused_exactly_if_one_of_its_parts_is(service: Service, role: str) -> None:
    token, top = service.token(None, role), service.token(None, "root")
    tags = [send(service, "POST", "/tags", {"name": "t"}, top).json()["id"] for _ in range(2)]
    query = '{ __type(name: "PostTagsWrite") { inputFields { name } } }'
    shown = service.data(query, token=token)["__type"]
    words = {field["name"] for field in shown["inputFields"]} if shown else set()
    document = service.get("/openapi.json", token=token).json()
    schema = document["components"]["schemas"].get("PostTagsWrite", {"properties": {}})
    paths = document["paths"]
    allowed = {word for word, needs in NEEDS.items() if needs <= ROLES[role]}
    assert words == set(schema["properties"]) == allowed
    for word, item in {word: {"name": "n"} if word == "create" else {"id": tags[0]} for word in NEEDS}.items():
        post = send(service, "POST", "/posts", {"title": "p"}, top).json()["id"]
        send(service, "POST", "/post-tags", {"postId": post, "tagId": tags[0]}, top)
        rest = send(service, "PATCH", f"/posts/{post}", {"tags": {word: [item]}}, token)
        assert (rest.status == 200) == (word in allowed) and rest.status in (200, 403), (role, word, rest.body)
    for (method, path), needs in BY_PATH.items():
        post = send(service, "POST", "/posts", {"title": "p"}, top).json()["id"]
        send(service, "POST", "/post-tags", {"postId": post, "tagId": tags[0]}, top)
        body = [{"id": tags[1]}] if path == "/tags" else None
        answer = send(service, method, f"/posts/{post}" + path.format(tags[0]), body, token)
        may = needs <= ROLES[role]
        assert (answer.status < 300) == may and (may or answer.code == "FORBIDDEN"), (role, method, path, answer.body)
        assert (method.lower() in paths.get("/posts/{id}" + path.replace("{}", "{other}"), {})) == may
