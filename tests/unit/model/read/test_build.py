"""Mistakes in a model file: each is told with its class and member, its line, its cause and its fix; all at once.

In the tables below a line ends in what is told about it, as `tests/unit/model/mistakes.py` says.
"""

from __future__ import annotations

import re

import pytest

from diptych import Model
from diptych.errors import ModelError
from tests.support.cases import cases
from tests.support.mistakes import assert_reported, mistakes_in, told_in
from tests.support.model_files import declare

LONG = "a" * 64
USER = "class User(Resource):\n    name: str\n    t: T | None = None\n"
COLOR = 'class Color(StrEnum):\n    red = "red"\n    blue = "blue"\n'

CLASSES = [
    """
class post(Resource):  #! post: the name cannot be a type of GraphQL | Use CamelCase letters and digits
    title: str
""",
    """
class Blog_Post(Resource):  #! Blog_Post: the name cannot be a type of GraphQL | Use CamelCase
    title: str
""",
    """
class Straße(Resource):  #! Straße: the name cannot be a type of GraphQL | Use CamelCase
    title: str
""",
    """
class Health(Resource, plural="health"):  #! Health: the path /health is reserved #! Health: the name health is also that of one of its rows | Give another plural
    title: str
""",
    """
class Metric(Resource):  #! Metric: the path /metrics is reserved | Give another plural
    title: str
""",
    """
class Token(Resource, plural="oauth"):  #! Token: the path /oauth is reserved | Give another plural
    title: str
""",
    """
class DiptychKey(Resource):  #! DiptychKey: the table diptych_keys would have a prefix reserved for system tables | Rename it
    title: str
""",
    """
class SqliteStat(Resource):  #! SqliteStat: the table sqlite_stats would have a prefix reserved for system tables | Rename
    title: str
""",
    """
class Thing(Resource, plural="pg-class"):  #! Thing: the table pg_class would have a prefix reserved for system tables | Rename
    title: str
""",
    """
class Thing(Resource, plural="old"):  #! Thing: the table old would hide the row of a trigger | Give another plural
    title: str
""",
    """
class Thing(Resource):
    name: Annotated[str, Unique()]
class Key(Resource, plural="things_name_key"):  #! Key: the table things_name_key would have the name of a key of the table things | Give another plural
    title: str
""",
    """
class Thing(Resource, plural="Some Things"):  #! Thing: the plural 'Some Things' cannot be a path | Use small letters
    title: str
""",
    """
class Thing(Resource, plural="../etc"):  #! Thing: the plural '../etc' cannot be a path | Use small letters
    title: str
""",
    f"""
class Thing(Resource, plural="{LONG}"):  #! Thing: the table {LONG} would be longer than 63 characters | Give a shorter
    title: str
""",
    """
class Thing(Resource, ids="int"):  #! Thing: ids='int' is unknown | Write ids="uuid", ids="integer" or ids="client"
    title: str
""",
    """
class Sheep(Resource, plural="sheep"):  #! Sheep: the name sheep is also that of one of its rows | Give another plural
    title: str
""",
    """
class Person(Resource, plural="people"):
    title: str

class Human(Resource, plural="people"):  #! Human: the name people is also that of Person | Give another plural
    title: str
""",
    """
class Post(Resource):
    title: str

class Posts(Resource, plural="all-posts"):  #! Posts: the name posts is also that of Post | Give another plural
    title: str
""",
    """
class Post(Resource):
    title: str

class PostsConnection(Resource):  #! PostsConnection: the name postsConnection is also that of Post | Give another
    title: str
""",
    """
class Query(Resource):  #! Query: the type Query is also that of Diptych itself | Rename one
    title: str
""",
    """
class StringFilter(Resource):  #! StringFilter: the type StringFilter is also that of Diptych itself | Rename one
    title: str
""",
    """
class Post(Resource):
    title: str

class PostWhere(Resource):  #! PostWhere: the type PostWhere is also that of the resource Post | Rename one
    title: str
""",
    """
class T(Resource):  #! T: its read rules ask, by may_read(), whether it may be read itself | Break the circle
    parent: T | None = None

    @allow("read")
    def rule(self, viewer):
        return may_read(self.parent)
""",
    """
class A(Resource):  #! A: its read rules ask, by may_read(), whether it may be read itself | Break the circle
    b: B

    @allow("read")
    def rule(self, viewer):
        return may_read(self.b)

class B(Resource):  #! B: its read rules ask, by may_read(), whether it may be read itself | Break the circle
    a: A

    @allow("read")
    def rule(self, viewer):
        return may_read(self.a)

class C(Resource):
    a: A

    @allow("read")
    def rule(self, viewer):
        return may_read(self.a)
""",
    """
class Kind(StrEnum):
    a = "a"

class Post(Resource):
    kind: Kind

class KindFilter(Resource):  #! KindFilter: the type KindFilter is also that of the enum Kind | Rename one
    title: str
""",
]

