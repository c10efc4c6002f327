"""An Ask → a REST request: the translator, backwards.

A REST request is one row by its id, a page, or a page below one row; inside, relations lead to one row or to
plain lists. Everything else is GraphQL's alone, and is refused here with a ValueError. Translating the URL
again gives an equal Ask, slot by slot.

    Read("User", "one", (Field("name", "name"), Follow("posts", "recent", Read("Post", "list", …))), …)

    /users/7?fields=name,recent:posts%5Bfirst=5;sort=-createdAt%5D(title)

A Write is a method, headers and a body besides.

    Write("update", "User", Slot(0, ID), (Assign("name", Slot(1, STRING)),), Slot(2, INT), (Field("id", "id"),))

    PATCH /users/7?fields=id    If-Match: "3."    {"name": "Ann"}

A Watch that tells of a change what REST tells of it is the changes of a collection.

    Watch("Post", (…, ChangePart("row", "post", (Field("title", "title"),))), kinds=Slot(0, CHANGE_KIND, many=True))

    /posts/changes?fields=title&kinds=CREATED,DELETED
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from diptych.api.rest.translate import CHANGE_FIELDS, PAGE_INFO
from diptych.ask.nodes import (
    ChangePart,
    ConnectionPart,
    Field,
    Follow,
    Nodes,
    Pick,
    Read,
    Total,
    Watch,
    Write,
    WriteVerb,
)
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.naming import kebab
from diptych.model.rules.expr import TRUE, Slot
from diptych.model.scalars import encode_json
from diptych.model.viewer_object import VIEWER
from tests.support.filter_printer import Wheres, one_slot, page_slots, row_values, sort_names

TOTAL = Total("totalCount")
_INNER = "-_.~,:"
"""What may stand bare in a value inside `[…]`, which is encoded once more than the rest."""
_QUERY = "-_.~,:;=()*!$'@/"
"""What may stand bare in the value of a query parameter (RFC 3986, without & and +)."""


def print_rest(ask: Read, values: Sequence[Any], model: Model) -> str:
    """The path and query of the request."""
    return _Printer(values, model).url(ask)


def print_rest_watch(watch: Watch, values: Sequence[Any], model: Model) -> str:
    """The path and query of the changes that a Watch follows."""
    return _Printer(values, model).changes(watch)


class Printed(NamedTuple):
    """A request that changes something. A body of None is none."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None


_METHODS: Mapping[WriteVerb, str] = {"create": "POST", "update": "PATCH", "replace": "PUT", "delete": "DELETE"}


def print_rest_write(write: Write, values: Sequence[Any], model: Model) -> Printed:
    """The request of a Write."""
    return _Printer(values, model).write(write)


class _Printer:
    def __init__(self, values: Sequence[Any], model: Model) -> None:
        self.values = values
        self.model = model
        self._wheres = Wheres(model, self._value)

    def _value(self, slot: Slot) -> Any:
        return self.values[slot.index]

    def write(self, write: Write) -> Printed:
        path = "/" + self.model.resources[write.resource].path
        if write.verb != "create":
            path += "/" + quote(str(self._value(write.id)), safe="")
        headers = {"content-type": "application/json"} if write.verb != "delete" else {}
        if write.version is not None:
            given = self._value(write.version)
            headers["if-match"] = ", ".join(_tag(each) for each in (given if write.version.many else [given]))
        if write.verb != "delete":
            body = row_values(write, self._value)
            return Printed(_METHODS[write.verb], self._picking(path, write), headers, body)
        if not write.pick:
            return Printed("DELETE", path, headers)
        return Printed("DELETE", self._picking(path, write), {**headers, "prefer": "return=representation"})

    def _picking(self, path: str, write: Write) -> str:
        if not write.pick:
            raise ValueError("only a deletion may answer nothing")
        return f"{path}?{_query({'fields': self._picks(write.pick)})}"

    def url(self, ask: Read) -> str:
        found = self.model.resources[ask.resource]
        if ask.take == "page":
            return f"/{found.path}?{_query(self._page(ask, found))}"
        if ask.take != "one":
            raise ValueError("a plain list at the root is GraphQL's alone")
        path = f"/{found.path}"
        if ask.resource != VIEWER:
            path += f"/{quote(str(self._value(one_slot(ask))), safe='')}"
        below = _sub_collection(ask)
        if below is None:
            return f"{path}?{_query({'fields': self._picks(ask.pick)})}"
        target = self.model.resources[below.read.resource]
        return f"{path}/{kebab(below.relation)}?{_query(self._page(below.read, target))}"

    def changes(self, watch: Watch) -> str:
        found = self.model.resources[watch.resource]
        *told, row = watch.parts
        if told != [ChangePart(what, what) for what in CHANGE_FIELDS] or (row.what, row.label) != ("row", found.one):
            raise ValueError("REST tells the same of every change, and its row")
        given = {"fields": self._picks(row.pick)}
        if watch.where != TRUE:
            given["where"] = encode_json(self._wheres.tree(watch.where, found))
        if watch.kinds is not None:
            given["kinds"] = ",".join(self._value(watch.kinds))
            if not given["kinds"]:
                raise ValueError("no kinds at all are GraphQL's alone")
        if watch.after is not None:
            given["after"] = self._value(watch.after)
        return f"/{found.path}/changes?{_query(given)}"

    def _page(self, read: Read, found: ResourceDef) -> dict[str, str]:
        """The parameters of a list."""
        *around, nodes = read.pick
        whole = around in ([PAGE_INFO], [PAGE_INFO, TOTAL])
        if not whole or not isinstance(nodes, Nodes) or nodes.label != "nodes":
            raise ValueError("a REST list has its page and its rows, and nothing else")
        given = {"fields": self._picks(nodes.pick), **self._arguments(read, found)}
        return {**given, "count": "exact"} if TOTAL in around else given

    def _arguments(self, read: Read, found: ResourceDef) -> dict[str, str]:
        assert read.page is not None
        given = {}
        if read.where != TRUE:
            given["where"] = encode_json(self._wheres.tree(read.where, found))
        if read.order:
            given["sort"] = ",".join("-" * down + name for name, down in sort_names(read))
        return given | {name: str(self._value(slot)) for name, slot in page_slots(read.page).items()}

    # fields=

    def _picks(self, picks: Iterable[Pick | ConnectionPart]) -> str:
        return ",".join(map(self._pick, picks))

    def _pick(self, pick: Pick | ConnectionPart) -> str:
        match pick:
            case Field(name, label):
                return _aliased(label, name)
            case Follow(name, label, read) if read.take != "page":
                return _aliased(label, name) + self._inner(read) + f"({self._picks(read.pick)})"
        raise ValueError(f"{type(pick).__name__} is GraphQL's alone")

    def _inner(self, read: Read) -> str:
        if read.take == "one":
            return ""
        given = self._arguments(read, self.model.resources[read.resource])
        return "[" + ";".join(f"{name}={quote(text, safe=_INNER)}" for name, text in given.items()) + "]"


def _sub_collection(ask: Read) -> Follow | None:
    """The one page below one row, if that is all that is asked for."""
    match ask.pick:
        case (Follow(relation, label, Read(take="page")) as follow,) if label == relation + "Connection":
            return follow
    return None


def _tag(version: int) -> str:
    """An entity tag of which only the version matters; one without a version is never matched."""
    return f'"{version}."' if version >= 0 else '"never"'


def _aliased(label: str, name: str) -> str:
    return name if label == name else f"{label}:{name}"


def _query(given: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(text, safe=_QUERY)}" for name, text in given.items())
