"""JSON Patch (RFC 6902) and merge patch (RFC 7396), as functions on JSON."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diptych.api.reply import pointer, problem
from diptych.api.rest.patch import MAX_SIZE, apply_patch, changed, equal, merge_patch
from diptych.ask.json_merge import merge, merge_stored
from diptych.errors import Code, Path, Refusal
from tests.support.cases import cases
from tests.support.effort import scaled

Operations = list[dict[str, Any]]


def refused(document: dict[str, Any], operations: Any) -> Refusal:
    """The Refusal of a patch that must not apply, nor change what it was given."""
    before = copy.deepcopy((document, operations))
    with pytest.raises(Refusal) as found:
        apply_patch(document, operations)
    assert (document, operations) == before
    assert problem(found.value).status in (400, 409, 413, 422)
    return found.value


def places(refusal: Refusal) -> list[Path]:
    return [fault.path for fault in refusal.faults]


# what applies: the examples of RFC 6902, appendix A, by their numbers, and more

APPLIES: dict[str, tuple[dict[str, Any], Operations, dict[str, Any]]] = {
    "A.1 add a member": ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
    "A.2 add an item": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "A.3 remove a member": ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    "A.4 remove an item": (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    "A.5 replace": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    "A.6 move a value": (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    "A.7 move an item": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "A.8 test": (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    "A.10 add a nested member": (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    "A.11 unknown members are ignored": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123, "from": 5}],
        {"foo": "bar", "baz": "qux"},
    ),
    "A.14 escapes": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}, {"op": "remove", "path": "/~1"}],
        {"~1": 10},
    ),
    "A.16 add a list": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
    "no operation": ({"a": 1}, [], {"a": 1}),
    "add replaces": ({"a": 1}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
    "add at the end by number": ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
    "add at the beginning": ({"a": [1]}, [{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1]}),
    "the empty name": ({"": {"": 1}}, [{"op": "replace", "path": "//", "value": 2}], {"": {"": 2}}),
    "numbers as names": (
        {"0": 1, "01": 1, "-": 1},
        [{"op": "remove", "path": f"/{name}"} for name in ("0", "01", "-")],
        {},
    ),
    "replace null": ({"a": None}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    "copy": (
        {"a": [1]},
        [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}],
        {"a": [1], "b": [1, 2]},
    ),
    "copy into itself": (
        {"a": {"b": 1}},
        [{"op": "copy", "from": "/a", "path": "/a/c"}],
        {"a": {"b": 1, "c": {"b": 1}}},
    ),
    "move to where it is": ({"a": [1, 2]}, [{"op": "move", "from": "/a/1", "path": "/a/1"}], {"a": [1, 2]}),
    "move over": ({"a": 1, "b": 2}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    "move to a longer name": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/ab"}], {"ab": 1}),
    "an item moved to the end": ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/-"}], {"a": [2, 3, 1]}),
    "the whole": (
        {"a": 1},
        [{"op": "replace", "path": "", "value": {"b": 2}}, {"op": "test", "path": "", "value": {"b": 2}}],
        {"b": 2},
    ),
    "the whole into itself": ({"a": 1}, [{"op": "copy", "from": "", "path": "/b"}], {"a": 1, "b": {"a": 1}}),
    "a part as the whole": ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": ""}], {"b": 1}),
    "the whole to where it is": ({"a": 1}, [{"op": "move", "from": "", "path": ""}], {"a": 1}),
    "the whole gone and back": ({"a": 1}, [{"op": "remove", "path": ""}, {"op": "add", "path": "", "value": {}}], {}),
    "the whole a list for a while": (
        {"a": 1},
        [{"op": "add", "path": "", "value": [{"b": 1}]}, {"op": "copy", "from": "/0", "path": ""}],
        {"b": 1},
    ),
    "a value of a patch, changed by it": (
        {},
        [{"op": "add", "path": "/a", "value": {"b": []}}, {"op": "add", "path": "/a/b/-", "value": 1}],
        {"a": {"b": [1]}},
    ),
}


@cases("name", APPLIES)
def test_a_patch_applies_and_leaves_what_it_was_given(name: str) -> None:
    document, operations, expected = APPLIES[name]
    before = copy.deepcopy((document, operations))
    found = apply_patch(document, operations)
    assert json.dumps(found) == json.dumps(expected)
    assert (document, operations) == before
    found.clear()
    assert (document, operations) == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/c", "value": [[1]]},
        {"op": "replace", "path": "/a", "value": [[1]]},
        {"op": "copy", "from": "/a", "path": "/c"},
    ],
)
def test_what_comes_out_shares_nothing_with_what_went_in(operation: dict[str, Any]) -> None:
    document, operations = {"a": [[1]], "b": {"x": [1]}}, [operation]
    before = copy.deepcopy((document, operations))
    found = apply_patch(document, operations)
    for name in found:
        inner = found[name]["x"] if isinstance(found[name], dict) else found[name][0]
        inner.append("more")
    assert (document, operations) == before
    assert [len(found[name][0]) for name in ("a", "c") if name in found] == [2] * (len(found) - 1)


# what does not fit: the document, the operations, the place of the fault

MISFITS: dict[str, tuple[dict[str, Any], Operations, Path]] = {
    "A.9 test": ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], (0, "value")),
    "A.12 no parent": ({"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": "qux"}], (0, "path")),
    "A.15 a string is no number": ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": "10"}], (0, "value")),
    "the second": ({}, [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}], (1, "path")),
    "remove nothing": ({}, [{"op": "remove", "path": "/a"}], (0, "path")),
    "remove twice": ({"a": 1}, [{"op": "remove", "path": "/a"}] * 2, (1, "path")),
    "replace nothing": ({}, [{"op": "replace", "path": "/a", "value": 1}], (0, "path")),
    "test nothing": ({}, [{"op": "test", "path": "/a", "value": None}], (0, "path")),
    "move nothing": ({}, [{"op": "move", "from": "/a", "path": "/b"}], (0, "from")),
    "copy nothing": ({}, [{"op": "copy", "from": "/a", "path": "/b"}], (0, "from")),
    "copy to nowhere": ({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b/c"}], (0, "path")),
    "behind the end": ({"a": [1]}, [{"op": "add", "path": "/a/2", "value": 1}], (0, "path")),
    "an index that is gone": ({"a": [1, 2]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], (0, "path")),
    "no item": ({"a": [1]}, [{"op": "remove", "path": "/a/1"}], (0, "path")),
    "a negative index": ({"a": [1]}, [{"op": "remove", "path": "/a/-1"}], (0, "path")),
    "a leading zero": ({"a": [1, 2]}, [{"op": "test", "path": "/a/01", "value": 2}], (0, "path")),
    "a leading zero to add": ({"a": [1, 2]}, [{"op": "add", "path": "/a/00", "value": 2}], (0, "path")),
    "a plus": ({"a": [1]}, [{"op": "remove", "path": "/a/+0"}], (0, "path")),
    "a fraction": ({"a": [1]}, [{"op": "remove", "path": "/a/0.0"}], (0, "path")),
    "an Arabic digit": ({"a": [1]}, [{"op": "remove", "path": "/a/٠"}], (0, "path")),
    "an index and a line": ({"a": [1]}, [{"op": "remove", "path": "/a/0\n"}], (0, "path")),
    "very many digits": ({"a": [1]}, [{"op": "add", "path": "/a/" + "9" * 5_000, "value": 1}], (0, "path")),
    "the end is no item": ({"a": [1]}, [{"op": "remove", "path": "/a/-"}], (0, "path")),
    "the end is nothing to test": ({"a": [1]}, [{"op": "test", "path": "/a/-", "value": 1}], (0, "path")),
    "the end holds nothing": ({"a": [[1]]}, [{"op": "add", "path": "/a/-/0", "value": 1}], (0, "path")),
    "a name in a list": ({"a": [1]}, [{"op": "add", "path": "/a/b", "value": 1}], (0, "path")),
    "the length of a list": ({"a": [1]}, [{"op": "test", "path": "/a/length", "value": 1}], (0, "path")),
    "inside a string": ({"a": "bc"}, [{"op": "test", "path": "/a/0", "value": "b"}], (0, "path")),
    "a letter of a string": ({"a": "bc"}, [{"op": "test", "path": "/a/b", "value": "b"}], (0, "path")),
    "into a string": ({"a": "bc"}, [{"op": "add", "path": "/a/0", "value": "b"}], (0, "path")),
    "into null": ({"a": None}, [{"op": "add", "path": "/a/b", "value": 1}], (0, "path")),
    "an attribute": ({"a": {}}, [{"op": "copy", "from": "/a/__class__", "path": "/b"}], (0, "from")),
    "a trailing slash": ({"a": {"b": 1}}, [{"op": "remove", "path": "/a/"}], (0, "path")),
    "after the whole": ({"a": 1}, [{"op": "remove", "path": ""}, {"op": "add", "path": "/a", "value": 1}], (1, "path")),
}


@cases("name", MISFITS)
def test_a_patch_that_does_not_fit_is_a_conflict(name: str) -> None:
    document, operations, place = MISFITS[name]
    refusal = refused(document, operations)
    assert refusal.code is Code.CONFLICT
    assert places(refusal) == [("body", *place)]


# what is no JSON Patch: the body, the places of its faults

NO_NAMES: list[Any] = ["spam", "ADD", "", " add", None, 5, [], {}, True]
NO_POINTERS: list[Any] = ["a", "a/b", " /a", "#/a", "/~", "/~2", "/a~", "/~~0", None, 0, ["a"], {}]
NO_OBJECTS: list[Any] = [[], [{}], None, 1, "x", True]
ILL_FORMED: dict[str, tuple[Any, list[Path]]] = {
    "an object": ({"op": "remove", "path": "/a"}, [()]),
    "null": (None, [()]),
    "a string": ("[]", [()]),
    "no objects": ([1, None, [], "x", True], [(0,), (1,), (2,), (3,), (4,)]),
    "no op": ([{}, {"path": "/a", "value": 1}], [(0, "op"), (1, "op")]),
    "no such op": ([{"op": op, "path": "/a", "value": 1} for op in NO_NAMES], [(index, "op") for index in range(9)]),
    "nothing but an op": (
        [{"op": op} for op in ("add", "remove", "replace", "move", "copy", "test")],
        [
            (0, "path"),
            (0, "value"),
            (1, "path"),
            (2, "path"),
            (2, "value"),
            (3, "path"),
            (3, "from"),
            (4, "path"),
            (4, "from"),
            (5, "path"),
            (5, "value"),
        ],
    ),
    "no pointers": ([{"op": "remove", "path": path} for path in NO_POINTERS], [(index, "path") for index in range(12)]),
    "no pointer to come from": (
        [{"op": "copy", "from": "a", "path": "/b"}, {"op": "move", "from": None, "path": "b"}],
        [(0, "from"), (1, "path"), (1, "from")],
    ),
    "moved into itself": (
        [
            {"op": "move", "from": "/a", "path": "/a/b"},
            {"op": "move", "from": "", "path": "/a"},
            {"op": "move", "from": "/a~1", "path": "/a~1/0/c"},
            {"op": "move", "from": "/", "path": "//"},
        ],
        [(index, "from") for index in range(4)],
    ),
    "the good among the bad": (
        [{"op": "remove", "path": "/nope"}, {"op": "add", "path": "/a"}, {"op": "test", "path": "/a", "value": 2}],
        [(1, "value")],
    ),
    "twenty are told": ([{}] * 30, [(index, "op") for index in range(20)]),
    "too many": ([{"op": "test", "path": "/a", "value": 1}] * 101, [()]),
}


@cases("name", ILL_FORMED)
def test_what_is_no_patch_is_refused_with_all_its_faults(name: str) -> None:
    operations, expected = ILL_FORMED[name]
    refusal = refused({"a": 1}, operations)
    assert refusal.code is Code.BAD_USER_INPUT
    assert places(refusal) == [("body", *place) for place in expected]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "", "value": []},
        {"op": "add", "path": "", "value": None},
        {"op": "copy", "from": "/a", "path": ""},
        {"op": "move", "from": "/b", "path": ""},
    ],
)
def test_a_patch_must_leave_an_object(operation: dict[str, Any]) -> None:
    refusal = refused({"a": 1, "b": [{}]}, [operation])
    assert (refusal.code, places(refusal)) == (Code.BAD_USER_INPUT, [("body",)])


# limits


def test_a_hundred_operations_are_allowed() -> None:
    found = apply_patch({"a": []}, [{"op": "add", "path": "/a/-", "value": n} for n in range(100)])
    assert found == {"a": list(range(100))}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "copy", "from": "/a", "path": "/a/-"}] * 100,
        [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(100)],
        [{"op": "copy", "from": "", "path": "/b"}, {"op": "move", "from": "/b", "path": "/a/-"}] * 50,
        [
            {"op": "add", "path": "/a", "value": "x" * 100_000},
            *[{"op": "copy", "from": "/a", "path": f"/{n}"} for n in range(99)],
        ],
        [
            {"op": "add", "path": "/a", "value": "x" * 100_000},
            *[{"op": "copy", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/b"}] * 49,
        ],
    ],
    ids=["into itself", "the whole", "moved inside", "side by side", "thrown away"],
)
def test_copies_of_copies_are_refused_in_good_time(operations: Operations) -> None:
    begun = time.perf_counter()
    refusal = refused({"a": ["x" * 1_000]}, operations)
    assert refusal.code in (Code.PAYLOAD_TOO_LARGE, Code.TOO_DEEP)
    assert time.perf_counter() - begun < 5


def test_a_patched_object_may_have_a_mebibyte_but_may_always_shrink() -> None:
    half = "x" * (MAX_SIZE // 2)
    add: Operations = [{"op": "add", "path": "/b", "value": half[:-16]}]
    assert len(json.dumps(apply_patch({"a": half}, add), separators=(",", ":"))) == MAX_SIZE - 1
    assert refused({"a": half}, [{"op": "add", "path": "/b", "value": half}]).code is Code.PAYLOAD_TOO_LARGE
    large = {"a": half, "b": half, "c": [1, 2]}
    assert apply_patch(large, [{"op": "replace", "path": "/c/0", "value": 3}, {"op": "remove", "path": "/c/1"}])[
        "c"
    ] == [3]
    assert refused(large, [{"op": "add", "path": "/c/-", "value": 3}]).code is Code.PAYLOAD_TOO_LARGE


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels > 1 else {}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "copy", "from": "", "path": "/a" * 40 + "/b"}],
        [{"op": "add", "path": "/a" * 40 + "/b", "value": nested(24)}],
        [{"op": "replace", "path": "/a" * 39, "value": nested(26)}],
        [{"op": "move", "from": f"/{n}", "path": f"/{n + 1}" + "/a" * 39} for n in range(99)],
        [{"op": "move", "from": f"/{n}", "path": f"/{n + 1}" + "/a" * 39} for n in range(98)]
        + [{"op": "copy", "from": "/98", "path": "/b"}],
    ],
    ids=["copied", "added", "replaced", "moved", "moved and copied"],
)
def test_a_patched_object_is_not_too_deep(operations: Operations) -> None:
    document = nested(41) | {str(n): nested(40) for n in range(100)}
    assert refused(document, operations).code is Code.TOO_DEEP
    shallow: Operations = [{"op": "add", "path": "/a" * 40 + "/b", "value": nested(23)}]
    assert apply_patch(document, shallow)["99"] == nested(40)


# equality, and what changed

EQUAL: list[tuple[Any, Any]] = [
    (1, 1.0),
    (0, -0.0),
    (2**53, float(2**53)),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    ([[]], [[]]),
    ("é", "\u00e9"),
    (None, None),
    (True, True),
    (10**400, 10**400),
    ({}, {}),
]
UNEQUAL: list[tuple[Any, Any]] = [
    (True, 1),
    (False, 0),
    (True, 1.0),
    (False, None),
    (0, None),
    ("", None),
    ("1", 1),
    ([], {}),
    ([], None),
    ({}, None),
    ([1], [True]),
    ({"a": 0}, {"a": False}),
    ([1, 2], [2, 1]),
    ([1], [1, 2]),
    ({"a": 1}, {"a": 1, "b": None}),
    ({"a": None}, {}),
    ({"a": None}, {"b": None}),
    (2**53 + 1, float(2**53)),
    (10**400, 1.5),
    ("é", "e\u0301"),
    ("a", "A"),
    ([[1]], [[1.5]]),
]


@cases(("one", "other", "same"), [*((*pair, True) for pair in EQUAL), *((*pair, False) for pair in UNEQUAL)])
def test_values_are_equal_by_what_json_says_they_are(one: Any, other: Any, same: bool) -> None:
    for left, right in ((one, other), (other, one)):
        assert equal(left, right) is same
        assert changed({"m": left}, {"m": right}) == ({} if same else {"m": right})
        operations = [{"op": "test", "path": "/m", "value": left}]
        if same:
            apply_patch({"m": right}, operations)
        else:
            assert places(refused({"m": right}, operations)) == [("body", 0, "value")]


def test_what_changed_is_told_member_by_member() -> None:
    before = {"same": 1, "other": {"x": 1, "y": [1]}, "gone": 1, "null": None, "none": None}
    after = {"same": 1.0, "other": {"x": 1, "y": [1, 2]}, "new": None, "null": None}
    assert changed(before, after) == {"other": {"x": 1, "y": [1, 2]}, "new": None, "gone": None, "none": None}
    assert changed(before, before) == {}


def test_a_merge_patch_is_an_object() -> None:
    assert merge_patch({"a": None}) == {"a": None}
    for body in NO_OBJECTS:
        with pytest.raises(Refusal) as found:
            merge_patch(body)
        assert (found.value.code, places(found.value)) == (Code.BAD_USER_INPUT, [("body",)])


# the examples of RFC 7396, appendix A, that are of a member
MERGES: list[tuple[Any, Any, Any]] = [
    ("b", "c", "c"),
    ({"b": "c"}, {"b": "d"}, {"b": "d"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    (["b"], "c", "c"),
    ("c", ["b"], ["b"]),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ([{"b": "c"}], [1], [1]),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "foo"}, None, None),
]


@cases(("before", "patch", "after"), MERGES)
def test_a_merge_patch_goes_into_objects(before: Any, patch: Any, after: Any) -> None:
    whole = copy.deepcopy(before)
    assert merge(whole, patch) == after
    assert whole == before


def test_a_merge_patch_makes_nothing_too_large() -> None:
    large = {"a": "x" * MAX_SIZE}
    assert merge_stored(json.dumps(large), {"b": None}) == large
    with pytest.raises(Refusal) as found:
        merge_stored(json.dumps({"a": "x" * (MAX_SIZE - 20)}), {"b": "x" * 100})
    assert found.value.code is Code.PAYLOAD_TOO_LARGE


# any objects, any operations

names = st.sampled_from(["a", "b", "0", "1", "-", "01", "", "~", "/", "~1", "é"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 0.5, 2**70, "", "a", "0"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=10,
)
objects = st.dictionaries(names, values, max_size=4)


def difference(before: Any, after: Any, place: Path = ()) -> Operations:
    """Operations that make one value of another, found without thinking."""
    path = pointer(place)
    if isinstance(before, dict) and isinstance(after, dict):
        gone = [{"op": "remove", "path": pointer((*place, key))} for key in before if key not in after]
        new = [{"op": "add", "path": pointer((*place, key)), "value": after[key]} for key in after if key not in before]
        return (
            gone
            + new
            + [each for key in before if key in after for each in difference(before[key], after[key], (*place, key))]
        )
    if isinstance(before, list) and isinstance(after, list):
        both = min(len(before), len(after))
        gone = [{"op": "remove", "path": pointer((*place, both))}] * (len(before) - both)
        new = [{"op": "add", "path": pointer((*place, "-")), "value": item} for item in after[both:]]
        return (
            gone
            + new
            + [each for index in range(both) for each in difference(before[index], after[index], (*place, index))]
        )
    return [] if equal(before, after) else [{"op": "replace", "path": path, "value": after}]


def pointers(value: Any, place: Path = ()) -> list[Path]:
    """All places of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(each for key, item in inner for each in pointers(item, (*place, key)))]