LINES = [
    ("camelCase: str", "the name is not valid on the wire | Use small letters, digits and single underscores"),
    ("__x: str", "the name is not valid on the wire | Use small letters"),
    ("_x: str", "the name is not valid on the wire | Use small letters"),
    ("a__b: str", "the name is not valid on the wire | Use small letters"),
    ("größe: int", "the name is not valid on the wire | Use small letters"),
    ("a_: str\n    a: str  #! T.a: the name a is also that of 'a_' | Rename one", ""),
    ("line_1: str\n    line1: str  #! T.line1: the name line1 is also that of 'line_1' | Rename one", ""),
    ("not_: str", "the name not is a word of filters | Rename it"),
    ("or_: str", "the name or is a word of filters | Rename it"),
    ("and_: bool", "the name and is a word of filters | Rename it"),
    (f"{LONG}: str", f"the column {LONG} would be longer than 63 characters | Shorten the name"),
    (f"{LONG[:61]}: User", f"the column {LONG[:61]}_id would be longer than 63 characters | Shorten"),
    ("xmin: int", "every table of PostgreSQL has a column xmin of its own | Rename it"),
    ("ctid: str", "every table of PostgreSQL has a column ctid of its own | Rename it"),
    ("id: str", "every resource has this field already | Rename it"),
    ("id: int = auto()", "every resource has this field already | Rename it"),
    ("id: Annotated[Id, ReadBy(admin)] = auto()", "every resource has this field already | Rename it"),
    ("version: str = auto()", "every resource has this field already | Rename it"),
    ("created_at: datetime", "every resource has this field already | Rename it"),
    ("count: int = auto()", "auto() is for the fields that every resource has | Give a default"),
    ("access: str", "access holds the grants of a class, and has no type | Rename the field"),
    ("name = 'x'", "it has no type, so it is no field | Write name: …"),
    ("opens = time(8, 30)", "it has no type, so it is no field | Write opens: …"),
    ("lasts = timedelta(hours=1)", "it has no type, so it is no field | Write lasts: …"),
    ("key = UUID(int=5)", "it has no type, so it is no field | Write key: …"),
    ("users = inverse('t')", "it has no type, so it is no field | Write users: …"),
    ("it: Unknown", "its type cannot be read: name 'Unknown' is not defined | Import or define"),
    ("it: list[Unknown] = inverse('t')", "its type cannot be read: name 'Unknown' is not defined | Import"),
    ("it: 3", "the type 3 has no form on the wire | Use str"),
    ("it: bytes", "the type bytes has no form on the wire | Use str, int, BigInt, bool"),
    ("it: dict[str, int]", "the type dict has no form on the wire | Use str"),
    ("it: int | str", "has no form on the wire | Use str"),
    ("it: set[User]", "the type set has no form on the wire | Use str"),
    ("it: list", "the type list has no form on the wire | Use str"),
    ("it: None", "the type NoneType has no form on the wire | Use str"),
    ("it: list[Json]", "a list cannot hold JSON | Declare the field as Json"),
    ("it: list[list[int]]", "a list cannot hold [Int] | Declare the field as Json"),
    ("it: list[str | None]", "an element of a list is never null | Remove `| None`"),
    ("it: list[Annotated[int, MaxLen(3)]]", "MaxLen means nothing on an element of type Int | Remove it"),
    ("it: Annotated[list[int], Min(3)]", "Min means nothing on [Int] | Remove it"),
    ("it: Annotated[list[int], Unique()]", "Unique means nothing on [Int] | Remove it"),
    ("it: list[int] = inverse('x')", "a list can only hold resources | Write list[Post] = inverse(…), or Json"),
    ("it: list[bytes]", "the type bytes has no form on the wire | Use str"),
    ("it: list[User]", "a list of resources does not say how they are related | Write = inverse("),
    ("it: list[User] = []", "a list of resources does not say how they are related | Write = inverse("),
    ("it: list[User] = inverse('nope')", "User has no relation 'nope' to T | Write inverse("),
    ("it: list[User] = inverse('name')", "User has no relation 'name' to T | Write inverse("),
    ("it: list[User] = through('Nope', 'a', 'b')", "the model has no resource 'Nope' | Write through("),
    ("it: list[User] = through('User', 'a', 'b')", "User does not link T by 'a' to User by 'b' | Write through("),
    ("it: list[User] | None = inverse('t')", "markers and None mean nothing on a to-many relation | Remove them"),
    ("it: Annotated[list[User], ReadBy(admin)] = inverse('t')", "markers and None mean nothing | Remove them"),
    ("it: Resource", "Resource is not in the model | Add it: Model(…, Resource)"),
    ("it: list[Resource] = inverse('t')", "Resource is not in the model | Add it: Model(…, Resource)"),
    ("it: User = None", "a relation cannot have a default | Remove the default"),
    ("it: User = 'ann'", "a relation cannot have a default | Remove the default"),
    ("it: User = inverse('t')", "a relation to one cannot be an inverse | Write list[User]"),
    ("it: Annotated[User, MaxLen(3)]", "MaxLen means nothing on a relation | Remove it"),
    ("it: Annotated[User, Digits(3, 2)]", "Digits means nothing on a relation | Remove it"),
    ("it: Annotated[User, OnDelete('set null')]", 'OnDelete("set null") on a relation that must not be null | Declare'),
    ("it: Annotated[User, OnDelete('set_null')]", "OnDelete('set_null') is unknown | Write OnDelete("),
    ("it: Annotated[User, ReadBy]", "ReadBy is not called | Write ReadBy(…)"),
    ("it: Annotated[User, admin]", "the role admin is given without a marker | Write ReadBy(…) or WriteBy(…)"),
    ("it: User\n    it_id: str  #! T.it_id: the name itId is also that of 'it' | Rename one", ""),
    ("it_id: str\n    it: User  #! T.it: the name itId is also that of 'it_id' | Rename one", ""),
    ("it: Annotated[str, Unique]", "Unique is not called | Write Unique(…)"),
    ("it: Annotated[str, ReadBy('admin')]", "ReadBy('admin') does not name a Role | Write ReadBy(admin)"),
    ("it: Annotated[str, WriteBy('admin')]", "WriteBy('admin') does not name a Role | Write WriteBy(admin)"),
    ("it: Annotated[str, admin]", "the role admin is given without a marker | Write ReadBy(…) or WriteBy(…)"),
    ("it: Annotated[str, grant('read')]", "Grant is no marker | Remove it from Annotated[…]"),
    ("it: Annotated[str, ReadBy(admin), ReadBy(staff)]", "ReadBy is given 2 times | Leave one"),
    ("it: Annotated[Short, MaxLen(9)]", "MaxLen is given 2 times | Leave one"),
    ("it: Annotated[str, OnDelete('cascade')]", "OnDelete means nothing on String | Remove it"),
    ("it: Annotated[int, MaxLen(3)]", "MaxLen means nothing on Int | Remove it"),
    ("it: Annotated[bool, Pattern('x')]", "Pattern means nothing on Boolean | Remove it"),
    ("it: Annotated[str, Min(3)]", "Min means nothing on String | Remove it"),
    ("it: Annotated[date, Max(3)]", "Max means nothing on Date | Remove it"),
    ("it: Annotated[Json, Unique()]", "Unique means nothing on JSON | Remove it"),
    ("it: Annotated[int, Digits(3, 2)]", "Digits means nothing on Int | Remove it"),
    ("it: Annotated[str, MaxLen('80')]", "MaxLen('80') is no length | Write MaxLen(80)"),
    ("it: Annotated[str, MinLen(-1)]", "MinLen(-1) is no length | Write MinLen(80)"),
    ("it: Annotated[int, Min('0')]", "Min('0') is no number | Write Min(0)"),
    ("it: Annotated[float, Max(float('nan'))]", "Max(nan) is no number | Write Max(0)"),
    ("it: Annotated[str, MinLen(3), MaxLen(2)]", "no value is within MinLen and MaxLen | Mend the bounds"),
    ("it: Annotated[int, Max(2), Min(3)]", "no value is within Min and Max | Mend the bounds"),
    ("it: Annotated[str, Pattern('(')]", "the pattern '(' is no regular expression: missing ) | Mend the pattern"),
    ("it: Annotated[str, Pattern(3)]", "the pattern 3 is no regular expression: expected text | Mend the pattern"),
    ("it: Decimal", "a Decimal without its digits | Write Annotated[Decimal, Digits(12, 2)]"),
    ("it: Annotated[Decimal, Digits(19, 2)]", "Digits(19, 2) cannot be kept exactly | Use a precision of 1 to 18"),
    ("it: Annotated[Decimal, Digits(2, 3)]", "Digits(2, 3) cannot be kept exactly | Use a precision"),
    ("it: Annotated[Decimal, Digits(0, 0)]", "Digits(0, 0) cannot be kept exactly | Use a precision"),
    ("it: Annotated[Decimal, Digits('9', 2)]", "Digits('9', 2) cannot be kept exactly | Use a precision"),
    ("it: str = None", "the default is None and the type is not optional | Write `| None`"),
    ("it: str = 3", "the default 3 does not fit: expected a string | Give one that fits"),
    ("it: str = 'a\\0b'", "does not fit: expected text without NUL | Give one that fits"),
    ("it: int = '3'", "the default '3' does not fit: expected an integer | Give one that fits"),
    ("it: int = 2**31", "does not fit: expected an integer of 32 bits | Give one that fits"),
    ("it: int = True", "the default True does not fit: expected an integer | Give one that fits"),
    ("it: float = float('inf')", "the default inf does not fit: expected a finite number | Give one that fits"),
    ("it: date = '2023-02-29'", "does not fit: expected a date that exists | Give one that fits"),
    ("it: datetime = datetime(2024, 1, 1)", "does not fit: expected a moment with a zone | Give one that fits"),
    ("it: Annotated[Decimal, Digits(4, 2)] = Decimal('1.234')", "does not fit: expected at most 2 digits | Give one"),
    (
        "it: Annotated[Decimal, Digits(4, 2)] = 1.5",
        "the default 1.5 does not fit: expected a decimal number | Give one",
    ),
    ("it: Annotated[str, MaxLen(2)] = 'abc'", "does not fit: expected at most 2 characters | Give one that fits"),
    ("it: Annotated[str, Pattern('[A-Z]+')] = 'Abc'", "does not fit: expected a match of [A-Z]+ | Give one that fits"),
    ("it: Annotated[int, Min(1)] = 0", "the default 0 does not fit: expected 1 or more | Give one that fits"),
    ("it: Id = 'me'", "the default 'me' does not fit: expected an id | Give one that fits"),
    ("it: Json = object()", "does not fit: expected JSON | Give one that fits"),
    ("it: str = inverse('x')", "does not fit: expected a string | Give one that fits"),
    ("it: Color = 'green'", "the default 'green' does not fit: expected one of red, blue | Give one that fits"),
    ("it: Color = Shade.red", "does not fit: expected a member of its own Enum | Give one that fits"),
    ("it: Empty", "Empty has no members | Give it some"),
    ("it: Number", "the value 1 of Number cannot be a name of GraphQL | Use letters, digits and _"),
    ("it: Spaced", "the value 'dark red' of Spaced cannot be a name of GraphQL | Use letters, digits and _"),
    ("it: Truth", "the value 'true' of Truth cannot be a name of GraphQL | Use letters, digits and _, and not true"),
    ("it: Dunder", "the value '__x' of Dunder cannot be a name of GraphQL | Use letters"),
    ("it: Direction", "the type Direction is also that of Diptych itself | Rename one"),
    ("it: Color\n    its: Again  #! T.its: the type Color is also that of the enum Color | Rename one", ""),
    ("it: Annotated[str, States()]", "States is for an enum field | Declare the field as an Enum"),
    ("it: Annotated[Color, States()]", "a field with States has no initial state | Give a default: = Color.…"),
    ("it: Annotated[Color | None, States()] = Color.red", "a state is never null | Remove `| None`"),
    ("it: Annotated[Color, States('red')] = Color.red", "'red' is no Move | Write Move("),
    ("it: Annotated[Color, States(Move('red', Color.blue))] = Color.red", "'red' is no state of Color | Use members"),
    ("it: Annotated[Color, States(Move(Color.red, Shade.red))] = Color.red", "is no state of Color | Use members"),
    (
        "it: Annotated[Color, States(Move(Color.red, Color.blue, to='staff'))] = Color.red",
        "to='staff' is no Role | Write to=admin",
    ),
]
AROUND = (
    USER
    + COLOR
    + """
class Shade(StrEnum):
    red = "red"
class Empty(StrEnum):
    pass
class Number(IntEnum):
    one = 1
class Spaced(StrEnum):
    dark_red = "dark red"
class Truth(StrEnum):
    yes = "true"
class Dunder(StrEnum):
    x = "__x"
class Direction(StrEnum):
    up = "up"
Again = StrEnum("Color", "red")
Short = Annotated[str, MaxLen(3)]
"""
)

