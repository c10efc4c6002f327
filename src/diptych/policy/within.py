"""The condition of `Write.within`: the rows that a row has by a to-many relation, as the viewer sees it.

{"comments": {"delete": [{"id": "…"}]}}       the comment refers to the post, and the post shows it
{"tags": {"set": […]}}                        the link refers to the post, and leads to a tag that is shown
"""

from __future__ import annotations

from diptych.ask.nodes import Within
from diptych.model.rules.expr import FALSE, TRUE, Col, Compare, Expr, Has, and_
from diptych.model.view import View


def belongs(within: Within | None, view: View) -> Expr:
    """Is a row, or the link to it, one of those that the other row has, as the viewer sees them?"""
    if within is None:
        return TRUE
    shown = view.resources[within.resource].relations.get(within.relation)
    if shown is None:
        return FALSE
    relation = shown.relation
    back = relation.inverse or relation.link_mine
    refers = Compare("eq", Col((back + "Id",)), within.id)
    leads = and_(shown.link, Has(relation.link_theirs, view.resources[relation.target].read)) if relation.link else TRUE
    return and_(refers, shown.back, leads, TRUE if shown.rule == TRUE else Has(back, shown.rule))
