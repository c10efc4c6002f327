"""Rules of a row in the trash: what is not to be there must not be in the trash either.

A rule finds no deleted rows, and what a row had is deleted along with it. So in the trash a negation would hold of
every row, also for a viewer from whom the row was hidden before:

    Not(Has("locks", And((strict, deletedAt is null))))     →     Not(Has("locks", strict))

What is to be there is looked for among the rows that are not deleted, as everywhere.
"""

from __future__ import annotations

from msgspec.structs import replace

from diptych.model.defs import ResourceDef, Resources
from diptych.model.rules.expr import TRUE, And, Choose, Expr, Has, Not, Or, and_, leaves, not_, or_, rewrite


def in_trash(rule: Expr, resource: ResourceDef, resources: Resources, *, negated: bool = False) -> Expr:
    """The rule of a row that is in the trash."""

    def inner(part: Expr) -> Expr:
        return in_trash(part, resource, resources, negated=negated)

    match rule:
        case And(of):
            return and_(*map(inner, of))
        case Or(of):
            return or_(*map(inner, of))
        case Not(of):
            return not_(in_trash(of, resource, resources, negated=not negated))
        case Has(name, where, link):
            relation = resource.relations[name]
            target = resources[relation.target]
            where = in_trash(where, target, resources, negated=negated)
            if negated and relation.kind != "one":
                where = _without(where, target.present)
                link = _without(link, resources[relation.link].present) if relation.link and link is not None else link
            return replace(rule, where=where, link=link)
    choice = _choice(rule)
    return rule if choice is None else inner(_by_cases(rule, choice))


def _choice(rule: Expr) -> Choose | None:
    """A choice between two values, by related rows, that the rule looks at."""
    found: list[Choose] = []

    def note(part: Expr) -> Expr | None:
        if isinstance(part, Choose) and any(isinstance(leaf, Has) for leaf in leaves(part.when)):
            found.append(part)
        return None

    rewrite(rule, note)
    return found[0] if found else None


def _by_cases(rule: Expr, choice: Choose) -> Expr:
    """The same rule, with the condition of the choice beside its values."""

    def chosen(value: Expr) -> Expr:
        return rewrite(rule, lambda part: value if part == choice else None)

    return or_(and_(choice.when, chosen(choice.then)), and_(not_(choice.when), chosen(choice.other)))


def _without(condition: Expr, present: Expr) -> Expr:
    """A condition without that of rows that are not deleted."""
    parts = condition.of if isinstance(condition, And) else (condition,)
    return condition if present == TRUE else and_(*(part for part in parts if part != present))