@settings(deadline=None)
@given(objects, objects)
def test_a_difference_applies(before: dict[str, Any], after: dict[str, Any]) -> None:
    operations = difference(before, after)
    found = apply_patch(before, operations)
    assert equal(found, after)
    checked = [{"op": "test", "path": "", "value": before}, *operations, {"op": "test", "path": "", "value": after}]
    assert equal(apply_patch(before, checked), after)
    merged = {key: value for key, value in (before | changed(before, after)).items() if key in after}
    assert equal(merged, after)
    assert changed(after, found) == {}


@settings(deadline=None)
@given(objects, values, st.data())
def test_what_was_done_can_be_undone(document: dict[str, Any], value: Any, data: st.DataObject) -> None:
    path = pointer(data.draw(st.sampled_from(pointers(document)[1:] or [("a",)])))
    there = document != {}
    if there:
        away = [{"op": "move", "from": path, "path": "/new"}, {"op": "move", "from": "/new", "path": path}]
        assert equal(apply_patch(document, away), document)
        twin = [{"op": "copy", "from": path, "path": "/new"}, {"op": "remove", "path": "/new"}]
        assert equal(apply_patch(document, twin), document)
    inserted = [
        {"op": "add", "path": "/new", "value": value},
        {"op": "test", "path": "/new", "value": value},
        {"op": "remove", "path": "/new"},
    ]
    assert equal(apply_patch(document, inserted), document)


