"""Where the rows of a resource are: what `table=`, `view=`, `key=`, `managed=` and Column(…) may say."""

from __future__ import annotations

from tests.support.cases import cases
from tests.support.mistakes import assert_reported
from tests.support.model_files import declare

MISTAKES = [
    """
class T(Resource, table="a", view="b"):  #! T: it is a table and a view | Give table= or view=
    name: str
""",
    """
class T(Resource, table='a"b', managed=False):  #! T: 'a"b' names no table | Use letters
    name: str
""",
    """
class T(Resource, table="diptych_keys", managed=False):  #! T: the table diptych_keys has a prefix reserved | Rename
    name: str
""",
    """
class T(Resource, key="TId"):  #! T: the key of a table that Diptych makes is id | Remove key=, or write managed=False
    name: str
""",
    """
class T(Resource, ids="text"):  #! T: ids='text' is for a table that exists | Write managed=False, or ids="client"
    name: str
""",
    """
class T(Resource, key=("a", "a"), managed=False):  #! T: key=('a', 'a') names no columns | Write key=
    a: int
""",
    """
class T(Resource, key=("a", "b"), managed=False):  #! T: no field has the column b of its key | Declare it
    a: int
""",
    """
class T(Resource, managed=False, trash=timedelta(days=1)):  #! T: a trash needs a table that Diptych makes | Remove
    a: int
""",
    """
class T(Resource, view="v"):  #! T: a view is read only | Grant "read" and "export" alone
    a: int
    access = (grant("read", "update"),)
""",
    """
class T(Resource, managed=False):
    number: Annotated[int, Counter()] = auto()  #! T.number: a counter needs a table that Diptych makes | Remove Counter
""",
    """
class T(Resource):
    a: Annotated[int, Column("b")]
    b: int  #! T.b: the column b is also that of 'a' | Give another Column
""",
    """
class T(Resource):
    a: Annotated[int, Column("a b")]  #! T.a: Diptych makes no column 'a b' of this type | Use letters
""",
    """
class T(Resource, managed=False):
    a: Annotated[int, Column("_a")]  #! T.a: Column('_a') names no column | Use letters
""",
    """
class T(Resource, table="rows"):
    a: int

class U(Resource, table="Rows", managed=False):  #! U: the table Rows is also that of T | Give another table=
    a: int
""",
    """
class T(Resource, table="t", key=("a", "b"), managed=False):
    a: int
    b: int

class U(Resource):
    t: T  #! U.t: the key of T has several columns | Declare each column as a field; write Columns("list_id", "place") in the order of the key
""",
]


@cases("source", MISTAKES)
def test_a_mistake_is_reported(source: str) -> None:
    assert_reported(source)


def test_names_are_those_of_the_model() -> None:
    model = declare("""
class Person(Resource, table="tbl_person"):
    full_name: Annotated[str, Column("usr_name")]
    boss: Annotated[Person | None, Column("boss_no")] = None
""").built
    person = model.resources["Person"]
    assert (person.table, person.path, person.managed, person.key_columns) == ("tbl_person", "persons", True, ("id",))
    assert person.fields["fullName"].column == "usr_name"
    assert (person.fields["bossId"].column, person.relations["boss"].column) == ("boss_no", "boss_no")
    assert {"version", "createdAt", "updatedAt"} <= person.fields.keys()


def test_a_table_that_exists_has_no_columns_of_ours() -> None:
    model = declare("""
class Person(Resource, table="Person", key="PersonId", ids="integer", managed=False):
    name: str
""").built
    person = model.resources["Person"]
    assert [field.column for field in person.fields.values() if field.stored] == ["PersonId", "name"]
    assert list(person.fields) == ["id", "version", "name"]
    assert not person.followed and not model.managed