MEMBERS = [
    """
    access = grant("read")  #! T.access: access is no tuple of grants | Write access = (grant("read"),)
""",
    """
    access = (grant("raed"),)  #! T.access: 'raed' is no verb | Use read, create, update, delete
""",
    """
    access = (grant(),)  #! T.access: it names no verb | Use read, create
""",
    """
    access = (grant(["read"]),)  #! T.access: ['read'] is no verb | Use read, create
""",
    """
    access = (grant("read", to="admin"),)  #! T.access: to='admin' is no Role | Write to=admin
""",
    """
    @allow("raed")
    def rule(self, viewer):  #! T.rule: 'raed' is no verb | Use read, create, update, delete
        return self.flag
""",
    """
    @allow
    def rule(self, viewer):  #! T.rule: it names no verb | Use read, create
        return self.flag
""",
    """
    @allow(action="go")
    def rule(self, viewer):  #! T.rule: T has no action 'go' | Name an action of this class
        return self.flag
""",
    """
    @allow("read", action="go")
    def rule(self, viewer):  #! T.rule: 'go' is called on no row | Write @action(to=…) there
        return self.flag

    @action
    @classmethod
    async def go(cls, tx: Tx) -> None: ...
""",
    """
    @allow(action="go")
    def rule(self, viewer):  #! T.rule: who may call 'go' is said twice | Say it here: @allow(action="go", to=…)
        return self.flag

    @action(to=admin)
    async def go(self, tx: Tx) -> None: ...
""",
    """
    @allow(action="go", field="flag")
    def rule(self, viewer):  #! T.rule: an action is about the row, not a field | Leave field=… out
        return self.flag

    @action
    async def go(self, tx: Tx) -> None: ...
""",
    """
    @allow("read", to="admin")
    def rule(self, viewer):  #! T.rule: to='admin' is no Role | Write to=admin
        return self.flag
""",
    """
    @allow("read", field="flagg")
    def rule(self, viewer):  #! T.rule: T has no field 'flagg' | Name a field of this class
        return self.flag
""",
    """
    @allow("read", field=("flag", "nope"))
    def rule(self, viewer):  #! T.rule: T has no field 'nope' | Name a field of this class
        return self.flag
""",
    """
    @allow("delete", field="flag")
    def rule(self, viewer):  #! T.rule: a field cannot be deleted | Use read, create, update with field=…
        return self.flag
""",
    """
    @allow("read", field="user_id")
    def rule(self, viewer):  #! T.rule: 'user_id' is the key of a relation | Write field="user"
        return self.flag
""",
    """
    @allow("read", field="id")
    def rule(self, viewer):  #! T.rule: everyone who can read a row sees its 'id' | Name another field
        return self.flag
""",
    """
    @allow("read")
    def rule(self, viewer):  #! T.rule: 'or' cannot be traced to SQL; write | | See docs/reference/model.md, Rules
        return self.flag or self.user
""",
    """
    @allow("read")
    def rule(self, viewer):  #! T.rule: it failed while it was traced: oh no | See docs/reference/model.md, Rules
        raise LookupError("oh no")
""",
    """
    @computed
    def made(self):  #! T.made: a computed field does not say what it gives | Write def made(self) -> str:
        return self.flag
""",
    """
    @computed
    def made(self) -> User:  #! T.made: the type User has no form on the wire | Use str
        return self.user
""",
    """
    @computed
    def made(self) -> Nope:  #! T.made: its type cannot be read: name 'Nope' is not defined | Import or define
        return self.user
""",
    """
    @computed
    def made(self) -> str:  #! T.made: len() cannot be traced to SQL | See docs/reference/model.md, Computed fields
        return len(self.user.name)
""",
    """
    @computed
    def made(self) -> str:  #! T.made: it is made of itself | Break the circle
        return self.again

    @computed
    def again(self) -> str:  #! T.again: it is made of itself | Break the circle
        return self.made + "!"
""",
    """
    @computed
    def made(self) -> str | None:  #! T.made: it is made of itself | Break the circle
        return self.parent.made

    parent: T | None = None
""",
    """
    @computed
    def madeOf(self) -> str:  #! T.madeOf: the name is not valid on the wire | Use small letters
        return self.user.name
""",
    """
    made_of: str

    @computed
    def made_of_(self) -> str:  #! T.made_of_: the name madeOf is also that of 'made_of' | Rename one
        return self.user.name
""",
    """
    @computed
    def made(self) -> Annotated[str, Unique()]:  #! T.made: Unique means nothing on a computed field | Remove it
        return self.user.name
""",
    """
    @computed
    def made(self) -> Annotated[str, WriteBy(admin)]:  #! T.made: WriteBy means nothing on a computed field | Remove
        return self.user.name
""",
    """
    @computed
    @allow("read")
    def made(self) -> str:  #! T.made: @allow on a computed field | Write a rule with @allow("read", field="made")
        return self.user.name
""",
    """
    posts_connection: str
    posts: list[P] = inverse("t")  #! T.posts: the name postsConnection is also that of 'posts_connection' | Rename
""",
    """
    posts: list[P] = inverse("t")
    posts_connection: str  #! T.posts_connection: the name postsConnection is also that of 'posts' | Rename one
""",
]


