"""A ledger of nested writes, links, upserts, changes by filters, references and the trash; and random changes for it.

It knows no SQL, no Ask and no unfolding: a change is a function on dicts, which raises the code of the error. Ids are
made by the client, so that all who make the same changes have the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from diptych import Model, OnDelete, Resource, Role, Unique, Viewer, allow, grant, inverse, not_, through, unique

root = Role("root")
Row = dict[str, Any]


class Writer(Resource, ids="client"):
    """Has posts."""

    name: str
    posts: list[Post] = inverse("writer")
    access = (grant("read", "create", "update"),)


class Post(Resource, ids="client"):
    """May be hidden, or locked."""

    title: str
    size: int = 0
    hidden: bool = False
    locked: bool = False
    writer: Annotated[Writer | None, OnDelete("set null")] = None
    tags: list[Tag] = through("PostTag", "post", "tag")
    access = (grant("create"), grant("read", to=root))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)

    @allow("update", "delete")
    def open(self, viewer: Viewer) -> bool:
        return not_(self.locked)


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
    """A link, which may be pinned."""

    post: Annotated[Post, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    position: int = 0
    pinned: bool = False
    keys = (unique("post", "tag"),)
    access = (grant("read", "create"),)

    @allow("delete")
    def loose(self, viewer: Viewer) -> bool:
        return not_(self.pinned)


class Memo(Resource, ids="client", trash=timedelta(days=30)):
    """Has a trash."""

    text: str
    access = (grant("read", "create", "delete"),)


MODEL = Model(Writer, Post, Tag, PostTag, Memo)


class Refused(Exception):
    """The code of an error."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Ledger:
    """All rows."""

    writers: dict[str, Row] = field(default_factory=dict)
    posts: dict[str, Row] = field(default_factory=dict)
    tags: dict[str, Row] = field(default_factory=dict)
    links: dict[tuple[str, str], Row] = field(default_factory=dict)
    memos: dict[str, Row] = field(default_factory=dict)
    trash: dict[str, Row] = field(default_factory=dict)
    all_seeing: bool = False
    """Is the viewer root?"""

    def make(self, change: Change) -> str | None:
        """Make a change, all or nothing; the code of its error."""
        before = deepcopy({name: getattr(self, name) for name in _TABLES})
        try:
            change.effect(self)
        except Refused as refused:
            for name, rows in before.items():
                setattr(self, name, rows)
            return refused.code
        return None

    def state(self) -> dict[str, Any]:
        """All rows, as the tests read them."""
        return {name: deepcopy(getattr(self, name)) for name in _TABLES}

    # single writes

    def shows_post(self, id: str) -> bool:
        return id in self.posts and (self.all_seeing or not self.posts[id]["hidden"])

    def shows_tag(self, id: str) -> bool:
        return id in self.tags and (self.all_seeing or not self.tags[id]["secret"])

    def update_writer(self, id: str, patch: Mapping[str, Any]) -> None:
        if id not in self.writers:
            raise Refused("NOT_FOUND")
        self._changed(self.writers[id], patch)

    def update_post(self, id: str, patch: Mapping[str, Any], of: str | None = None) -> None:
        self._open_post(id, of)
        self._changed(self.posts[id], patch)

    def delete_post(self, id: str, of: str | None = None) -> None:
        self._open_post(id, of)
        del self.posts[id]
        self.links = {ends: link for ends, link in self.links.items() if ends[0] != id}

    def _open_post(self, id: str, of: str | None) -> None:
        if not self.shows_post(id) or (of is not None and self.posts[id]["writerId"] != of):
            raise Refused("NOT_FOUND")
        if self.posts[id]["locked"]:
            raise Refused("FORBIDDEN")

    @staticmethod
    def _changed(row: Row, patch: Mapping[str, Any]) -> None:
        row.update(patch)
        row["version"] += 1

    def create_post(self, id: str, values: Mapping[str, Any]) -> None:
        if values.get("hidden") and not self.all_seeing:
            raise Refused("FORBIDDEN")
        blank = {"size": 0, "hidden": False, "locked": False, "writerId": None, "version": 1}
        self.posts[id] = {**blank, **values}

    def create_tag(self, id: str, values: Mapping[str, Any]) -> None:
        if values.get("secret") and not self.all_seeing:
            raise Refused("FORBIDDEN")
        if any(tag["name"] == values["name"] for tag in self.tags.values()):
            raise Refused("CONFLICT")
        self.tags[id] = {"note": "", "secret": False, "version": 1, **values}

    def upsert_tag(self, id: str, values: Mapping[str, Any], keep: bool) -> None:
        known = [key for key, tag in self.tags.items() if tag["name"] == values["name"] and self.shows_tag(key)]
        if not known:
            self.create_tag(id, values)
        elif not keep:
            self._changed(self.tags[known[0]], {"note": values["note"]})

    # links

    def link(self, post: str, tag: str, fields: Mapping[str, Any], error: str = "CONFLICT") -> None:
        """Connect; what is connected stays."""
        if (post, tag) in self.links:
            return
        if not self.shows_post(post) or not self.shows_tag(tag):
            raise Refused(error)
        self.links[post, tag] = {"position": 0, "pinned": False, **fields}

    def unlink(self, post: str, tag: str) -> None:
        if (post, tag) not in self.links:
            raise Refused("NOT_FOUND")
        if self.links[post, tag]["pinned"]:
            raise Refused("FORBIDDEN")
        del self.links[post, tag]

    def set_links(self, post: str, items: list[Row]) -> None:
        named = {item["id"] for item in items}
        for ends in [ends for ends in self.links if ends[0] == post]:
            if ends[1] not in named and self.shows_tag(ends[1]):
                self.unlink(*ends)
        for item in items:
            self.link(post, item["id"], {name: value for name, value in item.items() if name != "id"})

    # nests

    def nest_tags(self, post: str, words: Mapping[str, Any]) -> None:
        if "set" in words:
            self.set_links(post, words["set"])
        for item in words.get("disconnect", ()):
            self.unlink(post, item["id"])
        for item in words.get("connect", ()):
            self.link(post, item["id"], {name: value for name, value in item.items() if name != "id"})
        for item in words.get("create", ()):
            self.create_tag(item["id"], {name: value for name, value in item.items() if name != "id"})
            self.link(post, item["id"], {})

    def nest_posts(self, writer: str, words: Mapping[str, Any]) -> None:
        for item in words.get("disconnect", ()):
            self.update_post(item["id"], {"writerId": None}, writer)
        for item in words.get("delete", ()):
            self.delete_post(item["id"], writer)
        for item in words.get("update", ()):
            patch = dict(item["patch"])
            tags = patch.pop("tags", {})
            self.update_post(item["id"], patch, writer)
            self.nest_tags(item["id"], tags)
        for item in words.get("connect", ()):
            self.update_post(item["id"], {"writerId": writer})
        for item in words.get("create", ()):
            self.new_post(item, writer)

    def new_post(self, body: Mapping[str, Any], writer: str | None = None) -> None:
        values = {name: value for name, value in body.items() if name not in ("id", "tags", "writer")}
        if "writer" in body:
            made = body["writer"]["create"]
            self.writers[made["id"]] = {"name": made["name"], "version": 1}
            writer = made["id"]
        self.create_post(body["id"], {**values, "writerId": writer})
        self.nest_tags(body["id"], body.get("tags", {}))

    # changes by a filter

    def bulk(self, size: int, most: int, effect: Callable[[str], None]) -> None:
        fit = [
            id for id, post in self.posts.items() if post["size"] >= size and not post["locked"] and self.shows_post(id)
        ]
        if len(fit) > most:
            raise Refused("CONFLICT")
        for id in fit:
            effect(id)


