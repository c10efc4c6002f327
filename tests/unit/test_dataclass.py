"""Our `dataclass` makes the classes of the standard one; only their methods are compiled later."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from diptych.dataclass import dataclass

Decorator = Callable[..., Any]


def classes(decorator: Decorator, **options: Any) -> tuple[type, type]:
    """A class with every kind of field, and one that inherits from it."""

    class Row:
        """A row."""

        name: str
        size: int = 3
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="s", repr=False, compare=False)
        made: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.size + 1)

    base = decorator(**options)(Row)

    class Wide(base):  # type: ignore[misc, valid-type]
        """A wider one."""

        width: int = 9

    return base, decorator(**options)(Wide)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True, "eq": False, "repr": False},
]


def tried(work: Callable[[], Any]) -> Any:
    """What some work gives: its value, or the kind of its error."""
    try:
        return work()
    except Exception as error:
        return type(error)


def seen(cls: type) -> list[Any]:
    """What a class does, as plain values."""
    made: list[Callable[[], Any]] = [
        lambda: cls("a"),
        lambda: cls(name="a", size=4, tags=["x"]),
        lambda: cls(name="a", secret="t"),
        cls,
        lambda: cls("a", 1, [], "s", 5, 6, 7),
        lambda: cls(name="a", made=1),
    ]
    rows = [tried(make) for make in made]
    out: list[Any] = [row if isinstance(row, type) else dataclasses.astuple(row) for row in rows]
    whole = [row for row in rows if not isinstance(row, type)]
    out += [repr(row).partition(" at 0x")[0] for row in whole]
    out += [one == other for one in whole for other in whole]
    # a list has no hash: frozen rows with one have none
    out += [tried(lambda row=row: isinstance(hash(row), int)) for row in whole]  # type: ignore[misc]
    for row in whole:
        out.append(tried(lambda row=row: setattr(row, "size", 1)))  # type: ignore[misc]
        out.append(tried(lambda row=row: delattr(row, "name")))  # type: ignore[misc]
    whole = [row for row in map(tried, made) if not isinstance(row, type)]
    out += [dataclasses.astuple(copy.copy(row)) for row in whole]
    out += [tried(lambda row=row: dataclasses.astuple(replace(row, size=8))) for row in whole]  # type: ignore[misc]
    return [*out, cls.__match_args__, cls.__doc__, [part.name for part in dataclasses.fields(cls)]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_does_what_the_standard_one_does(options: dict[str, Any]) -> None:
    for ours, theirs in zip(classes(dataclass, **options), classes(dataclasses.dataclass, **options), strict=True):
        assert seen(ours) == seen(theirs)
        assert hasattr(ours, "__slots__") == hasattr(theirs, "__slots__")


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


class Named(Point):
    """A subclass that is no dataclass."""

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self.name = name


def test_rows_with_equal_values_are_equal_and_have_one_hash() -> None:
    assert Point(1) == Point(1, 0) != Point(2)
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_a_row_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_a_subclass_that_is_no_dataclass_has_attributes_of_its_own() -> None:
    named = Named("a")
    assert (named.name, named.x) == ("a", 1)
    with pytest.raises(FrozenInstanceError):
        named.x = 2  # type: ignore[misc]


def test_a_method_is_compiled_once() -> None:
    @dataclass(frozen=True)
    class Fresh:
        x: int

    before = Fresh.__init__
    Fresh(1)
    after = Fresh.__init__
    Fresh(2)
    assert before is not after is Fresh.__init__
    assert Fresh.__init__.__qualname__.endswith("Fresh.__init__")


def test_methods_that_a_class_defines_are_kept() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        x: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    assert (hash(Own(1)), repr(Own(1)), Own(1) == Own(1)) == (5, "own", True)