@st.composite
def patches(draw: st.DrawFn) -> tuple[dict[str, Any], Operations]:
    """An object, and operations that often fit it."""
    document = draw(objects)
    found = pointers(document)

    def path() -> str:
        place = draw(st.sampled_from(found))
        more = draw(st.one_of(st.just(()), st.tuples(st.one_of(names, st.sampled_from(["2", "3"])))))
        return pointer((*place, *more))

    operations: Operations = []
    for name in draw(
        st.lists(st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "spam"]), max_size=5)
    ):
        operations.append({"op": name, "path": path(), "from": path(), "value": draw(values)})
    return document, operations


@settings(max_examples=scaled(300), deadline=None)
@given(patches())
@example(({"a": []}, [{"op": "add", "path": "/a/0", "from": "", "value": 1}] * 2))
def test_any_patch_applies_step_by_step_as_it_does_at_once(case: tuple[dict[str, Any], Operations]) -> None:
    """Or it is refused as a whole, at the step that does not fit."""
    document, operations = case
    before = copy.deepcopy(case)
    try:
        whole = apply_patch(document, operations)
    except Refusal as refusal:
        assert problem(refusal).status in (409, 422)
        if refusal.code is Code.CONFLICT:
            (place,) = places(refusal)
            index = place[1]
            assert isinstance(index, int)
            fine = [*operations[:index], {"op": "add", "path": "", "value": {}}]
            assert apply_patch(document, fine) == {}
    else:
        current: Any = document
        for operation in operations:
            try:
                current = apply_patch(current, [operation])
            except Refusal as refusal:  # no object in between
                assert places(refusal) == [("body",)]
                return
        assert equal(whole, current)
    finally:
        assert (document, operations) == before
