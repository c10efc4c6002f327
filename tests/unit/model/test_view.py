"""Views: rules folded for a role, and what it may never see gone."""

from __future__ import annotations

import pytest

from diptych.demo.model import model as DEFAULT
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE, TRUE, And, Col, Compare, Const, Expr, Has, IsNull, Not, Or, ViewerId
from diptych.model.scalars import STRING
from diptych.model.view import View
from tests.support.cases import cases
from tests.support.model_files import declare, model_of, seen_by

OWN_POST = Compare("eq", Col(("authorId",)), ViewerId())
PUBLISHED = Col(("published",))


def view(role: str, *scopes: str, id: bool = True) -> View:
    """What a role, with these scopes if any, sees of the default model."""
    viewer = DEFAULT.viewer(frozenset({role}), "7" if id else None, frozenset(scopes) if scopes else None)
    return DEFAULT.view(DEFAULT.signature(viewer if role != "anonymous" else DEFAULT.viewer_as(role)))


@pytest.mark.parametrize(
    ("role", "resources"),
    [
        ("anonymous", {"User", "Post", "Comment"}),
        ("signed_in", {"User", "Post", "Comment", "Order"}),
        ("staff", {"User", "Post", "Comment", "Order"}),
        ("admin", {"User", "Post", "Comment", "Order"}),
    ],
)
def test_a_resource_of_which_a_role_may_never_read_a_row_does_not_exist(role: str, resources: set[str]) -> None:
    assert view(role).resources.keys() == resources


@cases(
    ("role", "resource", "rule"),
    [
        ("anonymous", "User", TRUE),
        ("anonymous", "Post", PUBLISHED),
        ("signed_in", "Post", Or((PUBLISHED, OWN_POST))),
        ("staff", "Post", Or((PUBLISHED, OWN_POST))),
        ("admin", "Post", TRUE),
        ("anonymous", "Comment", Col(("post", "published"))),
        (
            "signed_in",
            "Comment",
            Or((Col(("post", "published")), Compare("eq", Col(("post", "authorId")), ViewerId()))),
        ),
        ("admin", "Comment", TRUE),
        ("signed_in", "Order", Compare("eq", Col(("customerId",)), ViewerId())),
        ("staff", "Order", TRUE),
        ("admin", "Order", TRUE),
    ],
)
def test_what_is_left_of_a_read_rule(role: str, resource: str, rule: Expr) -> None:
    assert view(role).resources[resource].read == rule


MANY = """
class Club(Resource):
    open: bool = False
    members: list[Member] = inverse("club")

    @allow("read")
    def mine(self, viewer):
        return some(self.members, lambda each: (each.person == "x") & viewer.has(staff)) | self.open

    @allow("update")
    def readable(self, viewer):
        return some(self.members, may_read) & every(self.members, lambda each: viewer.has(staff))

class Member(Resource):
    club: Club
    person: str
    owner: Club | None = None

    @allow("read")
    def of_club(self, viewer):
        return may_read(self.club)
"""


def test_a_rule_over_many_rows_is_folded_within() -> None:
    model = model_of(MANY)
    staff, other = (seen_by(model, role) for role in ("staff", "signed_in"))
    person = Compare("eq", Col(("person",)), Const("x", STRING))
    mine = Or((Has("members", person), Col(("open",))))
    assert staff.resources["Club"].read == mine
    assert other.resources["Club"].read == Col(("open",))
    assert staff.resources["Member"].read == Or((Has("club", Has("members", person)), Col(("club", "open"))))
    assert staff.resources["Club"].update == Has("members", staff.resources["Member"].read)
    never = Not(Has("members", TRUE))
    assert other.resources["Club"].update == And((Has("members", Col(("club", "open"))), never))


def test_a_circle_of_read_rules_is_found_through_many_rows() -> None:
    built = declare(MANY.replace('(each.person == "x") & viewer.has(staff)', "may_read(each)")).built
    assert "its read rules ask, by may_read(), whether it may be read itself" in str(built)


@pytest.mark.parametrize(
    ("role", "rule"),
    [
        ("anonymous", FALSE),
        ("signed_in", Compare("eq", Col(("id",)), ViewerId())),
        ("staff", Compare("eq", Col(("id",)), ViewerId())),
        ("admin", TRUE),
    ],
)
def test_a_field_rule_is_folded_too_and_never_takes_the_field_away(role: str, rule: Expr) -> None:
    found = view(role).resources["User"].fields.get("email")
    assert (found.rule if found else FALSE) == rule


@pytest.mark.parametrize(("role", "there"), [("signed_in", False), ("staff", True), ("admin", True)])
def test_a_field_for_a_role_exists_for_those_who_imply_it(role: str, there: bool) -> None:
    assert ("internalNote" in view(role).resources["Order"].fields) is there


