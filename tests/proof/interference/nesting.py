"""Nested writes, links, upserts, changes by filters, dry runs and searches on two databases that look the same.

Hidden posts, the hidden texts of visible posts, secret tags and veiled links differ, or are in one of them alone. A pair
is one random request, sent to both. That the caller's own input is in conflict with a hidden row may be told, in these
words alone; what follows cannot be compared then.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Annotated, Any
from uuid import UUID

from diptych import (
    Model,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    Search,
    Unique,
    Viewer,
    allow,
    grant,
    inverse,
    not_,
    through,
    unique,
)
from tests.proof.interference.databases import Leak
from tests.support.in_process import Answer, Service

root = Role("root")
WORDS = ("red", "green", "blue", "grey")
PER_DEAL = 10
OWN_CONFLICT = "Another one has this value."


class Writer(Resource, ids="client"):
    """Has posts."""

    name: str
    posts: list[Post] = inverse("writer")
    access = (grant("read", "create", "update"),)


class Post(Resource, ids="client"):
    """May be hidden; its text always is."""

    title: str
    text: Annotated[str, ReadBy(root)] = ""
    size: int = 0
    hidden: bool = False
    writer: Annotated[Writer | None, OnDelete("set null")] = None
    tags: list[Tag] = through("PostTag", "post", "tag")
    search = Search("title", "text")
    access = (grant("create", "update", "delete"), grant("read", to=root))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)


class Tag(Resource, ids="client"):
    """May be secret."""

    name: Annotated[str, Unique()]
    note: str = ""
    secret: bool = False
    access = (grant("create", "update"), grant("read", to=root))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.secret)


class PostTag(Resource, ids="client"):
    """A link, which may be veiled."""

    post: Annotated[Post, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    veiled: bool = False
    keys = (unique("post", "tag"),)
    access = (grant("create", "delete"), grant("read", to=root))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.veiled)


MODEL = Model(Writer, Post, Tag, PostTag)
Request = tuple[str, str, Any]


class NestPairs:
    """The same requests to two services."""

    def __init__(self, services: tuple[Service, Service]) -> None:
        self.services = services
        self.seen: Counter[str] = Counter()

    def prove(self, pairs: int, seed: int = 0) -> None:
        random = Random(seed)
        while self.seen["pairs"] < pairs:
            deal = Deal(random)
            for service, both in zip(self.services, (False, True), strict=True):
                deal.fill(service, both)
            for _ in range(PER_DEAL):
                kind, request = deal.request()
                answers = [send(service, request, None) for service in self.services]
                self.seen.update({"pairs": 1, kind: 1})
                if _own_conflict(answers):
                    self.seen["conflicts"] += 1
                    break
                assert all(answer.status < 500 for answer in answers), answers
                one, other = ((answer.status, answer.body) for answer in answers)
                if one != other:
                    raise Leak(f"{kind} {request}:\n{one}\n{other}")


def _own_conflict(answers: list[Answer]) -> bool:
    refused = [answer for answer in answers if answer.status == 409]
    return len(refused) == 1 and refused[0].json()["detail"] == OWN_CONFLICT and refused[0].places == ["/name"]


def send(service: Service, request: Request, role: str | None) -> Answer:
    method, url, body = request
    token = service.token(None, *([role] if role else []))
    if body is None:
        return service.send(method, url, token=token)
    head = {"content-type": "application/json"}
    return service.send(method, url, body=json.dumps(body).encode(), headers=head, token=token)


class Deal:
    """Rows that both have, rows that look the same, and rows that one has alone."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.writers, self.posts, self.hidden, self.tags, self.secret = (
            [self._id() for _ in range(count)] for count in (2, 4, 4, 4, 3)
        )
        self.owners = {id: random.choice(self.writers) for id in (*self.posts, *self.hidden)}
        self.sizes = {id: random.randint(0, 9) for id in self.posts}
        self.titles = {id: random.choice(WORDS) for id in self.posts}
        self.links = {(post, tag) for post in self.posts for tag in self.tags if random.random() < 0.4}

    def _id(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def fill(self, service: Service, more: bool) -> None:
        """The rows of one database; with `more`, also those that the other has not."""
        random = Random(self.random.getrandbits(64))  # hidden values differ
        for table in ("post_tags", "posts", "tags", "writers"):
            service.execute(f"DELETE FROM {table}")
        writers = [{"id": id, "name": "w"} for id in self.writers]
        tags: list[Any] = [{"id": id, "name": f"t{n}"} for n, id in enumerate(self.tags)]
        secret = self.secret if more else self.secret[:2]
        tags += [
            {"id": id, "name": f"s{n}", "secret": True, "note": random.choice(WORDS)} for n, id in enumerate(secret)
        ]
        posts: list[Any] = [
            {"id": id, "title": self.titles[id], "size": self.sizes[id], "text": random.choice(WORDS)}
            for id in self.posts
        ]
        posts += [
            {"id": id, "title": random.choice(WORDS), "size": random.randint(0, 9), "hidden": True}
            for id in (self.hidden if more else self.hidden[:2])
        ]
        for post in posts:
            post["writerId"] = self.owners[post["id"]] if post["id"] in self.sizes else random.choice(self.writers)
        links: list[Any] = [
            {"id": self._link(ends), "postId": ends[0], "tagId": ends[1]} for ends in sorted(self.links)
        ]
        veiled = [(post, tag) for post in self.posts for tag in secret if random.random() < 0.5]
        links += [{"id": self._link(ends), "postId": ends[0], "tagId": ends[1], "veiled": True} for ends in veiled]
        for path, rows in (("writers", writers), ("tags", tags), ("posts", posts), ("post-tags", links)):
            answer = send(service, ("POST", f"/{path}/batch", rows), "root") if rows else None
            assert answer is None or answer.status == 201, answer.body

    @staticmethod
    def _link(ends: tuple[str, str]) -> str:
        return str(UUID(int=UUID(ends[0]).int ^ UUID(ends[1]).int, version=4))

    # requests

    def request(self) -> tuple[str, Request]:
        kinds = (self._nest, self._set, self._links, self._upsert, self._bulk, self._search)
        return self.random.choice(kinds)()

    def _post(self) -> str:
        return self.random.choice((*self.posts, *self.hidden))

    def _tag(self) -> str:
        return self.random.choice((*self.tags, *self.secret))

    def _nest(self) -> tuple[str, Request]:
        word, item = self.random.choice(("connect", "disconnect", "delete", "update")), {"id": self._post()}
        body: dict[str, Any] = {**item, "patch": {"title": "red"}} if word == "update" else item
        url = f"/writers/{self.random.choice(self.writers)}?fields=name,posts[sort=id](id,title,tags[sort=name](name))"
        return "nest", ("PATCH", url, {"posts": {word: [body]}})

    def _set(self) -> tuple[str, Request]:
        items = [{"id": id} for id in {self._tag() for _ in range(self.random.randint(0, 3))}]
        if self.random.random() < 0.5:
            return "set", ("PUT", f"/posts/{self._post()}/tags", sorted(items, key=str))
        body = {"tags": {"set": sorted(items, key=str)}}
        return "set", ("PATCH", f"/posts/{self._post()}?fields=version,tags[sort=name](name)", body)

    def _links(self) -> tuple[str, Request]:
        return "link", (self.random.choice(("PUT", "DELETE")), f"/posts/{self._post()}/tags/{self._tag()}", None)

    def _upsert(self) -> tuple[str, Request]:
        name = self.random.choice(("t", "s")) + str(self.random.randint(0, 3))
        keep = "&onConflict=keep" * (self.random.random() < 0.5)
        body = {"id": self._id(), "name": name, "note": self.random.choice(WORDS)}
        return "upsert", ("POST", f"/tags?by=name{keep}&fields=id,name,note,version", body)

    def _bulk(self) -> tuple[str, Request]:
        dry = self.random.random() < 0.6
        most, size = self.random.randint(1, 5), self.random.randint(0, 9)
        url = f"/posts?size[gte]={size}&most={most}" + "&dryRun=true" * dry
        if self.random.random() < 0.3:
            return ("dry run" if dry else "bulk"), ("DELETE", url, None)
        return ("dry run" if dry else "bulk"), ("PATCH", url, {"title": self.random.choice(WORDS)})

    def _search(self) -> tuple[str, Request]:
        word = self.random.choice(WORDS)
        shown = self.random.choice(
            ("/posts?count=exact&fields=id,title&sort=id&search=", "/posts/summary?fields=count&search=")
        )
        return "search", ("GET", shown + word, None)
