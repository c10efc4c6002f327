"""A model that has everything that can go wrong, and small data sets for any model.

The model has every scalar but Time, Duration and UUID, bare and nullable; fields and relations that depend on the row;
a relation to itself; many to many through a link with a rule of its own; integer ids; computed fields. What may be written
depends on the role, on the row before and after, on other rows, and on the field; there are fields that one may write and not
read, and the other way round; states with roles; values that must be unique; and every way in which a deletion
can go on. The data is referentially right and otherwise unkind: nulls, duplicates where sorts need a second key,
the ends of every range, and texts that upset quoting, matching and sorting.

    rows(model, 7)["Thing"][0]      {"id": 1, "ownerId": "0189…", "money": Decimal("0.10"), …}

Values are canonical: what `scalar.parse` gives.
"""
# In SQL, what is below a null is null; mypy knows only Python, where it has no attributes and no operators.
# mypy: disable-error-code="union-attr, operator, index, arg-type, no-any-return"

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Annotated, Any

from diptych import (
    BigInt,
    Claims,
    Digits,
    Json,
    MaxLen,
    Model,
    Move,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    States,
    Tx,
    Unique,
    Viewer,
    WriteBy,
    action,
    allow,
    check,
    computed,
    contains,
    either,
    every,
    grant,
    index,
    inverse,
    is_null,
    may_read,
    none,
    not_,
    one_of,
    signed_in,
    some,
    through,
    unique,
)
from diptych.db.store import Store
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    INT,
    INTEGER_ID,
    JSON,
    STRING,
    Scalar,
)
from tests.support.oracle import Row, Sight

