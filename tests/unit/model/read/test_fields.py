"""Fields: every kind of annotated line, what it inherits, and where defaults come from."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from diptych import MaxLen, MinLen
from diptych.model.decimal_scalar import decimal
from diptych.model.defs import FieldDef
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, JSON, STRING, Scalar
from tests.support.cases import cases
from tests.support.model_files import HEADER, model_of, resource

ENUM = "class Color(StrEnum):\n    red = 'red'\n    blue = 'blue'\n"

TEASER = '''
class A(Resource):
    body: str

    @computed
    def teaser(self) -> {}:
        """Its beginning."""
        return self.body[:9]
'''


def field(line: str, before: str = ENUM) -> FieldDef:
    """The one field of a resource with one line."""
    return [*resource(f"{before}class Thing(Resource):\n    {line}").fields.values()][4]


@cases(
    ("hint", "scalar"),
    [
        ("str", STRING),
        ("int", INT),
        ("bool", BOOLEAN),
        ("float", FLOAT),
        ("date", DATE),
        ("datetime", DATETIME),
        ("BigInt", BIGINT),
        ("Json", JSON),
        ("Id", ID),
        ("Annotated[Decimal, Digits(12, 2)]", decimal(12, 2)),
        ("Annotated[Decimal, Digits(5, 0)]", decimal(5, 0)),
    ],
)
def test_a_type_means_a_scalar(hint: str, scalar: Scalar) -> None:
    found = field(f"it: {hint}")
    assert found.scalar is scalar
    assert (found.nullable, found.required, found.default) == (False, True, None)


def test_an_enum_is_a_scalar_of_its_values() -> None:
    scalar = field("it: Color").scalar
    assert (scalar.name, scalar.choices) == ("Color", ("red", "blue"))


def test_an_enum_has_its_own_docstring_and_no_inherited_one() -> None:
    told = "class Color(StrEnum):\n    'What it looks like.'\n    red = 'red'\n"
    assert field("it: Color", told).scalar.description == "What it looks like."
    assert field("it: Color").scalar.description == ""


def test_one_enum_is_one_scalar_in_all_resources() -> None:
    model = model_of(ENUM + "class A(Resource):\n    it: Color\nclass B(Resource):\n    it: Color | None = None")
    assert model.resources["A"].fields["it"].scalar is model.resources["B"].fields["it"].scalar
    assert model.enums == (model.resources["A"].fields["it"].scalar,)


@cases(
    "hint",
    [
        "str | None",
        "None | str",
        "Optional[str]",
        "Annotated[str | None, MaxLen(3)]",
        "Annotated[str, MaxLen(3)] | None",
        "Annotated[Optional[str], MaxLen(3)]",
        "'str | None'",
        "Optional['str']",
    ],
)
def test_an_optional_field_is_nullable_however_it_is_written(hint: str) -> None:
    found = field(f"it: {hint}")
    assert found.scalar is STRING
    assert (found.nullable, found.required, found.default) == (True, False, None)


@cases(
    ("line", "default"),
    [
        ("it: str = 'EUR'", "EUR"),
        ("it: str = ''", ""),
        ("it: int = 0", 0),
        ("it: bool = False", False),
        ("it: float = 1", 1.0),
        ("it: BigInt = 2**40", 2**40),
        ("it: Color = Color.blue", "blue"),
        ("it: Color | None = Color.blue", "blue"),
        ("it: date = date(2024, 2, 29)", "2024-02-29"),
        ("it: datetime = datetime(2024, 2, 29, 12, tzinfo=UTC)", "2024-02-29T12:00:00.000000Z"),
        (
            "it: datetime = datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))",
            "2023-12-31T23:00:00.000000Z",
        ),
        ("it: Annotated[Decimal, Digits(6, 2)] = Decimal('1.5')", Decimal("1.50")),
        ("it: Annotated[Decimal, Digits(6, 2)] = Decimal('1E+2')", Decimal("100.00")),
        ("it: Annotated[Decimal, Digits(6, 2)] = 3", Decimal("3.00")),
        ("it: Json = [1, {'a': None}]", [1, {"a": None}]),
        ("it: str | None = None", None),
        ("it: str | None = 'x'", "x"),
    ],
)
def test_a_default_is_kept_as_a_canonical_value(line: str, default: Any) -> None:
    found = field(line)
    assert found.default == default
    assert type(found.default) is type(default)
    assert not found.required


def test_markers_become_what_the_field_knows() -> None:
    found = field("it: Annotated[str, Unique(), MinLen(1), MaxLen(8), ReadBy(admin), WriteBy(staff, admin)]")
    assert found.unique
    assert found.constraints == (MinLen(1), MaxLen(8))
    assert (found.read_roles, found.write_roles, found.hideable) == (("admin",), ("staff", "admin"), True)


def test_a_reusable_type_is_the_same_as_its_markers() -> None:
    found = field("it: Slug", "Slug = Annotated[str, Unique(), MaxLen(80)]\n")
    assert (found.unique, found.constraints) == (True, (MaxLen(80),))


def test_what_others_put_into_annotated_is_left_alone() -> None:
    assert field("it: Annotated[str, 'a note', 42]").scalar is STRING


def test_states_keep_their_moves() -> None:
    found = field("it: Annotated[Color, States(Move(Color.red, Color.blue, to=staff))] = Color.red")
    assert [(move.source.value, move.target.value, move.to and move.to.name) for move in found.moves] == [
        ("red", "blue", "staff")
    ]


def test_every_resource_has_an_id_a_version_and_two_times() -> None:
    fields = resource("class Thing(Resource):\n    name: str").fields
    assert [*fields] == ["id", "version", "createdAt", "updatedAt", "name"]
    assert [fields[name].scalar for name in fields] == [ID, INT, DATETIME, DATETIME, STRING]
    assert not any(each.required or each.nullable or each.hideable for each in [*fields.values()][:4])


def test_the_id_may_be_declared_once_more() -> None:
    assert [*resource("class Thing(Resource):\n    id: Id = auto()\n    name: str").fields] == [
        "id",
        "version",
        "createdAt",
        "updatedAt",
        "name",
    ]


def test_ids_can_be_integers() -> None:
    model = model_of("class A(Resource, ids='integer'):\n    b: B\nclass B(Resource):\n    a: A | None = None")
    a, b = model.resources["A"], model.resources["B"]
    assert (a.key, b.key) == (INTEGER_ID, ID)
    assert (a.fields["bId"].scalar, b.fields["aId"].scalar) == (ID, INTEGER_ID)


def test_a_base_class_gives_its_kind_of_id_to_its_subclasses() -> None:
    source = "class MixinA(Resource, ids='integer'): pass\nclass B(MixinA):\n    name: str"
    assert resource(source).key is INTEGER_ID


def test_class_variables_are_no_fields() -> None:
    source = "class Thing(Resource):\n    LIMIT: ClassVar[int] = 3\n    MOST = 4\n    name: str\n"
    assert [*resource(source + "    def help(self): ...").fields][4:] == ["name"]


def test_a_docstring_describes_a_resource_but_not_its_subclass() -> None:
    source = 'class A(Resource):\n    """A thing.\n\n    And more.\n    """\n    name: str\n'
    model = model_of(source + "class B(A):\n    size: int")
    assert model.resources["A"].description == "A thing.\n\nAnd more."
    assert model.resources["B"].description == ""


def test_fields_come_from_plain_and_from_resource_bases_in_order() -> None:
    source = """