_TABLES = ("writers", "posts", "tags", "links", "memos", "trash")


class Change(NamedTuple):
    """A change in each style, and what it does to a ledger. A batch stands for what GraphQL has no word for."""

    name: str
    rest: tuple[str, str, Any]
    graphql: tuple[str, dict[str, Any]] | None
    effect: Callable[[Ledger], None]


def batch_of(*requests: tuple[str, str, Any]) -> tuple[str, str, Any]:
    """Requests as one."""
    steps = []
    for index, (method, url, body) in enumerate(requests):
        steps.append({"id": f"s{index}", "method": method, "url": url} | ({} if body is None else {"body": body}))
    return "POST", "/batch", {"requests": steps}


class Drawer:
    """Draws changes that mostly, but not always, can be made."""

    def __init__(self, random: Random, ledger: Ledger) -> None:
        self.random = random
        self.ledger = ledger

    def change(self) -> Change:
        kinds = (self.new_writer, self.new_post, self.old_writer, self.old_post, self.old_post, self.links)
        more = (self.whole_set, self.upsert, self.bulk, self.refs, self.memo)
        return self.random.choice((*kinds, *more))()

    # parts

    def id(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def word(self) -> str:
        return "".join(self.random.choices("abcdefgh", k=3))

    def some(self, rows: Mapping[str, Any]) -> str:
        """The id of a row; now and then of none."""
        return self.random.choice(list(rows)) if rows and self.random.random() < 0.95 else self.id()

    def flag(self, share: float) -> bool:
        return self.random.random() < share

    def post(self, depth: int) -> Row:
        body: Row = {"id": self.id(), "title": self.word(), "size": self.random.randint(0, 9)}
        body |= {"locked": True} if self.flag(0.1) else {}
        body |= {"hidden": True} if self.flag(0.05) else {}
        body |= {"tags": self.tags(None)} if depth and self.flag(0.5) else {}
        return body

    def tag(self) -> Row:
        return {"id": self.id(), "name": self.word()} | ({"secret": True} if self.flag(0.03) else {})

    def item(self) -> Row:
        body: Row = {"id": self.some(self.ledger.tags)}
        body |= {"position": self.random.randint(1, 5)} if self.flag(0.4) else {}
        return body | ({"pinned": True} if self.flag(0.1) else {})

    def tags(self, post: str | None) -> Row:
        """What is done to the tags of a post, which is new if there is none."""
        words: Row = {}
        if post is not None and self.flag(0.5):
            words["set"] = self.distinct([self.item() for _ in range(self.random.randint(0, 4))])
        mine = [tag for each, tag in self.ledger.links if each == post]
        if post is not None and mine and "set" not in words and self.flag(0.6):
            words["disconnect"] = [{"id": self.random.choice(mine) if self.flag(0.9) else self.some(self.ledger.tags)}]
        if self.flag(0.4):
            words["connect"] = self.distinct([self.item() for _ in range(self.random.randint(1, 3))])
        if self.flag(0.4):
            words["create"] = [self.tag() for _ in range(self.random.randint(1, 2))]
        return words

    @staticmethod
    def distinct(items: list[Row]) -> list[Row]:
        return list({item["id"]: item for item in items}.values())

    def posts(self, writer: str | None) -> Row:
        words: Row = {}
        mine = [id for id, post in self.ledger.posts.items() if post["writerId"] == writer] if writer else []
        others = [id for id in self.ledger.posts if id not in mine]
        self.random.shuffle(mine)
        for word in ("disconnect", "delete", "update") if writer else ():
            if mine and self.flag(0.4):
                id = mine.pop()
                words[word] = [{"id": id if self.flag(0.92) else self.some(dict.fromkeys(others))}]
                if word == "update":
                    words[word][0]["patch"] = {"title": self.word()}
                    words[word][0]["patch"] |= {"tags": self.tags(id)} if self.flag(0.5) else {}
        if others and self.flag(0.4):
            words["connect"] = [{"id": self.random.choice(others)}]
        if self.flag(0.6):
            words["create"] = [self.post(1) for _ in range(self.random.randint(1, 3))]
        return words

    # changes

    def new_writer(self) -> Change:
        body: Row = {"id": self.id(), "name": self.word(), "posts": self.posts(None)}

        def effect(ledger: Ledger) -> None:
            ledger.writers[body["id"]] = {"name": body["name"], "version": 1}
            ledger.nest_posts(body["id"], body["posts"])

        return self._create("Writer", "/writers", body, effect)

    def new_post(self) -> Change:
        body = self.post(1)
        if self.flag(0.5):
            body["writer"] = {"create": {"id": self.id(), "name": self.word()}}
        return self._create("Post", "/posts", body, lambda ledger: ledger.new_post(body))

    def old_writer(self) -> Change:
        id, body = self.some(self.ledger.writers), {"name": self.word()}
        words = self.posts(id)

        def effect(ledger: Ledger) -> None:
            ledger.update_writer(id, body)
            ledger.nest_posts(id, words)

        return self._update("Writer", f"/writers/{id}", id, {**body, "posts": words}, effect)

    def old_post(self) -> Change:
        id = self.some(self.ledger.posts)
        body = {"title": self.word()} if self.flag(0.7) else {}
        words = self.tags(id)

        def effect(ledger: Ledger) -> None:
            ledger.update_post(id, body)
            ledger.nest_tags(id, words)

        return self._update("Post", f"/posts/{id}", id, {**body, "tags": words}, effect)

    def links(self) -> Change:
        post, tag = self.some(self.ledger.posts), self.some(self.ledger.tags)
        if self.ledger.links and self.flag(0.5):
            post, tag = self.random.choice(list(self.ledger.links))
        if self.flag(0.5):
            request: tuple[str, str, Any] = ("DELETE", f"/posts/{post}/tags/{tag}", None)
            return Change("unlink", request, None, lambda ledger: ledger.unlink(post, tag))
        fields = {"position": 3} if self.flag(0.5) else None
        request = ("PUT", f"/posts/{post}/tags/{tag}", fields)
        return Change("link", request, None, lambda ledger: ledger.link(post, tag, fields or {}, "NOT_FOUND"))

    def whole_set(self) -> Change:
        post = self.some(self.ledger.posts)
        items = self.distinct([self.item() for _ in range(self.random.randint(0, 4))])

        def effect(ledger: Ledger) -> None:
            if not ledger.shows_post(post):
                raise Refused("NOT_FOUND")
            ledger.set_links(post, items)

        return Change("set", ("PUT", f"/posts/{post}/tags", items), None, effect)

    def upsert(self) -> Change:
        names = [tag["name"] for tag in self.ledger.tags.values()]
        name = self.random.choice(names) if names and self.flag(0.7) else self.word()
        keep, body = self.flag(0.3), {"id": self.id(), "name": name, "note": self.word()}
        document = "mutation($b: TagCreate!, $k: OnConflict!) { upsertTag(by: name, input: $b, onConflict: $k) { id } }"
        url = "/tags?by=name" + "&onConflict=keep" * keep
        values = {"name": name, "note": body["note"]}
        return Change(
            "upsert",
            ("POST", url, body),
            (document, {"b": body, "k": "KEEP" if keep else "UPDATE"}),
            lambda ledger: ledger.upsert_tag(body["id"], values, keep),
        )

    def bulk(self) -> Change:
        size, most = self.random.randint(2, 9), self.random.randint(1, 8)
        filtered = f"size[gte]={size}&most={most}"
        if self.flag(0.3):
            document = f"mutation {{ deletePosts(where: {{size: {{gte: {size}}}}}, most: {most}) {{ changed }} }}"
            request: tuple[str, str, Any] = ("DELETE", f"/posts?{filtered}", None)
            return Change("bulk", request, (document, {}), lambda ledger: ledger.bulk(size, most, ledger.delete_post))
        title = self.word()
        arguments = f'where: {{size: {{gte: {size}}}}}, patch: {{title: "{title}"}}, most: {most}'
        request = ("PATCH", f"/posts?{filtered}", {"title": title})

        def effect(ledger: Ledger) -> None:
            ledger.bulk(size, most, lambda id: ledger.update_post(id, {"title": title}))

        return Change("bulk", request, (f"mutation {{ updatePosts({arguments}) {{ changed }} }}", {}), effect)

    def refs(self) -> Change:
        """A tag, a post, their link and a set, each by a reference to those before."""
        tag, post, link, other = self.tag(), self.post(0), self.id(), self.some(self.ledger.tags)
        steps = (
            ("POST", "/tags", tag),
            ("POST", "/posts", post),
            ("POST", "/post-tags", {"id": link, "postId": "$s1", "tagId": "$s0"}),
            ("PATCH", "/posts/$s1", {"title": "last", "tags": {"set": [{"id": "$s0"}, {"id": other}]}}),
        )
        document = """mutation($t: TagCreate!, $p: PostCreate!, $l: PostTagCreate!, $s: PostPatch!) {
            s0: createTag(input: $t) { id } s1: createPost(input: $p) { id } s2: createPostTag(input: $l) { id }
            s3: updatePost(id: "$s1", patch: $s) { id } }"""
        variables = {name: step[2] for name, step in zip("tpls", steps, strict=True)}

        def effect(ledger: Ledger) -> None:
            ledger.create_tag(tag["id"], {name: value for name, value in tag.items() if name != "id"})
            ledger.create_post(post["id"], {name: value for name, value in post.items() if name != "id"})
            ledger.link(post["id"], tag["id"], {})
            ledger.update_post(post["id"], {"title": "last"})
            ledger.set_links(post["id"], [{"id": tag["id"]}, {"id": other}])

        return Change("refs", batch_of(*steps), (document, variables), effect)

    def memo(self) -> Change:
        """A row with a trash: created, deleted, restored or deleted for good."""
        id, body = self.id(), {"id": "", "text": self.word()}
        verb = self.random.choice(("create", "delete", "restore", "purge"))
        if verb == "create":
            body["id"] = id
            return self._create(
                "Memo", "/memos", body, lambda ledger: ledger.memos.update({id: {"text": body["text"]}})
            )
        rows = self.ledger.memos if verb == "delete" else self.ledger.trash
        id = self.some(rows)

        def effect(ledger: Ledger) -> None:
            here, there = (ledger.memos, ledger.trash) if verb == "delete" else (ledger.trash, ledger.memos)
            if id not in here:
                raise Refused("NOT_FOUND")
            row = here.pop(id)
            if verb != "purge":
                there[id] = row

        only = ", deleted: ONLY" if verb == "purge" else ""
        name = "restoreMemo" if verb == "restore" else "deleteMemo"
        request: tuple[str, str, Any] = ("DELETE", f"/memos/{id}" + "?deleted=only" * (verb == "purge"), None)
        if verb == "restore":
            request = ("POST", f"/memos/{id}/restore", {})
        document = f'mutation {{ {name}(id: "{id}"{only}) {{ id }} }}'
        return Change(verb, request, (document, {}), effect)

    def _create(self, name: str, path: str, body: Row, effect: Callable[[Ledger], None]) -> Change:
        document = f"mutation($b: {name}Create!) {{ create{name}(input: $b) {{ id }} }}"
        return Change(f"create {name}", ("POST", path, body), (document, {"b": body}), effect)

    def _update(self, name: str, path: str, id: str, body: Row, effect: Callable[[Ledger], None]) -> Change:
        document = f"mutation($i: ID!, $b: {name}Patch!) {{ update{name}(id: $i, patch: $b) {{ id }} }}"
        return Change(f"update {name}", ("PATCH", path, body), (document, {"i": id, "b": body}), effect)