@cases("source", CLASSES, ids=lambda source: source.split("(")[0].removeprefix("\nclass "))
def test_a_mistake_in_the_name_of_a_class(source: str) -> None:
    assert_reported(source)


@cases(("line", "told"), LINES, ids=lambda text: text[:50])
def test_a_mistake_in_a_line(line: str, told: str) -> None:
    attr = re.split(r"[:\s]", line)[0]
    marked = f"{line}  #! T.{attr}: {told}" if told else line
    assert_reported(f"{AROUND}class T(Resource):\n    flag: bool\n    {marked}")


@cases("member", MEMBERS)
def test_a_mistake_in_a_rule_or_in_a_computed_field(member: str) -> None:
    around = USER + "class P(Resource):\n    t: T\n"
    assert_reported(f"{around}class T(Resource):\n    flag: bool\n    user: User\n{member}")


@cases(
    ("role", "cause", "fix"),
    [
        ("Role('anonymous')", "this name has a meaning of its own", "Rename it"),
        ("Role('signed_in', implies=staff)", "this name has a meaning of its own", "Rename it"),
        ("Role('')", "a role has no such name", "Use letters"),
        ("Role('big boss')", "a role has no such name", "Use letters"),
        ("Role(3)", "a role has no such name", "Use letters"),
        ("Role('chief', implies='staff')", "implies='staff' is no Role", "Write implies=staff"),
        ("Role('chief', implies=[staff])", "is no Role", "Write implies=staff"),
        ("Role('chief', implies=(staff, None))", "is no Role", "Write implies=staff"),
        ("Role('staff', implies=signed_in)", "two roles have this name and imply different roles", "Declare it once"),
        ("Role('admin')", "two roles have this name and imply different roles", "Declare it once"),
    ],
)
@cases("use", ["ReadBy(extra)", "ReadBy(admin)"])
def test_a_mistake_in_a_role(role: str, cause: str, fix: str, use: str) -> None:
    (mistake,) = mistakes_in(f"extra = {role}\nclass T(Resource):\n    it: Annotated[str, {use}]")
    assert mistake.where.startswith("Role(")
    assert cause in mistake.cause
    assert fix in mistake.fix