class Named:
    name: Annotated[str, MaxLen(9)]

class MixinDated(Resource):
    day: date

class Thing(Named, MixinDated):
    size: int
"""
    fields = resource(source).fields
    assert [*fields][4:] == ["day", "name", "size"]
    assert fields["name"].constraints == (MaxLen(9),)


def test_a_later_line_takes_the_place_of_an_inherited_one() -> None:
    source = "class MixinA(Resource):\n    name: str\n    size: int\n"
    fields = resource(source + "class B(MixinA):\n    name: str | None = None").fields
    assert [*fields][4:] == ["name", "size"]
    assert fields["name"].nullable


def test_a_computed_field_has_a_type_and_no_column() -> None:
    found = resource(TEASER.format("str")).fields["teaser"]
    assert (found.scalar, found.column, found.nullable, found.hideable) == (STRING, "", False, False)
    assert (found.required, found.description) == (False, "Its beginning.")


def test_a_computed_field_can_be_for_some_roles_only() -> None:
    found = resource(TEASER.format("Annotated[str, ReadBy(staff)]")).fields["teaser"]
    assert (found.read_roles, found.hideable) == (("staff",), True)


def test_a_rule_about_reading_a_field_makes_it_hideable_and_one_about_writing_does_not() -> None:
    source = """
class A(Resource):
    one: str
    two: str

    @allow("read", field="one")
    def reads(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @allow("update", field="two")
    def writes(self, viewer: Viewer) -> bool:
        return self.id == viewer.id
"""
    fields = resource(source).fields
    assert (fields["one"].hideable, fields["two"].hideable) == (True, False)


def test_a_model_file_needs_no_future_import() -> None:
    source = """
class A(Resource):
    bs: list["B"] = inverse("a")

class B(Resource):
    a: Annotated["A", OnDelete("cascade")]
    c: "A | None" = None
"""
    model = model_of(source, HEADER.replace("from __future__ import annotations", ""))
    assert model.resources["A"].relations["bs"].column == "a_id"
    assert model.resources["B"].relations["c"].nullable