Data = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of every resource; each by the names on the wire."""

keeper = Role("keeper")
chief = Role("chief", implies=keeper)


class Mood(StrEnum):
    """Sorts by code point, not as declared."""

    calm = "calm"
    Angry = "Angry"
    odd = "_odd"
    calm2 = "calm2"


class Stage(StrEnum):
    """How far a thing has come."""

    new = "new"
    used = "used"
    broken = "broken"
    gone = "gone"


class Insider(Viewer):
    """A viewer who knows more than its token says."""

    word: str | None = None
    moods: tuple[Mood, ...] = ()
    level: int = 0

    @classmethod
    def of(cls, claims: Claims) -> Insider:
        """What a table of users might say: the same of one user at every time."""
        digit = int((claims.subject or "0")[-1:], 16) if claims.subject else 0
        moods = tuple(mood for number, mood in enumerate(Mood) if digit >> number & 1)
        return cls(
            id=claims.subject, roles=claims.roles, word=TEXTS[digit] if digit % 3 else None, moods=moods, level=digit
        )


class Person(Resource, plural="people"):
    """Someone."""

    name: Annotated[str, MaxLen(310)]
    nick: str | None = None
    secret: Annotated[str | None, ReadBy(keeper)] = None
    pin: Annotated[str, ReadBy(chief)] = "0000"
    badge: Annotated[str | None, Unique(), WriteBy(keeper)] = None
    rank: Annotated[int | None, ReadBy(chief), WriteBy(chief)] = None
    boss: Annotated[Person | None, OnDelete("set null")] = None
    staff: list[Person] = inverse("boss")
    things: list[Thing] = inverse("owner")
    notes: list[Note] = inverse("author")
    safes: list[Safe] = inverse("holder")

    access = (grant("read"), grant("create", to=keeper), grant("delete", to=chief))

    @allow("update")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @allow("update", to=keeper)
    def unquoted(self, viewer: Viewer) -> bool:
        return not_(contains(self.name, "'")) & (self.boss.id != viewer.id)

    @allow("update", field="nick")
    def nick_of_staff(self, viewer: Viewer) -> bool:
        return self.boss.id == viewer.id

    @allow("read", field="nick")
    def own_nick(self, viewer: Viewer) -> bool:
        return (self.id == viewer.id) | (self.boss.id == viewer.id)

    @allow("read", field="nick")
    def nick_of_boss(self, viewer: Viewer) -> bool:
        return some(self.staff, lambda each: (each.id == viewer.id) | some(each.staff, lambda one: one.id == viewer.id))

    @allow("update", field="name")
    def name_within_house(self, viewer: Viewer) -> bool:
        """Comes back to the row itself, where people are the bosses of each other."""
        return (self.boss.boss.id == viewer.id) & not_(contains(self.boss.boss.name, "z"))

    @allow("read", field="rank")
    def rank_of_staff(self, viewer: Viewer) -> bool:
        return self.boss.boss.id == viewer.id

    @computed
    def title(self) -> str | None:
        return either(is_null(self.boss.id), "Boss " + self.name, self.boss.name + "'s " + self.name)


class Thing(Resource, ids="integer"):
    """One of every type."""

    owner: Annotated[Person | None, OnDelete("set null")] = None
    parent: Annotated[Thing | None, OnDelete("set null")] = None
    children: list[Thing] = inverse("parent")
    notes: list[Note] = inverse("about")
    tags: list[Tag] = through("Tagging", "thing", "tag")
    taggings: list[Tagging] = inverse("thing")
    text: str
    maybe_text: str | None = None
    count: int
    maybe_count: int | None = None
    big: BigInt
    maybe_big: Annotated[BigInt | None, WriteBy(keeper)] = None
    whole: Annotated[Decimal, Digits(9, 0)]
    money: Annotated[Decimal, Digits(12, 2)]
    maybe_money: Annotated[Decimal | None, Digits(12, 2)] = None
    exact: Annotated[Decimal | None, Digits(18, 6)] = None
    tiny: Annotated[Decimal, Digits(18, 18)]
    ratio: float
    maybe_ratio: float | None = None
    day: date
    maybe_day: date | None = None
    moment: datetime
    maybe_moment: datetime | None = None
    data: Json
    maybe_data: Json | None = None
    mood: Mood
    maybe_mood: Mood | None = None
    flag: bool = False
    maybe_flag: bool | None = None
    stage: Annotated[
        Stage,
        States(
            Move(Stage.new, Stage.used, to=signed_in),
            Move(Stage.used, Stage.broken),
            Move(Stage.broken, Stage.gone, to=keeper),
            Move(Stage.used, Stage.new, to=chief),
        ),
    ] = Stage.new

    access = (grant("read", "update", "delete", to=chief),)

    @allow("create", "update")
    def own(self, viewer: Viewer) -> bool:
        return self.owner.id == viewer.id

    @allow("create", to=keeper)
    def plain(self, viewer: Viewer) -> bool:
        return not_(self.flag) & is_null(self.parent.id)

    @allow("create", field="stage", to=keeper)
    def already_used(self, viewer: Viewer) -> bool:
        return not_(one_of(self.stage, Stage.gone))

    @allow("update", field=("text", "stage", "mood"), to=keeper)
    def tidied(self, viewer: Viewer) -> bool:
        return one_of(self.mood, Mood.calm, Mood.calm2)

    @allow("update", field="flag")
    def raised(self, viewer: Viewer) -> bool:
        return self.flag & viewer.has(signed_in)

    @allow("delete")
    def own_and_calm(self, viewer: Viewer) -> bool:
        return (self.owner.id == viewer.id) & not_(one_of(self.mood, Mood.Angry))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return self.flag | (self.owner.id == viewer.id) | (self.id == viewer.id)

    @allow("read")
    def noted_by(self, viewer: Viewer) -> bool:
        return some(self.notes, lambda note: note.author.id == viewer.id)

    @allow("read", to=keeper)
    def kept(self, viewer: Viewer) -> bool:
        return not_(self.maybe_flag) & not_(contains(self.text, "'"))

    @allow("read", field=("maybe_money", "maybe_text", "maybe_mood", "data"))
    def owned(self, viewer: Viewer) -> bool:
        return (self.owner.id == viewer.id) | viewer.has(chief)

    @allow("read", field=("count", "moment", "ratio"))
    def counted(self, viewer: Viewer) -> bool:
        return (self.maybe_count >= 0) | viewer.has(keeper)

    @allow("read", field=("exact", "maybe_day"))
    def of_mood(self, viewer: Insider) -> bool:
        return one_of(self.mood, viewer.moods) | (self.maybe_text == viewer.word) | viewer.has(chief)

    @allow("read", field="maybe_ratio")
    def on_level(self, viewer: Insider) -> bool:
        calm = every(self.children, lambda child: child.flag)
        return ((self.maybe_count < viewer.level) & calm) | viewer.has(chief)

    @allow("update", field="big")
    def childless(self, viewer: Viewer) -> bool:
        return none(self.children, lambda child: child.parent.big > 0) & (self.owner.id == viewer.id)

    @allow(action="polish")
    def flagged(self, viewer: Viewer) -> bool:
        return self.flag & viewer.has(signed_in)

    @allow(action=("polish", "store"), to=keeper)
    def tagged(self, viewer: Viewer) -> bool:
        return some(self.tags, lambda tag: not_(tag.hidden)) | (self.owner.id == viewer.id)

    @action
    async def polish(self, tx: Tx) -> Thing | None:
        """Whoever may polish it may see it done."""
        return await tx.get(Thing, self.id)

    @action
    async def store(self, tx: Tx) -> bool:
        """Nothing is done, and that is told."""
        return True

    @allow("read", field="parent")
    def related(self, viewer: Viewer) -> bool:
        return not_(is_null(self.maybe_flag)) | viewer.has(chief)

    @allow("read", field="notes")
    def noted(self, viewer: Viewer) -> bool:
        return not_(one_of(self.mood, Mood.Angry, Mood.odd)) | (self.owner.boss.id == viewer.id)

    @computed
    def teaser(self) -> str:
        return self.text[1:4]

    @computed
    def rest(self) -> str | None:
        return self.maybe_text[2:]

    @computed
    def line(self) -> str:
        return "<" + self.text + "|" + self.text[:1] + ">"

    @computed
    def maybe_line(self) -> str | None:
        return self.text + self.maybe_text

    @computed
    def is_rich(self) -> bool:
        return self.money > Decimal("1.00")

    @computed
    def is_calm(self) -> bool:
        return self.maybe_flag | (self.mood == Mood.calm)

    @computed
    def size(self) -> int:
        return either(self.flag & (self.big > 0), self.count, -1)

    @computed
    def kind(self) -> str:
        return either(self.maybe_money < Decimal("0.5"), "straße", either(self.flag, "Z", "a"))

    @computed
    def heir(self) -> str | None:
        return self.owner.boss.name


class Tag(Resource):
    """A word for things."""

    word: Annotated[str, Unique()]
    slug: Annotated[str | None, Unique()] = None
    hidden: bool = False
    things: list[Thing] = through("Tagging", "tag", "thing")

    access = (grant("read", "create", "delete", to=keeper),)

    @allow("update", to=keeper)
    def not_hidden(self, viewer: Viewer) -> bool:
        return not_(self.hidden) | viewer.has(chief)

    @allow("read")
    def open(self, viewer: Viewer) -> bool:
        return not_(self.hidden)

    @allow("read")
    def of_own(self, viewer: Viewer) -> bool:
        return some(self.things, lambda thing: thing.owner.id == viewer.id)


class Tagging(Resource):
    """Ties things to tags; may be hidden while both ends show."""

    thing: Annotated[Thing, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    public: bool | None = None

    access = (grant("update", to=chief),)

    @allow("create")
    def of_readable(self, viewer: Viewer) -> bool:
        return may_read(self.thing) & may_read(self.tag)

    @allow("update", field="public")
    @allow("delete")
    def of_own(self, viewer: Viewer) -> bool:
        return self.thing.owner.id == viewer.id

    @allow("read")
    def open(self, viewer: Viewer) -> bool:
        return self.public | (self.thing.owner.id == viewer.id)

    @allow("read", to=chief)
    def of_tag(self, viewer: Viewer) -> bool:
        return may_read(self.tag) & may_read(self.thing)


class Note(Resource):
    """Says something about a thing; whoever may read that may read this."""

    about: Annotated[Thing, OnDelete("cascade")]
    author: Annotated[Person, OnDelete("cascade")]
    body: str

    @allow("create")
    def as_oneself(self, viewer: Viewer) -> bool:
        return (self.author.id == viewer.id) & may_read(self.about)

    @allow("update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @allow("delete")
    def on_own_thing(self, viewer: Viewer) -> bool:
        return self.about.owner.id == viewer.id

    @allow("read")
    def of_thing(self, viewer: Viewer) -> bool:
        return may_read(self.about) | (self.author.id == viewer.id)

    @allow("read", field="author")
    def signed(self, viewer: Viewer) -> bool:
        return (self.author.id == viewer.id) | may_read(self.about.parent) | viewer.has(chief)


class Safe(Resource):
    """For keepers only. Whoever holds one cannot be deleted."""

    holder: Person
    heir: Annotated[Person | None, OnDelete("set null"), WriteBy(chief)] = None
    second_heir: Annotated[Person | None, OnDelete("set null")] = None
    note: Annotated[Note | None, OnDelete("cascade")] = None
    code: BigInt
    twin: Annotated[Safe | None, ReadBy(chief), OnDelete("set null")] = None
    twins: list[Safe] = inverse("twin")

    access = (grant("read", "create", to=keeper), grant("update", "delete", to=chief))

    @allow("update", to=keeper)
    def held(self, viewer: Viewer) -> bool:
        return self.holder.id == viewer.id


class Loan(Resource):
    """A thing that is lent; a thing is with one person at a time."""

    thing: Annotated[Thing, OnDelete("cascade")]
    borrower: Annotated[Person, OnDelete("cascade")]
    begins: date
    ends: date | None = None
    fee: Annotated[Decimal, Digits(12, 2), ReadBy(keeper)] = Decimal("0.00")
    over: bool = False

    access = (grant("read", "create", "update"), grant("delete", to=keeper))
    keys = (unique("borrower", "begins"), index("thing", "begins"))

    @unique("thing")
    def one_at_a_time(self) -> bool:
        return not_(self.over)

    @check("A loan ends after it begins.")
    def in_order(self) -> bool:
        return is_null(self.ends) | (self.begins <= self.ends)

    @check("What is over has an end, or costs nothing.")
    def ended(self) -> bool:
        return not_(self.over) | not_(is_null(self.ends)) | (self.fee == Decimal("0.00"))


model = Model(Person, Thing, Tag, Tagging, Note, Safe, viewer=Insider)
constrained = Model(Person, Thing, Tag, Tagging, Note, Safe, Loan, viewer=Insider)
"""The same with a resource that has constraints across its fields."""


TEXTS = (
    "",
    " ",
    "a",
    "A",
    "b",
    "ab",
    "aB",
    "abc",
    "ba",
    "Z",
    "z",
    "é",
    "e\u0301",
    "ß",
    "straße",
    "ÿ",
    "ı",
    "İ",
    "%",
    "_",
    "a%b",
    "a_b",
    "a%",
    "'",
    "''",
    '"',
    '"a"',
    "\\",
    "\\\\",
    "\\n",
    "\n",
    "\r\n",
    "\t",
    "\x01",
    "\x1f",
    "\x7f",
    "\u0080",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\ud7ff",
    "\ue000",
    "😀",
    "a😀b",
    "😀😀",
    "👩\u200d👧",
    "\U00010000",
    "\U0010ffff",
    "null",
    "NULL",
    "true",
    "0",
    "1e5",
    "{}",
    "[1]",
    "$1",
    "?1",
    ":a",
    "--",
    ";",
    "]",
    "%5B",
    "+",
    "&=",
    "/",
    "..",
    "x" * 300,
)
JSONS: tuple[Any, ...] = (
    {},
    [],
    "",
    'a"b\\c\u2028😀',
    0,
    -1,
    1.5,
    True,
    False,
    [None, {"a": [1, "x"]}],
    {"b": 1, "a": {"é": None}},
    2**53,
)
FLOATS = (
    -1.7976931348623157e308,
    -1.5,
    -0.1,
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    0.1,
    0.30000000000000004,
    1 / 3,
    1.0,
    1.0,
    1e21,
    123456789.12345679,
    9007199254740993.0,
    1.7976931348623157e308,
)
MOMENTS = (
    "0001-01-01T00:00:00.000000Z",
    "1969-12-31T23:59:59.999999Z",
    "2026-01-31T12:00:00.000000Z",
    "2026-01-31T12:00:00.000000Z",
    "2026-01-31T12:00:00.000001Z",
    "2026-03-29T01:30:00.500000Z",
    "9999-12-31T23:59:59.999999Z",
)
POOLS: Mapping[Scalar, Sequence[Any]] = {
    STRING: TEXTS,
    INT: (-(2**31), -7, -1, 0, 0, 1, 1, 2, 3, 10, 2**31 - 1),
    BIGINT: (-(2**63), -(2**53) - 1, -1, 0, 1, 1, 2**53 + 1, 2**62 + 1, 2**63 - 1),
    FLOAT: FLOATS,
    BOOLEAN: (False, True),
    DATE: ("0001-01-01", "1969-12-31", "2024-02-29", "2026-01-31", "2026-01-31", "9999-12-31"),
    DATETIME: MOMENTS,
    JSON: JSONS,
}
"""Unkind values of every scalar that has a fixed set of them."""


def pool(scalar: Scalar) -> Sequence[Any]:
    """Unkind values of a scalar (not of ids, whose values are those of rows)."""
    if scalar.choices:
        return scalar.choices
    if scalar.python is Decimal:
        return decimals(scalar)
    return POOLS[scalar]


def decimals(scalar: Scalar) -> Sequence[Decimal]:
    """The ends of the range of a decimal, the smallest steps around zero, and ordinary numbers."""
    precision, scale = (int(part) for part in scalar.name[8:-1].split(","))
    top = 10**precision - 1
    return [
        scalar.parse(format(Decimal(each).scaleb(-scale), "f"))
        for each in (-top, -12, -10, -1, 0, 0, 1, 10, 10, 12, 99, 150, top // 3, top)
    ]


def rows(model: Model, seed: int, most: int = 9) -> dict[str, list[dict[str, Any]]]:
    """A small data set; the same seed gives the same."""
    return _Maker(model, Random(seed), most).rows


class _Maker:
    def __init__(self, model: Model, random: Random, most: int) -> None:
        self.model = model
        self.random = random
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in model.resources}
        for resource in in_order(model):
            count = random.choice((most // 2, most, most, 2 * most))
            for number in range(count):
                row = self._row(resource, number)
                if row is not None and self._fits(resource, row):
                    self.rows[resource.name].append(row)

    def _row(self, resource: ResourceDef, number: int) -> dict[str, Any] | None:
        """A row, or None where a row that it must refer to is not there."""
        row: dict[str, Any] = {}
        for name, field in resource.fields.items():
            if field.stored:
                row[name] = self._value(resource, field, number)
                if row[name] is None and not field.nullable:
                    return None
        return row

    def _fits(self, resource: ResourceDef, row: dict[str, Any]) -> bool:
        """Do the checks and the unique keys of the class hold?"""
        sight = Sight(self.model, Viewer(), self.rows)
        if not all(sight.holds(check.expr, Row(resource, row)) for check in resource.checks.values()):
            return False
        for key in (key for key in resource.keys if key.unique and sight.holds(key.where, Row(resource, row))):
            covered = (other for other in self.rows[resource.name] if sight.holds(key.where, Row(resource, other)))
            if any(all(row[name] == other[name] is not None for name in key.fields) for other in covered):
                return False
        return True

    def _value(self, resource: ResourceDef, field: FieldDef, number: int) -> Any:
        if field.name == "id":
            return self._id(field.scalar, number)
        if field.nullable and self.random.random() < 0.3:
            return None
        if field.relation:
            there = self.rows[resource.relations[field.relation].target]
            return self.random.choice(there)["id"] if there else None
        value = self.random.choice(pool(field.scalar))
        return f"{value}{number}" if field.unique else value

    def _id(self, scalar: Scalar, number: int) -> Any:
        if scalar is INTEGER_ID:
            return 1 + number * self.random.choice((1, 1, 1, 100)) + 1000 * number * (number > 3)
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def in_order(model: Model) -> Iterator[ResourceDef]:
    """Every resource after those whose rows its own must refer to."""
    left = dict(model.resources)
    while left:
        ready = [name for name, resource in left.items() if not _needs(resource) & (left.keys() - {name})]
        if not ready:
            raise ValueError(f"{', '.join(left)} need each other first")
        for name in ready:
            yield left.pop(name)


def _needs(resource: ResourceDef) -> set[str]:
    return {each.target for each in resource.relations.values() if each.kind == "one" and not each.nullable}


async def load(store: Store, model: Model, rows: Data) -> None:
    """Fill an empty store."""
    for resource in in_order(model):
        names = [field.name for field in resource.fields.values() if field.stored]
        await store.insert(resource, names, [[row[name] for name in names] for row in rows[resource.name]])