@pytest.mark.parametrize(
    ("call", "where", "cause", "fix"),
    [
        ("Model()", "Model()", "it has no resources", "Write Model("),
        ("Model(User, User)", "User", "the model names it twice", "Name it once"),
        ("Model(User, Twin)", "User", "two resources have this name", "Rename one"),
        ("Model(User, 'Post')", "'Post'", "it is no resource", "Write class Post(Resource)"),
        ("Model([User])", "[<class", "it is no resource", "Write Model(Author, Post), without brackets"),
        ("Model(User, str)", "<class 'str'>", "it is no resource", "Write class Post(Resource)"),
        ("Model(User, Resource)", "<class 'diptych", "it is no resource", "Write class Post(Resource)"),
    ],
)
def test_a_mistake_in_the_call_of_model(call: str, where: str, cause: str, fix: str) -> None:
    source = "class User(Resource):\n    name: str\nTwin = type('User', (User,), {})\n"
    with pytest.raises(ModelError) as told:
        eval(call, vars(declare(source)))
    (mistake,) = told.value.mistakes
    assert mistake.where.startswith(where)
    assert (mistake.cause, mistake.fix[: len(fix)]) == (cause, fix)


def test_an_inverse_with_another_name_is_refused_with_the_relations_that_there_are() -> None:
    source = """
class T(Resource):
    its: list[Part] = inverse("ownr")

class Part(Resource):
    owner: T
    other: T
"""
    with pytest.raises(ModelError, match="Part has no relation 'ownr' to T; there is 'owner', 'other'"):
        eval("Model(T, Part)", vars(declare(source)))


