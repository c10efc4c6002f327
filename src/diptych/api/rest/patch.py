"""The bodies of PATCH: a merge patch (RFC 7396) or a JSON Patch (RFC 6902) → the members that change.

A merge patch says by itself what changes, but for objects, which go into those that are there. A JSON Patch is
applied to the object as its caller sees it, and what differs then is what changes:

    {"title": "old", "tags": ["a"]}    and    [{"op": "add", "path": "/tags/-", "value": "b"}]
    apply_patch → {"title": "old", "tags": ["a", "b"]}
    changed     → {"tags": ["a", "b"]}

A patch applies as a whole or not at all, and what was handed in stays as it was. Ill-formed operations are
BAD_USER_INPUT, all told at once; an operation that does not fit the object is a CONFLICT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from diptych.api.limits import MAX_NESTING, check_nesting, too_deep
from diptych.errors import MAX_FAULTS, Code, Fault, Place, Refusal

MAX_OPERATIONS = 100
MAX_SIZE = 1_048_576
"""Bytes of JSON that a patch may make of an object (unless it was larger before), and bytes that it may copy."""

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("path", "from"),
    "copy": ("path", "from"),
    "test": ("path", "value"),
}
"""The operations, and what each must have. Whatever else it has is ignored."""
_BAD_ESCAPE = re.compile("~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)

Pointer = tuple[str, ...]
"""The steps of a JSON pointer from above the root, which is itself the member "" of what holds it."""


def merge_patch(body: Any) -> dict[str, Any]:
    """The members that a merge patch changes: all that it has."""
    if isinstance(body, dict):
        return body
    raise Refusal(Code.BAD_USER_INPUT, "The body is not a merge patch.", [Fault(("body",), "expected an object")])


def merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The members that a merge patch changes, each with its whole new value: objects go into those that are there."""
    found = {name: _merge(before.get(name), value) for name, value in patch.items()}
    if len(_encode(found)) > max(MAX_SIZE, len(_encode(before))):
        raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The patch makes more than {MAX_SIZE} bytes of JSON.")
    return found


def _merge(before: Any, patch: Any) -> Any:
    """RFC 7396, §2; no deeper than the deeper of the two."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merge(found.get(name), value)
    return found


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The members that differ, each with its whole new value; null for one that is gone."""
    found = {name: value for name, value in after.items() if name not in before or not equal(before[name], value)}
    return found | {name: None for name in before if name not in after}


def equal(one: Any, other: Any) -> bool:
    """Are two JSON values equal? (RFC 6902, §4.6.) Numbers are by their value, and true is no number."""
    kind = type(one)
    if kind is not type(other):
        return {kind, type(other)} == {int, float} and bool(one == other)
    if kind is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if kind is dict:
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    return bool(one == other)


# reading


class Operation(NamedTuple):
    """One well-formed operation."""

    name: str
    path: Pointer
    origin: Pointer
    value: Any


def read_patch(body: Any) -> list[Operation]:
    """The operations of a JSON Patch."""
    faults: list[Fault] = []
    if not isinstance(body, list):
        faults.append(Fault(("body",), "expected a list of operations"))
    elif len(body) > MAX_OPERATIONS:
        faults.append(Fault(("body",), f"expected at most {MAX_OPERATIONS} operations, got {len(body)}"))
    else:
        for index, given in enumerate(body):
            faults += _wrong(given, ("body", index))
    if faults:
        raise Refusal(Code.BAD_USER_INPUT, "The body is not a JSON Patch.", faults[:MAX_FAULTS])
    return [Operation(each["op"], _pointer(each["path"]), _origin(each), each.get("value")) for each in body]


def _wrong(given: Any, place: Place) -> list[Fault]:
    """What is wrong with one operation."""
    if not isinstance(given, dict):
        return [Fault(place, "expected an operation, which is an object")]
    name = given.get("op")
    if not isinstance(name, str) or name not in _MEMBERS:
        return [Fault((*place, "op"), f"expected one of {', '.join(_MEMBERS)}")]
    faults: list[Fault] = []
    for member in _MEMBERS[name]:
        if member not in given:
            faults.append(Fault((*place, member), f"{name} needs the member '{member}'"))
        elif member != "value" and not _is_pointer(given[member]):
            cause = f"expected a JSON pointer of at most {MAX_NESTING} steps, such as /tags/0"
            faults.append(Fault((*place, member), cause))
    if not faults and name == "move" and given["path"].startswith(given["from"] + "/"):
        faults.append(Fault((*place, "from"), "nothing can be moved into itself"))
    return faults


def _is_pointer(given: Any) -> bool:
    sound = isinstance(given, str) and given[:1] in ("", "/") and given.count("/") <= MAX_NESTING
    return sound and not _BAD_ESCAPE.search(given)


