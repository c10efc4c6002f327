"""Reads and applies PATCH bodies: a merge patch (RFC 7396) or a JSON Patch (RFC 6902) → the members that change.

A merge patch lists what changes, except that objects are merged into existing ones. A JSON Patch is applied to the
object as its caller sees it, and the difference is what changes:

    {"title": "old", "tags": ["a"]}    and    [{"op": "add", "path": "/tags/-", "value": "b"}]
    apply_patch → {"title": "old", "tags": ["a", "b"]}
    changed     → {"tags": ["a", "b"]}

A patch applies as a whole or not at all, and its arguments are not modified. Malformed operations are BAD_USER_INPUT,
all reported at once; an operation that does not fit the object is a CONFLICT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from diptych.api.json import MAX_NESTING, check_nesting, too_deep
from diptych.errors import MAX_FAULTS, Code, Fault, Path, Refusal

MAX_PATCH_OPERATIONS = 100
MAX_SIZE = 1_048_576
"""Bytes of JSON that a patched object may have (unless it was larger before), and that a patch may copy."""

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("path", "from"),
    "copy": ("path", "from"),
    "test": ("path", "value"),
}
"""The operations with their required members. Others are ignored."""
_BAD_ESCAPE = re.compile("~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)

Pointer = tuple[str, ...]
"""The steps of a JSON pointer, starting above the root, which is the member "" of its holder."""


def merge_patch(body: Any) -> dict[str, Any]:
    """The members that a merge patch changes: all of its members."""
    if isinstance(body, dict):
        return body
    raise Refusal(Code.BAD_USER_INPUT, "The body is not a merge patch.", [Fault(("body",), "expected an object")])


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The members that differ, with their whole new values; null for one that was removed."""
    changes = {name: value for name, value in after.items() if name not in before or not equal(before[name], value)}
    return changes | {name: None for name in before if name not in after}


def equal(one: Any, other: Any) -> bool:
    """Are two JSON values equal (RFC 6902, §4.6)? Numbers compare by value, and true is not a number."""
    kind = type(one)
    if kind is not type(other):
        return {kind, type(other)} == {int, float} and bool(one == other)
    if kind is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if kind is dict:
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    return bool(one == other)


# reading


class PatchOperation(NamedTuple):
    """One well-formed operation."""

    name: str
    path: Pointer
    origin: Pointer
    value: Any


def read_patch(body: Any) -> list[PatchOperation]:
    faults: list[Fault] = []
    if not isinstance(body, list):
        faults.append(Fault(("body",), "expected a list of operations"))
    elif len(body) > MAX_PATCH_OPERATIONS:
        faults.append(Fault(("body",), f"expected at most {MAX_PATCH_OPERATIONS} operations, got {len(body)}"))
    else:
        for index, operation in enumerate(body):
            faults += _faults_of(operation, ("body", index))
    if faults:
        raise Refusal(Code.BAD_USER_INPUT, "The body is not a JSON Patch.", faults[:MAX_FAULTS])
    return [
        PatchOperation(operation["op"], _pointer(operation["path"]), _origin(operation), operation.get("value"))
        for operation in body
    ]


def _faults_of(operation: Any, path: Path) -> list[Fault]:
    """The faults of one operation."""
    if not isinstance(operation, dict):
        return [Fault(path, "expected an operation, which is an object")]
    name = operation.get("op")
    if not isinstance(name, str) or name not in _MEMBERS:
        return [Fault((*path, "op"), f"expected one of {', '.join(_MEMBERS)}")]
    faults: list[Fault] = []
    for member in _MEMBERS[name]:
        if member not in operation:
            faults.append(Fault((*path, member), f"{name} needs the member '{member}'"))
        elif member != "value" and not _is_pointer(operation[member]):
            cause = f"expected a JSON pointer of at most {MAX_NESTING} steps, such as /tags/0"
            faults.append(Fault((*path, member), cause))
    if not faults and name == "move" and operation["path"].startswith(operation["from"] + "/"):
        faults.append(Fault((*path, "from"), "nothing can be moved into itself"))
    return faults


def _is_pointer(text: Any) -> bool:
    sound = isinstance(text, str) and text[:1] in ("", "/") and text.count("/") <= MAX_NESTING
    return sound and not _BAD_ESCAPE.search(text)


def _pointer(text: str) -> Pointer:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def _origin(operation: Mapping[str, Any]) -> Pointer:
    return _pointer(operation["from"]) if "from" in _MEMBERS[operation["op"]] else ()


# applying


def apply_patch(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """Apply a JSON Patch to an object."""
    patch = _Patch(document)
    for index, operation in enumerate(read_patch(operations)):
        try:
            getattr(patch, operation.name)(operation)
        except _Misfit as misfit:
            fault = Fault(("body", index, misfit.member), misfit.message)
            raise Refusal(Code.CONFLICT, "The patch does not fit the object as it is.", [fault]) from None
    return patch.done()


class _Misfit(Exception):
    """An operation does not fit the object."""

    def __init__(self, member: str, message: str = "there is no value at this path") -> None:
        self.member = member
        self.message = message


class _Patch:
    """An object while it is patched: a deep copy."""

    def __init__(self, document: dict[str, Any]) -> None:
        text = _encode(document)
        self.holder: dict[str, Any] = {"": msgspec.json.decode(text)}
        self.most = max(MAX_SIZE, len(text))
        self.copied = 0

    def done(self) -> dict[str, Any]:
        document = self.holder.get("")
        if not isinstance(document, dict):
            faults = [Fault(("body",), "expected a patch that leaves an object")]
            raise Refusal(Code.BAD_USER_INPUT, "The patch leaves no object.", faults)
        text = _encode(document)
        self._allow(len(text))
        check_nesting(document, text.count(b"{") + text.count(b"["))
        return document

    def _allow(self, size: int) -> None:
        if size > self.most:
            raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The patch makes or copies more than {self.most} bytes of JSON.")

    # the operations

    def add(self, operation: PatchOperation) -> None:
        self._put(operation.path, msgspec.json.decode(_encode(operation.value)))

    def remove(self, operation: PatchOperation) -> None:
        self._take(operation.path, "path")

    def replace(self, operation: PatchOperation) -> None:
        parent, key = self._find(operation.path, "path")
        parent[key] = msgspec.json.decode(_encode(operation.value))

    def move(self, operation: PatchOperation) -> None:
        self._put(operation.path, self._take(operation.origin, "from"))

    def copy(self, operation: PatchOperation) -> None:
        """Copy a value. Copies are counted, since each may double the size."""
        parent, key = self._find(operation.origin, "from")
        text = _encode(parent[key])
        self.copied += len(text)
        self._allow(self.copied)
        self._put(operation.path, msgspec.json.decode(text))

    def test(self, operation: PatchOperation) -> None:
        parent, key = self._find(operation.path, "path")
        if not equal(operation.value, parent[key]):
            raise _Misfit("value", "the value at the path is another")

    # pointers

    def _find(self, pointer: Pointer, member: str) -> tuple[Any, Any]:
        """The parent of the value at a pointer, and its key there."""
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
    """A step of a pointer as a key of a Python dict or list."""
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
    """Encode as JSON; decoding it again gives a deep copy."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        raise too_deep() from None
