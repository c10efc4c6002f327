"""A class of viewers of the model's own: what rules may ask of it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from diptych import Claims, Model, Viewer
from diptych.errors import ModelError
from diptych.model.rules.expr import FALSE, TRUE, Col, Compare, Expr, IsNull, Not, ViewerValue
from diptych.model.scalars import BOOLEAN, ID, STRING
from tests.support.cases import cases
from tests.support.model_files import declare, model_of

HOUSE = """
class Mood(StrEnum):
    calm = "calm"
    wild = "wild"

class Member(Viewer):
    tenant: str | None = None
    house: Id | None = None
    teams: tuple[Id, ...] = ()
    moods: frozenset[Mood] = frozenset()
    paid: bool = False
    money: Annotated[Decimal, Digits(8, 2)] = Decimal(0)
    SEEN: ClassVar[int] = 0

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        if claims.get("banned"):
            return None
        roles = claims.roles | frozenset(claims.get("groups") or ())
        more = {name: claims.get(name) for name in ("tenant", "teams", "paid", "money", "moods") if claims.get(name) is not None}
        return cls(id=claims.subject, roles=roles, **more)

class House(Resource):
    name: str
    mood: Mood = Mood.calm
    price: Annotated[Decimal, Digits(8, 2)]

    @allow("read")
    def rule(self, viewer: Member) -> bool:
        return RULE
