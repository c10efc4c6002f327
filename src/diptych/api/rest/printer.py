"""An Ask → the URL of a REST request: the translator, backwards.

A REST request is one row by its id, a page, or a page below one row; inside, relations lead to one row or to
plain lists. Everything else is GraphQL's alone, and is refused here with a ValueError. Translating the URL
again gives an equal Ask, slot by slot.

    Read("User", "one", (Field("name", "name"), Follow("posts", "recent", Read("Post", "list", …))), …)

    /users/7?fields=name,recent:posts%5Bfirst=5;sort=-createdAt%5D(title)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from diptych.api.rest.translate import PAGE_INFO
from diptych.api.undraft import Wheres, one_slot, page_slots, sort_names
from diptych.ask.nodes import Field, Follow, Nodes, Part, Pick, Read, Total
from diptych.model.defs import ResourceDef
from diptych.model.expr import TRUE, Slot
from diptych.model.model import Model
from diptych.model.naming import kebab
from diptych.model.scalars import encode_json

TOTAL = Total("totalCount")
_INNER = "-_.~,:"
"""What may stand bare in a value inside `[…]`, which is encoded once more than the rest."""
_QUERY = "-_.~,:;=()*!$'@/"
"""What may stand bare in the value of a query parameter (RFC 3986, without & and +)."""


def print_rest(ask: Read, values: Sequence[Any], model: Model) -> str:
    """The path and query of the request."""
    return _Printer(values, model).url(ask)


class _Printer:
    def __init__(self, values: Sequence[Any], model: Model) -> None:
        self.values = values
        self.model = model
        self._wheres = Wheres(model, self._value)

    def _value(self, slot: Slot) -> Any:
        return self.values[slot.index]

    def url(self, ask: Read) -> str:
        found = self.model.resources[ask.resource]
        if ask.take == "page":
            return f"/{found.path}?{_query(self._page(ask, found))}"
        if ask.take != "one":
            raise ValueError("a plain list at the root is GraphQL's alone")
        path = f"/{found.path}/{quote(str(self._value(one_slot(ask))), safe='')}"
        below = _sub_collection(ask)
        if below is None:
            return f"{path}?{_query({'fields': self._picks(ask.pick)})}"
        target = self.model.resources[below.read.resource]
        return f"{path}/{kebab(below.relation)}?{_query(self._page(below.read, target))}"

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

    def _picks(self, picks: Iterable[Pick | Part]) -> str:
        return ",".join(map(self._pick, picks))

    def _pick(self, pick: Pick | Part) -> str:
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


def _aliased(label: str, name: str) -> str:
    return name if label == name else f"{label}:{name}"


def _query(given: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(text, safe=_QUERY)}" for name, text in given.items())
