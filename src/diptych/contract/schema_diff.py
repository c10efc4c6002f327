"""Compares JSON schemas of two OpenAPI documents, by who writes the values.

What clients send must still be accepted: a schema that became narrower breaks them. What they receive must still fit
what they know: a schema that became wider does. A new value of an enum is only dangerous, as in GraphQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from diptych.contract.change import ContractChange
from diptych.contract.sunsets import announced, sunset_of, sunset_of_value

Json = Mapping[str, Any]
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})
_NULL = {"type": "null"}
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_EXACT = ("format", "pattern", "const", "multipleOf", "contentMediaType")


class SchemaDiff:
    """The schemas of an old and a new document. A pair of components is compared once in each direction."""

    def __init__(self, old: Json, new: Json) -> None:
        self._old = old
        self._new = new
        self._done: set[tuple[str, str, bool]] = set()

    @staticmethod
    def resolve(document: Json, node: Json) -> Json:
        """What a node refers to, or the node itself."""
        while "$ref" in node:
            target: Any = document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    def sent(self, place: str, old: Json, new: Json) -> Iterator[ContractChange]:
        """Changes for values that clients send."""
        yield from self._compare(place, old, new, sent=True)

    def received(self, place: str, old: Json, new: Json) -> Iterator[ContractChange]:
        """Changes for values that clients receive."""
        yield from self._compare(place, old, new, sent=False)

    def _compare(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
        yield from self._null(place, old, new, sent=sent)
        old, new = _not_null(old), _not_null(new)
        before, after = old.get("$ref", ""), new.get("$ref", "")
        if before and after:
            if (before, after, sent) in self._done:
                return
            self._done.add((before, after, sent))
            place = (
                f"{before.rpartition('/')[2]} in {'requests' if sent else 'responses'}" if before == after else place
            )
        was, now = self.resolve(self._old, old), self.resolve(self._new, new)
        yield from _types(place, was, now, sent=sent)
        if not _types_of(was) & _types_of(now):
            return
        yield from _enum(place, was, now, sent=sent)
        yield from _bounds(place, was, now, sent=sent)
        yield from self._members(place, was, now, sent=sent)
        for key in ("items", "additionalProperties", "contentSchema"):
            if isinstance(was.get(key), dict) and isinstance(now.get(key), dict):
                yield from self._compare(place, was[key], now[key], sent=sent)
        for key in ("oneOf", "anyOf"):
            yield from self._branches(place, was.get(key, []), now.get(key, []), sent=sent)
        yield from self._parts(place, was.get("allOf", []), now.get("allOf", []), sent=sent)

    def _null(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
        before, after = self._takes_null(self._old, old), self._takes_null(self._new, new)
        if sent and before and not after:
            yield ContractChange(place, "null is not taken any more")
        if not sent and after and not before:
            yield ContractChange(place, "can be null now")

    def _takes_null(self, document: Json, node: Json) -> bool:
        if _not_null(node) is not node:
            return True
        types = self.resolve(document, node).get("type", ())
        return types == "null" or (not isinstance(types, str) and "null" in types)

    def _members(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for name in sorted(needs - needed) if sent else ():
            yield ContractChange(place, f"`{name}` is required now")
        for name, schema in before.items():
            if name not in after:
                yield announced(ContractChange(place, f"`{name}` is gone"), sunset_of(schema))
            else:
                if not sent and name in needed - needs:
                    yield ContractChange(place, f"`{name}` may be missing now")
                yield from self._compare(f"{place}, `{name}`", schema, after[name], sent=sent)

    def _branches(self, place: str, old: list[Json], new: list[Json], *, sent: bool) -> Iterator[ContractChange]:
        """Alternatives, matched by the component that they name, else by their kind and order."""
        before, after = _keyed(old), _keyed(new)
        for key, schema in before.items():
            if key in after:
                yield from self._compare(place, schema, after[key], sent=sent)
            elif sent:
                yield ContractChange(place, f"the alternative {key} is gone")
        if not sent:
            yield from (
                ContractChange(place, f"the alternative {key} is new") for key in after if before and key not in before
            )

    def _parts(self, place: str, old: list[Json], new: list[Json], *, sent: bool) -> Iterator[ContractChange]:
        """Schemas that all hold: one more narrows what is taken, one less widens what is sent back."""
        before, after = _keyed(old), _keyed(new)
        for key in before.keys() & after.keys():
            yield from self._compare(place, before[key], after[key], sent=sent)
        for key in sorted(after.keys() - before.keys()) if sent else ():
            yield ContractChange(place, f"must be a {key} too now")
        for key in sorted(before.keys() - after.keys()) if not sent else ():
            yield ContractChange(place, f"is no {key} any more")


def _not_null(node: Json) -> Json:
    """What a schema is besides null, if it says so by two alternatives."""
    for key in ("anyOf", "oneOf"):
        others: list[Json] = [branch for branch in node.get(key, ()) if branch != _NULL]
        if len(others) == 1 and len(node[key]) == 2:
            return others[0]
    return node


def _keyed(branches: list[Json]) -> dict[str, Json]:
    keyed: dict[str, Json] = {}
    for schema in branches:
        name = schema.get("$ref", "").rpartition("/")[2] or str(schema.get("type", "value"))
        keyed[name if name not in keyed else f"{name} {len(keyed)}"] = schema
    return keyed


def _types(place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
    before, after = _types_of(old), _types_of(new)
    for name in sorted(before - after) if sent else ():
        yield ContractChange(place, f"{_article(name)} is not taken any more")
    for name in sorted(after - before) if not sent else ():
        yield ContractChange(place, f"can be {_article(name)} now")


def _types_of(schema: Json) -> frozenset[str]:
    declared = schema.get("type")
    if declared is None:
        return _TYPES
    types = frozenset({declared} if isinstance(declared, str) else declared) - {"null"}
    return types | {"integer"} if "number" in types else types


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _enum(place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
    before, after = old.get("enum"), new.get("enum")
    if sent and after is not None:
        if before is None:
            yield ContractChange(place, f"takes only {_listed(after)} now")
        elif gone := [value for value in before if value not in after]:
            yield from _not_taken(place, old, gone)
    if not sent and before is not None:
        if after is None:
            yield ContractChange(place, "can be other values than before", breaking=False)
        elif more := [value for value in after if value not in before]:
            yield ContractChange(place, f"can be {_listed(more)} now", breaking=False)


def _not_taken(place: str, old: Json, gone: list[Any]) -> Iterator[ContractChange]:
    """Values that are gone: those that were deprecated each, the others together."""
    if others := [value for value in gone if sunset_of_value(old, value) is None]:
        yield ContractChange(place, f"{_listed(others)} is not taken any more")
    for value in (value for value in gone if value not in others):
        yield announced(ContractChange(place, f"{value} is not taken any more"), sunset_of_value(old, value))


def _listed(values: list[Any]) -> str:
    return ", ".join("null" if value is None else str(value) for value in values)


def _bounds(place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
    """Bounds of what clients send break them when they become narrower; those of what they receive are rarely relied
    on: when they become wider, that is dangerous only."""
    if not sent:
        yield from _wider(place, old, new)
        return
    for key in _UPPER:
        if key in new and (key not in old or new[key] < old[key]):
            yield ContractChange(place, f"{key} is {new[key]}; it was {old.get(key, 'not limited')}")
    for key in _LOWER:
        if key in new and (key not in old or new[key] > old[key]):
            yield ContractChange(place, f"{key} is {new[key]}; it was {old.get(key, 'not limited')}")
    for key in _EXACT:
        if key in new and new[key] != old.get(key):
            yield from _exact(place, key, old, new[key])


def _wider(place: str, old: Json, new: Json) -> Iterator[ContractChange]:
    """What clients receive can be beyond the bounds that it had."""
    for keys, sign in ((_UPPER, 1), (_LOWER, -1)):
        for key in keys:
            if key in old and (key not in new or sign * (new[key] - old[key]) > 0):
                yield ContractChange(
                    place, f"{key} is {new.get(key, 'not limited')}; it was {old[key]}", breaking=False
                )
    for key in _EXACT:
        if key in old and new.get(key) != old[key]:
            yield ContractChange(place, f"{key} is {new.get(key, 'free')}; it was {old[key]}", breaking=key == "const")


def _exact(place: str, key: str, old: Json, new: Any) -> Iterator[ContractChange]:
    was = old.get(key, "free")
    before, after = _words(was), _words(new)
    if before and after:
        for word in sorted(before - after):
            yield announced(ContractChange(place, f"{word} is not taken any more"), sunset_of_value(old, word))
    else:
        yield ContractChange(place, f"{key} is {new}; it was {was}")


def _words(pattern: Any) -> frozenset[str]:
    """The words of a pattern for a list of words, such as that of `sort`."""
    group = re.fullmatch(r"\^-\?\(([\w|.]+)\)\(,-\?\(\1\)\)\{0,\d+\}\$", str(pattern))
    return frozenset(group[1].split("|")) if group else frozenset()
