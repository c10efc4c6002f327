"""Read authorization: adds the rules of the viewer to an Ask. No API style applies a rule, so none can forget one.

The result asks for no row and no field that the viewer may not see:

    Read("Post", "list", …, where=w)   →   Read("Post", "list", …, where=and_(w, published | authorId = viewer))
    Field("email", …)                  →   Field("email", …, rule=(id = viewer))

and the same inside every relation, every filter and every sort key: a filter sees null where the viewer would see
null. A name that is not in the view raises a Refusal, whatever API style let it through.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.nodes import (
    ConnectionPart,
    EdgePart,
    Edges,
    Field,
    Follow,
    GroupObject,
    Groups,
    GroupValue,
    Nodes,
    OrderBy,
    Pick,
    Read,
    TypeName,
    Watch,
)
from diptych.errors import Code, Refusal
from diptych.model.resource_view import RelationView, ResourceView
from diptych.model.rules.expr import TRUE, And, Col, Expr, GroupKey, Has, Measure, Or, Via, and_, mask, or_, rewrite
from diptych.model.rules.in_trash import in_trash
from diptych.model.view import View
from diptych.policy.past_rows import certain


def narrow(read: Read, view: View, known: Expr = TRUE, back: Expr = TRUE) -> Read:
    """Restrict a Read to the rows and fields of the view, and to those where `back` holds.

    `known` already holds for every row that it can reach.
    """
    resource = _visible(view, read.resource)
    if resource.resource.versions_of:
        rows = _seen_versions(resource, view)
    else:
        rows = resource.deleted if read.deleted else assume(resource.read, known)
    if read.deleted:
        resource = _deleted(resource, view)
    where = and_(narrow_expr(read.where, resource, view), rows, back)
    order = tuple([OrderBy(narrow_expr(key.by, resource, view), key.descending) for key in read.order])
    pick = tuple([_part(part, resource, view) for part in read.pick])
    groups = None if read.groups is None else _groups(read.groups, resource, view)
    return Read(read.resource, read.take, pick, where, order, read.page, read.deleted, groups)


def _seen_versions(versions: ResourceView, view: View) -> Expr:
    """The versions of a row that the viewer could have seen."""
    row = _visible(view, versions.resource.versions_of)
    return Has(row.resource.one, certain(row.read, row.resource, view.model, there=True))


def _groups(groups: Groups, resource: ResourceView, view: View) -> Groups:
    by = tuple(GroupKey(narrow_expr(key.of, resource, view), key.by) for key in groups.by)
    return Groups(by, narrow_expr(groups.having, resource, view), groups.paged)


class Watched(Struct, frozen=True):
    """A Watch restricted to the view.

    `seen` is the predicate for the old and new versions of rows that still exist, `deleted` the same for rows that have
    been deleted since, also to the trash, and `readable` the rows that the viewer may read now.
    """

    watch: Watch
    seen: Expr
    deleted: Expr
    readable: Expr


def narrow_watch(watch: Watch, view: View) -> Watched:
    """Restrict a Watch: a change is reported if the viewer could see that version of the row; its fields are shown if
    they are visible now too."""
    resource = _visible(view, watch.resource)
    if not resource.resource.followed:
        raise Refusal(Code.NOT_FOUND, resource.resource.unfollowed)
    past = _past(resource, view, there=True)
    parts = tuple(replace(part, pick=tuple(_pick(pick, past, view) for pick in part.pick)) for part in watch.parts)
    seen, deleted = (
        and_(
            narrow_expr(watch.where, _past(resource, view, there=there), view),
            certain(resource.read, resource.resource, view.model, there=there),
        )
        for there in (True, False)
    )
    return Watched(replace(watch, parts=parts), seen, deleted, resource.read)


def _past(resource: ResourceView, view: View, *, there: bool) -> ResourceView:
    """A resource with its rules rewritten for past versions of its rows (see `past_rows`)."""
    return _with_rules(resource, lambda now: certain(now, resource.resource, view.model, there=there))


def _deleted(resource: ResourceView, view: View) -> ResourceView:
    """A resource with its rules rewritten for rows in the trash (see `in_trash`)."""
    return _with_rules(resource, lambda rule: in_trash(rule, resource.resource, view.model))


def _with_rules(resource: ResourceView, rule: Callable[[Expr], Expr]) -> ResourceView:
    """A resource with the rules of its fields and relations rewritten."""
    fields = {name: replace(field, rule=rule(field.rule)) for name, field in resource.fields.items()}
    relations = {name: replace(relation, rule=rule(relation.rule)) for name, relation in resource.relations.items()}
    return replace(resource, fields=fields, relations=relations)


def _past_row(read: Read, view: View) -> Read:
    """Restrict the row of a version: it shows what is visible of the row both as it was and as it is."""
    resource = _visible(view, read.resource)
    past = _past(resource, view, there=True)
    return replace(read, pick=tuple(_part(part, past, view) for part in read.pick), where=resource.read)


def narrow_expr(expr: Expr, resource: ResourceView, view: View) -> Expr:
    """Restrict a filter of the client: hidden fields become null, relations cover readable rows only."""
    if expr is TRUE:
        return TRUE

    def leaf(part: Expr) -> Expr | None:
        if isinstance(part, Col):
            return _column(part, resource)
        if isinstance(part, Has):
            return _has(part, resource, view)
        if isinstance(part, Via):
            return _via(part, resource, view)
        if isinstance(part, Measure) and part.relation:
            return _measure(part, resource, view)
        return None

    return rewrite(expr, leaf)


def assume(rule: Expr, known: Expr) -> Expr:
    """Simplify a rule, given that `known` holds."""
    facts = known.of if isinstance(known, And) else (known,)
    if rule is TRUE or rule == known or rule in facts:
        return TRUE
    if known is TRUE:
        return rule
    if isinstance(rule, And):
        return and_(*(assume(part, known) for part in rule.of))
    if isinstance(rule, Or):
        return or_(*(assume(part, known) for part in rule.of))
    return rule


def _visible(view: View, name: str) -> ResourceView:
    resource = view.resources.get(name)
    if resource is None:
        raise Refusal(Code.FORBIDDEN, "You may not read this.")
    return resource


def _column(column: Col, resource: ResourceView) -> Expr:
    (name,) = column.path
    shown = resource.fields.get(name)
    if shown is None or shown.field.python is not None:
        raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no field '{name}'.")
    return mask(shown.rule, shown.field.computed or column)


def _way(name: str, resource: ResourceView) -> RelationView:
    relation = resource.relations.get(name)
    if relation is None:
        raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no relation '{name}'.")
    return relation


def _via(via: Via, resource: ResourceView, view: View) -> Expr:
    """A value of a related row: null where that row, the way to it, or the value is hidden."""
    relation = _way(via.relation, resource)
    target = _visible(view, relation.relation.target)
    where = and_(target.read, relation.back)
    return mask(relation.rule, Via(via.relation, narrow_expr(via.of, target, view), where))


def _measure(measure: Measure, resource: ResourceView, view: View) -> Expr:
    """A number of related rows, of those that a list of them would show."""
    relation = _way(measure.relation, resource)
    target = _visible(view, relation.relation.target)
    of = narrow_expr(measure.of, target, view)
    where = and_(narrow_expr(measure.where, target, view), target.read, relation.back)
    return Measure(measure.fn, of, measure.relation, where, relation.link, relation.rule)


def _has(has: Has, resource: ResourceView, view: View) -> Expr:
    relation = _way(has.relation, resource)
    target = _visible(view, relation.relation.target)
    inner = and_(narrow_expr(has.where, target, view), target.read, relation.back)
    return and_(relation.rule, Has(has.relation, inner, relation.link))


def _part(part: Pick | ConnectionPart, resource: ResourceView, view: View) -> Pick | ConnectionPart:
    match part:
        case Nodes(label, pick):
            return Nodes(label, tuple(_pick(inner, resource, view) for inner in pick))
        case Edges(label, parts):
            return Edges(label, tuple(_edge(edge, resource, view) for edge in parts))
        case Field() | Follow() | GroupValue() | GroupObject():
            return _pick(part, resource, view)
    return part


def _cell(
    part: GroupValue | GroupObject | TypeName, resource: ResourceView, view: View
) -> GroupValue | GroupObject | TypeName:
    match part:
        case GroupValue(label, of):
            return GroupValue(label, narrow_expr(of, resource, view))
        case GroupObject(label, parts):
            return GroupObject(label, tuple(_cell(inner, resource, view) for inner in parts))
    return part


def _edge(part: EdgePart, resource: ResourceView, view: View) -> EdgePart:
    return replace(part, pick=tuple(_pick(pick, resource, view) for pick in part.pick))


def _pick(pick: Pick, resource: ResourceView, view: View) -> Pick:
    match pick:
        case Field(name):
            if name not in resource.fields:
                raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no field '{name}'.")
            rule = resource.fields[name].rule
            return pick if rule is pick.rule else replace(pick, rule=rule)
        case Follow(name):
            if name not in resource.relations:
                raise Refusal(Code.BAD_USER_INPUT, f"{resource.resource.name} has no relation '{name}'.")
            relation = resource.relations[name]
            if relation.relation.past and relation.relation.kind == "one":
                return replace(pick, read=_past_row(pick.read, view))
            read = narrow(pick.read, view, relation.known, relation.back)
            return Follow(name, pick.label, read, relation.rule, relation.link)
        case GroupValue() | GroupObject():
            return _cell(pick, resource, view)
    return pick
