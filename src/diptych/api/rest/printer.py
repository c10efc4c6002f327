"""Prints an Ask as a REST request: the inverse of `translate.py`.

A REST request is one row by its id, a page, or a page below one row; inside, relations lead to one row or to
plain lists. What only GraphQL can express raises a ValueError, whose message says so. Translating the URL
again gives an equal Ask, slot by slot.

    Read("User", "one", (Field("name", "name"), Follow("posts", "recent", Read("Post", "list", …))), …)

    /users/7?fields=name,recent:posts%5Bfirst=5;sort=-createdAt%5D(title)

A Write is a method, headers and a body besides.

    Write("update", "User", Slot(0, ID), (Assign("name", Slot(1, STRING)),), Slot(2, INT), (Field("id", "id"),))

    PATCH /users/7?fields=id    If-Match: "3."    {"name": "Ann"}

A Watch whose parts are those of REST is the changes of a collection.

    Watch("Post", (…, ChangePart("row", "post", (Field("title", "title"),))), kinds=Slot(0, CHANGE_KIND, many=True))

    /posts/changes?fields=title&kinds=CREATED,DELETED
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from diptych.api.filter_printer import (
    Wheres,
    check_take,
    one_slot,
    page_arguments,
    row_values,
    sort_names,
    split_search,
)
from diptych.api.rest.translate import CHANGE_FIELDS, PAGE_INFO
from diptych.ask.nodes import (
    Call,
    ChangePart,
    ConnectionPart,
    Field,
    Follow,
    MemberPick,
    Nodes,
    Pick,
    Read,
    RowSet,
    Total,
    Watch,
    Write,
    WriteVerb,
)
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.naming import kebab
from diptych.model.rules.expr import TRUE, Slot
from diptych.model.scalars import encode_json
from diptych.model.viewer_object import VIEWER

TOTAL = Total("totalCount")
_INNER = "-_.~,:"
"""Characters that are not encoded in a value inside `[…]`, which is encoded once more than the rest."""
_QUERY = "-_.~,:;=()*!$'@/"
"""Characters that are not encoded in the value of a query parameter (RFC 3986, without & and +)."""


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


_METHODS: Mapping[WriteVerb, str] = {
    "create": "POST",
    "update": "PATCH",
    "replace": "PUT",
    "delete": "DELETE",
    "upsert": "POST",
}


def print_rest_write(write: Write, values: Sequence[Any], model: Model) -> Printed:
    """The request of a Write."""
    return _Printer(values, model).write(write)


def print_rest_call(call: Call, values: Sequence[Any], model: Model) -> Printed:
    """The request of a call."""
    return _Printer(values, model).call(call, model.resources[call.resource].call(call.name))


class _Printer:
    def __init__(self, values: Sequence[Any], model: Model) -> None:
        self.values = values
        self.model = model
        self._wheres = Wheres(model, self._value)

    def _value(self, slot: Slot) -> Any:
        return self.values[slot.index]

    def _bulk(self, write: Write, rows: RowSet) -> Printed:
        """A change of many rows."""
        resource = self.model.resources[write.resource]
        parameters = {
            "where": encode_json(self._wheres.tree(rows.where, resource)),
            "most": str(self._value(rows.most)),
        }
        if rows.dry is not None:
            parameters["dryRun"] = "true" if self._value(rows.dry) else "false"
        for part in write.parts:
            if isinstance(part, Nodes):
                parameters["fields"] = self._picks(part.pick)
        url = f"/{resource.path}?{_query(parameters)}"
        if write.verb == "delete":
            return Printed("DELETE", url, {})
        return Printed("PATCH", url, {"content-type": "application/json"}, row_values(write, self._value))

    def write(self, write: Write) -> Printed:
        if write.rows is not None:
            return self._bulk(write, write.rows)
        path = "/" + self.model.resources[write.resource].path
        if write.verb not in ("create", "upsert"):
            path += "/" + quote(str(self._value(write.id)), safe="")
        if write.verb in ("restore", "purge"):
            return self._trash(path, write)
        headers = {"content-type": "application/json"} if write.verb != "delete" else {}
        if write.version is not None:
            given = self._value(write.version)
            headers["if-match"] = ", ".join(_tag(version) for version in (given if write.version.many else [given]))
        if write.verb != "delete":
            body = row_values(write, self._value)
            return Printed(_METHODS[write.verb], self._picking(path, write), headers, body)
        if not write.pick:
            return Printed("DELETE", path, headers)
        return Printed("DELETE", self._picking(path, write), {**headers, "prefer": "return=representation"})

    def _trash(self, path: str, write: Write) -> Printed:
        """A restore, or a deletion for good."""
        fields = {"fields": self._picks(write.pick)} if write.pick else {}
        if write.verb == "restore":
            return Printed("POST", f"{path}/restore?{_query(fields)}" if fields else f"{path}/restore", {})
        more = {"prefer": "return=representation"} if fields else {}
        return Printed("DELETE", f"{path}?{_query({'deleted': 'only', **fields})}", more)

    def call(self, call: Call, definition: CallDef) -> Printed:
        """A call of the model's own code."""
        path = "/" + self.model.resources[call.resource].path
        if call.id is not None:
            path += "/" + quote(str(self._value(call.id)), safe="")
        path = f"{path}/{definition.segment}"
        fields = {"fields": self._picks(call.pick)} if call.pick else {}
        sent = {assign.name: None if assign.value is None else self._value(assign.value) for assign in call.values}
        if isinstance(definition, QueryDef):
            if any(isinstance(value, dict | list | None) for value in sent.values()):
                raise ValueError("null, lists and objects as arguments of a query are not printed")
            texts = {
                name: encode_json(value) if isinstance(value, bool) else str(value) for name, value in sent.items()
            }
            query = _query({**texts, **fields})
            return Printed("GET", f"{path}?{query}" if query else path, {})
        url = f"{path}?{_query(fields)}" if fields else path
        return Printed("POST", url, {"content-type": "application/json"}, sent)

    def _picking(self, path: str, write: Write) -> str:
        if not write.pick:
            raise ValueError("only a deletion may answer nothing")
        conflict = ({"by": write.key} if write.key else {}) | ({"onConflict": "keep"} if write.keep else {})
        return f"{path}?{_query({'fields': self._picks(write.pick), **conflict})}"

    def url(self, ask: Read) -> str:
        check_take(ask)
        found = self.model.resources[ask.resource]
        if ask.take == "page":
            return f"/{found.path}?{_query(self._page(ask, found))}"
        if ask.take != "one":
            raise ValueError("a plain list at the root is GraphQL's alone")
        path = f"/{found.path}"
        if ask.resource != VIEWER:
            path += f"/{quote(str(self._value(one_slot(ask))), safe='')}"
        below = sub_collection(ask)
        if below is None:
            return f"{path}?{_query({'fields': self._picks(ask.pick), **({'deleted': 'only'} if ask.deleted else {})})}"
        target = self.model.resources[below.read.resource]
        return f"{path}/{kebab(below.relation)}?{_query(self._page(below.read, target))}"

    def changes(self, watch: Watch) -> str:
        found = self.model.resources[watch.resource]
        *parts, row = watch.parts
        if parts != [ChangePart(what, what) for what in CHANGE_FIELDS] or (row.what, row.label) != ("row", found.one):
            raise ValueError("REST has the same parts of every change, and its row")
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
        where, search = split_search(read.where)
        if where != TRUE:
            given["where"] = encode_json(self._wheres.tree(where, found))
        if search is not None:
            given["search"] = str(self._value(search))
        if read.deleted:
            given["deleted"] = "only"
        if read.order:
            given["sort"] = ",".join("-" * down + name for name, down in sort_names(read))
        return given | {name: str(self._value(slot)) for name, slot in page_arguments(read.page).items()}

    # fields=

    def _picks(self, picks: Iterable[Pick | ConnectionPart]) -> str:
        return ",".join(map(self._pick, picks))

    def _pick(self, pick: Pick | ConnectionPart) -> str:
        match pick:
            case Field(name, label, inside=inside):
                parts = [part for part in inside or () if isinstance(part, MemberPick)]
                members = ",".join(_aliased(part.label, part.name) for part in parts)
                return _aliased(label, name) + (f"({members})" if members else "")
            case Follow(name, label, read) if read.take != "page":
                return _aliased(label, name) + self._inner(read) + f"({self._picks(read.pick)})"
        raise ValueError(f"{type(pick).__name__} is GraphQL's alone")

    def _inner(self, read: Read) -> str:
        check_take(read)
        if read.take == "one":
            return ""
        given = self._arguments(read, self.model.resources[read.resource])
        return "[" + ";".join(f"{name}={quote(text, safe=_INNER)}" for name, text in given.items()) + "]"


def sub_collection(ask: Read) -> Follow | None:
    """The one page below a row, if that is all that is asked for: REST has a path for it."""
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
