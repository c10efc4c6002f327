"""The grammar of `fields`: the same power as a selection of GraphQL."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.contract.http.data import ANN, BEN, POST, day
from tests.support.cases import cases
from tests.support.in_process import Service

FIRST: dict[str, Any] = {"id": POST[1], "version": 1, "createdAt": day(1), "updatedAt": day(1), "authorId": ANN}
ALL_OF_1 = {**FIRST, "title": "Alpha", "body": "first words", "published": True}


def twice(value: Any) -> str:
    """A value inside [ ]: encoded once for itself, so that quoting the whole encodes it twice."""
    return quote(value if isinstance(value, str) else json.dumps(value), safe="")


# fields of GET /posts/1, what comes back
SOUND: dict[str, Any] = {
    "title": {"title": "Alpha"},
    "*": ALL_OF_1,
    "body,title": {"body": "first words", "title": "Alpha"},
    "t:title,u:title": {"t": "Alpha", "u": "Alpha"},
    "title:body,body:title": {"title": "first words", "body": "Alpha"},
    "*,t:title": {**ALL_OF_1, "t": "Alpha"},
    "author(name)": {"author": {"name": "Ann"}},
    "author(*)": {"author": {"id": ANN, "version": 3, "createdAt": day(1), "updatedAt": day(1), "name": "Ann"}},
    "by:author(id),author(name)": {"by": {"id": ANN}, "author": {"name": "Ann"}},
    "comments[first=1](body)": {"comments": [{"body": "nice"}]},
    "comments[last=1](body)": {"comments": [{"body": "thanks"}]},
    "comments[last=2;sort=-body](body)": {"comments": [{"body": "so-so"}, {"body": "nice"}]},
    "comments[sort=-body;first=2;offset=1](body)": {"comments": [{"body": "so-so"}, {"body": "nice"}]},
    "comments[sort=body,-id](body)": {"comments": [{"body": "nice"}, {"body": "so-so"}, {"body": "thanks"}]},
    "a:comments[first=1](body),b:comments[last=1](id:body)": {"a": [{"body": "nice"}], "b": [{"id": "thanks"}]},
    f"comments[where={twice({'body': {'eq': 'so-so'}})}](author(name))": {"comments": [{"author": {"name": "Cleo"}}]},
    f"comments[where={twice({'body': {'in': ['a;b]c(,)', 'nice']}})};first=9](body)": {"comments": [{"body": "nice"}]},
    f"comments[where={twice({'author': {'name': {'ne': 'Zoë'}}})};last=1](body)": {"comments": [{"body": "thanks"}]},
    "author(posts[sort=-title](title,comments[first=1](author(name))))": {
        "author": {
            "posts": [
                {"title": "Beta", "comments": [{"author": {"name": "Ben"}}]},
                {"title": "Alpha", "comments": [{"author": {"name": "Ben"}}]},
            ]
        }
    },
    "_x1:title": {"_x1": "Alpha"},
    "x" * 300 + ":title": {"x" * 300: "Alpha"},
}

# fields, a part of the message
UNSOUND: dict[str, str] = {
    "": "expected a name",
    ",": "expected a name",
    "title,": "expected a name",
    ",title": "expected a name",
    "title body": "expected ',' or the end",
    " title": "expected a name",
    "title,title": "twice",
    "*,title": "twice",
    "*,*": "twice",
    "t:title,t:body": "twice",
    "author(name),author(id)": "twice",
    "author(name,name)": "twice",
    "author": "relation",
    "comments": "relation",
    "c:comments[first=1]": "relation",
    "author()": "expected a name",
    "title(id)": "plain field",
    "title[first=1]": "plain field",
    "authorId(id)": "plain field",
    "author[first=1](name)": "is a to-one relation",
    "nope": "has no field 'nope'",
    "a:nope": "has no field 'nope'",
    "author(nope)": "User has no field 'nope'",
    "author(email)": "User has no field 'email'",
    "Title": "has no field 'Title'",
    "commentsConnection(nodes(id))": "has no field 'commentsConnection'",
    "__typename": "has no field '__typename'",
    "author(name": "expected ',' or ')'",
    "author(name))": "expected ',' or the end",
    "author)name(": "expected ',' or the end",
    "comments[first=1(body)": "expected ']'",
    "comments[](body)": "expected key=value",
    "comments[first](body)": "expected key=value",
    "comments[first=1;](body)": "expected key=value",
    "comments[first=1,last=2](body)": "expected an integer",
    "comments[first=1;first=2](body)": "twice",
    "comments[size=1](body)": "no such argument",
    "comments[count=exact](body)": "no such argument",
    "comments[body=nice](body)": "no such argument",
    "comments[first=0](body)": "expected a page size",
    "comments[first=101](body)": "at most 100",
    "comments[offset=10001](body)": "at most 10000",
    "comments[first=1;last=1](body)": "exclude each other",
    "comments[last=1;offset=1](body)": "cannot go with last",
    "comments[sort=nope](body)": "has no field 'nope' to sort by",
    "comments[sort=](body)": "has no field '' to sort by",
    "comments[after=nope](body)": "expected a cursor of this list",
    "comments[where=nope](body)": "expected JSON",
    "comments[where=%](body)": "two hexadecimal digits",
    "comments[where=%C3](body)": "not UTF-8",
    "comments[where=null](body)": "expected an object",
    f"comments[where={twice({'body': None})}](body)": "null",
    f"comments[where={twice({'nope': {}})}](body)": "has no field 'nope'",
    ":title": "expected a name",
    "t:": "expected a name",
    "a:b:title": "expected ',' or the end",
    "t:*": "expected a name",
    "1t:title": "expected a name",
    "tïtle": "expected",
    "\x00": "expected a name",
    "t'--:title": "expected",
    't":title': "expected",
}


@cases("fields", SOUND)
def test_fields_select_exactly_these_in_this_order(shop: Service, fields: str) -> None:
    answer = shop.get(f"/posts/{POST[1]}?fields={quote(fields, safe='')}")
    assert answer.status == 200, answer.body
    assert json.dumps(answer.json()) == json.dumps(SOUND[fields])


@cases("fields", UNSOUND)
def test_a_fault_in_fields_is_told(shop: Service, fields: str) -> None:
    for path in (f"/posts/{POST[1]}", "/posts", f"/users/{ANN}/posts"):
        answer = shop.get(f"{path}?fields={quote(fields, safe='')}")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), answer.body
        assert all(place.startswith("/query/fields") for place in answer.places)
        assert any(UNSOUND[fields] in error["message"] for error in answer.json()["errors"]), answer.body


def test_every_fault_in_fields_is_told_at_once(shop: Service) -> None:
    answer = shop.get("/posts?fields=nope,author,title(id),comments%5Bsize=1%5D(bad)&sort=x&first=0")
    assert answer.status == 400
    assert len(answer.places) == 6


def test_brackets_and_commas_may_stand_bare(shop: Service) -> None:
    bare = shop.get(f"/posts/{POST[1]}?fields=title,last:comments[first=1;sort=-createdAt](author(name))")
    assert bare.json() == {"title": "Alpha", "last": [{"author": {"name": "Ann"}}]}


def test_a_plus_is_a_space_outside_and_stays_itself_where_it_is_encoded(shop: Service) -> None:
    spaced = quote(twice({"body": {"eq": "note to self"}}), safe="")
    answer = shop.get(f"/posts/{POST[3]}?fields=comments[where={spaced}](body)", token=shop.token(ANN))
    assert answer.json() == {"comments": [{"body": "note to self"}]}


def test_a_relation_that_others_have_is_like_one_that_no_one_has(shop: Service) -> None:
    hidden, absent = (shop.get(f"/users/{ANN}?fields={name}(id)") for name in ("orders", "ordres"))
    assert hidden.status == absent.status == 400
    assert hidden.body.replace(b"orders", b"ordres") == absent.body


def test_a_field_that_others_have_is_like_one_that_no_one_has(shop: Service) -> None:
    token = shop.token(BEN)
    for query in ("fields={}", "{}=x", "{}[in]=x", "sort={}", "where=%7B%22{}%22:%7B%22eq%22:%22x%22%7D%7D"):
        hidden, absent = (
            shop.get(f"/orders?{query.format(name)}", token=token) for name in ("internalNote", "externalNote")
        )
        assert hidden.status == absent.status == 400
        assert hidden.body.replace(b"internalNote", b"externalNote") == absent.body


def test_a_cursor_inside_fields_leads_on(shop: Service) -> None:
    document = """query($p: ID!) { post(id: $p) { commentsConnection(first: 1, orderBy: [{body: DESC}]) {
                  edges { cursor } } } }"""
    post = shop.data(document, {"p": POST[1]})["post"]
    cursor = post["commentsConnection"]["edges"][0]["cursor"]
    answer = shop.get(f"/posts/{POST[1]}?fields=comments[after={cursor};sort=-body](body)")
    assert answer.json() == {"comments": [{"body": "so-so"}, {"body": "nice"}]}
    other = shop.get(f"/posts/{POST[1]}?fields=comments[after={cursor};sort=body](body)")
    assert (other.status, other.code) == (400, "BAD_REQUEST")


def test_a_relation_to_itself_and_many_to_many_can_be_selected(things: Service) -> None:
    fields = "id,parent(id,parent(id)),children[sort=-id](id),labels[sort=word](word,items[first=1;sort=-id](id))"
    assert things.get(f"/items/2?fields={fields}").json() == {
        "id": "2",
        "parent": {"id": "1", "parent": None},
        "children": [{"id": "5"}, {"id": "4"}],
        "labels": [{"word": "red", "items": [{"id": "2"}]}],
    }
