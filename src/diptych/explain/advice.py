"""What would make a request faster: an index that the model does not declare, and parts that read every row.

    No index serves the filter of posts: declare one on Post.title.

It follows from the Ask, the rules and the model, so it needs no database and no value. Whether an index pays depends
on how many rows there are: it is meant for requests that were slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.ask.nodes import Read, Total
from diptych.errors import Refusal
from diptych.model.defs import ResourceDef, Resources
from diptych.model.operators import BY_INDEX
from diptych.model.rules.expr import TRUE, And, Col, Compare, Expr, IsNull, Matches, Or
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER
from diptych.policy.access import narrow

_OFFSET = "An offset reads all rows before it: use cursors."


def advice(asks: Iterable[Read], resources: Resources, view: View) -> list[str]:
    """What would make some Reads faster; a rule of the view may find rows as well as a filter does."""
    lines: list[str] = []
    for ask in asks:
        if ask.resource == VIEWER or ask.take in ("one", "each"):
            continue
        try:
            where = narrow(ask, view).where
        except Refusal:
            where = ask.where
        lines += _of_list(ask, where, resources[ask.resource])
    return list(dict.fromkeys(lines))


def _of_list(read: Read, where: Expr, resource: ResourceDef) -> Iterator[str]:
    leading = _leading(resource)
    is_found = _is_served(where, leading)
    if not is_found and read.where != TRUE:
        yield from _of_filter(read.where, resource, leading)
    if read.order and not is_found and read.groups is None:
        match read.order[0].by:
            case Col((name,)) if name not in leading:
                named = _named(resource, (name,))
                yield f"Sorting {resource.many} by {name} sorts all of them: declare an index on {named}."
            case Col((_,)):
                pass
            case _:
                yield f"Sorting {resource.many} by a computed value computes it for all of them."
    if any(isinstance(part, Total) for part in read.pick):
        yield f"totalCount counts all {resource.many} that match: leave it out where nobody needs it."
    if read.page is not None and read.page.offset is not None:
        yield _OFFSET


def _of_filter(where: Expr, resource: ResourceDef, leading: frozenset[str]) -> Iterator[str]:
    """About a filter that no index serves."""
    names = tuple(dict.fromkeys(name for name in _indexable(where) if name not in leading))
    if names:
        yield f"No index serves the filter of {resource.many}: declare one on {_named(resource, names)}."
        return
    instead = f" The search over {', '.join(resource.search)} has an index." if resource.search else ""
    yield f"The filter of {resource.many} reads all of them: no index can serve it.{instead}"


def _leading(resource: ResourceDef) -> frozenset[str]:
    """The fields that an index begins with."""
    own = {name for name, field in resource.fields.items() if field.unique or field.indexed or field.relation}
    return frozenset((*own, "id", *(key.fields[0] for key in resource.keys if key.where == TRUE)))


def _is_served(where: Expr, leading: frozenset[str]) -> bool:
    """Does an index find the rows of a filter? One part of a conjunction suffices; a disjunction needs all."""
    match where:
        case And(of):
            return any(_is_served(part, leading) for part in of)
        case Or(of):
            return bool(of) and all(_is_served(part, leading) for part in of)
        case Compare(op, Col((name,))):
            return op in BY_INDEX and name in leading
        case IsNull(Col((name,))):
            return name in leading
        case Matches():
            return True
    return False


def _indexable(where: Expr) -> Iterator[str]:
    """The fields of a filter whose comparison an index could serve."""
    match where:
        case And(of):
            for part in of:
                yield from _indexable(part)
        case Or(of):
            parts = [list(_indexable(part)) for part in of]
            if all(parts):
                yield from (name for names in parts for name in names)
        case Compare(op, Col((name,))) if op in BY_INDEX:
            yield name


def _named(resource: ResourceDef, names: tuple[str, ...]) -> str:
    """Fields as a model file names them."""
    return " or ".join(f"{resource.name}.{resource.fields[name].attr}" for name in names)
