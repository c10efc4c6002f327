"""Actions and queries: their names in both styles, their arguments, their results, and every mistake in them."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from diptych import MaxLen
from diptych.api.query_string import RESERVED
from diptych.model.call_defs import ArgumentDef, CallDef, QueryDef
from diptych.model.decimal_scalar import decimal
from diptych.model.defs import ResourceDef
from diptych.model.read.name_clashes import RESERVED_PARAMETERS
from diptych.model.scalars import BIGINT, DATE, DATETIME, ID, INT, JSON, STRING, Scalar
from tests.support.cases import cases
from tests.support.mistakes import assert_reported
from tests.support.model_files import declare, model_of, resource

AROUND = """
class Size(StrEnum):
    small = "small"
    large = "large"

class User(Resource):
    name: str
    t: T | None = None
"""
POST = '''
class OrderLine(Resource):
    title: str

    @action(to=admin)
    async def publish(self, tx: Tx, send_to: str, note: Annotated[str | None, MaxLen(80)] = None) -> OrderLine:
        """Let all see it.

        At once.
        """
        return await tx.save(self)

    @action
    @classmethod
    async def import_feed(cls, tx: Tx, url: str) -> list[OrderLine]:
        return []

    @query(to=staff)
    @classmethod
    async def most_read(cls, tx: Tx, limit: int = 10) -> list[OrderLine]:
        return []
'''


def call(signature: str) -> CallDef:
    """The one action of a class."""
    source = f"class T(Resource):\n    flag: bool\n\n    @action\n    async def run{signature}: ..."
    (found,) = model_of(AROUND + source).resources["T"].calls
    return found


def argument(hint: str) -> ArgumentDef:
    (found,) = call(f"(self, tx: Tx, it: {hint}) -> None").arguments
    return found


def test_an_action_of_a_row_has_a_root_field_and_a_segment() -> None:
    found = resource(POST).actions["publish"]
    assert (found.name, found.attr, found.on) == ("publish", "publish", "row")
    assert (found.root, found.segment) == ("publishOrderLine", "publish")
    assert (found.role, found.description) == ("admin", "Let all see it.\n\nAt once.")


def test_an_action_of_the_class_and_a_query_take_the_plural() -> None:
    found = resource(POST)
    imported, read = found.actions["importFeed"], found.queries["mostRead"]
    assert (imported.root, imported.segment, imported.on) == ("importFeedOrderLines", "import-feed", "class")
    assert (read.root, read.segment, read.on) == ("mostReadOrderLines", "most-read", "class")
    assert isinstance(read, QueryDef)
    assert (imported.role, read.role) == (None, "staff")


def test_a_given_plural_counts() -> None:
    source = POST.replace("(Resource)", '(Resource, plural="all-lines")')
    assert resource(source).queries["mostRead"].root == "mostReadAllLines"


def test_arguments_have_names_of_the_wire_and_of_python() -> None:
    first, second = resource(POST).actions["publish"].arguments
    assert (first.name, first.attr, first.scalar, first.required) == ("sendTo", "send_to", STRING, True)
    assert (second.name, second.nullable, second.required, second.default) == ("note", True, False, None)
    assert second.constraints == (MaxLen(80),)


@cases(
    ("hint", "scalar", "nullable", "required", "default"),
    [
        ("str", STRING, False, True, None),
        ("int = 3", INT, False, False, 3),
        ("int | None", INT, True, False, None),
        ("int | None = 4", INT, True, False, 4),
        ("BigInt = 2**40", BIGINT, False, False, 2**40),
        ("Id", ID, False, True, None),
        ("Json = [1]", JSON, False, False, [1]),
        ("date = date(2026, 1, 31)", DATE, False, False, "2026-01-31"),
        ("datetime", DATETIME, False, True, None),
        ("Annotated[Decimal, Digits(8, 2), Min(0)] = Decimal('1.5')", decimal(8, 2), False, False, None),
    ],
)
def test_an_argument_has_a_type_and_perhaps_a_default(
    hint: str, scalar: Scalar, nullable: bool, required: bool, default: Any
) -> None:
    found = argument(hint)
    assert (found.scalar, found.nullable, found.required) == (scalar, nullable, required)
    assert found.default == default or str(found.default) == "1.50"


def test_an_enum_that_only_an_argument_names_is_of_the_model() -> None:
    model = model_of("class Size(StrEnum):\n    small = 'small'\n" + POST.replace("url: str", "url: Size"))
    assert [scalar.name for scalar in model.enums] == ["Size"]
    assert model.resources["OrderLine"].actions["importFeed"].arguments[0].scalar is model.enums[0]


def test_an_argument_may_be_for_its_name_only() -> None:
    assert [each.name for each in call("(self, tx: Tx, *, a: int, b_c: str = '') -> None").arguments] == ["a", "bC"]


@cases(
    ("hint", "kind", "name", "scalar", "nullable"),
    [
        ("T", "one", "T", None, False),
        ("T | None", "one", "T", None, True),
        ("User", "one", "User", None, False),
        ("list[User]", "list", "User", None, False),
        ("int", "scalar", "", INT, False),
        ("date | None", "scalar", "", DATE, True),
        ("Annotated[Decimal, Digits(8, 2)]", "scalar", "", decimal(8, 2), False),
        ("BigInt", "scalar", "", BIGINT, False),
        ("Json", "scalar", "", JSON, False),
        ("None", "none", "", None, False),
    ],
)
def test_a_result_is_a_row_rows_a_value_or_nothing(
    hint: str, kind: str, name: str, scalar: Scalar | None, nullable: bool
) -> None:
    found = call(f"(self, tx: Tx) -> {hint}").result
    assert (found.kind, found.resource, found.scalar, found.nullable) == (kind, name, scalar, nullable)


@pytest.mark.parametrize(("hint", "kind"), [("Self", "one"), ("list[Self]", "list")])
def test_self_is_the_class_that_inherits(hint: str, kind: str) -> None:
    source = f"""
