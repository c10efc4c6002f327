"""Value objects as a type: `address: Address` is a JSON object in one column.

    {"city": "Oslo", "zip": null}       on the wire, and stored: decimals as text, durations in microseconds

`patch_of` is the same type in an update, which names only the members that it changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import replace

from diptych.model.constraints import tests_of
from diptych.model.duration import read_duration
from diptych.model.enum_scalar import own_doc
from diptych.model.list_scalar import ElementError
from diptych.model.scalars import DURATION, JSON, JsonText, Member, Scalar, encode_json

PATCH = "Patch"


def value_of(kind: type, members: Mapping[str, Member]) -> Scalar:
    """The type of a class of value objects."""
    parse = functools.partial(_parse, kind.__name__, members, _tests(members), True)
    return Scalar(
        kind.__name__,
        kind,
        {"type": "object"},
        parse,
        functools.partial(_parse_text, parse),
        "TEXT",
        "jsonb",
        "text::jsonb",
        sqlite_test=f"CASE WHEN {JSON.sqlite_test} THEN json_type({{0}}) = 'object' END",
        postgres_test="jsonb_typeof({0}) = 'object'",
        ops=("isNull",),
        sortable=False,
        to_sqlite=functools.partial(_stored, members),
        to_postgres=functools.partial(_stored, members),
        description=own_doc(kind),
        members=members,
    )


@functools.cache
def patch_of(scalar: Scalar) -> Scalar:
    """The members of a value that an update changes."""
    assert scalar.members is not None
    parse = functools.partial(_parse, scalar.name, scalar.members, _tests(scalar.members), False)
    return replace(scalar, parse=parse, parse_text=functools.partial(_parse_text, parse), graphql=scalar.name + PATCH)


def merged_value(scalar: Scalar, stored: Any, patch: Mapping[str, Any]) -> JsonText:
    """The stored form of a value after a patch of its members. Raises ElementError if one that it needs is missing."""
    members = scalar.members or {}
    before = stored if isinstance(stored, dict) else {}
    whole: dict[str, Any] = {}
    for name, member in members.items():
        if name in patch:
            whole[name] = _plain(member, patch[name])
        else:
            whole[name] = before[name] if name in before else _plain(member, member.default)
        if whole[name] is None and not member.nullable:
            raise ElementError((name,), "expected a value")
    return JsonText(encode_json(whole))


def _tests(members: Mapping[str, Member]) -> dict[str, list[tuple[Callable[[Any], object], str]]]:
    return {name: tests_of(member.constraints) for name, member in members.items()}


def _parse(
    kind: str,
    members: Mapping[str, Member],
    tests: Mapping[str, list[tuple[Callable[[Any], object], str]]],
    whole: bool,
    value: Any,
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    for name in value:
        if name not in members:
            raise ElementError((name,), f"{kind} has no field '{name}'")
    parsed: dict[str, Any] = {}
    for name, member in members.items():
        if name in value:
            parsed[name] = _member(name, member, tests[name], value[name])
        elif whole and member.required:
            raise ElementError((name,), "expected a value")
        elif whole:
            parsed[name] = member.default
    return parsed


def _member(name: str, member: Member, tests: list[tuple[Callable[[Any], object], str]], value: Any) -> Any:
    if value is None:
        if not member.nullable:
            raise ElementError((name,), "expected a value, and not null")
        return None
    try:
        parsed = member.scalar.parse(value)
    except ValueError as error:
        raise ElementError((name,), str(error)) from None
    if parsed is None:
        raise ElementError((name,), "expected an id")
    for holds, message in tests:
        if not holds(parsed):
            raise ElementError((name,), message)
    return parsed


def _parse_text(parse: Callable[[Any], Any], text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise ValueError("expected a JSON object") from None
    return parse(value)


def _stored(members: Mapping[str, Member], value: Any) -> str:
    if isinstance(value, JsonText):
        return str(value)
    return encode_json({name: _plain(members[name], part) for name, part in value.items()})


def _plain(member: Member, value: Any) -> Any:
    """A canonical value as it is stored inside of JSON."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return read_duration(value) if value is not None and member.scalar is DURATION else value
