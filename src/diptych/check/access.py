"""May it: the rules of the viewer are joined into the Ask. No surface applies a rule, so none can forget one.

What goes in is what the client asked; what comes out asks for no row and no field that the viewer may not see:

    Read("Post", "list", …, where=w)   →   Read("Post", "list", …, where=and_(w, published | authorId = viewer))
    Field("email", …)                  →   Field("email", …, rule=(id = viewer))

and the same inside every relation, every filter and every key of a sort: a filter sees null where the viewer
would see null. A name that is not in the view raises, whatever surface let it through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from diptych.ask.nodes import EdgePart, Edges, Field, Follow, Nodes, Order, Part, Pick, Read, Watch
from diptych.check.gone import sure
from diptych.errors import Code, Refusal
from diptych.model.expr import TRUE, And, Col, Expr, Has, Or, and_, mask, or_, rewrite
from diptych.model.paths import rebase
from diptych.model.view import ResourceView, View


def narrow(read: Read, view: View, known: Expr = TRUE) -> Read:
    """The same wish, within what the view allows. `known` already holds for every row that can be reached."""
    resource = _visible(view, read.resource)
    return replace(
        read,
        where=and_(narrow_expr(read.where, resource, view), assume(resource.read, known)),
        order=tuple(Order(narrow_expr(key.by, resource, view), key.descending) for key in read.order),
        pick=tuple(_part(part, resource, view) for part in read.pick),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """A Watch within what the view allows: which rows it sees, as they were and became; the same of rows that are gone
    by now; and which rows the viewer may read now."""

    watch: Watch
    seen: Expr
    gone: Expr
    readable: Expr


def narrow_watch(watch: Watch, view: View) -> Watched:
    """The same for changes: a row that is told of can be seen as it was then; what is shown of it, now too."""
    resource = _visible(view, watch.resource)
    then = _then(resource, there=True)
    parts = tuple(replace(part, pick=tuple(_pick(each, then, view) for each in part.pick)) for part in watch.parts)
    seen, gone = (
        and_(narrow_expr(watch.where, _then(resource, there=there), view),
             sure(resource.read, resource.resource, there=there))
        for there in (True, False)
    )  # fmt: skip
    return Watched(replace(watch, parts=parts), seen, gone, resource.read)


def _then(each: ResourceView, *, there: bool) -> ResourceView:
    """A resource as its rows were, with rules that allow nothing because of rows that are gone by now."""

    def rule(now: Expr) -> Expr:
        return sure(now, each.resource, there=there)

    fields = {name: replace(field, rule=rule(field.rule)) for name, field in each.fields.items()}
    relations = {name: replace(way, rule=rule(way.rule)) for name, way in each.relations.items()}
    return replace(each, fields=fields, relations=relations)


def narrow_expr(expr: Expr, resource: ResourceView, view: View) -> Expr:
    """A filter of the client: its fields masked, its relations over readable rows only."""

    def leaf(part: Expr) -> Expr | None:
        if isinstance(part, Col):
            return _column(part, resource)
        if isinstance(part, Has):
            return _has(part, resource, view)
        return None

    return rewrite(expr, leaf)


def assume(rule: Expr, known: Expr) -> Expr:
    """What is left to test of a rule when `known` holds already."""
    facts = known.of if isinstance(known, And) else (known,)
    if rule == known or rule in facts:
        return TRUE
    if isinstance(rule, And):
        return and_(*(assume(part, known) for part in rule.of))
    if isinstance(rule, Or):
        return or_(*(assume(part, known) for part in rule.of))
    return rule


def _visible(view: View, name: str) -> ResourceView:
    if name not in view.resources:
        raise Refusal(Code.FORBIDDEN, "You may not read this.")
    return view.resources[name]


def _column(column: Col, resource: ResourceView) -> Expr:
    (name,) = column.path
    found = resource.fields.get(name)
    if found is None or found.field.python is not None:
        raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no field '{name}'.")
    return mask(found.rule, found.field.computed or column)


def _has(has: Has, resource: ResourceView, view: View) -> Expr:
    way = resource.relations.get(has.relation)
    if way is None:
        raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no relation '{has.relation}'.")
    target = _visible(view, way.relation.target)
    inner = and_(narrow_expr(has.where, target, view), target.read, way.back)
    return and_(way.rule, Has(has.relation, inner, way.link))


def _part(part: Pick | Part, resource: ResourceView, view: View) -> Pick | Part:
    match part:
        case Nodes(label, pick):
            return Nodes(label, tuple(_pick(each, resource, view) for each in pick))
        case Edges(label, parts):
            return Edges(label, tuple(_edge(each, resource, view) for each in parts))
        case Field() | Follow():
            return _pick(part, resource, view)
    return part


def _edge(part: EdgePart, resource: ResourceView, view: View) -> EdgePart:
    return replace(part, pick=tuple(_pick(each, resource, view) for each in part.pick))


def _pick(pick: Pick, resource: ResourceView, view: View) -> Pick:
    match pick:
        case Field(name):
            if name not in resource.fields:
                raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no field '{name}'.")
            return replace(pick, rule=resource.fields[name].rule)
        case Follow(name):
            if name not in resource.relations:
                raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no relation '{name}'.")
            way = resource.relations[name]
            back = way.relation.inverse if way.relation.kind == "many" else ""
            known = rebase(resource.read, (back,)) if back else TRUE
            read = narrow(pick.read, view, known)
            read = replace(read, where=and_(read.where, way.back))
            return replace(pick, read=read, rule=way.rule, link=way.link)
    return pick