from typing import Self
class MixinBase(Resource):
    @action
    async def keep(self, tx: Tx) -> {hint}: ...
class A(MixinBase):
    name: str
"""
    found = resource(source).actions["keep"]
    assert (found.result.kind, found.result.resource, found.root) == (kind, "A", "keepA")


def test_actions_are_inherited_replaced_and_ended() -> None:
    source = """
class Base(Resource):
    @action
    async def one(self, tx: Tx) -> None: ...
    @action
    async def two(self, tx: Tx) -> None: ...
    @query
    @classmethod
    async def three(cls, tx: Tx) -> int: ...
class A(Base):
    name: str
    one = None
    @action(to=admin)
    async def two(self, tx: Tx) -> None: ...
"""
    found = model_of(source).resources["A"]
    assert [(each.root, each.role) for each in found.calls] == [("twoA", "admin"), ("threeAs", None)]


def test_the_function_takes_a_row_or_the_class_and_the_transaction() -> None:
    source = """
class A(Resource):
    name: str

    @action
    async def shout(self, tx: Tx, *, mark: str = "!") -> str:
        return self.name + mark

    @action
    @classmethod
    async def called(cls, tx: Tx) -> str:
        return cls.__name__
"""
    module = declare(source)
    found: ResourceDef = module.built.resources["A"]
    row = module.A(name="Ann")
    assert asyncio.run(resolve(found.actions["shout"], row, mark="?")) == "Ann?"
    assert asyncio.run(resolve(found.actions["called"], module.A)) == "A"
    assert asyncio.run(row.shout(None)) == "Ann!"
    assert asyncio.run(module.A.called(None)) == "A"
    assert [*inspect.signature(module.A.shout).parameters] == ["self", "tx", "mark"]


async def resolve(each: CallDef, on: Any, **arguments: Any) -> Any:
    return await each.function(on, None, **arguments)


def test_the_order_of_the_decorators_is_free() -> None:
    source = POST.replace("    @action\n    @classmethod", "    @classmethod\n    @action")
    assert resource(source).actions["importFeed"].on == "class"


def test_a_role_that_only_an_action_names_matters() -> None:
    model = model_of("class A(Resource):\n    @action(to=Role('poster'))\n    async def go(self, tx: Tx) -> None: ...")
    assert "poster" in model.roles
    assert model.signature(model.viewer_as("poster")).roles == {"poster", "signed_in"}


def test_an_action_may_have_the_name_of_a_field_on_the_wire() -> None:
    source = "class A(Resource):\n    publish_: bool\n\n    @action\n    async def publish(self, tx: Tx) -> None: ..."
    assert resource(source).actions["publish"].root == "publishA"


def test_reserved_parameters_are_those_of_the_resource_style() -> None:
    assert RESERVED_PARAMETERS == RESERVED


MISTAKES = [
    """
    @action
    def run(self, tx: Tx) -> None:  #! T.run: @action on a function that is not async | Write async def run(…)
        pass
""",
    """
    @action
    async def run(self) -> None:  #! T.run: it takes no transaction | Write async def run(self, tx: Tx, …)
        pass