@pytest.mark.parametrize(("role", "there"), [("anonymous", False), ("signed_in", True), ("staff", True)])
def test_a_relation_to_what_a_role_may_never_read_is_gone(role: str, there: bool) -> None:
    assert ("orders" in view(role).resources["User"].relations) is there


def test_a_viewer_without_an_id_owns_nothing() -> None:
    seen = view("signed_in", id=False)
    assert "Order" not in seen.resources
    assert seen.resources["Post"].read == PUBLISHED


@pytest.mark.parametrize(
    ("scopes", "resources"),
    [
        (["read"], {"User", "Post", "Comment", "Order"}),
        (["write"], set()),
        (["users:read"], {"User"}),
        (["orders:read", "users:write"], {"Order"}),
        (["posts:read", "comments:read"], {"Post", "Comment"}),
        (["comments:read"], set()),
    ],
)
def test_scopes_narrow_what_roles_allow(scopes: list[str], resources: set[str]) -> None:
    assert view("admin", *scopes).resources.keys() == resources


def test_a_scope_without_the_target_takes_the_relation_away_and_leaves_the_key() -> None:
    post = view("admin", "posts:read").resources["Post"]
    assert post.relations.keys() == set()
    assert "authorId" in post.fields


def test_no_scope_lets_through_what_no_role_allows() -> None:
    assert "Order" not in view("anonymous", "read", "orders:read").resources


@pytest.mark.parametrize("role", ["anonymous", "signed_in", "staff", "admin"])
def test_what_can_be_hidden_from_anyone_is_nullable_for_all(role: str) -> None:
    found = view(role).resources
    fields = [field.field for each in found.values() for field in each.fields.values()]
    assert {field.name for field in fields if field.hideable} <= {"email", "internalNote"}
    assert found["Comment"].relations["post"].relation.hideable
    assert not found["Comment"].relations["author"].relation.hideable


def test_a_field_without_any_rule_shows_wherever_its_row_does() -> None:
    rules = {name: field.rule for name, field in view("anonymous").resources["Post"].fields.items()}
    assert set(rules.values()) == {TRUE}


RULES = """
class Doc(Resource):
    title: str
    flag: bool
    note: str | None = None
    owner: Team | None = None
    parent: Doc | None = None

    @allow("read")
    def rule(self, viewer: Viewer) -> bool:
        return {rule}

class Team(Resource):
    name: str
    lead: User

    @allow("read")
    def rule(self, viewer: Viewer) -> bool:
        return (self.lead.id == viewer.id) | may_read(self.lead)

class User(Resource):
    name: str
    access = (grant("read", to=admin),)
"""


def folded(rule: str, role: str) -> Expr:
    """What is left of the read rule of Doc."""
    found = seen_by(model_of(RULES.format(rule=rule)), role).resources.get("Doc")
    return found.read if found else FALSE


FLAG = Col(("flag",))
LED = Compare("eq", Col(("owner", "leadId")), ViewerId())
OWNED = Not(IsNull(Col(("ownerId",))))


@cases(
    ("rule", "anonymous", "signed_in", "admin"),
    [
        ("viewer.has(admin)", FALSE, FALSE, TRUE),
        ("not_(viewer.has(admin))", TRUE, TRUE, FALSE),
        ("viewer.has(staff) & self.flag", FALSE, FALSE, FLAG),
        ("viewer.has(signed_in) | self.flag", FLAG, TRUE, TRUE),
        ("is_null(viewer.id)", TRUE, FALSE, FALSE),
        (
            "self.id != viewer.id",
            TRUE,
            Not(Compare("eq", Col(("id",)), ViewerId())),
            Not(Compare("eq", Col(("id",)), ViewerId())),
        ),
        ("either(viewer.has(admin), self.flag, self.title == 'x')", None, None, FLAG),
        ("may_read(self.owner)", FALSE, And((OWNED, LED)), OWNED),
        ("not_(may_read(self.owner))", TRUE, Not(And((OWNED, LED))), IsNull(Col(("ownerId",)))),
        ("may_read(self.owner.lead)", FALSE, FALSE, OWNED),
        (
            "may_read(self.parent.owner.lead)",
            FALSE,
            FALSE,
            And((Not(IsNull(Col(("parentId",)))), Not(IsNull(Col(("parent", "ownerId")))))),
        ),
    ],
)
def test_folding_decides_all_that_depends_on_the_role(
    rule: str, anonymous: Expr | None, signed_in: Expr | None, admin: Expr
) -> None:
    for role, expected in {"anonymous": anonymous, "signed_in": signed_in, "admin": admin}.items():
        assert expected is None or folded(rule, role) == expected


def test_nothing_is_allowed_unless_a_rule_allows_it() -> None:
    model = model_of("class A(Resource):\n    name: str")
    assert [seen_by(model, role).resources for role in ("anonymous", "signed_in", "admin")] == [{}, {}, {}]


