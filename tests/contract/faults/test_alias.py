"""The alias that un-redacts: a field that is masked under its own name comes out under another.

Published for Directus (CVE-2024-34708: `?alias[workaround]=redacted` gave what `redacted` did not). Here a mask
belongs to the field, and what a client calls it is the last thing that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.ask.nodes import Field, Pick
from diptych.model.resource_view import ResourceView
from diptych.model.view import View
from diptych.policy import access
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, ORDER, POST

SECRETS = ("ben@example.com", "zoe@example.com", "cleo@example.com", "Hidden", "for Ben alone", "hidden too")
"""What is in rows and fields that Ann may not see."""
DOCUMENTS = [
    "{ users { email mail: email } }",
    "{ users { name: email email: name } }",
    "{ users { id: email } }",
    "{ users { __typename: email } }",
    "{ users { version: email createdAt: email updatedAt: email } }",
    "{ users { _id: email __email: email ___email: email _: email k: email j0: email lo: email t0: email } }",
    "{ email: users { email } name: users { name: email } }",
    "{ users { ...F ...G ... on User { again: email } ... { once: email } } } fragment F on User { email one: email } "
    "fragment G on User { ...F two: email }",
    "query($yes: Boolean!) { users { a: email @include(if: $yes) b: email @skip(if: $yes) email } }",
    "{ posts { author { a: email } writer: author { email } } comments { by: author { x: email } post { author { y: email } } } }",
    "{ usersConnection { nodes { a: email } list: edges { row: node { b: email } at: cursor } edges { node { email } } } }",
    "{ everything: posts { title } hidden: posts(where: {published: {eq: false}}) { t: title b: body } }",
    f'{{ p: post(id: "{POST[6]}") {{ title }} q: post(id: "{POST[6]}") {{ title: body body: title }} }}',
]
URLS = [
    "/users?fields=email,mail:email",
    "/users?fields=name:email,email:name",
    "/users?fields=id:email",
    "/users?fields=*,also:email",
    "/users?fields=_id:email,__email:email,_:email,k:email,j0:email,lo:email,t0:email,data:email,page:email",
    f"/users/{BEN}?fields=version:email,email",
    f'/users/{BEN}?fields=title:email,posts(t:title,title:body),drafts:posts[where={{"published":{{"eq":false}}}}](title)',
    "/posts?fields=author:author(email),writer:author(mail:email,posts(author(name:email)))",
    "/comments?fields=post:post(title),other:post(body),by:author(of:comments(body,post(title)))",
]


def answers(shop: Scene, who: str) -> Iterator[bytes]:
    """The answers to all of them; each must be one."""
    for document in DOCUMENTS:
        answer = shop.ql(document, {"yes": True} if "$yes" in document else None, who=who)
        assert answer.status == 200 and b'"errors"' not in answer.body, (document, answer.body)
        yield answer.body
    for url in URLS:
        answer = shop.rest("GET", url, who=who)
        assert answer.status == 200, (url, answer.body)
        yield answer.body


def leaks(shop: Scene, who: str) -> list[bytes]:
    """The answers that hold a secret."""
    return [body for body in answers(shop, who) if any(secret.encode() in body for secret in SECRETS)]


def test_no_alias_unmasks(shop: Scene) -> None:
    """Twice, in fragments, under the names of others and under those that statements use inside."""
    assert leaks(shop, "ann") == []
    assert len(leaks(shop, "admin")) == len(DOCUMENTS) + len(URLS)


def test_with_masks_by_label_the_answers_would_leak(shop: Scene) -> None:
    """The same check with the fault planted: a field keeps its mask only under its own name."""
    masked = access._pick

    def by_label(pick: Pick, resource: ResourceView, view: View) -> Pick:
        if isinstance(pick, Field) and pick.label != pick.name:
            return replace(pick)
        return masked(pick, resource, view)

    with shop.planted(access, "_pick", by_label):
        assert len(leaks(shop, "ann")) >= 15


@pytest.mark.parametrize(
    "label",
    ["_id", "__id", "id", "k", "lo", "j0", "a0", "m0", "__typename", "data", "nodes", "cursor", "rowid", "select"],
)
def test_an_alias_is_a_label_and_nothing_else(shop: Scene, label: str) -> None:
    """A label that something inside goes by too changes neither what is asked nor the order, nor a cursor."""
    for who in ("ann", "admin"):
        plain = shop.get("/users?sort=-name&first=2&fields=x:name", who)
        named = shop.get(f"/users?sort=-name&first=2&fields={label}:name", who)
        assert [row[label] for row in named["data"]] == [row["x"] for row in plain["data"]] == ["Zoë", "Cleo"]
        assert named["page"] == plain["page"]
        connection = "usersConnection(first: 2, orderBy: [{name: DESC}])"
        found = shop.data(
            f"{{ {connection} {{ {label}: nodes {{ {label}: name }} pageInfo {{ endCursor }} }} }}", who=who
        )
        assert [row[label] for row in found["usersConnection"][label]] == ["Zoë", "Cleo"]


@pytest.mark.parametrize(
    ("who", "path", "hidden"), [("ann", "orders", "internalNote"), ("anonymous", "users", "email")]
)
def test_a_field_that_the_role_never_sees_has_no_alias(shop: Scene, who: str, path: str, hidden: str) -> None:
    """It is refused as a name that no one has, whatever it is to be called."""
    for template in ("note:NAME", "NAME:NAME", "*,x:NAME", "NAME:id,y:NAME"):
        texts = (f"/{path}?fields={template.replace(':NAME', ':' + name)}" for name in (hidden, "nothing"))
        answer, other = (shop.rest("GET", text, who=who) for text in texts)
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body.replace(hidden.encode(), b"nothing")
    type_ = "Order" if path == "orders" else "User"
    for selection in ("note: NAME", f"id ... on {type_} {{ x: NAME }}", "... { NAME }", "...F"):
        fragment = f" fragment F on {type_} {{ y: NAME }}" if "...F" in selection else ""
        document = f"{{ {path} {{ {selection} }} }}{fragment}"
        answer, other = (shop.ql(document.replace("NAME", name), who=who) for name in (hidden, "nothing"))
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body


def test_an_alias_with_the_name_of_a_hidden_field_is_free(shop: Scene) -> None:
    """Whoever does not see `internalNote` may call their own note so: nothing tells that the name is taken."""
    for label in ("internalNote", "nothing"):
        found: Any = shop.get(f"/orders/{ORDER[2]}?fields={label}:note", "ann")
        assert found == {label: "gift"}
        data = shop.data(f'{{ order(id: "{ORDER[2]}") {{ {label}: note }} }}', who="ann")
        assert data == {"order": {label: "gift"}}


def test_an_answer_to_a_change_is_masked_under_every_alias_too(shop: Scene) -> None:
    """What comes back from a mutation, or from POST with `fields`, is read under the same rules."""
    new = {"authorId": ANN, "postId": POST[4], "body": "b"}
    answer = shop.rest("POST", "/comments?fields=a:post(b:author(name:email,email,posts(t:title)))", new, who="ann")
    assert answer.status == 201
    document = "mutation($v: CommentCreate!) { x: createComment(input: $v) { p: post { w: author { name: email, drafts: posts { t: title } } } } }"
    reply = shop.ql(document, {"v": new}, who="ann")
    assert reply.status == 200 and b'"errors"' not in reply.body
    assert not any(secret.encode() in answer.body + reply.body for secret in SECRETS)
