"""Compares two OpenAPI documents: what the new one breaks for clients, in paths, parameters, bodies and responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from diptych.contract.change import ContractChange
from diptych.contract.schema_diff import SchemaDiff
from diptych.contract.sunsets import announced, sunset_of

Json = Mapping[str, Any]
Parameters = Mapping[tuple[str, str], Json]
_METHODS = ("get", "put", "post", "delete", "patch", "query")


def openapi_changes(old: Json, new: Json) -> Iterator[ContractChange]:
    """Changes that could break a client, in the order of the old document."""
    yield from _Diff(old, new).paths()


class _Diff:
    def __init__(self, old: Json, new: Json) -> None:
        self._old = old
        self._new = new
        self._schemas = SchemaDiff(old, new)

    def paths(self) -> Iterator[ContractChange]:
        for path, item in self._old["paths"].items():
            now = self._new["paths"].get(path)
            if now is None:
                sunsets = [sunset_of(item[method]) for method in _METHODS if method in item]
                last = None if None in sunsets else "" if "" in sunsets else max(map(str, sunsets), default=None)
                yield announced(ContractChange(path, "is gone"), last)
                continue
            for method in (name for name in _METHODS if name in item):
                place = f"{method.upper()} {path}"
                if method not in now:
                    yield announced(ContractChange(place, "is gone"), sunset_of(item[method]))
                    continue
                shared = self._parameters(self._old, item), self._parameters(self._new, now)
                yield from self._operation(place, item[method], now[method], *shared)

    def _operation(
        self, place: str, old: Json, new: Json, was: Parameters, now: Parameters
    ) -> Iterator[ContractChange]:
        if old.get("operationId") != new.get("operationId"):
            renamed = f"the operation {old.get('operationId')} is now {new.get('operationId')}"
            yield ContractChange(place, renamed, breaking=False)
        if {} in old.get("security", [{}]) and {} not in new.get("security", [{}]):
            yield ContractChange(place, "needs a token now")
        before = {**was, **self._parameters(self._old, old)}
        after = {**now, **self._parameters(self._new, new)}
        yield from self._compare_parameters(place, before, after)
        yield from self._body(place, old.get("requestBody"), new.get("requestBody"))
        yield from self._responses(place, old["responses"], new["responses"])

    def _parameters(self, document: Json, holder: Json) -> Parameters:
        every = (self._schemas.resolve(document, parameter) for parameter in holder.get("parameters", ()))
        return {(parameter["in"], parameter["name"]): parameter for parameter in every}

    def _compare_parameters(self, place: str, old: Parameters, new: Parameters) -> Iterator[ContractChange]:
        for key, parameter in new.items():
            if parameter.get("required") and not old.get(key, {}).get("required"):
                yield ContractChange(place, f"the parameter `{key[1]}` is required now")
        for key, parameter in old.items():
            if key not in new:
                yield announced(ContractChange(place, f"the parameter `{key[1]}` is gone"), sunset_of(parameter))
                continue
            where, was, now = f"{place}, parameter `{key[1]}`", parameter.get("schema", {}), new[key].get("schema", {})
            yield from _default(where, was, now)
            yield from self._schemas.sent(where, was, now)

    def _body(self, place: str, old: Json | None, new: Json | None) -> Iterator[ContractChange]:
        if new is None:
            if old is not None:
                yield ContractChange(place, "takes no body any more")
            return
        if new.get("required") and not (old or {}).get("required"):
            yield ContractChange(place, "needs a body now")
        if old is not None:
            yield from self._content(f"{place}, body", old["content"], new["content"], sent=True)

    def _responses(self, place: str, old: Json, new: Json) -> Iterator[ContractChange]:
        for status in (status for status in old if status.startswith("2")):
            if status not in new:
                yield ContractChange(place, f"does not answer {status} any more")
                continue
            before = self._schemas.resolve(self._old, old[status])
            after = self._schemas.resolve(self._new, new[status])
            contents = before.get("content", {}), after.get("content", {})
            yield from self._content(f"{place}, response {status}", *contents, sent=False)
            yield from self._headers(f"{place}, response {status}", before.get("headers", {}), after.get("headers", {}))

    def _headers(self, place: str, old: Json, new: Json) -> Iterator[ContractChange]:
        for name, header in old.items():
            if name not in new:
                yield ContractChange(place, f"the header {name} is gone")
                continue
            was, now = self._schemas.resolve(self._old, header), self._schemas.resolve(self._new, new[name])
            if was.get("required") and not now.get("required"):
                yield ContractChange(place, f"the header {name} may be missing now")
            yield from self._schemas.received(f"{place}, header {name}", was.get("schema", {}), now.get("schema", {}))

    def _content(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[ContractChange]:
        for media, content in old.items():
            if media not in new:
                yield ContractChange(place, f"{media} is gone")
                continue
            compare = self._schemas.sent if sent else self._schemas.received
            yield from compare(place, content.get("schema", {}), new[media].get("schema", {}))


def _default(place: str, old: Json, new: Json) -> Iterator[ContractChange]:
    """What is meant by leaving a parameter out."""
    was, now = (json.dumps(schema["default"]) if "default" in schema else "none" for schema in (old, new))
    if was != now:
        yield ContractChange(place, f"its default is {now}; it was {was}")