def test_rules_of_one_verb_are_joined_by_or_and_other_verbs_do_not_matter() -> None:
    source = """
class A(Resource):
    one: bool
    two: bool
    three: bool

    @allow("read")
    def first(self, viewer: Viewer) -> bool:
        return self.one

    @allow("read", to=staff)
    @allow("update")
    def second(self, viewer: Viewer) -> bool:
        return self.two

    @allow("update", "delete", "create")
    def third(self, viewer: Viewer) -> bool:
        return self.three
"""
    model = model_of(source)
    assert seen_by(model, "anonymous").resources["A"].read == Col(("one",))
    assert seen_by(model, "staff").resources["A"].read == Or((Col(("one",)), Col(("two",))))


def test_a_rule_that_a_subclass_writes_anew_replaces_that_of_its_base() -> None:
    source = """
class MixinOpen(Resource):
    flag: bool
    access = (grant("read"),)

    @allow("read")
    def rule(self, viewer: Viewer) -> bool:
        return self.flag

class Narrow(MixinOpen):
    access = ()

    @allow("read", to=admin)
    def rule(self, viewer: Viewer) -> bool:
        return self.flag

class Closed(MixinOpen):
    access = ()
    rule = None

class Same(MixinOpen):
    access = ()
"""
    model = model_of(source)
    assert seen_by(model, "anonymous").resources.keys() == {"Same"}
    assert seen_by(model, "admin").resources.keys() == {"Same", "Narrow"}


LINKED = """
class Post(Resource):
    title: str
    tags: list[Tag] = through("PostTag", "post", "tag")
    access = (grant("read"),)

class Tag(Resource):
    name: str
    access = (grant("read"),)

class PostTag(Resource):
    post: Post
    tag: Tag
    public: bool

    @allow("read")
    @allow("read", to=admin)
    def rule(self, viewer: Viewer) -> bool:
        return {rule}
"""


def test_a_way_through_a_linking_resource_follows_only_links_that_can_be_read() -> None:
    model = model_of(LINKED.format(rule="self.public"))
    assert seen_by(model, "anonymous").resources["Post"].relations["tags"].link == Col(("public",))


def test_a_way_through_links_that_can_never_be_read_is_gone() -> None:
    model = model_of(LINKED.format(rule="viewer.has(admin)"))
    assert "tags" not in seen_by(model, "anonymous").resources["Post"].relations
    assert seen_by(model, "admin").resources["Post"].relations["tags"].link == TRUE


COMPUTED = """
class User(Resource):
    name: str
    email: Annotated[str, ReadBy(admin)]
    boss: User | None = None
    team: Annotated[Team | None, ReadBy(staff)] = None
    access = (grant("read"),)

    @allow("read", field="email")
    def own(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @computed
    def label(self) -> str:
        return self.name + "!"

    @computed
    def address(self) -> str:
        return self.name + self.email

    @computed
    def again(self) -> str:
        return self.address[:9]

    @computed
    def above(self) -> str | None:
        return given(self.boss).email

    @computed
    def crew(self) -> str | None:
        return given(self.team).name

    @computed
    def closed(self) -> Annotated[str, ReadBy(admin)]:
        return self.name

class Team(Resource):
    name: str
    open: bool

    @allow("read")
    def rule(self, viewer: Viewer) -> bool:
        return self.open
"""
SELF = Compare("eq", Col(("id",)), ViewerId())
NO_BOSS = IsNull(Col(("bossId",)))


@pytest.fixture(scope="module")
def staffed() -> Model:
    return model_of(COMPUTED)


@pytest.mark.parametrize(
    ("name", "anonymous", "signed_in", "staff", "admin"),
    [
        ("label", TRUE, TRUE, TRUE, TRUE),
        ("address", FALSE, SELF, SELF, TRUE),
        ("again", FALSE, SELF, SELF, TRUE),
        ("above", NO_BOSS, *[Or((NO_BOSS, Compare("eq", Col(("bossId",)), ViewerId())))] * 2, TRUE),
        ("crew", FALSE, FALSE, *[Or((IsNull(Col(("teamId",))), Col(("team", "open"))))] * 2),
        ("closed", FALSE, FALSE, FALSE, TRUE),
    ],
)
def test_a_computed_field_shows_where_all_that_it_is_made_of_shows(
    staffed: Model, name: str, anonymous: Expr, signed_in: Expr, staff: Expr, admin: Expr
) -> None:
    for role, rule in {"anonymous": anonymous, "signed_in": signed_in, "staff": staff, "admin": admin}.items():
        found = seen_by(staffed, role).resources["User"].fields.get(name)
        assert (found.rule if found else FALSE) == rule, role


def test_a_computed_field_can_be_hidden_if_something_that_it_is_made_of_can(staffed: Model) -> None:
    fields = staffed.resources["User"].fields
    names = ("label", "address", "again", "above", "crew", "closed")
    assert [fields[name].hideable for name in names] == [False, True, True, True, True, True]