"""
ANN = "01890000-0000-7000-8000-00000000000a"


def house(rule: str = "self.name == viewer.tenant") -> Model:
    return model_of(HOUSE.replace("RULE", rule))


def traced(rule: str) -> Expr:
    return house(rule).resources["House"].rules[0].expr


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("self.name == viewer.tenant", Compare("eq", Col(("name",)), ViewerValue("tenant", STRING))),
        ("self.id == viewer.house", Compare("eq", Col(("id",)), ViewerValue("house", ID))),
        ("self.name != viewer.tenant", Not(Compare("eq", Col(("name",)), ViewerValue("tenant", STRING)))),
        ("one_of(self.id, viewer.teams)", Compare("in", Col(("id",)), ViewerValue("teams", ID, True))),
        ("one_of(viewer.id, viewer.teams) & viewer.paid", None),
        ("viewer.paid", ViewerValue("paid", BOOLEAN)),
        ("is_null(viewer.tenant)", IsNull(ViewerValue("tenant", STRING))),
    ],
)
def test_what_a_rule_asks_of_a_viewer(text: str, expr: Expr | None) -> None:
    found = traced(text)
    assert expr is None or found == expr


@cases(
    ("text", "cause"),
    [
        ("self.name == viewer.teams", "a viewer has many of these; write one_of(self.team.id, viewer.teams)"),
        ("viewer.teams", "a viewer has many of these"),
        ("len(viewer.teams) > 1", "a viewer has many of these"),
        ("viewer.teams[0] == self.id", "a viewer has many of these"),
        ("one_of(self.id, *viewer.teams)", "a viewer has many of these"),
        ("one_of(self.name, viewer.teams)", "String and ID cannot be compared"),
        ("one_of(self.id, viewer.teams, viewer.teams)", "a viewer has many of these"),
        ("self.price == viewer.tenant", "cannot be compared"),
        ("self.name == viewer.nothing", "a viewer has `id` and `has(role)`, and no 'nothing'"),
        ("viewer.scopes", "no 'scopes'"),
        ("viewer.of", "no 'of'"),
        ("viewer.tenant and self.name == 'x'", "'and' cannot be traced"),
    ],
)
def test_what_a_rule_cannot_ask_of_a_viewer(text: str, cause: str) -> None:
    built = declare(HOUSE.replace("RULE", text)).built
    assert isinstance(built, ModelError)
    assert cause in str(built)


@cases(
    ("line", "cause"),
    [
        ("tenant: str", "Member.tenant (written_"),
        ("tags: Json | None = None", "JSON cannot be compared"),
        ("tags: list[str] = []", "mutable default"),
        ("tags: dict[str, str] | None = None", "has no form on the wire"),
        ("tags: tuple[str, int] = ('', 0)", "only a tuple of one type can be compared"),
        ("roles: str = ''", "every viewer has this already"),
        ("has: bool = False", "every viewer has this already"),
        ("thing: House | None = None", "has no form on the wire"),
        ("money: Decimal = Decimal(0)", "a Decimal without its digits"),
        ("tags: Nothing = None", "a type cannot be read"),
    ],
)
def test_a_mistake_in_a_class_of_viewers(line: str, cause: str) -> None:
    source = "class Member(Viewer):\n    " + line + "\n\nclass House(Resource):\n    name: str\n"
    try:
        built = declare(source).built
    except ValueError as error:  # Python itself refuses a default that can change
        assert "mutable default" in str(error)
        return
    assert isinstance(built, ModelError), built
    assert cause in str(built)


def test_a_model_takes_a_class_of_viewers_only() -> None:
    resource = house().resources["House"].cls
    wrong: Any = object
    with pytest.raises(ModelError, match="is no class of viewers"):
        Model(resource, viewer=wrong)


def test_a_viewer_comes_from_the_claims_of_a_token() -> None:
    model = house()
    claims = {"tenant": "acme", "teams": [ANN, "no id"], "groups": ["admin"], "money": "1.5", "moods": ["calm"]}
    viewer = model.viewer(frozenset(), ANN, frozenset({"read"}), claims)
    assert viewer.roles == {"signed_in", "admin", "staff"}, "roles bring what they imply"
    assert viewer.scopes == frozenset({"read"}), "whatever the code gives, the scopes of the token hold"
    assert viewer.signed_in
    assert dict(viewer.all_known()) == {
        "tenant": "acme",
        "house": None,
        "teams": [ANN],
        "moods": ["calm"],
        "paid": False,
        "money": viewer.knows("money"),
    }
    assert str(viewer.knows("money")) == "1.50"
    assert model.viewer_of(Claims(ANN, frozenset(), None, 0, {"banned": True})) is None


@pytest.mark.parametrize("claims", [{"tenant": 3}, {"paid": "yes"}, {"moods": ["grim"]}, {"money": "a"}])
def test_a_value_of_another_type_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        house().viewer(frozenset(), ANN, None, claims)


@cases(
    ("rule", "claims", "left"),
    [
        ("self.name == viewer.tenant", {}, FALSE),
        ("self.name != viewer.tenant", {}, TRUE),
        ("is_null(viewer.tenant)", {}, TRUE),
        ("is_null(viewer.tenant)", {"tenant": "x"}, FALSE),
        ("one_of(self.id, viewer.teams)", {}, FALSE),
        ("one_of(self.id, viewer.teams)", {"teams": ["no id"]}, FALSE),
        (
            "one_of(self.id, viewer.teams)",
            {"teams": [ANN]},
            Compare("in", Col(("id",)), ViewerValue("teams", ID, True)),
        ),
        ("self.name == viewer.tenant", {"tenant": "x"}, Compare("eq", Col(("name",)), ViewerValue("tenant", STRING))),
    ],
)
def test_what_a_viewer_does_not_know_is_folded(rule: str, claims: dict[str, Any], left: Expr) -> None:
    model = house(rule)
    view = model.view(model.signature(model.viewer(frozenset(), None, None, claims)))
    assert view.rule(model.resources["House"], "read") == left
    assert ("House" in view.resources) == (left != FALSE)


def test_an_enum_that_only_viewers_have_is_told_to_nobody() -> None:
    source = HOUSE.replace("RULE", "self.name == 'x'").replace("    mood: Mood = Mood.calm\n", "")
    assert model_of(source).enums == ()


def test_viewers_are_equal_by_all_they_know() -> None:
    model = house()
    one, two, three = (model.viewer(frozenset(), ANN, None, {"tenant": name}) for name in ("a", "a", "b"))
    assert one == two and hash(one) == hash(two)
    assert one != three
    assert model.signature(one) == model.signature(three), "plans are shared: the value is bound, not compiled"
    assert isinstance(model.anonymous, model.viewer_type)
    assert model.anonymous != Viewer()
