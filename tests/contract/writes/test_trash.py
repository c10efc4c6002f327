"""Soft delete: a deleted row is nowhere, can be listed and restored by roles that may delete it, and is then purged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from diptych import Tx
from diptych.live import retention
from diptych.testing import Api, Client, serve
from tests.contract.writes.trash_model import MODEL, Comment, Label, Note, Order, Post, PostLabel, User
from tests.support.running import NewDatabase


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(MODEL, database=new_database()) as served:
        yield served


@pytest.fixture
def boss(api: Api) -> Client:
    return api.as_("admin")


@pytest.fixture
def ann(api: Api) -> User:
    return api.make(User, name="Ann")


def post_of(api: Api, author: User, slug: str, **values: Any) -> Post:
    return api.make(Post, author=author, slug=slug, **values)


def listed(client: Client, path: str) -> list[Any]:
    rows: list[Any] = client.get(f"{path}{'&' if '?' in path else '?'}fields=id").expect(200).data
    return [row["id"] for row in rows]


def test_a_deleted_row_is_in_no_list_relation_count_filter_or_lookup(api: Api, boss: Client, ann: User) -> None:
    post, other = post_of(api, ann, "gone"), post_of(api, ann, "stays")
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.get(f"/posts/{post.id}").expect(404)
    boss.patch(f"/posts/{post.id}", {"secret": True}).expect(404)
    boss.delete(f"/posts/{post.id}").expect(404)
    assert listed(boss, f"/users/{ann.id}/posts") == [other.id]
    assert boss.get(f"/users/{ann.id}/posts?count=exact").json()["page"]["total"] == 1
    document = """query($id: ID!) {
      post(id: $id) { id } node(id: $id) { id }
      posts(where: {slug: {eq: "gone"}}) { id }
      users(where: {posts: {some: {slug: {eq: "gone"}}}}) { id }
      none: users(where: {posts: {none: {slug: {eq: "gone"}}}, name: {eq: "Ann"}}) { posts { slug } postsConnection { totalCount } }
    }"""
    data = boss.graphql(document, {"id": post.id}).expect(200).data
    none = data.pop("none")
    assert data == {"post": None, "node": None, "posts": [], "users": []}
    assert {"posts": [{"slug": "stays"}], "postsConnection": {"totalCount": 1}} in none
    refused = boss.post("/notes", {"postId": post.id}).expect(409).json()
    assert refused["errors"] == [{"pointer": "/postId", "message": "there is nothing with this id"}]


def test_both_styles_list_restore_and_purge_the_deleted_rows(api: Api, boss: Client, ann: User) -> None:
    post = post_of(api, ann, "twice")
    answer = boss.graphql(f'mutation {{ deletePost(id: "{post.id}") {{ version deletedAt }} }}').data["deletePost"]
    assert answer == {"version": 1, "deletedAt": None}, "the row as it was"
    (shown,) = boss.get("/posts?deleted=only&slug=twice&fields=id,version,deletedAt").data
    assert (shown["id"], shown["version"]) == (post.id, 2)
    assert shown["deletedAt"] is not None
    assert boss.get(f"/posts/{post.id}?deleted=only&fields=id,version,deletedAt").json() == shown
    lists = """query($id: ID!, $deleted: Deleted) {
      post(id: $id, deleted: $deleted) { id version deletedAt }
      posts(deleted: $deleted, where: {slug: {eq: "twice"}}) { id version deletedAt }
      postsConnection(deleted: ONLY, where: {slug: {eq: "twice"}}) { totalCount nodes { id version deletedAt } } }"""
    assert boss.graphql(lists, {"id": post.id, "deleted": "ONLY"}).data == {
        "post": shown,
        "posts": [shown],
        "postsConnection": {"totalCount": 1, "nodes": [shown]},
    }
    assert boss.graphql(lists, {"id": post.id}).data["posts"] == []
    boss.post(f"/posts/{post.id}/restore", if_match='"1."').expect(412)
    back = boss.post(f"/posts/{post.id}/restore?fields=version,deletedAt", if_match='"2."').expect(200)
    assert back.json() == {"version": 3, "deletedAt": None}
    assert back.headers["etag"].startswith('"3.')
    boss.post(f"/posts/{post.id}/restore").expect(404)
    assert boss.graphql(f'mutation {{ deletePost(id: "{post.id}", deleted: ONLY) {{ id }} }}').code == "NOT_FOUND"
    boss.delete(f"/posts/{post.id}").expect(204)
    restored = boss.graphql(f'mutation {{ restorePost(id: "{post.id}", ifVersion: 4) {{ version }} }}').data
    assert restored == {"restorePost": {"version": 5}}
    boss.delete(f"/posts/{post.id}?deleted=only").expect(404)
    boss.delete(f"/posts/{post.id}").expect(204)
    gone = boss.delete(f"/posts/{post.id}?deleted=only&fields=slug", prefer="return=representation").expect(200)
    assert gone.json() == {"slug": "twice"}
    assert boss.get("/posts?deleted=only&slug=twice").data == []
    boss.post(f"/posts/{post.id}/restore").expect(404)


def test_a_cursor_of_deleted_rows_is_one_of_these_alone(api: Api, boss: Client, ann: User) -> None:
    for slug in ("stays", "stays-too", "goes", "goes-too"):
        post = post_of(api, ann, f"cursor-{slug}")
        if slug.startswith("goes"):
            boss.delete(f"/posts/{post.id}").expect(204)
    mine = f"authorId={ann.id}&first=1"
    after = {only: boss.get(f"/posts?{mine}{only}").json()["page"]["next"] for only in ("", "&deleted=only")}
    for own, other in (("", "&deleted=only"), ("&deleted=only", "")):
        boss.get(f"/posts?{mine}{own}&after={after[own]}").expect(200)
        boss.get(f"/posts?{mine}{own}&after={after[other]}").expect(400)


def test_the_only_value_of_deleted_is_only(boss: Client) -> None:
    document = "query($deleted: Deleted) { posts(deleted: $deleted) { id } }"
    for _ in range(3):  # a plan is kept from the second request on
        assert boss.graphql(document, {"deleted": "ONLY"}).status == 200
        assert boss.graphql(document, {"deleted": "NONE"}).code == "BAD_USER_INPUT"


def test_only_those_who_may_delete_a_row_see_and_restore_it(api: Api, boss: Client, ann: User) -> None:
    bob = api.make(User, name="Bob")
    hers, his = post_of(api, ann, "hers"), post_of(api, bob, "his")
    for post in (hers, his):
        boss.delete(f"/posts/{post.id}").expect(204)
    as_ann = api.as_("signed_in", user=ann.id)
    assert hers.id in listed(as_ann, "/posts?deleted=only")
    assert his.id not in listed(as_ann, "/posts?deleted=only")
    as_ann.get(f"/posts/{his.id}?deleted=only").expect(404)
    as_ann.post(f"/posts/{his.id}/restore").expect(404)
    as_ann.delete(f"/posts/{his.id}?deleted=only").expect(404)
    as_ann.post(f"/posts/{hers.id}/restore").expect(200)
    nobody = api.anonymous
    fault = nobody.get("/users?deleted=only").expect(400).json()["errors"]
    assert fault == [{"pointer": "/query/deleted", "message": "there is no such parameter here"}]
    assert nobody.graphql("{ users(deleted: ONLY) { id } }").code == "GRAPHQL_VALIDATION_FAILED"
    nobody.post(f"/posts/{his.id}/restore").expect(401)
    nobody.delete(f"/posts/{his.id}?deleted=only").expect(401)
    assert nobody.graphql(f'mutation {{ restorePost(id: "{his.id}") {{ id }} }}').code == "UNAUTHENTICATED"
    assert boss.get("/notes?deleted=only").expect(400).json()["errors"] == fault
    assert boss.delete(f"/notes/{his.id}?deleted=only").expect(400).json()["errors"] == fault
    assert boss.get("/posts?deleted=all").expect(400).json()["errors"][0]["message"] == "expected 'only'"
    boss.post(f"/notes/{his.id}/restore").expect(404)
    boss.get(f"/posts/{his.id}/restore").expect(405)


def test_unique_keys_hold_among_what_is_not_deleted(api: Api, boss: Client, ann: User) -> None:
    first = post_of(api, ann, "taken")
    body = {"authorId": ann.id, "slug": "taken"}
    boss.post("/posts", body).expect(409)
    boss.delete(f"/posts/{first.id}").expect(204)
    second = boss.post("/posts?by=slug", body).expect(201).json()
    assert boss.post("/posts?by=slug&fields=id", body).expect(200).json() == {"id": second["id"]}
    conflict = boss.post(f"/posts/{first.id}/restore").expect(409).json()
    assert (conflict["code"], conflict["detail"]) == ("CONFLICT", "Another one has this value.")
    assert boss.graphql(f'mutation {{ restorePost(id: "{first.id}") {{ id }} }}').code == "CONFLICT"
    boss.delete(f"/posts/{second['id']}").expect(204)
    boss.post(f"/posts/{first.id}/restore").expect(200)


def test_what_is_deleted_along_comes_back_and_nothing_else(api: Api, boss: Client, ann: User) -> None:
    post = post_of(api, ann, "tree")
    label = api.make(Label, name="news")
    link = api.make(PostLabel, post=post, label=label)
    note = api.make(Note, post=post, text="kept")
    early = api.make(Comment, post=post, body="early")
    root = api.make(Comment, post=post, body="root")
    reply = api.make(Comment, post=post, parent=root, body="reply")
    deep = api.make(Comment, post=post, parent=reply, body="deep")
    assert listed(api.anonymous, "/labels") == [label.id]
    boss.delete(f"/comments/{early.id}").expect(204)
    boss.delete(f"/users/{ann.id}").expect(204)
    assert listed(boss, f"/comments?postId={post.id}") == []
    assert listed(boss, f"/post-labels?labelId={label.id}") == []
    assert listed(api.anonymous, "/labels") == [], "a rule sees only what is not deleted"
    assert boss.get(f"/notes/{note.id}?fields=postId,version").json() == {"postId": None, "version": 2}
    assert boss.get(f"/comments/{reply.id}?deleted=only&fields=postId,post(id)").json() == {
        "postId": post.id,
        "post": None,
    }
    boss.post(f"/comments/{deep.id}/restore").expect(409)
    refused = boss.post(f"/posts/{post.id}/restore").expect(409).json()
    assert refused["detail"] == "A reference leads to nothing."
    boss.post(f"/users/{ann.id}/restore").expect(200)
    assert sorted(listed(boss, f"/comments?postId={post.id}")) == sorted(map(str, [root.id, reply.id, deep.id]))
    assert listed(boss, f"/post-labels?labelId={label.id}") == [link.id]
    assert listed(boss, f"/comments?deleted=only&postId={post.id}") == [str(early.id)]
    assert boss.get(f"/notes/{note.id}?fields=postId").json() == {"postId": None}, "a reference that was lost stays so"
    boss.delete(f"/comments/{root.id}").expect(204)
    boss.post(f"/comments/{root.id}/restore").expect(200)
    assert len(listed(boss, f"/comments?postId={post.id}")) == 3
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.delete(f"/posts/{post.id}?deleted=only").expect(204)
    assert listed(boss, f"/comments?deleted=only&postId={post.id}") == []


def test_a_row_that_two_took_along_waits_for_both(api: Api, boss: Client, ann: User) -> None:
    bob = api.make(User, name="Bob")
    post = post_of(api, ann, "both")
    comment = api.make(Comment, post=post, by=bob, body="hi")
    boss.delete(f"/users/{bob.id}").expect(204)
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.post(f"/users/{bob.id}/restore").expect(200)
    assert listed(boss, f"/comments?postId={post.id}") == []
    boss.post(f"/posts/{post.id}/restore").expect(200)
    boss.post(f"/comments/{comment.id}/restore").expect(200)


def test_rows_that_refer_to_it_keep_it_from_being_deleted(api: Api, boss: Client, ann: User) -> None:
    post = post_of(api, ann, "sold")
    order = api.make(Order, post=post)
    refused = boss.delete(f"/posts/{post.id}").expect(409).json()
    assert refused["detail"] == "Others still refer to this."
    boss.delete(f"/users/{ann.id}").expect(409)
    assert boss.get(f"/posts/{post.id}").expect(200).json()["version"] == 1
    boss.delete(f"/orders/{order.id}").expect(204)
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.post(f"/orders/{order.id}/restore").expect(409)
    boss.delete(f"/posts/{post.id}?deleted=only").expect(409)
    boss.delete(f"/orders/{order.id}?deleted=only").expect(204)
    boss.delete(f"/posts/{post.id}?deleted=only").expect(204)


def test_batches_keys_and_replacements_know_the_trash(api: Api, boss: Client, ann: User) -> None:
    post = post_of(api, ann, "batched")
    shown = boss.get(f"/posts/{post.id}").json()
    assert shown["deletedAt"] is None
    put = boss.put(f"/posts/{post.id}", shown).expect(200).json()
    wrong = boss.put(f"/posts/{post.id}", {**put, "deletedAt": "2026-01-01T00:00:00Z"}).expect(422)
    assert [fault["pointer"] for fault in wrong.json()["errors"]] == ["/deletedAt"]
    boss.patch(f"/posts/{post.id}", {"deletedAt": None}).expect(422)
    steps = [
        {"method": "DELETE", "url": f"/posts/{post.id}"},
        {"method": "POST", "url": f"/posts/{post.id}/restore?fields=version", "headers": {"if-match": '"3."'}},
        {"method": "DELETE", "url": f"/posts/{post.id}"},
        {"method": "DELETE", "url": f"/posts/{post.id}?deleted=only"},
    ]
    answers = boss.post("/batch", {"requests": steps}).expect(200).json()["responses"]
    assert [answer["status"] for answer in answers] == [204, 200, 204, 204]
    assert answers[1]["body"] == {"version": 4}
    again = post_of(api, ann, "batched")
    boss.delete(f"/posts/{again.id}").expect(204)
    key = "4ff25a3b-0f33-4ac4-9a3f-6f7b5a0a6a10"
    replies = [boss.post(f"/posts/{again.id}/restore", idempotency_key=key).expect(200).body for _ in range(2)]
    assert replies[0] == replies[1]
    boss.post(f"/posts/{again.id}/restore", {"a": 1}).expect(422)


def test_changes_include_deletions_and_restored_rows(api: Api, boss: Client, ann: User) -> None:
    post = post_of(api, ann, "deleted")
    comment = api.make(Comment, post=post, body="deleted")
    kinds = '{"id":{"eq":"%s"}}'
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.post(f"/posts/{post.id}/restore").expect(200)
    boss.delete(f"/posts/{post.id}").expect(204)
    boss.delete(f"/posts/{post.id}?deleted=only").expect(204)
    for path, row in (("posts", post.id), ("comments", str(comment.id))):
        one = path[:-1]
        page = boss.get(f"/{path}/changes?first=100&where={kinds % row}").expect(200).data
        assert [change["kind"] for change in page] == ["CREATED", "DELETED", "UPDATED", "DELETED"]
        assert all(change[one] is None for change in page if change["kind"] == "DELETED")
    only = boss.get(f"/posts/changes?kinds=DELETED&where={kinds % post.id}").data
    assert len(only) == 2


def test_numbers_sorts_nests_and_search_leave_deleted_rows_out(api: Api, boss: Client) -> None:
    cy, di = (api.make(User, name=name) for name in ("Cy", "Di"))
    kept, gone = post_of(api, cy, "n1"), post_of(api, cy, "n2")
    post_of(api, di, "n3"), post_of(api, di, "n4")
    boss.delete(f"/posts/{gone.id}").expect(204)
    where = '{"slug":{"startsWith":"n"}}'
    assert boss.get(f"/posts/summary?where={where}&fields=count").expect(200).json() == {"count": 3}
    groups = boss.get(f"/posts/groups?by=authorId&where={where}").expect(200).data
    assert sorted(row["count"] for row in groups) == [1, 2], groups
    shown = boss.graphql(
        """query($ids: [ID!]) {
          users(where: {id: {in: $ids}}, orderBy: [{posts: {count: DESC}}]) { name postsSummary { count } }
          few: users(where: {id: {in: $ids}, posts: {count: {lt: 2}}}) { name }
        }""",
        {"ids": [cy.id, di.id]},
    ).expect(200)
    assert shown.data == {
        "users": [{"name": "Di", "postsSummary": {"count": 2}}, {"name": "Cy", "postsSummary": {"count": 1}}],
        "few": [{"name": "Cy"}],
    }
    boss.patch(f"/users/{cy.id}", {"posts": {"delete": [{"id": gone.id}]}}).expect(404)
    boss.patch(f"/users/{di.id}", {"posts": {"connect": [{"id": gone.id}]}}).expect(404)
    boss.patch(f"/users/{cy.id}", {"posts": {"delete": [{"id": kept.id}]}}).expect(200)
    assert sorted(listed(boss, f"/posts?deleted=only&authorId={cy.id}")) == sorted([kept.id, gone.id])
    boss.post(f"/posts/{kept.id}/restore").expect(200)


def test_rows_are_purged_after_their_time(api: Api, boss: Client, ann: User) -> None:
    old, kept, new = (post_of(api, ann, f"purge {name}") for name in ("old", "kept", "new"))
    order = api.make(Order, post=kept)
    boss.delete(f"/orders/{order.id}").expect(204)
    for post in (kept, old, new):
        boss.delete(f"/posts/{post.id}").expect(204)

    async def work(tx: Tx) -> None:
        late = "2001-01-01T00:00:00.000000Z"
        for post in (old, kept):
            await tx.sql(f"UPDATE posts SET deleted_at = '{late}' WHERE id = '{post.id}'")

    api._loop.run(api._transaction(work))
    purger: Any = api._handler.live._retention
    assert api._loop.run(purger.purge()) == 1
    assert sorted(listed(boss, "/posts?deleted=only&slug[startsWith]=purge")) == sorted([kept.id, new.id])
    boss.delete(f"/orders/{order.id}?deleted=only").expect(204)
    assert api._loop.run(purger.purge()) == 1
    boss.post(f"/posts/{new.id}/restore").expect(200)


def test_rows_behind_any_number_that_others_refer_to_are_purged(
    api: Api, boss: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    slugs = [f"held {number:03}" for number in range(105)]
    for part in (slugs[:60], slugs[60:]):
        made = boss.post("/posts", [{"authorId": ann.id, "slug": slug} for slug in part]).expect(201).data
        boss.post("/orders", [{"postId": post["id"]} for post in made]).expect(201)
    free = [post_of(api, ann, f"free {number}") for number in range(2)]
    on = post_of(api, ann, "with comments")
    for _ in range(2):
        boss.post("/comments", [{"postId": on.id, "body": "b"}] * 60).expect(201)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def work(tx: Tx) -> None:
        await tx.sql(f"UPDATE orders SET deleted_at = '{now}'")
        await tx.sql("UPDATE posts SET deleted_at = '2001-01-01T00:00:00.000000Z' WHERE slug LIKE 'held %'")
        await tx.sql("UPDATE posts SET deleted_at = '2002-01-01T00:00:00.000000Z' WHERE slug LIKE 'free %'")
        await tx.sql(f"UPDATE comments SET deleted_at = '2003-01-01T00:00:00.000000Z' WHERE post_id = '{on.id}'")

    def left(slug: str) -> int:
        total: int = boss.get(f"/posts?deleted=only&first=1&count=exact&slug[startsWith]={slug}").json()["page"][
            "total"
        ]
        return total

    api._loop.run(api._transaction(work))
    purger: Any = api._handler.live._retention
    with monkeypatch.context() as patch:
        patch.setattr(retention, "_PASSED", 40)  # a round goes on where the last one ended
        assert [api._loop.run(purger.purge()) for _ in range(3)] == [120, 0, len(free)]
    assert (left("held"), left("free")) == (105, 0)

    async def let_go(tx: Tx) -> None:
        await tx.sql("DELETE FROM orders WHERE post_id IN (SELECT id FROM posts WHERE slug LIKE 'held %')")

    api._loop.run(api._transaction(let_go))
    assert api._loop.run(purger.purge()) == 105
