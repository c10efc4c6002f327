"""Relations: to one, to many, and through a linking resource."""

from __future__ import annotations

import pytest

from tests.support.model_files import model_of

BLOG = """
class User(Resource):
    name: str
    posts: list[Post] = inverse("author")
    edited: List[Post] = inverse("editor")
    access = (grant("read"),)

class Post(Resource):
    author: Annotated[User, OnDelete("cascade")]
    editor: Annotated[User | None, OnDelete("set null"), Unique()] = None
    parent: Post | None
    tags: list[Tag] = through("PostTag", "post", "tag")

class Tag(Resource):
    name: str
    posts: list[Post] = through("PostTag", "tag", "post")
    access = (grant("read", to=staff),)

class PostTag(Resource):
    post: Post
    tag: Annotated[Tag, ReadBy(staff), WriteBy(admin)]
"""


def test_to_one_holds_the_id_in_its_own_column() -> None:
    post = model_of(BLOG).resources["Post"]
    way, key = post.relations["author"], post.fields["authorId"]
    assert (way.kind, way.target, way.column, way.on_delete) == ("one", "User", "author_id", "cascade")
    assert (key.required, key.nullable, way.nullable) == (True, False, False)
    assert key.description == "The id of `author`."


@pytest.mark.parametrize("name", ["editor", "parent"])
def test_an_optional_relation_is_nullable_with_or_without_a_default(name: str) -> None:
    post = model_of(BLOG).resources["Post"]
    assert post.relations[name].nullable
    assert (post.fields[name + "Id"].nullable, post.fields[name + "Id"].required) == (True, False)


def test_the_other_row_stays_unless_the_model_says_otherwise() -> None:
    ways = model_of(BLOG).resources["Post"].relations
    on_delete = {name: way.on_delete for name, way in ways.items() if way.kind == "one"}
    assert on_delete == {"author": "cascade", "editor": "set null", "parent": "restrict"}


def test_a_unique_relation_is_one_to_one() -> None:
    assert model_of(BLOG).resources["Post"].fields["editorId"].unique


def test_a_row_can_refer_to_its_own_kind() -> None:
    assert model_of(BLOG).resources["Post"].relations["parent"].target == "Post"


def test_to_many_finds_the_column_of_the_relation_that_leads_back() -> None:
    user = model_of(BLOG).resources["User"]
    assert [(way.kind, way.target, way.column, way.inverse) for way in user.relations.values()] == [
        ("many", "Post", "author_id", "author"),
        ("many", "Post", "editor_id", "editor"),
    ]
    assert "posts" not in user.fields


def test_through_finds_both_columns_of_the_linking_resource() -> None:
    model = model_of(BLOG)
    tags, posts = model.resources["Post"].relations["tags"], model.resources["Tag"].relations["posts"]
    assert (tags.kind, tags.link, tags.link_mine, tags.link_theirs) == ("through", "PostTag", "post", "tag")
    assert (tags.column, tags.other_column) == ("post_id", "tag_id")
    assert (posts.column, posts.other_column) == ("tag_id", "post_id")


def test_a_relation_to_what_not_everyone_may_read_can_be_hidden() -> None:
    model = model_of(BLOG)
    assert not model.resources["Post"].relations["author"].hideable
    assert model.resources["PostTag"].relations["post"].hideable
    assert not model.resources["PostTag"].fields["postId"].hideable


def test_the_roles_of_a_relation_hold_for_its_key_too() -> None:
    found = model_of(BLOG).resources["PostTag"]
    key = found.fields["tagId"]
    assert (key.read_roles, key.write_roles, key.hideable) == (("staff",), ("admin",), True)
    assert found.relations["tag"].hideable


def test_a_rule_about_a_relation_is_about_both_of_its_names() -> None:
    source = """
class A(Resource):
    b: B

    @allow("read", field="b")
    def some(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

class B(Resource):
    name: str
    access = (grant("read"),)
"""
    found = model_of(source).resources["A"]
    assert found.rules[0].fields == ("b", "bId")
    assert (found.fields["bId"].hideable, found.relations["b"].hideable) == (True, True)


def test_an_inherited_relation_leads_back_to_the_subclass() -> None:
    source = """
class MixinOwned(Resource):
    owner: User

class Car(MixinOwned):
    name: str

class User(Resource):
    cars: list[Car] = inverse("owner")
"""
    assert model_of(source).resources["User"].relations["cars"].column == "owner_id"