def test_all_mistakes_are_told_at_once() -> None:
    lines = [(line, told) for line, told in LINES if told and line.startswith("it: ")]
    numbered = [
        f"    {line.replace('it:', f'it{number}:', 1)}  #! T.it{number}: {told}\n"
        for number, (line, told) in enumerate(lines)
    ]
    rule = """
    @allow("raed")
    def rule(self, viewer):  #! T.rule: 'raed' is no verb | Use read
        return self.flag
"""
    source = AROUND + "class T(Resource):\n    flag: bool\n" + "".join(numbered) + rule
    assert len(told_in(source)) > 80
    assert_reported(source)


def test_a_mistake_in_what_is_inherited_is_told_where_it_stands() -> None:
    source = """
class Plain:
    size: bytes  #! T.size: the type bytes has no form on the wire | Use str

class MixinA(Resource):
    total: Decimal  #! T.total: a Decimal without its digits | Write Annotated

    @allow("read")
    def rule(self, viewer):  #! T.rule: T has no field 'nope' | See docs/reference/model.md, Rules
        return self.nope

class T(Plain, MixinA):
    flag: bool
"""
    assert_reported(source)


def test_a_mistake_reads_as_one_line() -> None:
    built = declare("class T(Resource):\n    total: Decimal\n    size: bytes").built
    first, second = str(built).splitlines()
    assert re.fullmatch(
        r"T\.total \(written_\d+\.py:16\): a Decimal without its digits\. Write Annotated\[Decimal, Digits\(12, 2\)\]",
        first,
    )
    assert "T.size" in second


def test_asking_in_a_rule_about_writing_makes_no_circle() -> None:
    source = """
class A(Resource):
    b: B

    @allow("read")
    def reads(self, viewer):
        return may_read(self.b)

class B(Resource):
    a: A | None = None
    access = (grant("read"),)

    @allow("update")
    @allow("read", field="a")
    def writes(self, viewer):
        return may_read(self.a)
"""
    assert isinstance(declare(source).built, Model)