""",
    """
    @action
    @classmethod
    async def run(cls, url: str) -> None:  #! T.run: it takes no transaction | Write async def run(cls, tx: Tx, …)
        pass
""",
    """
    @action
    async def run(self, tx, url: str) -> None:  #! T.run: it takes no transaction | Write async def run(self, tx: Tx
        pass
""",
    """
    @action
    async def run(self, *, tx: Tx) -> None:  #! T.run: it takes no transaction | Write async def run(self, tx: Tx
        pass
""",
    """
    @action
    async def run(self, tx: Tx, url) -> None:  #! T.run: its argument 'url': it has no type | Write url: str
        pass
""",
    """
    @action
    async def run(self, tx: Tx, url: bytes) -> None:  #! T.run: its argument 'url': the type bytes has no form on the wire | an Enum or Json
        pass
""",
    """
    @action
    async def run(self, tx: Tx, urls: list[Json]) -> None:  #! T.run: its argument 'urls': a list cannot hold JSON | Json
        pass
""",
    """
    @action
    async def run(self, tx: Tx, it: Nope) -> None:  #! T.run: its argument 'it': its type cannot be read: name 'Nope' is | Import or define
        pass
""",
    """
    @action
    async def run(self, tx: Tx, user: User) -> None:  #! T.run: its argument 'user': a row cannot be sent | Take its id: user_id: Id
        pass
""",
    """
    @action
    async def run(self, tx: Tx, price: Decimal) -> None:  #! T.run: its argument 'price': a Decimal without its digits | Write
        pass
""",
    """
    @action
    async def run(self, tx: Tx, name: str = 3) -> None:  #! T.run: its argument 'name': the default 3 does not fit | Give one
        pass
""",
    """
    @action
    async def run(self, tx: Tx, name: str = None) -> None:  #! T.run: its argument 'name': the default is None and | Write `| None`
        pass
""",
    """
    @action
    async def run(self, tx: Tx, name: Annotated[str, ReadBy(admin)]) -> None:  #! T.run: its argument 'name': ReadBy means nothing on an argument of type String | Remove it
        pass
""",
    """
    @action
    async def run(self, tx: Tx, name: Annotated[str, Unique()]) -> None:  #! T.run: its argument 'name': Unique means nothing | Remove
        pass
""",
    """
    @action
    async def run(self, tx: Tx, name: Annotated[str, MinLen(3), MaxLen(2)]) -> None:  #! T.run: its argument 'name': no value is within | Mend
        pass
""",
    """
    @action
    async def run(self, tx: Tx, *urls: str) -> None:  #! T.run: its argument 'urls': it takes any number of values | Name each
        pass
""",
    """
    @action
    async def run(self, tx: Tx, **urls: str) -> None:  #! T.run: its argument 'urls': it takes any number of values | Name each
        pass
""",
    """
    @action
    async def run(self, tx: Tx, url: str, /) -> None:  #! T.run: its argument 'url': it cannot be given by its name | Remove the /
        pass
""",
    """
    @action
    async def run(self, tx: Tx, sendTo: str) -> None:  #! T.run: its argument 'sendTo': the name is not valid on the wire | Use small
        pass
""",
    """
    @action
    async def run(self, tx: Tx, a: str, a_: str) -> None:  #! T.run: its argument 'a_': the name a is that of 'a' | Rename it
        pass
""",
    """
    @action
    async def run(self, tx: Tx, id: Id) -> None:  #! T.run: its argument 'id': the name id is that of the id of the row | Rename it
        pass
""",
    """
    @query
    @classmethod
    async def run(cls, tx: Tx, first: int) -> int:  #! T.run: its argument 'first': the name first is that of a parameter of every list | Rename
        pass
""",
    """
    @action
    async def run(self, tx: Tx):  #! T.run: it does not say what it gives | Write -> Post, -> list[Post]
        pass
""",
    """
    @query
    @classmethod
    async def run(cls, tx: Tx) -> None:  #! T.run: it does not say what it gives | Write -> Post, -> list[Post]
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> bytes:  #! T.run: its result: the type bytes has no form on the wire | an Enum or Json
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> Nope:  #! T.run: its result: its type cannot be read: name 'Nope' is not | Import or define
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> list[int | None]:  #! T.run: its result: an element of a list is never null | Remove `| None`
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> list[User] | None:  #! T.run: its result: a list is never null | Remove `| None`
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> Resource:  #! T.run: its result: Resource is not in the model | Add it: Model(…, Resource); or write Self
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> Annotated[str, MaxLen(3)]:  #! T.run: its result: MaxLen means nothing on a result | Remove it
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> Annotated[User, ReadBy(admin)]:  #! T.run: its result: ReadBy means nothing on a row | Remove it
        pass