def _pointer(text: str) -> Pointer:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def _origin(given: Mapping[str, Any]) -> Pointer:
    return _pointer(given["from"]) if "from" in _MEMBERS[given["op"]] else ()


# applying


def apply_patch(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """What a JSON Patch makes of an object."""
    patch = _Patch(document)
    for index, operation in enumerate(read_patch(operations)):
        try:
            _APPLY[operation.name](patch, operation)
        except _Misfit as misfit:
            fault = Fault(("body", index, misfit.member), misfit.message)
            raise Refusal(Code.CONFLICT, "The patch does not fit the object as it is.", [fault]) from None
    return patch.done()


class _Misfit(Exception):
    """An operation does not fit."""

    def __init__(self, member: str, message: str = "there is no such place") -> None:
        self.member = member
        self.message = message


class _Patch:
    """An object that is being patched. All that it holds is its own."""

    def __init__(self, document: dict[str, Any]) -> None:
        text = _encode(document)
        self.holder: dict[str, Any] = {"": msgspec.json.decode(text)}
        self.most = max(MAX_SIZE, len(text))
        self.copied = 0

    def done(self) -> dict[str, Any]:
        found = self.holder.get("")
        if not isinstance(found, dict):
            faults = [Fault(("body",), "expected a patch that leaves an object")]
            raise Refusal(Code.BAD_USER_INPUT, "The patch leaves no object.", faults)
        text = _encode(found)
        self._allow(len(text))
        check_nesting(found, text.count(b"{") + text.count(b"["))
        return found

    def _allow(self, size: int) -> None:
        if size > self.most:
            raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The patch makes or copies more than {self.most} bytes of JSON.")

    # the operations

    def add(self, operation: Operation) -> None:
        self._put(operation.path, msgspec.json.decode(_encode(operation.value)))

    def remove(self, operation: Operation) -> None:
        self._take(operation.path, "path")

    def replace(self, operation: Operation) -> None:
        parent, key = self._find(operation.path, "path")
        parent[key] = msgspec.json.decode(_encode(operation.value))

    def move(self, operation: Operation) -> None:
        self._put(operation.path, self._take(operation.origin, "from"))

    def copy(self, operation: Operation) -> None:
        """Copies are counted as they are made: each may double what there is."""
        parent, key = self._find(operation.origin, "from")
        text = _encode(parent[key])
        self.copied += len(text)
        self._allow(self.copied)
        self._put(operation.path, msgspec.json.decode(text))

    def test(self, operation: Operation) -> None:
        parent, key = self._find(operation.path, "path")
        if not equal(operation.value, parent[key]):
            raise _Misfit("value", "the value at the path is another")

    # the places

    def _find(self, pointer: Pointer, member: str) -> tuple[Any, Any]:
        """What holds the value at a place, and its key there."""
        parent: Any = self.holder
        key = _key(parent, pointer[0], member)
        for step in pointer[1:]:
            parent = parent[key]
            key = _key(parent, step, member)
        return parent, key

    def _take(self, pointer: Pointer, member: str) -> Any:
        parent, key = self._find(pointer, member)
        return parent.pop(key)

    def _put(self, pointer: Pointer, value: Any) -> None:
        """Set a member, which may be new, or insert an item before another or at the end."""
        parent: Any = self.holder
        if len(pointer) > 1:
            above, key = self._find(pointer[:-1], "path")
            parent = above[key]
        if isinstance(parent, dict):
            parent[pointer[-1]] = value
        elif isinstance(parent, list):
            end = len(parent)
            parent.insert(end if pointer[-1] == "-" else _index(pointer[-1], end, "path"), value)
        else:
            raise _Misfit("path")


def _key(parent: Any, step: str, member: str) -> Any:
    """A step from a value to one inside it, as a key of Python's."""
    if isinstance(parent, list):
        return _index(step, len(parent) - 1, member)
    if isinstance(parent, dict) and step in parent:
        return step
    raise _Misfit(member)


def _index(step: str, last: int, member: str) -> int:
    """A step into a list, to the item `last` at most."""
    if _INDEX.fullmatch(step) and int(step) <= last:
        return int(step)
    raise _Misfit(member)


def _encode(value: Any) -> bytes:
    """JSON text: what is decoded from it again is a copy that nobody else has."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        raise too_deep() from None


_APPLY: Mapping[str, Callable[[_Patch, Operation], None]] = {
    "add": _Patch.add,
    "remove": _Patch.remove,
    "replace": _Patch.replace,
    "move": _Patch.move,
    "copy": _Patch.copy,
    "test": _Patch.test,
}