""",
    """
    @query
    async def run(self, tx: Tx) -> int:  #! T.run: @query on a method of one row | Write @classmethod below @query
        pass
""",
    """
    @query
    @classmethod
    def run(cls, tx: Tx) -> int:  #! T.run: @query on a function that is not async | Write async def run(…)
        pass
""",
    """
    @action
    @staticmethod
    async def run(self, tx: Tx) -> None:  #! T.run: @action does not decorate a method | Write @action above async def run(…), or
        pass
""",
    """
    @action
    @computed
    def run(self) -> bool:  #! T.run: @action on a computed field | Remove @action or @computed
        return self.flag
""",
    """
    @action
    @allow("read")
    async def run(self, tx: Tx) -> None:  #! T.run: @allow and @action on one function | Write @action(to=…) to say who may
        pass
""",
    """
    @allow("read")
    @query
    @classmethod
    async def run(cls, tx: Tx) -> int:  #! T.run: @allow and @query on one function | Write @query(to=…)
        pass
""",
    """
    @action(to="admin")
    async def run(self, tx: Tx) -> None:  #! T.run: to='admin' is no Role | Write to=admin
        pass
""",
    """
    @action
    @query
    @classmethod
    async def run(cls, tx: Tx) -> int:  #! T.run: @action and @query are given more than once | Leave one
        pass
""",
    """
    @action
    async def runNow(self, tx: Tx) -> None:  #! T.runNow: the name is not valid on the wire | Use small letters
        pass
""",
    """
    run: bool  #! T.run: it is a field and a function | Rename one

    @action
    async def run(self, tx: Tx) -> None:
        pass
""",
    """
    @action
    async def version(self, tx: Tx) -> None:  #! T.version: it is a field and a function | Rename one
        pass
""",
    """
    users: list[User] = inverse("t")

    @action
    async def users_(self, tx: Tx) -> None:  #! T.users_: the path /ts/<id>/users is also that of 'users' | Rename one
        pass
""",
    """
    @action
    async def run(self, tx: Tx) -> None:
        pass

    @action
    async def run_(self, tx: Tx) -> None:  #! T.run_: the name run is also that of 'run' | Rename one
        pass
""",
    """
    @action
    @classmethod
    async def run(cls, tx: Tx) -> None:
        pass

    @query
    @classmethod
    async def run_(cls, tx: Tx) -> int:  #! T.run_: the path /ts/run is also that of 'run' | Rename one
        pass
""",
    """
    @query
    @classmethod
    async def changes(cls, tx: Tx) -> int:  #! T.changes: the path /ts/changes is reserved | Rename it
        pass
""",
    """
    @action
    async def create(self, tx: Tx) -> None:  #! T.create: the name createT is also that of T | Rename it
        pass

    @action
    async def replace(self, tx: Tx) -> None:  #! T.replace: the name replaceT is also that of T | Rename it
        pass
""",
]


@cases("member", MISTAKES)
def test_a_mistake_in_an_action_or_a_query(member: str) -> None:
    assert_reported(f"{AROUND}class T(Resource):\n    flag: bool\n{member}")


def test_all_mistakes_of_an_action_are_told_at_once() -> None:
    source = """
class T(Resource):
    @action(to="admin")
    def run(self, a: bytes, *b: int) -> set: ...
"""
    causes = [mistake.cause for mistake in declare(source).built.mistakes]
    assert causes == [
        "to='admin' is no Role",
        "@action on a function that is not async",
        "it takes no transaction",
        "its argument 'a': the type bytes has no form on the wire",
        "its argument 'b': it takes any number of values",
        "its result: the type set has no form on the wire",
    ]


def test_the_root_fields_of_two_resources_can_collide() -> None:
    source = """
class Line(Resource):
    title: str

    @action
    async def close_order(self, tx: Tx) -> None: ...

    @action
    async def create_order(self, tx: Tx) -> None: ...  #! Line.create_order: the name createOrderLine is also that of OrderLine | Rename

    @query
    @classmethod
    async def order(cls, tx: Tx) -> int: ...  #! Line.order: the name orderLines is also that of OrderLine | Rename it

class OrderLine(Resource):
    title: str

    @action
    async def close(self, tx: Tx) -> None: ...  #! OrderLine.close: the name closeOrderLine is also that of Line.close_order | Rename it
"""
    assert_reported(source)


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="@action decorates a function"):
        declare("class T(Resource):\n    @action\n    @property\n    def run(self): ...")
